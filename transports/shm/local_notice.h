#pragma once

#include <cstdint>

#include "src/base/fd.h"
#include "src/base/types.h"

namespace seto {

// A datagram between two processes of a host, over the packet socket that they keep. The kinds differ in their length.
struct LocalNotice {
  enum class Kind : std::uint8_t {
    nothing_more,    // the socket is empty
    process_ended,   // end of file
    context_ended,   // that context
    memory_offered,  // the memory of setoMemAlloc, as a descriptor
    memory_mapped,   // the sender has mapped the memory that it was offered
    unknown,
  };
  Kind kind = Kind::unknown;
  ContextId context = 0;
  Fd memory;  // invalid: this process has no free descriptor
};

// None of them blocks. Sending returns false if the notice was dropped: the queue is full, or the other process has ended.
[[nodiscard]] LocalNotice receive_notice(int socket);
bool send_context_ended(int socket, ContextId context);
bool send_memory(int socket, int memory);
bool send_memory_mapped(int socket);

}  // namespace seto
