#include "tests/software_gpu/machine.h"

#include <algorithm>
#include <utility>

#include "tests/software_gpu/fault.h"

namespace seto::software_gpu {
namespace {

constexpr std::uint32_t kTurnsUntilOneSleeps = 128;
constexpr std::uint64_t kAwake = ~std::uint64_t{0};  // a time at which all warps are awake

// Different seeds are lazy and forgetful to different degrees, because some failures need stores that wait for long, and others
// loads that are old while stores are quick.
MemorySettings memory_settings(const MachineSettings& settings) {
  Random random(settings.seed ^ 0x5E70U);
  return {.weak = settings.weak, .laziness = 2U << (2 * random.below(4)), .stale_one_in = 1 + random.below(3)};
}

}  // namespace

Machine::Machine(const MachineSettings& settings)
    : settings_(settings),
      random_(settings.seed),
      memory_(memory_settings(settings), random_),
      races_(settings.detect_races, settings.detect_global_races) {
  for (std::uint32_t gpu = 0; gpu < settings.gpus; ++gpu)
    gpus_.push_back({.memory = {.gpu = gpu}, .multiprocessors = std::vector<Multiprocessor>(settings.multiprocessors)});
}

Machine::~Machine() = default;

std::uint64_t Machine::allocate(std::uint32_t gpu, std::uint64_t bytes, const std::string& name) {
  constexpr std::uint64_t kAlignment = 256;
  auto& words = storage_.emplace_back((bytes + 2 * kAlignment) / sizeof(std::uint64_t), 0xA5A5A5A5A5A5A5A5U);
  const std::uint64_t address = (reinterpret_cast<std::uint64_t>(words.data()) + kAlignment - 1) / kAlignment * kAlignment;
  addresses_.add({.address = address, .bytes = bytes, .owner = gpu, .name = name});
  return address;
}

const Program& Machine::load(std::uint32_t gpu, std::string_view ptx) {
  return programs_.emplace_back(decode_program(ptx, [&](const VariableSyntax& variable) {
    const std::uint64_t address = allocate(gpu, variable.bytes, "variable " + variable.name);
    if (variable.space == Space::constant)
      addresses_.add(
          {.address = address, .bytes = variable.bytes, .owner = gpu, .read_only = true, .name = "variable " + variable.name});
    return address;
  }));
}

void Machine::launch(LaunchRequest request) {
  const Function* function = request.program->decoded_entry(request.kernel);
  if (function == nullptr) throw Fault(FaultKind::misuse, "the module has no kernel '" + request.kernel + "'");
  if (request.arguments.size() > function->param_bytes) {
    throw Fault(FaultKind::misuse, "kernel " + request.kernel + " has " + std::to_string(function->param_bytes) +
                                       " bytes of parameters, " + std::to_string(request.arguments.size()) + " were given");
  }
  Launch launch{.request = std::move(request), .function = function, .number = next_launch_, .launched = memory_.now()};
  if (launch.request.block.count() == 0 || launch.request.grid.count() == 0 || launch.request.block.count() > 1024 ||
      !Multiprocessor().fits(launch, settings_.limits))
    throw Fault(FaultKind::misuse, "no multiprocessor has room for a block of kernel " + launch.request.kernel);
  ++next_launch_;
  races_.launch(launch);
  waiting_blocks_ += launch.request.grid.count();
  launches_.push_back(std::move(launch));
  deadline_ = steps_ + settings_.step_budget;
}

void Machine::run() {
  while (!idle()) run_some(64);
}

void Machine::run_some(std::uint32_t turns) {
  try {
    for (; turns > 0 && !idle(); --turns) turn();
    if (steps_ > deadline_ && !idle()) {
      throw Fault(FaultKind::hang, "no kernel has ended within " + std::to_string(settings_.step_budget) + " instructions:\n" +
                                       hang_report(*this));
    }
  } catch (const Fault&) {
    abandon();
    throw;
  }
}

void Machine::turn() {
  if (waiting_blocks_ > 0) start_blocks();
  if (settings_.weak && random_.one_in(kTurnsUntilOneSleeps)) send_to_sleep();
  Block* block = choose_block(steps_);
  if (block == nullptr) block = choose_block(kAwake);
  if (block == nullptr) throw Fault(FaultKind::hang, "no thread can run:\n" + hang_report(*this));
  run_warp(choose_warp(*block));
  if (block->done()) end_block(*block);
}

void Machine::start_blocks() {
  for (Launch& launch : launches_) {
    while (launch.started < launch.request.grid.count()) {
      const bool late = settings_.weak && !residents_.empty() && !random_.one_in(8);
      if (late || !start_block(launch)) break;
    }
  }
}

bool Machine::start_block(Launch& launch) {
  auto& multiprocessors = gpus_[launch.request.gpu].multiprocessors;
  const auto count = static_cast<std::uint32_t>(multiprocessors.size());
  const std::uint32_t first = settings_.weak ? random_.below(count) : launch.started;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = (first + i) % count;
    if (!multiprocessors[number].fits(launch, settings_.limits)) continue;
    multiprocessors[number].occupy(launch);
    const Dim3& grid = launch.request.grid;
    const std::uint32_t linear = launch.started++;
    const Block::Place place{.gpu = launch.request.gpu,
                             .multiprocessor = number,
                             .index = {linear % grid.x, linear / grid.x % grid.y, linear / (grid.x * grid.y)},
                             .number = next_block_++};
    residents_.push_back(std::make_unique<Block>(*this, launch, place, gpus_[launch.request.gpu].memory));
    --waiting_blocks_;
    return true;
  }
  return false;
}

