#include "src/core/device_memory/replays.h"

#include <atomic>
#include <utility>

#include "src/core/communicator/communicator.h"
#include "src/core/device_memory/launches.h"
#include "src/core/device_memory/transfer_shapes.h"

namespace seto {
namespace {

// The lowest bits of the word. The number of the launch is above them. Only the watcher writes kSeen, over kBegun: if it finds
// that again, no other replay has begun since.
constexpr std::uint32_t kBegun = 1, kSeen = 2;
constexpr int kStateBits = 2;
constexpr std::uint64_t kStopMs = 10'000;  // for a kernel to end after it was stopped

}  // namespace

std::uint64_t Replays::Captured::ms() const {
  std::uint64_t sum = 0;
  for (const CallDeadline& limit : limits) sum += limit.ms();
  return sum;
}

std::string Replays::Captured::limit_text() const {
  if (limits.size() == 1) return limits.front().text();
  return std::to_string(ms()) + " ms, the time of its " + std::to_string(limits.size()) + " calls";
}

std::string Replays::Captured::what() const {
  const std::string& first = shapes.front()->what;
  return shapes.size() == 1 ? first : first + " and the " + std::to_string(shapes.size() - 1) + " calls after it";
}

// A program that captures the same calls again and again does not fill the list, unless they are numbered (all_to_allv).
std::uint32_t Replays::number_of(Captured captured) {
  const auto is_equal = [&](const Captured& other) {
    return other.shapes == captured.shapes && other.ms() == captured.ms() && other.exchange == captured.exchange;
  };
  const std::lock_guard lock(mutex_);
  std::uint32_t number = 1;
  for (const Captured& other : captured_) {
    if (is_equal(other)) return number;
    ++number;
  }
  captured_.push_back(std::move(captured));
  return number;
}

Status Replays::mark_begin(Captured captured, cuda::Stream stream) {
  const std::uint32_t number = number_of(std::move(captured));
  return driver_.memset_d32_async(there_, number << kStateBits | kBegun, 1, stream);
}

Status Replays::mark_end(cuda::Stream stream) { return driver_.memset_d32_async(there_, 0, 1, stream); }

Replays::Running Replays::look() {
  const std::atomic_ref word(*word_);
  std::uint32_t value = word.load(std::memory_order_acquire);
  const std::uint32_t number = value >> kStateBits;
  // If the exchange fails, the replay has ended meanwhile, and perhaps the next one has begun.
  const bool is_new = (value & kBegun) != 0;
  if (is_new && !word.compare_exchange_strong(value, number << kStateBits | kSeen, std::memory_order_acq_rel)) return {};
  const std::lock_guard lock(mutex_);
  if (number == 0 || number > captured_.size()) return {};
  Running running{number, &captured_[number - 1], false};
  if (is_new) until_ = Deadline::after_ms(running.captured->ms());
  running.is_overdue = until_.passed();
  return running;
}

bool Replays::still_runs(const Running& running) const {
  return std::atomic_ref(*word_).load(std::memory_order_acquire) == (running.number << kStateBits | kSeen);
}

void ReplayWatch::judge() {
  if (control_.failed()) return;
  Replays& replays = launches_.replays();
  if (!overdue_) {
    const Replays::Running found = replays.look();
    if (!found.is_overdue) return;
    overdue_ = found;
    until_ = Deadline::after_ms(kStopMs);
  }
  const Replays::Running& running = *overdue_;
  // The kernel says for whom it waits when it is told to stop. One that lends ends later than the first time. Meanwhile the
  // watcher looks after other communicators.
  launches_.stop();
  if (replays.still_runs(running) && !until_.passed()) return;
  control_.fail(
      failure(Code::timeout, "a replay of %s, of a CUDA graph, did not end within %s: %s", running.captured->what().c_str(),
              running.captured->limit_text().c_str(), missing(*running.captured).c_str()),
      control_.rank());
}

std::string ReplayWatch::missing(const Replays::Captured& captured) const {
  if (const TransferList* const list = captured.shapes.front()->transfers.get(); list != nullptr)
    return TransferShapes::text_of(transfers_.waiting(*list, 0, captured.exchange));
  const std::string rank = "rank " + std::to_string(control_.rank()) + " ";
  for (std::uint32_t program = 0; program < captured.shapes.size(); ++program)
    if (const auto report = launches_.stopped_at(program)) return rank + captured.shapes[program]->wait_text(*report);
  return rank + "waits for no peer in its kernel";
}

}  // namespace seto
