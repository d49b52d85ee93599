#pragma once

#include <cstdint>
#include <utility>

#include "src/base/fd.h"
#include "src/base/status.h"

namespace seto {

// What fork() does to a process that uses the library: threads are gone in the child, locks may be held for ever, and
// descriptors are shared, so that a peer would not see the parent die while a child (a data loader, say) lives on. So the
// child closes every PrivateFd at once, and objects made before the fork are dead in it.
// Mutable state of the process: a counter, two flags and one bit per open PrivateFd. Any thread; nothing here blocks.

// Grows by one in each child. An object made under another generation than the present one must not be used.
[[nodiscard]] std::uint32_t fork_generation();

// From now on children of this process are refused: process_was_forked() is true in them and in their children.
void refuse_forked_children();

// One relaxed load.
[[nodiscard]] bool process_was_forked();

// Why an object of another generation refuses to work.
[[nodiscard]] Status used_in_forked_child();

// A descriptor that no forked child keeps (nor an exec'ed one: it is opened close-on-exec by whoever makes it). In the child
// its number is already closed, and this object leaves it alone: the number may belong to somebody else by then.
// Numbers from kPrivateFdLimit on are not tracked and do stay open in a child.
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
