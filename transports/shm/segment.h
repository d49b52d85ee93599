#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto {

// Memory that processes of one machine share, without a name: nothing stays behind whoever is killed. It reserves addresses,
// not memory: making one costs the same at any size, and pages exist where they were populated or touched.
// Any thread, for ranges that do not overlap. Offsets and sizes are multiples of kSegmentPage.
inline constexpr std::uint64_t kSegmentPage = 4'096;
inline constexpr std::uint64_t kSegmentSize = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kSegmentLimit = std::uint64_t{1} << 40;

class Segment final {
 public:
  struct Options {
    std::uint64_t size = kSegmentSize;
    std::uint64_t limit_bytes = std::numeric_limits<std::uint64_t>::max();  // what populate may bring it to: config, and tests
  };

  static Result<Segment> create(const Options& options);

  // A peer's, of any size up to `largest`. Refused unless it can never shrink: a peer could else cut it off under our hands,
  // and a load would raise SIGBUS. The descriptor may be closed afterwards.
  static Result<Segment> map(int fd, std::uint64_t largest);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // To be handed to peers; -1 of a peer's.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Of our own only. Gives the range its pages, so that running out of memory is an error here (Code::unavailable) and not a
  // signal later. A range already populated may count twice against limit_bytes.
  [[nodiscard]] Status populate(std::uint64_t offset, std::uint64_t size);

  // Of our own only. Gives the pages back; the range reads as zeros afterwards, for peers too.
  [[nodiscard]] Status release(std::uint64_t offset, std::uint64_t size);

  // Enters existing pages of the range into this process's page table, so that first touches do not fault (512 faults a MiB
  // otherwise, on each side). A hint: where the kernel cannot, nothing happens. Pages not populated would be made: do that first.
  void prefault(std::uint64_t offset, std::uint64_t size) const;

  // Memory that exists behind it, by whomever it was touched.
  [[nodiscard]] std::uint64_t populated() const;

 private:
  Segment() = default;
  [[nodiscard]] Status map_whole(int fd);
  [[nodiscard]] Status check_room(std::uint64_t size) const;
  void unmap();

  Fd fd_;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t limit_bytes_ = 0;
};

}  // namespace seto
