#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "transports/shm/segment.h"
#include "transports/slots/lendable_memory.h"

namespace seto {

// The memory of setoMemAlloc: parts of one file, of which other processes of the host map the whole. So a peer needs no message
// for an allocation, and none of it can be out of date: an offset always names the same bytes. The file reserves addresses, not
// memory. Memory of a part is there from the start, because a lack of it would be a signal later (SIGBUS), and goes back when the
// part is freed; nothing reads it then, since an operation ends only when its buffers are read no more. Any thread.
//
// A forked child shares the parts of its parent, as it shares any memory of a file: what either writes, both see. New parts of
// the child are in a file of its own.
class UserMemory final {
 public:
  // Makes the file at the first call. Never destroyed: users may free memory after main.
  static UserMemory& of_process();
  // The file as it is mapped here; it is null until a part was allocated.
  static const slots::LendableMemory& lendable();
  // `most`: bytes of all parts together.
  explicit UserMemory(std::uint64_t most);
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  // Code::unavailable: the file has no room, or the machine no memory. Other memory serves as well, only slower.
  [[nodiscard]] Result<void*> allocate(std::size_t size);
  // Empty: the address is not within the file.
  [[nodiscard]] std::optional<Status> free(void* memory);
  // The file, for peers; -1: there is none.
  [[nodiscard]] int descriptor() const { return segment_ ? segment_->fd() : -1; }
  [[nodiscard]] const std::byte* data() const { return segment_ ? segment_->data() : nullptr; }
  [[nodiscard]] std::uint64_t populated() const { return segment_ ? segment_->populated() : 0; }

 private:
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);
  void give_back(std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] Status open(std::uint64_t offset, std::uint64_t size);
  [[nodiscard]] Status close(std::uint64_t offset, std::uint64_t size);

  const std::uint32_t generation_ = fork_generation();
  const UserMemory* parents_ = nullptr;  // in a forked child: that of the process that forked it
  std::optional<Segment> segment_;
  Status why_none_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;   // sizes by offset; no two of them touch
  std::map<std::uint64_t, std::uint64_t> parts_;  // sizes by offset
};

}  // namespace seto
