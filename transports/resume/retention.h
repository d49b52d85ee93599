#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "src/base/result.h"
#include "transports/resume/copy_memory.h"
#include "transports/resume/heard.h"

namespace seto::resume {

// Memory from which frames are sent, such as a slot, or the caller's buffer during one operation. Its owner may write it again
// when no frame needs it. Any thread may ask.
class Lender final {
 public:
  [[nodiscard]] bool needed() const { return frames_.load(std::memory_order_acquire) > 0; }
  // A frame needs it, and does no more.
  void count() { frames_.fetch_add(1, std::memory_order_relaxed); }
  void done() { frames_.fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> frames_{0};
};

struct Payload {
  const std::byte* data = nullptr;
  std::uint32_t size = 0;
  // Keeps the memory alive. Null: the memory lives as long as the retention, and never changes.
  std::shared_ptr<Lender> lender;
};

// Keeps frames until the peer has them: number, header and payload, and the path that took each of them last.
// Payloads stay where they are lent until their owner wants to write there; then what is not acknowledged is copied. The copies
// are at most what may be under way, so memory is bounded. Not thread safe.
//
// A path that writes a frame in parts asks for payload() again before each part: the memory may have moved meanwhile.
template <class Header>
class Retention final {
 public:
  struct Limits {
    std::uint64_t bytes = 0;    // of payloads that are not acknowledged: the window
    std::size_t frames = 0;     // not acknowledged
    std::uint32_t at_once = 0;  // payloads of up to so many bytes are copied at once: looking for them later would cost more
  };
  Retention(Limits limits, CopyMemory& copies) : limits_(limits), copies_(copies) {}
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;
  ~Retention() {
    for (std::uint64_t number = first_; number <= sent_; ++number) release(record(number));
  }
  void set_window(std::uint64_t bytes) { limits_.bytes = bytes; }

  // A single frame may always go, however small the window is.
  [[nodiscard]] bool may_send(std::uint32_t size) const {
    return count() == 0 || (count() < limits_.frames && bytes_ + size <= limits_.bytes);
  }
  // The path takes a new frame: it gets the next number, which its header must carry.
  std::uint64_t add(const Header& header, Payload payload, std::uint32_t path) {
    SETO_CHECK(payload.size <= kLongestPayload);
    if (count() == records_.size()) grow();
    Record& added = record(++sent_);
    added = {};
    added.header = header;
    added.size = payload.size;
    added.data = payload.data;
    added.path = path;
    added.under_way = true;
    bytes_ += payload.size;
    if (payload.lender != nullptr && payload.size > 0) {
      added.lender = std::move(payload.lender);
      added.lender->count();
      ++lent_;
      if (payload.size <= limits_.at_once) (void)copy(added);  // without memory it stays lent
    }
    return sent_;
  }

  // Whether the frame is still kept: then it has a header and a payload.
  [[nodiscard]] bool keeps(std::uint64_t number) const { return number >= first_ && number <= sent_ && record(number).under_way; }
  [[nodiscard]] Header& header(std::uint64_t number) {
    SETO_CHECK(keeps(number));
    return record(number).header;
  }
  [[nodiscard]] std::uint32_t size(std::uint64_t number) const {
    SETO_CHECK(keeps(number));
    return record(number).size;
  }
  // The peer has an acknowledged frame whole and drops what a path still owes of it, so any bytes will do.
  [[nodiscard]] const std::byte* payload(std::uint64_t number) const { return keeps(number) ? record(number).data : filler(); }

  // The peer has these frames. Older news change nothing. A failure means malformed input.
  Status acknowledge(const Heard& heard) {
    if (heard.last() > sent_)
      return failure(Code::remote_error, "an acknowledgement of frames that were not sent: the connection is given up");
    for (std::uint64_t number = first_; number <= heard.all_up_to; ++number) release(record(number));
    for (const NumberRange& range : heard.beyond())
      for (std::uint64_t number = std::max(first_, range.first); number <= range.last; ++number) release(record(number));
    while (first_ <= sent_ && !record(first_).under_way) ++first_;
    return {};
  }

  // The owner is about to write there: copies what is not acknowledged. False: no memory, or a frame is pinned. Then the memory
  // must not be written yet; a later call may succeed.
  [[nodiscard]] bool before_write(const std::byte* memory, std::size_t size) {
    const std::less<> before;
    return copy_lent([&](const Record& one) { return before(one.data, memory + size) && before(memory, one.data + one.size); });
  }
  // The owner wants all its memory back, because the call ends.
  [[nodiscard]] bool give_back(const Lender& lender) {
    return copy_lent([&](const Record& one) { return one.lender.get() == &lender; });
  }

