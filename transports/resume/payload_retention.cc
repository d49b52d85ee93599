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
    // Without memory it stays lent.
    if (payload.size <= limits_.at_once && added.lender->host_copy() == nullptr) (void)copy(added);
  }
  return sent_;
}

std::uint32_t PayloadRetention::size(std::uint64_t number) const {
  SETO_CHECK(keeps(number));
  return record(number).size;
}

bool PayloadRetention::is_on_gpu(const Record& one) {
  return one.lender != nullptr && one.lender->host_copy() != nullptr && one.lender->host_copy()->brought(one.data) == nullptr;
}

bool PayloadRetention::is_of_gpu(std::uint64_t number) const {
  return keeps(number) && record(number).lender != nullptr && record(number).lender->host_copy() != nullptr;
}

const std::byte* PayloadRetention::payload(std::uint64_t number) const {
  if (!keeps(number)) return filler();
  const Record& one = record(number);
  const HostCopy* const host = one.lender != nullptr ? one.lender->host_copy() : nullptr;
  const std::byte* const brought = host != nullptr ? host->brought(one.data) : nullptr;
  return brought != nullptr ? brought : one.data;
}

Result<const std::byte*> PayloadRetention::host_payload(std::uint64_t number) {
  if (!on_gpu(number)) return payload(number);
  return record(number).lender->host_copy()->bring(record(number).data);
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
  const std::byte* from = one.data;
  if (HostCopy* const host = one.lender->host_copy(); host != nullptr) {
    const Result<const std::byte*> brought = host->bring(one.data);
    if (!brought.ok()) why_not_brought_ = brought.status();
    if (brought.ok() && brought.value() == nullptr) is_bringing_ = true;
    if (!brought.ok() || brought.value() == nullptr) return false;
    from = brought.value();
  }
  std::byte* const memory = copies_.take(one.size);
  if (memory == nullptr) return false;
  std::memcpy(memory, from, one.size);
  one.data = one.copied = memory;
  --lent_;
  one.lender->done();
  one.lender.reset();
  return true;
}

template <class Wanted>
bool PayloadRetention::copy_lent(const Wanted& wanted) {
  bool all = true;
  is_bringing_ = false;
  why_not_brought_ = {};
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
