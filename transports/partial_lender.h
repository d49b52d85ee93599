#pragma once

#include "transports/optional_streams.h"

namespace seto {

// A LendingSender whose receivers can read some memory of the sender, and not all. A stream that has it derives from it, and
// returns null for SendStream::lending(), which promises to lend any memory.
//
// lend() also returns false if a receiver cannot read that memory, or if slice 0 of the operation was acquired. Then the caller
// calls acquire(), which may have no credit either. One of the two serves all slices of an operation. taken() and revoke() return
// true if nothing was lent.
class PartialLender : public LendingSender {};

}  // namespace seto