  // The medium itself reads the payload at any time (a NIC): it can be neither copied away nor released until it is unpinned.
  void pin(std::uint64_t number) {
    SETO_CHECK(keeps(number));
    ++record(number).pins;
  }
  void unpin(std::uint64_t number) {
    Record& one = record(number);
    SETO_CHECK(number >= first_ && one.pins > 0);
    if (--one.pins == 0 && one.acknowledged) {
      release(one);
      while (first_ <= sent_ && !record(first_).under_way) ++first_;
    }
  }

  // The path is gone, or stands still: other paths send what it took last.
  void path_broke(std::uint32_t path) {
    for (std::uint64_t number = first_; number <= sent_; ++number) {
      Record& one = record(number);
      if (!one.under_way || one.acknowledged || one.again || one.path != path) continue;
      one.again = true;
      ++again_;
      again_from_ = std::min(again_from_, number);
    }
  }
  [[nodiscard]] bool has_again() const { return again_ > 0; }
  // The lowest number that is to be sent again; 0: none.
  [[nodiscard]] std::uint64_t next_again() {
    if (again_ == 0) return 0;
    again_from_ = std::max(again_from_, first_);
    while (!record(again_from_).again) ++again_from_;
    return again_from_;
  }
  // The path takes the frame that next_again() named.
  void sent_again(std::uint64_t number, std::uint32_t path) {
    Record& one = record(number);
    SETO_CHECK(one.again);
    one.again = false;
    one.path = path;
    if (--again_ == 0) again_from_ = kNone;
  }

  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  // The frame that has waited longest for its acknowledgement; 0: none. The path that took it last may stand still.
  [[nodiscard]] std::uint64_t oldest() const {
    for (std::uint64_t number = first_; number <= sent_; ++number)
      if (record(number).under_way && !record(number).acknowledged) return number;
    return 0;
  }
  [[nodiscard]] std::uint32_t path_of(std::uint64_t number) const {
    SETO_CHECK(keeps(number));
    return record(number).path;
  }
  // Nothing is kept any more: the connection may be closed.
  [[nodiscard]] bool all_acknowledged() const { return first_ > sent_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t lent() const { return lent_; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr std::size_t kSmallest = 16;

  struct Record {
    Header header{};
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

  void grow() {
    std::vector<Record> larger(std::max(kSmallest, 2 * records_.size()));
    for (std::uint64_t number = first_; number <= sent_; ++number)
      larger[number & (larger.size() - 1)] = std::move(record(number));
    records_ = std::move(larger);
  }

  bool copy(Record& one) {
    if (one.pins > 0) return false;
    std::byte* const memory = copies_.take(one.size);
    if (memory == nullptr) return false;
    std::memcpy(memory, one.data, one.size);
    one.data = one.copied = memory;
    --lent_;
    one.lender->done();
    one.lender.reset();
    return true;
  }

  template <class Wanted>
  bool copy_lent(const Wanted& wanted) {
    bool all = true;
    std::size_t left = lent_;
    for (std::uint64_t number = first_; number <= sent_ && left > 0; ++number) {
      Record& one = record(number);
      if (one.lender == nullptr) continue;
      --left;
      if (wanted(one)) all = copy(one) && all;
    }
    return all;
  }

  void release(Record& one) {
    if (!one.under_way) return;
    if (one.again) {
      one.again = false;
      if (--again_ == 0) again_from_ = kNone;
    }
    if (one.pins > 0) {
      one.acknowledged = true;
      return;
    }
    bytes_ -= one.size;
    if (one.copied != nullptr) copies_.give_back(one.copied, one.size);
    if (one.lender != nullptr) {
      --lent_;
      one.lender->done();
    }
    one = {};
  }

  Limits limits_;
  CopyMemory& copies_;
  std::vector<Record> records_;  // a ring, by number: a power of two of them
  std::uint64_t first_ = 1;      // the lowest number that is kept
  std::uint64_t sent_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t lent_ = 0;   // records with a lender
  std::size_t again_ = 0;  // records that are to be sent again
  std::uint64_t again_from_ = kNone;
};

}  // namespace seto::resume
