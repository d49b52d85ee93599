#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/engine/bound_program.h"
#include "transports/optional_streams.h"
#include "transports/peer_group.h"

namespace seto {

// A source of a step, as the host executor uses it.
struct HostSource {
  ReceiveStream* stream = nullptr;         // null: memory
  BorrowingReceiver* borrowing = nullptr;  // null: the stream does not offer the interface
  SizedReceiver* sized = nullptr;
  Space space = Space::input;
  bool coded = false;
};

struct HostTarget {
  SendStream* stream = nullptr;
  LendingSender* lending = nullptr;  // not null: the stream lends from space and lent_offset and fills no slot ...
  bool lends_some = false;           // ... unless its receivers cannot read the memory there (PartialLender)
  Space space = Space::output;
  bool coded = false;
  Rank peer = -1;
  std::uint64_t lent_offset = 0;
};

// The message, or null. Most messages arrive soon after this point. Leaving the engine and coming back takes as long as ten
// checks, and half of that time is lost if the message arrives meanwhile.
inline const std::byte* look(ReceiveStream& stream, Mark mark) {
  constexpr int kLooks = 16;
  const std::byte* message = stream.front(mark);
  for (int looks = 1; message == nullptr && looks < kLooks; ++looks) message = stream.front(mark);
  return message;
}

// The open streams of a bound program. This class decides which messages are lent, because only an open stream knows whether it
// can lend.
struct HostStreams {
  static Result<HostStreams> open(const BoundProgram& program, PeerGroup& peer_group);

  std::vector<HostSource> sources;  // as BoundProgram::sources
  std::vector<HostTarget> targets;  // as BoundProgram::targets
  std::vector<HostTarget> lending;  // those that lend, or may lend
  bool borrows = false;             // some source does
  std::vector<std::unique_ptr<SendStream>> sends;
  std::vector<std::unique_ptr<ReceiveStream>> receives;

 private:
  Status open_source(const BoundProgram& program, const BoundSource& bound, PeerGroup& peer_group);
  Status open_target(const BoundProgram& program, const BoundTarget& bound, std::uint64_t bytes, PeerGroup& peer_group);
};

}  // namespace seto
