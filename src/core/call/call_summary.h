#pragma once

#include <string>
#include <string_view>

#include "transports/transport.h"

namespace seto {

// The text of a collective's note. A note of another rank may be damaged: readers of it get printable characters only.

// Stores the reason of a rejection. If it is too long, stores the words that fit, and "...".
void put_reason(Note& note, std::string_view reason);
std::string reason_of(const Note& note);

// "all_reduce of 8 float, sum, codec fp16": the codec is the one that the call permits.
std::string text_of(const Note& note);

}  // namespace seto
