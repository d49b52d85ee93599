#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// The arithmetic of a ring of records that one end writes and the other end reads, without memory or device. Positions count
// units since the beginning, and never wrap.
namespace seto::rdma {

inline constexpr std::size_t kUnit = 64;
constexpr std::uint64_t units_of(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit; }

struct RingSize {
  std::uint64_t units = 0;
  std::uint32_t records = 0;  // that may be on their way or unread at once: the reader has a receive request for each
};

// A record occupies consecutive units. Where it would cross the end of the ring, the rest of the ring is skipped; both ends
// derive that from its length.
constexpr std::uint64_t start_of(std::uint64_t position, std::uint64_t units, std::uint64_t ring) {
  const std::uint64_t left = ring - position % ring;
  return units <= left ? position : position + left;
}

// A queue of at most so many values, which never allocates.
template <class Value>
class BoundedFifo final {
 public:
  explicit BoundedFifo(std::size_t most) : values_(most) {}

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] const Value& front() const { return values_[first_]; }
  void push(const Value& value) { values_[(first_ + count_++) % values_.size()] = value; }
  void pop() {
    first_ = (first_ + 1) % values_.size();
    --count_;
  }

 private:
  std::vector<Value> values_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// The writing end. The reader releases what it has read, and the device completes what it has sent; the same units are written
// again after both.
class SendRing final {
 public:
  explicit SendRing(RingSize size) : size_(size), records_(size.records) {}

  // The position of a new record. Absent: there is no room now.
  [[nodiscard]] std::optional<std::uint64_t> place(std::uint64_t units) {
    const std::uint64_t start = start_of(end_, units, size_.units);
    if (start + units - free_from() > size_.units || records_.size() >= size_.records) return std::nullopt;
    end_ = start + units;
    records_.push(end_);
    return start;
  }
  // Where the newest record ends.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  void completed(std::uint64_t end) { completed_ = completed_ < end ? end : completed_; }
  // The low 32 bits of the number of units that the reader has released. False: it cannot have released that many.
  [[nodiscard]] bool released(std::uint32_t low) {
    const std::uint64_t released = released_ + (low - static_cast<std::uint32_t>(released_));
    if (released > end_) return false;
    released_ = released;
    while (records_.size() > 0 && records_.front() <= released_) records_.pop();
    return true;
  }
  // The reader has read everything.
  [[nodiscard]] bool all_released() const { return released_ == end_; }
  [[nodiscard]] std::size_t records() const { return records_.size(); }

 private:
  [[nodiscard]] std::uint64_t free_from() const { return completed_ < released_ ? completed_ : released_; }

  const RingSize size_;
  std::uint64_t end_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t released_ = 0;
  BoundedFifo<std::uint64_t> records_;  // ends of those that are not released
};

// The reading end: records arrive in order, and are released in order.
class ReceiveRing final {
 public:
  explicit ReceiveRing(RingSize size) : size_(size), records_(size.records) {}

  struct Record {
    std::uint64_t start = 0;
    std::uint32_t bytes = 0;
  };

  // A record of that length has arrived. False: the writer had no room for it.
  [[nodiscard]] bool arrived(std::uint32_t bytes) {
    const std::uint64_t start = start_of(arrived_, units_of(bytes), size_.units);
    const std::uint64_t end = start + units_of(bytes);
    if (bytes == 0 || end - released_ > size_.units || records_.size() >= size_.records) return false;
    arrived_ = end;
    records_.push({start, bytes});
    return true;
  }
  // The oldest record that was not released, or null.
  [[nodiscard]] const Record* front() const { return records_.size() == 0 ? nullptr : &records_.front(); }
  void release() {
    const Record first = records_.front();
    released_ = first.start + units_of(first.bytes);
    records_.pop();
    ++untold_records_;
  }

  // The number of units that the writer may use again.
  [[nodiscard]] std::uint32_t credit() const { return static_cast<std::uint32_t>(released_); }
  // A message with credit() is on its way to the writer.
  void told() {
    told_ = released_;
    untold_records_ = 0;
  }
  // Enough was released that the writer should be told without waiting for a record of the other direction.
  [[nodiscard]] bool due() const {
    return released_ - told_ >= size_.units / kParts || untold_records_ >= size_.records / kParts;
  }
  // The writer does not know of everything that was released.
  [[nodiscard]] bool untold() const { return released_ != told_; }

  // How many messages that only tell this the writer may find at once, beyond one for each of its records: four for the units of
  // a whole ring and four for its records, before it writes more; and one to spare for each kind.
  static constexpr std::uint64_t kParts = 4;
  static constexpr std::uint32_t kMostTold = 16;

 private:
  const RingSize size_;
  std::uint64_t arrived_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t told_ = 0;
  std::uint32_t untold_records_ = 0;
  BoundedFifo<Record> records_;
};

}  // namespace seto::rdma
