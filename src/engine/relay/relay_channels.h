#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/engine/relay/relay_program.h"
#include "transports/optional_streams.h"
#include "transports/peer_group.h"

namespace seto {

// The flags of staging memory: one side writes a flag, the other polls it.
[[nodiscard]] std::uint64_t load_flag(const std::byte* staging, std::uint64_t place);
void store_flag(std::byte* staging, std::uint64_t place, std::uint64_t value);

// The open streams of a call shape, which move the messages of its operations between them and the staging memory of this rank.
// One operation uses them at a time. No call waits.
class RelayChannels final {
 public:
  // `digest` and `window_bytes`: of each stream (StreamGeometry).
  static Result<std::shared_ptr<RelayChannels>> open(RelayProgram program, std::uint32_t digest, std::uint64_t window_bytes,
                                                     PeerGroup& peer_group);
  RelayChannels(const RelayChannels&) = delete;
  RelayChannels& operator=(const RelayChannels&) = delete;
  void close();  // the streams

  // The number of an operation for streams and for the kernel.
  struct Operation {
    std::uint64_t number = 0;
    std::uint64_t of_kernel = 0;
  };
  void start(const Operation& operation);
  // Moves messages as far as possible, at most so many. Returns the number of those that moved.
  std::uint32_t advance(std::byte* staging, std::uint32_t most);
  [[nodiscard]] bool done() const { return left_ == 0; }
  // "waits for slice 3 of 4 from rank 2"; empty: all messages have moved.
  [[nodiscard]] std::string waits_for(std::byte* staging) const;

 private:
  struct Channel {
    const RelayProgram::Channel* bound = nullptr;
    std::unique_ptr<SendStream> send;  // null: it receives
    std::unique_ptr<ReceiveStream> receive;
    SizedReceiver* sized = nullptr;
    BorrowingReceiver* borrowing = nullptr;
    std::uint64_t moved = 0;  // slices
  };

  explicit RelayChannels(RelayProgram program) : program_(std::move(program)) {}
  Status open(std::uint32_t digest, std::uint64_t window_bytes, PeerGroup& peer_group);
  bool move(Channel& channel, std::byte* staging) const;
  [[nodiscard]] bool send(const Channel& channel, std::byte* staging) const;
  [[nodiscard]] bool receive(const Channel& channel, std::byte* staging) const;
  // All blocks have set this flag of theirs to the mark of so many slices.
  [[nodiscard]] bool reach(std::byte* staging, std::uint64_t flags, std::uint64_t slices) const;
  void tell(std::byte* staging, std::uint64_t flags, std::uint64_t slices) const;

  const RelayProgram program_;
  std::vector<Channel> channels_;
  Operation operation_;
  std::uint64_t left_ = 0;  // messages
};

}  // namespace seto
