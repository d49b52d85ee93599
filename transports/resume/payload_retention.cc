#include "transports/resume/payload_retention.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "src/base/check.h"

namespace seto::resume {
namespace {

constexpr std::size_t kSmallest = 16;

}  // namespace

PayloadRetention::~PayloadRetention() {
  for (std::uint64_t number = first_; number <= sent_; ++number) release(record(number));
}

std::uint64_t PayloadRetention::add(Payload payload, std::uint32_t path) {
  SETO_CHECK(payload.size <= kLongestPayload);
  if (count() == records_.size()) grow();
  Record& added = record(++sent_);
  added = {};
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

std::uint32_t PayloadRetention::size(std::uint64_t number) const {
  SETO_CHECK(keeps(number));
  return record(number).size;
}

Status PayloadRetention::acknowledge(const Heard& heard) {
  if (heard.last() > sent_)
    return failure(Code::remote_error, "an acknowledgement of frames that were not sent: the connection is given up");
  for (std::uint64_t number = first_; number <= heard.all_up_to; ++number) release(record(number));
  for (const NumberRange& range : heard.beyond())
    for (std::uint64_t number = std::max(first_, range.first); number <= range.last; ++number) release(record(number));
  while (first_ <= sent_ && !record(first_).under_way) ++first_;
  return {};
}

bool PayloadRetention::copy(Record& one) {
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
bool PayloadRetention::copy_lent(const Wanted& wanted) {
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

bool PayloadRetention::before_write(const std::byte* memory, std::size_t size) {
  const std::less<> before;
  return copy_lent([&](const Record& one) { return before(one.data, memory + size) && before(memory, one.data + one.size); });
}

bool PayloadRetention::give_back(const Lender& lender) {
  return copy_lent([&](const Record& one) { return one.lender.get() == &lender; });
}

void PayloadRetention::pin(std::uint64_t number) {
  SETO_CHECK(keeps(number));
  ++record(number).pins;
}

void PayloadRetention::unpin(std::uint64_t number) {
  Record& one = record(number);
  SETO_CHECK(number >= first_ && one.pins > 0);
  if (--one.pins == 0 && one.acknowledged) {
    release(one);
    while (first_ <= sent_ && !record(first_).under_way) ++first_;
  }
}

void PayloadRetention::path_broke(std::uint32_t path) {
  for (std::uint64_t number = first_; number <= sent_; ++number) {
    Record& one = record(number);
    if (!one.under_way || one.acknowledged || one.again || one.path != path) continue;
    one.again = true;
    ++again_;
    again_from_ = std::min(again_from_, number);
  }
}

std::uint64_t PayloadRetention::next_again() {
  if (again_ == 0) return 0;
  again_from_ = std::max(again_from_, first_);
  while (!record(again_from_).again) ++again_from_;
  return again_from_;
}

void PayloadRetention::sent_again(std::uint64_t number, std::uint32_t path) {
  Record& one = record(number);
  SETO_CHECK(one.again);
  one.again = false;
  one.path = path;
  if (--again_ == 0) again_from_ = kNone;
}

std::uint64_t PayloadRetention::oldest() const {
  for (std::uint64_t number = first_; number <= sent_; ++number)
    if (record(number).under_way && !record(number).acknowledged) return number;
  return 0;
}

std::uint32_t PayloadRetention::path_of(std::uint64_t number) const {
  SETO_CHECK(keeps(number));
  return record(number).path;
}

void PayloadRetention::grow() {
  std::vector<Record> larger(std::max(kSmallest, 2 * records_.size()));
  for (std::uint64_t number = first_; number <= sent_; ++number) larger[number & (larger.size() - 1)] = std::move(record(number));
  records_ = std::move(larger);
}

void PayloadRetention::release(Record& one) {
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

}  // namespace seto::resume
