#include "tests/software_gpu/race_detector.h"

#include <algorithm>
#include <string>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/report_text.h"

namespace seto::software_gpu {

RaceDetector::RaceDetector(bool enabled, std::uint32_t threads, std::uint64_t shared_bytes)
    : enabled_(enabled && shared_bytes > 0) {
  if (enabled_) {
    words_.resize((shared_bytes + 3) / 4);
    clocks_.resize(threads);
    released_.resize(threads);
    observed_.resize(threads);
  }
}

void RaceDetector::access(const Access& access, std::uint64_t address, std::uint32_t bytes) {
  if (!enabled_) return;
  for (std::uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    std::uint8_t mask = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint64_t byte = word * 4 + i;
      mask = static_cast<std::uint8_t>(mask | (byte >= address && byte < address + bytes ? 1U << i : 0U));
    }
    access_word(access, word, mask);
  }
}

void RaceDetector::access_word(const Access& access, std::size_t word, std::uint8_t mask) {
  Word& cell = words_[word];
  if (cell.epoch != epoch_) {
    cell.epoch = epoch_;
    cell.accesses.clear();
  }
  for (const Recorded& earlier : cell.accesses) {
    const bool conflict = (earlier.mask & mask) != 0 && (earlier.access.writes || access.writes) &&
                          !(earlier.access.strong && access.strong) && earlier.access.thread != access.thread;
    if (conflict && !happens_before(earlier, access.thread)) {
      const auto verb = [](bool writes) { return writes ? " writes" : " reads"; };
      throw Fault(FaultKind::race, "race in shared memory at " + hexadecimal(word * 4) + ": thread " +
                                       std::to_string(access.thread) + verb(access.writes) + ", thread " +
                                       std::to_string(earlier.access.thread) + verb(earlier.access.writes) + " at ptx line " +
                                       std::to_string(earlier.access.line) + ", and nothing orders them");
    }
  }
  if (access.writes && !access.strong)  // a later access that is ordered after this one is ordered after those, too
    std::erase_if(cell.accesses, [&](const Recorded& earlier) { return (earlier.mask & ~mask) == 0; });
  const std::uint32_t clock = own_clock(access.thread);
  for (Recorded& earlier : cell.accesses) {
    if (earlier.access.thread == access.thread && earlier.access.writes == access.writes &&
        earlier.access.strong == access.strong && earlier.mask == mask) {
      earlier.clock = clock;
      return;
    }
  }
  cell.accesses.push_back({access, clock, mask});
}

bool RaceDetector::happens_before(const Recorded& earlier, std::uint32_t thread) const {
  const Clocks& clocks = clocks_[thread];
  return !clocks.empty() && clocks[earlier.access.thread] >= earlier.clock;
}

std::uint32_t RaceDetector::own_clock(std::uint32_t thread) const {
  return clocks_[thread].empty() ? 1 : clocks_[thread][thread];
}

RaceDetector::Clocks& RaceDetector::clocks_of(std::uint32_t thread) {
  Clocks& clocks = clocks_[thread];
  if (clocks.empty()) {
    clocks.resize(clocks_.size());
    clocks[thread] = 1;
  }
  return clocks;
}

void RaceDetector::join(Clocks& into, const Clocks& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void RaceDetector::synchronise_all() {
  if (!enabled_) return;
  ++epoch_;
  published_.clear();
  for (auto* list : {&clocks_, &released_, &observed_})
    for (Clocks& clocks : *list) clocks.clear();
}

void RaceDetector::synchronise(std::span<const std::uint32_t> threads) {
  if (!enabled_) return;
  Clocks all;
  for (const std::uint32_t thread : threads) join(all, clocks_of(thread));
  for (const std::uint32_t thread : threads) {
    clocks_[thread] = all;
    ++clocks_[thread][thread];
  }
}

void RaceDetector::release(std::uint32_t thread) {
  if (enabled_) {
    released_[thread] = clocks_of(thread);
    ++clocks_[thread][thread];
  }
}

void RaceDetector::publish(std::uint32_t thread, std::uint64_t address) {
  if (enabled_ && !released_[thread].empty()) join(published_[address], released_[thread]);
}

void RaceDetector::observe(std::uint32_t thread, std::uint64_t address) {
  if (!enabled_) return;
  if (const auto found = published_.find(address); found != published_.end()) join(observed_[thread], found->second);
}

void RaceDetector::acquire(std::uint32_t thread) {
  if (enabled_ && !observed_[thread].empty()) join(clocks_of(thread), observed_[thread]);
}

}  // namespace seto::software_gpu