// Fair turns hide what a warp does that is late by more than all others need: a real scheduler is not fair.
void Machine::send_to_sleep() {
  if (residents_.empty()) return;
  Block& block = *residents_[random_.below(static_cast<std::uint32_t>(residents_.size()))];
  Warp& warp = block.warps[random_.below(static_cast<std::uint32_t>(block.warps.size()))];
  warp.asleep_until = steps_ + (256U << random_.below(6));
}

// One with a warp that is ready and does not sleep at that time.
Block* Machine::choose_block(std::uint64_t now) {
  const std::size_t count = residents_.size();
  const std::size_t first = settings_.weak && count > 0 ? random_.below(static_cast<std::uint32_t>(count)) : next_resident_++;
  for (std::size_t i = 0; i < count; ++i) {
    Block& block = *residents_[(first + i) % count];
    if (block.can_run(now)) return &block;
  }
  return nullptr;
}

Warp& Machine::choose_warp(Block& block) {
  const std::size_t count = block.warps.size();
  const std::size_t first =
      settings_.weak ? random_.below(static_cast<std::uint32_t>(count)) : next_resident_ / residents_.size();
  const std::uint64_t now = block.can_run(steps_) ? steps_ : kAwake;
  std::size_t chosen = first % count;
  while (!block.warps[chosen].can_run(now)) chosen = (chosen + 1) % count;
  return block.warps[chosen];
}

void Machine::run_warp(Warp& warp) {
  constexpr std::uint32_t kStepsInOrder = 256;
  if (!settings_.weak) {
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      if (((warp.ready() >> lane) & 1) != 0) steps_ += warp.lane(lane)->run(kStepsInOrder);
    return;
  }
  std::uint32_t ready = warp.ready();
  for (std::uint32_t skip = random_.below(static_cast<std::uint32_t>(__builtin_popcount(ready))); skip > 0; --skip)
    ready &= ready - 1;
  Thread* const chosen = warp.lane(static_cast<std::uint32_t>(__builtin_ctz(ready)));
  steps_ += chosen->run(1U << random_.below(7));
  Thread* const any = random_.one_in(2) ? chosen : warp.lane(random_.below(32));
  if (any != nullptr) memory_.advance(any->memory);
}

void Machine::end_block(Block& block) {
  Launch& launch = block.launch;
  memory_.end_block(block.memory);
  for (const Thread& thread : block.threads()) races_.end_thread(launch.number, thread.order);
  Gpu& gpu = gpus_[block.place.gpu];
  gpu.multiprocessors[block.place.multiprocessor].vacate(launch);
  std::erase_if(residents_, [&](const auto& resident) { return resident.get() == &block; });
  if (++launch.finished == launch.request.grid.count()) {
    memory_.end_kernel(gpu.memory);
    races_.end_launch(launch.number);
    launches_.remove_if([&](const Launch& one) { return &one == &launch; });
    if (idle()) {  // all that has happened happens before what follows
      races_.forget();
      memory_.forget_sources();
    }
    deadline_ = steps_ + settings_.step_budget;
  }
}

void Machine::abandon() {
  for (const auto& block : residents_) gpus_[block->place.gpu].multiprocessors[block->place.multiprocessor].vacate(block->launch);
  residents_.clear();
  for (Gpu& gpu : gpus_) gpu.memory.stores = {};
  memory_.forget();
  memory_.forget_sources();
  races_.forget();
  launches_.clear();
  waiting_blocks_ = 0;
}

}  // namespace seto::software_gpu
