#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/engine/device/device_transfers.h"

namespace seto::support {

// A message of a group: one is sent, and its receiver may expect another one.
struct TestMessage {
  std::size_t sender = 0, receiver = 0;
  std::uint64_t size = 0;
  std::uint64_t label = 0;
  std::uint64_t numbered = 0;
};

// Runs sends and receives with the source of the kernel, compiled for the host: each block is a thread. Every rank launches its
// groups one after another, on its own, so ranks may be groups apart.
class EmulatedTransfers final {
 public:
  explicit EmulatedTransfers(std::size_t ranks);

  // The calls of one launch of a rank, in their order; the buffers of the launch are made from them.
  struct Call {
    bool sends = true;
    TestMessage message;
  };
  struct Launch {
    std::vector<Call> calls;
    std::uint32_t most_blocks = 1;
    std::uint64_t exchange = 0;
  };
  // Launches by rank. A launch that does not end in time is stopped.
  void run(const std::vector<std::vector<Launch>>& launches, std::uint64_t timeout_ms = 100'000);

  // Differences between what was sent and what arrived in run(), and bytes written beside a buffer; empty: none.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  // "rank 1: receive from 0: refused": all lanes that did not end well.
  [[nodiscard]] const std::string& stopped() const { return stopped_; }
  [[nodiscard]] const TransferArea& area() const { return area_; }
  [[nodiscard]] const kernels::TransferReport& report(std::size_t rank, LocalTransfer pair, std::uint32_t channel) const {
    return reports_[rank][area_.report(pair, channel)];
  }

 private:
  struct Buffer {
    std::vector<std::byte> bytes;  // with a margin on both sides
    std::size_t shift = 0;         // of the message, from the margin on
  };
  struct Prepared {
    std::vector<Buffer> buffers;  // by call
    std::vector<std::byte> program;
    kernels::TransferArguments arguments;
    std::uint32_t blocks = 1;
  };
  Prepared prepare(std::size_t rank, const Launch& launch);
  void check(std::size_t rank, const Launch& launch, const Prepared& prepared);
  void list_stopped();

  std::size_t ranks_;
  TransferArea area_;
  std::vector<std::vector<std::uint64_t>> workspaces_;  // of words, so that flags are aligned
  std::vector<kernels::Address> addresses_;
  std::vector<std::vector<kernels::TransferReport>> reports_;
  std::vector<std::uint64_t> stop_;  // by rank
  std::uint64_t launches_ = 0;
  // Messages of each pair so far, which give them their contents.
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> sent_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> checked_;
  std::string wrong_, stopped_;
};

}  // namespace seto::support
