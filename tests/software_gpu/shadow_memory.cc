#include "tests/software_gpu/shadow_memory.h"

#include <algorithm>
#include <tuple>

namespace seto::software_gpu {
namespace {

constexpr std::size_t kNear = 4;  // the youngest entries are looked at one by one

auto order_of(const Record& record) {
  return std::tuple(record.at.block, record.at.thread, record.address, record.bytes, record.strong, record.scope);
}
auto age_of(const Record& record) { return std::tuple(record.at.phase, record.at.clock, record.write); }

bool is_repeated(const Record& a, const Record& b) { return order_of(a) == order_of(b); }

}  // namespace

bool Record::is_morally_strong_with(const Record& other) const {
  const bool same_gpu = gpu == other.gpu;
  const bool same_block = at.block == other.at.block;
  return strong && other.strong && is_same_place(other) && includes(scope, same_gpu, same_block) &&
         includes(other.scope, same_gpu, same_block);
}

bool Cell::has_same(const Record& record) const {
  const std::vector<Record>& list = record.writes ? writes_ : reads_;
  for (std::size_t i = list.size(); i > 0 && i + kNear > list.size(); --i) {
    const Record& other = list[i - 1];
    if (is_repeated(other, record) && other.at.phase == record.at.phase && other.at.clock == record.at.clock) return true;
  }
  return false;
}

bool Cell::is_uniform_with(const Record& record) const {
  if (writes_.empty() && reads_.empty()) return true;
  const Record& first = common_.first;
  const bool same_gpu = common_.one_gpu && first.gpu == record.gpu;
  const bool same_block = common_.one_block && first.at.block == record.at.block;
  return record.strong && common_.strong && first.is_same_place(record) && includes(first.scope, same_gpu, same_block) &&
         includes(record.scope, same_gpu, same_block);
}

void Cell::note(const Record& record) {
  if (writes_.empty() && reads_.empty()) {
    common_ = {.strong = record.strong, .first = record};
    return;
  }
  common_.strong = common_.strong && record.strong && common_.first.is_same_place(record);
  common_.one_gpu = common_.one_gpu && common_.first.gpu == record.gpu;
  common_.one_block = common_.one_block && common_.first.at.block == record.at.block;
  common_.first.scope = std::min(common_.first.scope, record.scope);
}

// A weak write is ordered after all that it covers, and no later access is ordered after it but by causality. So a race with what
// it covers is a race with it, too. A strong write may be observed, which orders it alone.
void Cell::add(const Record& record) {
  if (record.writes && !record.strong) {
    drop_covered(writes_, record);
    drop_covered(reads_, record);
    if (writes_.empty()) observations_.clear();
  }
  note(record);
  if (record.writes)
    append(writes_, record, write_limit_);
  else
    append(reads_, record, read_limit_);
}

void Cell::drop_covered(std::vector<Record>& records, const Record& by) {
  std::erase_if(records, [&](const Record& earlier) { return (earlier.mask & ~by.mask) == 0; });
}

// The last one of the same accesses of a thread is kept.
void Cell::append(std::vector<Record>& records, const Record& record, std::uint32_t& limit) {
  for (std::size_t i = records.size(); i > 0 && i + kNear > records.size(); --i) {
    if (is_repeated(records[i - 1], record)) {
      records[i - 1] = record;
      return;
    }
  }
  records.push_back(record);
  if (records.size() < limit) return;
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return std::tuple(order_of(a), age_of(b)) < std::tuple(order_of(b), age_of(a));  // the youngest first
  });
  records.erase(std::unique(records.begin(), records.end(), is_repeated), records.end());
  limit = std::max<std::uint32_t>(16, 2 * static_cast<std::uint32_t>(records.size()));
}

// The first observation of a value by a thread is kept, and those of values that have been replaced are dropped.
void Cell::add(const Observation& observation) {
  for (std::size_t i = observations_.size(); i > 0 && i + kNear > observations_.size(); --i) {
    const Observation& other = observations_[i - 1];
    if (other.write == observation.write && other.at.is_same_thread(observation.at)) return;
  }
  observations_.push_back(observation);
  if (observations_.size() < observation_limit_) return;
  std::uint64_t oldest = ~std::uint64_t{0};
  for (const Record& write : writes_)
    if (write.strong) oldest = std::min(oldest, write.write);
  std::erase_if(observations_, [oldest](const Observation& one) { return one.write < oldest; });
  const auto key = [](const Observation& one) { return std::tuple(one.at.block, one.at.thread, one.write); };
  std::stable_sort(observations_.begin(), observations_.end(),
                   [&](const Observation& a, const Observation& b) { return key(a) < key(b); });
  const auto same = [&](const Observation& a, const Observation& b) { return key(a) == key(b); };
  observations_.erase(std::unique(observations_.begin(), observations_.end(), same), observations_.end());
  observation_limit_ = std::max<std::uint32_t>(16, 2 * static_cast<std::uint32_t>(observations_.size()));
}

Cell& ShadowMemory::cell(std::uint64_t address) {
  const std::uint64_t number = address / kCellBytes / kPageCells;
  if (number != last_number_) {
    std::unique_ptr<Page>& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_ = page.get();
    last_number_ = number;
  }
  std::uint32_t& position = (*last_)[address / kCellBytes % kPageCells];
  if (position == 0) {
    cells_.emplace_back();
    position = static_cast<std::uint32_t>(cells_.size());
  }
  return cells_[position - 1];
}

void ShadowMemory::clear() {
  pages_.clear();
  cells_.clear();
  last_ = nullptr;
  last_number_ = ~std::uint64_t{0};
}

}  // namespace seto::software_gpu
