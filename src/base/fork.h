#pragma once

#include <cstdint>
#include <utility>

#include "src/base/fd.h"
#include "src/base/status.h"

namespace seto {

// After fork(), the child has none of the parent's other threads, locks may stay locked for ever, and descriptors are shared: a
// peer would not notice the parent's death while a child (a data loader, for example) lives on. So the child closes every
// PrivateFd at once, and objects that were made before the fork refuse to work in it. Global state: a counter, two flags and one
// bit for each open PrivateFd. Any thread; nothing here blocks.

// A number that is one higher in each child. An object that was made under another generation must not be used.
[[nodiscard]] std::uint32_t fork_generation();

// After this call, process_was_forked() is true in every child that this process forks, and in their children.
void refuse_forked_children();

// One relaxed load.
[[nodiscard]] bool process_was_forked();

// The failure that an object of another generation returns.
[[nodiscard]] Status used_in_forked_child();

// A descriptor that no forked child keeps. (An exec'ed program does not keep it either: its creator opens it close-on-exec.) In
// the child the descriptor is already closed, and this object does not close its number again, which may be in use for another
// file. Descriptors from kPrivateFdLimit on are not tracked and stay open in a child.
inline constexpr int kPrivateFdLimit = 65'536;

class PrivateFd final {
 public:
  PrivateFd() = default;
  explicit PrivateFd(Fd fd);
  PrivateFd(PrivateFd&& other) noexcept : fd_(std::move(other.fd_)), generation_(other.generation_) {}
  PrivateFd& operator=(PrivateFd&& other) noexcept;
  PrivateFd(const PrivateFd&) = delete;
  PrivateFd& operator=(const PrivateFd&) = delete;
  ~PrivateFd() { close(); }

  [[nodiscard]] int get() const { return fd_.get(); }
  [[nodiscard]] bool valid() const { return fd_.valid(); }
  void close();

 private:
  Fd fd_;
  std::uint32_t generation_ = 0;
};

}  // namespace seto
