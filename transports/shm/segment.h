#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto {

// Anonymous memory that processes of one machine share: nothing stays behind if a process is killed. A segment reserves
// addresses, not memory: creation costs the same at any size, and pages exist where they were populated or touched. Any thread
// may call, for ranges that do not overlap. Offsets and sizes are multiples of kSegmentPage.
inline constexpr std::uint64_t kSegmentPage = 4'096;
inline constexpr std::uint64_t kSegmentSize = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kSegmentLimit = std::uint64_t{1} << 40;

class Segment final {
 public:
  struct Options {
    std::uint64_t size = kSegmentSize;
    std::uint64_t limit_bytes =
        std::numeric_limits<std::uint64_t>::max();  // upper limit for populate(), from the configuration or a test
  };

  static Result<Segment> create(const Options& options);

  enum class Access : std::uint8_t { read, read_and_write };
  // Maps a peer's segment of any size up to `largest`. Refuses a segment that can shrink: the peer could truncate it, and a load
  // would raise SIGBUS. The descriptor may be closed afterwards.
  static Result<Segment> map(int fd, std::uint64_t largest, Access access = Access::read_and_write);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // The descriptor to pass to peers; -1 for a peer's segment.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Own segments only. Allocates the pages of the range, so that running out of memory is an error here (Code::unavailable) and
  // not a signal later. A range already populated may count twice against limit_bytes.
  [[nodiscard]] Status populate(std::uint64_t offset, std::uint64_t size);

  // The same for pages that this process will use itself: they are entered into its page table, too, and are huge where the
  // system allows that. The range is mapped for writing.
  [[nodiscard]] Status populate_mapped(std::uint64_t offset, std::uint64_t size);

  // Own segments only. Releases the pages; the range reads as zeros afterwards, for peers too.
  [[nodiscard]] Status release(std::uint64_t offset, std::uint64_t size);

  // Enters existing pages of the range into this process's page table, so that first touches do not fault (512 faults a MiB
  // otherwise, on each side). A hint: a kernel that cannot do it does nothing. Populate the range first, or this allocates its
  // pages.
  void prefault(std::uint64_t offset, std::uint64_t size) const;

  // Bytes of memory allocated for the segment, whichever process touched it.
  [[nodiscard]] std::uint64_t populated() const;

 private:
  Segment() = default;
  [[nodiscard]] Status map_whole(int fd, Access access);
  [[nodiscard]] Status check_room(std::uint64_t size) const;
  void unmap();

  Fd fd_;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t limit_bytes_ = 0;
};

}  // namespace seto
