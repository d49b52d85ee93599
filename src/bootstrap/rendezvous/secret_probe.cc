#include "src/bootstrap/rendezvous/secret_probe.h"

#include <poll.h>

#include <algorithm>
#include <vector>

#include "src/bootstrap/rendezvous/outgoing_connection.h"

namespace seto {
namespace {

// Within one machine. Usually no process listens there, and the kernel reports that at once; a process of a busy machine may need
// most of this to answer.
constexpr std::uint64_t kAnswerMs = 1000;

}  // namespace

bool finds_another_secret(const SecretProbe& probe) {
  const Deadline until = Deadline::after_ms(kAnswerMs);
  Claim claim;
  claim.purpose = static_cast<std::uint8_t>(RendezvousPurpose::rendezvous);
  claim.caller_context = static_cast<std::uint64_t>(probe.rank);
  OutgoingConnection call(probe.where, probe.key, claim);
  call.begin(until);
  while (!call.over() && !until.passed()) {
    std::vector<pollfd> entries;
    call.prepare(entries);
    static_cast<void>(poll(entries.data(), entries.size(), std::min(call.wait_ms(), until.wait_ms())));
    call.advance();
  }
  return call.key_unknown();
}

}  // namespace seto
