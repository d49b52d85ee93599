#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/clock.h"
#include "transports/rdma/connect/selection.h"
#include "transports/rdma/link/ring_channel.h"
#include "transports/rdma/verbs/verbs.h"

// Two processes with a channel between two RDMA devices, for rdma_link.
namespace seto::bench_rdma {

enum class Wait : std::uint8_t { poll, poll_then_sleep };

struct Shape {
  std::uint64_t ring_size = std::uint64_t{256} << 10;
  std::uint32_t records = 128;
  Wait wait = Wait::poll_then_sleep;
  std::uint64_t poll_us = 200;  // before it sleeps
};

// Prints the text and ends the process.
[[noreturn]] void give_up(const std::string& text);
void need(const Status& status);
template <class T>
T need(Result<T> result) {
  need(result.status());
  return std::move(result).value();
}

// One end in its own process.
class LinkEnd final {
 public:
  // `socket` leads to the other end; `devices` are the names of both, the own one first.
  LinkEnd(const Shape& shape, int socket, const std::string (&devices)[2]);

  [[nodiscard]] rdma::RingChannel& channel() { return *channel_; }
  [[nodiscard]] rdma::VerbsDevice& device() { return *device_; }
  // Hands out completions. Polls for a while, then sleeps until the next one. Ends the process if nothing has come for long.
  void advance();

 private:
  static constexpr std::uint64_t kSilenceMs = 60'000;
  static constexpr std::uint8_t kTimeout = 17;  // 0.54 s until a packet is sent again: an emulated machine is held up for long

  void wait_for_event();

  const Shape shape_;
  std::unique_ptr<rdma::Verbs> verbs_;
  std::unique_ptr<rdma::VerbsDevice> device_;
  std::unique_ptr<rdma::Completions> completions_;
  std::unique_ptr<rdma::RingChannel> channel_;
  std::uint64_t silent_since_ns_ = monotonic_ns();
};

}  // namespace seto::bench_rdma
