#include "tests/software_gpu/race_check.h"

#include <algorithm>

namespace seto::software_gpu {
namespace {

// A number for the bytes of an access. Shared memory is apart from global memory, and a thread sees only that of its block.
std::uint64_t place_of(const RaceCheck::Access& access) {
  return (access.address << 6) | (std::uint64_t{access.bytes} << 1) | (access.shared != nullptr ? 1U : 0U);
}

Record record_of(const ThreadOrder& thread, const RaceCheck::Access& access, bool writes) {
  return {.address = access.address,
          .bytes = static_cast<std::uint8_t>(access.bytes),
          .writes = writes,
          .strong = is_strong(access.order),
          .scope = access.scope,
          .gpu = thread.block.gpu,
          .line = access.line,
          .at = thread.now()};
}

std::uint8_t mask_in_cell(const RaceCheck::Access& access, std::uint64_t cell) {
  const std::uint64_t first = std::max(access.address, cell);
  const std::uint64_t end = std::min(access.address + access.bytes, cell + ShadowMemory::kCellBytes);
  return static_cast<std::uint8_t>(((1U << (end - first)) - 1U) << (first - cell));
}

}  // namespace

void RaceCheck::launch(const Launch& launch) {
  if (!enabled()) return;
  kernels_.resize(launch.number + std::size_t{1});
  auto past = std::make_shared<Clocks>(ended_);
  past->join(known_);
  kernels_[launch.number] = {.request = launch.request, .past = std::move(past)};
  kernels_[launch.number].request.arguments.clear();
}

void RaceCheck::end_thread(std::uint32_t launch, const ThreadOrder& thread) {
  KernelRun& kernel = kernels_[launch];
  if (!enabled() || kernel.joined == thread.past) return;
  kernel.known.join(*thread.past);
  kernel.joined = thread.past;
}

void RaceCheck::end_launch(std::uint32_t number) {
  if (!enabled()) return;
  kernels_[number].ended = ++ended_;
  known_.join(kernels_[number].known);
  kernels_[number].known = Clocks();
  kernels_[number].joined = nullptr;
}

BlockOrder RaceCheck::start_block(std::uint32_t number, std::uint32_t launch, const std::array<std::uint32_t, 3>& index) {
  if (!enabled()) return {};
  blocks_.resize(number + std::size_t{1});
  blocks_[number] = {launch, index};
  return {.number = number, .gpu = kernels_[launch].request.gpu, .launch_past = kernels_[launch].past};
}

void RaceCheck::forget() {
  accesses_.clear();
  known_ = Clocks();
  for (KernelRun& kernel : kernels_)
    if (kernel.ended == 0) kernel.ended = ++ended_;
}

bool RaceCheck::happens_before(const Moment& earlier, const ThreadOrder& thread, Order order) const {
  const std::uint64_t ended = kernels_[blocks_[earlier.block].launch].ended;
  if (order == Order::read_only)  // such a load may see what was there at the launch
    return earlier.is_same_thread(thread.now()) || (ended != 0 && ended <= thread.block.launch_past->ended());
  return (ended != 0 && ended <= thread.past->ended()) || thread.knows(earlier);
}

// The write itself happens before what follows a strong read of its value, though nothing else of its thread does.
bool RaceCheck::is_ordered(const Record& earlier, const Cell& cell, const ThreadOrder& thread, Order order) const {
  if (happens_before(earlier.at, thread, order)) return true;
  return earlier.writes && earlier.strong && order != Order::read_only &&
         std::any_of(cell.observations().begin(), cell.observations().end(), [&](const Observation& one) {
           return one.address == earlier.address && one.bytes == earlier.bytes && one.write >= earlier.write &&
                  happens_before(one.at, thread, order);
         });
}

void RaceCheck::check(ThreadOrder& thread, const Access& access, Record record) {
  if (!checks(access)) return;
  const std::uint64_t end = access.address + access.bytes;
  for (std::uint64_t at = access.address & ~(ShadowMemory::kCellBytes - 1); at < end; at += ShadowMemory::kCellBytes) {
    Cell& cell = accesses_of(access).cell(at);
    if (!record.writes && access.order != Order::read_only && cell.has_same(record)) continue;
    record.mask = mask_in_cell(access, at);
    if (!cell.is_uniform_with(record)) check_cell(thread, access, record, cell);
    cell.add(record);
  }
}

void RaceCheck::check_cell(const ThreadOrder& thread, const Access& access, const Record& record, const Cell& cell) const {
  const auto check_all = [&](const std::vector<Record>& records) {
    for (const Record& earlier : records) {
      const bool conflicts =
          (earlier.mask & record.mask) != 0 && !earlier.at.is_same_thread(record.at) && !record.is_morally_strong_with(earlier);
      if (conflicts && !is_ordered(earlier, cell, thread, access.order)) report(thread, access, record, earlier);
    }
  };
  check_all(cell.writes());
  if (record.writes) check_all(cell.reads());
}

// An acquire orders its own access, too, so it comes first.
void RaceCheck::read(ThreadOrder& thread, const Access& access, const WriteRef& source) {
  const bool is_seen = is_strong(access.order) && source != nullptr && sees(thread, access, *source);
  if (is_seen && !acquires(access.order) && thread.has_observed(place_of(access), source, access.scope)) return;
  if (is_seen) thread.observe(place_of(access), source, access.scope, true);
  if (acquires(access.order)) thread.acquire_at(place_of(access), access.scope);
  check(thread, access, record_of(thread, access, false));
  if (is_seen) note_observation(thread, access, *source);
}

bool RaceCheck::sees(const ThreadOrder& thread, const Access& access, const StrongWrite& source) {
  return thread.can_see(access.scope, source.by, source.gpu) && thread.can_see(source.scope, source.by, source.gpu);
}

void RaceCheck::note_observation(const ThreadOrder& thread, const Access& access, const StrongWrite& source) {
  if (!checks(access) || source.by.is_same_thread(thread.now())) return;
  const Observation made{.address = access.address, .bytes = access.bytes, .write = source.number, .at = thread.now()};
  for (std::uint64_t at = 0; at < access.bytes; at += ShadowMemory::kCellBytes)
    accesses_of(access).cell(access.address + at).add(made);
}

WriteRef RaceCheck::write(ThreadOrder& thread, const Access& access) {
  Record record = record_of(thread, access, true);
  if (!record.strong) {
    check(thread, access, record);
    return {};
  }
  record.write = ++writes_;
  check(thread, access, record);
  const auto made = std::make_shared<StrongWrite>(
      StrongWrite{.number = record.write, .by = record.at, .gpu = record.gpu, .scope = access.scope, .releases = {}});
  sign(thread, access, *made);
  return made;
}

std::shared_ptr<StrongWrite> RaceCheck::begin_update(const ThreadOrder& thread, const Access& access) {
  return std::make_shared<StrongWrite>(
      StrongWrite{.number = ++writes_, .by = thread.now(), .gpu = thread.block.gpu, .scope = access.scope, .releases = {}});
}

void RaceCheck::end_update(ThreadOrder& thread, const Access& access, const WriteRef& source, StrongWrite& write) {
  const bool is_seen = source != nullptr && sees(thread, access, *source);
  if (is_seen) thread.observe(place_of(access), source, access.scope, false);
  if (acquires(access.order)) thread.acquire_at(place_of(access), access.scope);
  Record record = record_of(thread, access, true);
  record.write = write.number;
  check(thread, access, record);
  if (is_seen) note_observation(thread, access, *source);
  sign(thread, access, write);
  if (!is_seen) return;
  for (const Release& release : source->releases) {
    const bool is_included = std::any_of(write.releases.begin(), write.releases.end(), [&](const Release& one) {
      return one.at.is_same_thread(release.at) && one.scope >= release.scope && one.at.clock >= release.at.clock;
    });
    if (!is_included) write.releases.push_back(release);
  }
}

void RaceCheck::sign(ThreadOrder& thread, const Access& access, StrongWrite& write) {
  if (releases(access.order)) {
    const Release own = thread.release(access.scope);
    thread.sign(write, place_of(access), &own);
  } else {
    thread.sign(write, place_of(access), nullptr);
  }
}

void RaceCheck::fence(ThreadOrder& thread, Scope scope) {
  thread.acquire_by_fence(scope);
  thread.release_by_fence(scope);
}

}  // namespace seto::software_gpu
