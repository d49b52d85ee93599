#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/result.h"
#include "transports/gpu_buffer.h"
#include "transports/resume/copy_memory.h"
#include "transports/resume/heard.h"

namespace seto::resume {

// Memory from which frames are sent, such as a slot, or the caller's buffer during one operation. Its owner may write it again
// when no frame needs it. Any thread may ask.
class Lender final {
 public:
  Lender() = default;
  explicit Lender(HostCopy& host) : host_(&host) {}  // of memory of a GPU; it outlives the lender
  [[nodiscard]] HostCopy* host_copy() const { return host_; }
  [[nodiscard]] bool needed() const { return frames_.load(std::memory_order_acquire) > 0; }
  // A frame needs it, and does no more.
  void count() { frames_.fetch_add(1, std::memory_order_relaxed); }
  void done() { frames_.fetch_sub(1, std::memory_order_release); }

 private:
  HostCopy* const host_ = nullptr;
  std::atomic<std::uint32_t> frames_{0};
};

struct Payload {
  const std::byte* data = nullptr;
  std::uint32_t size = 0;
  // Keeps the memory alive. Null: the memory lives as long as the retention, and never changes.
  std::shared_ptr<Lender> lender;
};

// Keeps payloads of frames until the peer has them, and the path that took each of them last. Payloads stay where they are lent
// until their owner wants to write there; then what is not acknowledged is copied. The copies are at most what may be under way,
// so memory is bounded. Not thread safe.
//
// A path that writes a frame in parts asks for payload() again before each part: the memory may have moved meanwhile.
class PayloadRetention {
 public:
  struct Limits {
    std::uint64_t bytes = 0;    // of payloads that are not acknowledged: the window
    std::size_t frames = 0;     // not acknowledged
    std::uint32_t at_once = 0;  // payloads of up to so many bytes are copied at once: looking for them later would cost more
  };
  PayloadRetention(Limits limits, CopyMemory& copies) : limits_(limits), copies_(copies) {}
  PayloadRetention(const PayloadRetention&) = delete;
  PayloadRetention& operator=(const PayloadRetention&) = delete;
  ~PayloadRetention();
  void set_window(std::uint64_t bytes) { limits_.bytes = bytes; }

  // A single frame may always go, however small the window is.
  [[nodiscard]] bool may_send(std::uint32_t size) const {
    return count() == 0 || (count() < limits_.frames && bytes_ + size <= limits_.bytes);
  }

  // Whether the frame is still kept: then it has a payload.
  [[nodiscard]] bool keeps(std::uint64_t number) const { return number >= first_ && number <= sent_ && record(number).under_way; }
  [[nodiscard]] std::uint32_t size(std::uint64_t number) const;
  // The peer has an acknowledged frame whole and drops what a path still owes of it, so any bytes will do. If it is on_gpu(),
  // only devices read it, and host_payload() brings it as HostCopy does.
  [[nodiscard]] const std::byte* payload(std::uint64_t number) const;
  [[nodiscard]] bool on_gpu(std::uint64_t number) const { return is_of_gpu(number) && is_on_gpu(record(number)); }
  [[nodiscard]] bool is_of_gpu(std::uint64_t number) const;  // the same, or it was brought, but a device may still read it
  Result<const std::byte*> host_payload(std::uint64_t number);

  // The peer has these frames. Older news change nothing. A failure means malformed input.
  Status acknowledge(const Heard& heard);

  // The owner is about to write there: copies what is not acknowledged. False: no memory, or a frame is pinned. Then the memory
  // must not be written yet; a later call may succeed.
  [[nodiscard]] bool before_write(const std::byte* memory, std::size_t size);
  // The owner wants all its memory back, because the call ends.
  [[nodiscard]] bool give_back(const Lender& lender);
  // The last of both was false: bytes are on their way from a GPU to the host, or will never be there.
  [[nodiscard]] bool is_bringing() const { return is_bringing_; }
  [[nodiscard]] const Status& why_not_brought() const { return why_not_brought_; }

  // The medium itself reads the payload at any time (a NIC): it can be neither copied away nor released until it is unpinned.
  void pin(std::uint64_t number);
  void unpin(std::uint64_t number);

  // The path is gone, or stands still: other paths send what it took last.
  void path_broke(std::uint32_t path);
  [[nodiscard]] bool has_again() const { return again_ > 0; }
  // The lowest number that is to be sent again; 0: none.
  [[nodiscard]] std::uint64_t next_again();
  // The path takes the frame that next_again() named.
  void sent_again(std::uint64_t number, std::uint32_t path);

  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  // The frame that has waited longest for its acknowledgement; 0: none. The path that took it last may stand still.
  [[nodiscard]] std::uint64_t oldest() const;
  [[nodiscard]] std::uint32_t path_of(std::uint64_t number) const;
  // Nothing is kept any more: the connection may be closed.
  [[nodiscard]] bool all_acknowledged() const { return first_ > sent_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t lent() const { return lent_; }

 protected:
  // The path takes a new frame: it gets the next number.
  std::uint64_t add(Payload payload, std::uint32_t path);
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::size_t capacity() const { return records_.size(); }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  struct Record {
    const std::byte* data = nullptr;
    std::shared_ptr<Lender> lender;  // null: `data` is a copy, or never changes
    std::byte* copied = nullptr;
    std::uint32_t size = 0;
    std::uint32_t path = 0;
    std::uint16_t pins = 0;
    bool under_way = false;
    bool acknowledged = false;  // and pinned
    bool again = false;
  };

  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(sent_ + 1 - first_); }
  [[nodiscard]] Record& record(std::uint64_t number) { return records_[number & (records_.size() - 1)]; }
  [[nodiscard]] const Record& record(std::uint64_t number) const { return records_[number & (records_.size() - 1)]; }
  void grow();
  [[nodiscard]] static bool is_on_gpu(const Record& one);
  bool copy(Record& one);
  template <class Wanted>
  bool copy_lent(const Wanted& wanted);
  void release(Record& one);

  Limits limits_;
  CopyMemory& copies_;
  std::vector<Record> records_;  // a ring, by number: a power of two of them
  std::uint64_t first_ = 1;      // the lowest number that is kept
  std::uint64_t sent_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t lent_ = 0;   // records with a lender
  std::size_t again_ = 0;  // records that are to be sent again
  std::uint64_t again_from_ = kNone;
  bool is_bringing_ = false;
  Status why_not_brought_;
};

}  // namespace seto::resume
