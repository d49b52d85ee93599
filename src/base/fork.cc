#include "src/base/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

#include "src/base/check.h"

namespace seto {
namespace {

constexpr int kBitsPerWord = 64;

std::atomic<std::uint32_t> generation{0};
std::atomic<bool> children_refused{false};
std::atomic<bool> was_forked{false};
// Bit n is set while descriptor n is a PrivateFd of this process. The bits are atomics and not guarded by a lock, because the
// handler runs in a forked child, where other threads no longer exist and the locks that they held are never released.
std::array<std::atomic<std::uint64_t>, kPrivateFdLimit / kBitsPerWord> private_fds{};

void on_fork_in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  if (children_refused.load(std::memory_order_relaxed)) was_forked.store(true, std::memory_order_relaxed);
  for (std::size_t word = 0; word < private_fds.size(); ++word) {
    std::uint64_t bits = private_fds[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) ::close(static_cast<int>(word) * kBitsPerWord + std::countr_zero(bits));
  }
}

void install_handler() {
  static const int installed = pthread_atfork(nullptr, nullptr, on_fork_in_child);
  SETO_CHECK(installed == 0);
}

void track(int number) {
  if (number < 0 || number >= kPrivateFdLimit) return;
  const std::uint64_t bit = std::uint64_t{1} << (number % kBitsPerWord);
  private_fds[static_cast<std::size_t>(number / kBitsPerWord)].fetch_or(bit, std::memory_order_relaxed);
}

void untrack(int number) {
  if (number < 0 || number >= kPrivateFdLimit) return;
  const std::uint64_t bit = std::uint64_t{1} << (number % kBitsPerWord);
  private_fds[static_cast<std::size_t>(number / kBitsPerWord)].fetch_and(~bit, std::memory_order_relaxed);
}

}  // namespace

std::uint32_t fork_generation() {
  install_handler();
  return generation.load(std::memory_order_relaxed);
}

void refuse_forked_children() {
  install_handler();
  children_refused.store(true, std::memory_order_relaxed);
}

bool process_was_forked() { return was_forked.load(std::memory_order_relaxed); }

Status used_in_forked_child() {
  return failure(Code::invalid_usage,
                 "this process was forked from one that uses the library: only the parent may go on using it");
}

PrivateFd::PrivateFd(Fd fd) : fd_(std::move(fd)), generation_(fork_generation()) { track(fd_.get()); }

PrivateFd& PrivateFd::operator=(PrivateFd&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    generation_ = other.generation_;
  }
  return *this;
}

void PrivateFd::close() {
  if (!fd_.valid()) return;
  const bool tracked = fd_.get() < kPrivateFdLimit;
  if (tracked && generation_ != fork_generation()) {
    static_cast<void>(fd_.release());
    return;
  }
  // The bit is cleared before the descriptor is closed. A fork between the two leaks one descriptor; in the other order it
  // would close a descriptor that another thread was given under the same number.
  untrack(fd_.get());
  fd_.close();
}

}  // namespace seto
