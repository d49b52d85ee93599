// Instructions at which lanes of a warp meet: shuffles, votes, reductions, matches. None of them orders memory.
#include <algorithm>
#include <array>

#include "tests/software_gpu/block.h"
#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu {
namespace {

enum class Shuffle : std::uint8_t { up, down, bfly, idx };

// The lane from which `lane` reads, and whether it is inside its segment.
std::pair<std::uint32_t, bool> shuffle_source(Shuffle mode, std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t segment = (c >> 8) & 31;  // bits that stay as they are
  const std::uint32_t clamp = c & 31;
  const std::uint32_t most = (lane & segment) | (clamp & ~segment);
  const std::uint32_t least = lane & segment;
  b &= 31;
  std::uint32_t source = 0;
  bool inside = false;
  switch (mode) {
    case Shuffle::up:
      source = lane - b;
      inside = static_cast<std::int32_t>(source) >= static_cast<std::int32_t>(most);
      break;
    case Shuffle::down:
      source = lane + b;
      inside = source <= most;
      break;
    case Shuffle::bfly:
      source = lane ^ b;
      inside = source <= most;
      break;
    case Shuffle::idx:
      source = least | (b & ~segment);
      inside = source <= most;
  }
  return {inside ? source : lane, inside};
}

// sources: value, b, c, members. detail: the mode. All values are read before any is written.
void shuffle_all(Warp& warp, std::uint32_t members, const Instruction& /*in*/) {
  std::array<std::uint32_t, 32> values{};
  std::array<std::pair<std::uint32_t, bool>, 32> sources{};
  for_each_lane(warp, members, [&](const Thread& thread) {
    const Instruction& own = *thread.current;
    values[thread.lane] = thread.get<std::uint32_t>(own.s[0]);
    sources[thread.lane] = shuffle_source(static_cast<Shuffle>(own.detail), thread.lane, thread.get<std::uint32_t>(own.s[1]),
                                          thread.get<std::uint32_t>(own.s[2]));
  });
  for_each_lane(warp, members, [&](Thread& thread) {
    const auto [source, inside] = sources[thread.lane];
    // The value of a lane that is no member is undefined, so it is a pattern here.
    thread.set<std::uint32_t>(thread.current->d[0], ((members >> source) & 1) != 0 ? values[source] : 0xDEADBEEFU);
    if (thread.current->destinations > 1) {
      thread.set_bits(thread.current->d[1], inside ? 1 : 0);
    }
  });
}

bool resolve_shuffle(Modifiers& modifiers, Instruction& in) {
  constexpr std::array<std::string_view, 4> kModes{"up", "down", "bfly", "idx"};
  const int mode = modifiers.take_one_of(kModes);
  if (mode < 0 || !modifiers.take("sync") || !take_type(modifiers, in) || in.sources != 4) return false;
  in.detail = static_cast<std::uint32_t>(mode);
  in.handler = [](Thread& thread, const Instruction& i) {
    thread.warp.meet(thread, thread.get<std::uint32_t>(i.s[3]), &shuffle_all);
  };
  return true;
}

enum class Vote : std::uint8_t { all, any, uni, ballot };

void vote_all(Warp& warp, std::uint32_t members, const Instruction& in) {
  std::uint32_t yes = 0;
  for_each_lane(warp, members,
                [&](const Thread& thread) { yes |= thread.predicate(thread.current->s[0]) ? 1U << thread.lane : 0U; });
  const std::array<std::uint32_t, 4> results{yes == members ? 1U : 0U, yes != 0 ? 1U : 0U, yes == 0 || yes == members ? 1U : 0U,
                                             yes};
  for_each_lane(warp, members, [&](Thread& thread) { thread.set(thread.current->d[0], results[in.detail]); });
}

bool resolve_vote(Modifiers& modifiers, Instruction& in) {
  constexpr std::array<std::string_view, 4> kModes{"all", "any", "uni", "ballot"};
  const int mode = modifiers.take_one_of(kModes);
  if (mode < 0 || !modifiers.take("sync") || !take_type(modifiers, in) || in.sources != 2) return false;
  in.detail = static_cast<std::uint32_t>(mode);
  in.handler = [](Thread& thread, const Instruction& i) {
    thread.warp.meet(thread, thread.get<std::uint32_t>(i.s[1]), &vote_all);
  };
  return true;
}

enum class Reduce : std::uint8_t { add, min, max, conjunction, disjunction, exclusive };

std::uint32_t reduced(Reduce which, bool is_signed_type, std::uint32_t a, std::uint32_t b) {
  const bool a_less = is_signed_type ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) : a < b;
  switch (which) {
    case Reduce::add:
      return a + b;
    case Reduce::min:
      return a_less ? a : b;
    case Reduce::max:
      return a_less ? b : a;
    case Reduce::conjunction:
      return a & b;
    case Reduce::disjunction:
      return a | b;
    case Reduce::exclusive:
      return a ^ b;
  }
  return a;
}

void reduce_all(Warp& warp, std::uint32_t members, const Instruction& in) {
  bool first = true;
  std::uint32_t result = 0;
  for_each_lane(warp, members, [&](const Thread& thread) {
    const auto value = thread.get<std::uint32_t>(thread.current->s[0]);
    result = first ? value : reduced(static_cast<Reduce>(in.detail), is_signed(in.type), result, value);
    first = false;
  });
  for_each_lane(warp, members, [&](Thread& thread) { thread.set(thread.current->d[0], result); });
}

bool resolve_reduce(Modifiers& modifiers, Instruction& in) {
  constexpr std::array<std::string_view, 6> kModes{"add", "min", "max", "and", "or", "xor"};
  const int mode = modifiers.take_one_of(kModes);
  if (mode < 0 || !modifiers.take("sync") || !take_type(modifiers, in) || is_float(in.type) || in.sources != 2) return false;
  in.detail = static_cast<std::uint32_t>(mode);
  in.handler = [](Thread& thread, const Instruction& i) {
    thread.warp.meet(thread, thread.get<std::uint32_t>(i.s[1]), &reduce_all);
  };
  return true;
}

// detail: 1: match.all, else match.any.
void match_all(Warp& warp, std::uint32_t members, const Instruction& in) {
  std::array<std::uint64_t, 32> values{};
  const std::uint64_t mask = low_mask(size_of(in.type));
  for_each_lane(warp, members, [&](const Thread& thread) { values[thread.lane] = thread.bits(thread.current->s[0]) & mask; });
  for_each_lane(warp, members, [&](Thread& thread) {
    std::uint32_t equal = 0;
    for_each_lane(warp, members,
                  [&](const Thread& other) { equal |= values[other.lane] == values[thread.lane] ? 1U << other.lane : 0U; });
    const bool all = equal == members;
    thread.set<std::uint32_t>(thread.current->d[0], in.detail == 1 && !all ? 0 : equal);
    if (thread.current->destinations > 1) {
      thread.set_bits(thread.current->d[1], all ? 1 : 0);
    }
  });
}

bool resolve_match(Modifiers& modifiers, Instruction& in) {
  in.detail = modifiers.take("all") ? 1 : 0;
  if ((in.detail == 0 && !modifiers.take("any")) || !modifiers.take("sync") || !take_type(modifiers, in) || in.sources != 2)
    return false;
  in.handler = [](Thread& thread, const Instruction& i) {
    thread.warp.meet(thread, thread.get<std::uint32_t>(i.s[1]), &match_all);
  };
  return true;
}

// Lanes that happen to be at the same instruction may be active together, or not: the manual promises nothing, so the seed
// decides.
void active_mask(Thread& thread, const Instruction& in) {
  Machine& machine = thread.block.machine;
  std::uint32_t active = 1U << thread.lane;
  if (!machine.settings().weak || machine.random().one_in(2)) {
    for_each_lane(thread.warp, thread.warp.ready(), [&](const Thread& other) {
      const bool here = &other.function() == &thread.function() && other.next + 1 == thread.next &&
                        other.call_depth() == thread.call_depth() && other.predicate_allows(in);
      active |= here ? 1U << other.lane : 0U;
    });
  }
  for_each_lane(thread.warp, active, [&](Thread& other) {
    other.set(in.d[0], active);
    other.next = thread.next;
  });
}

bool resolve_active_mask(Modifiers& modifiers, Instruction& in) {
  in.handler = take_type(modifiers, in) ? &active_mask : nullptr;
  return true;
}

// The lowest member is the leader.
void elect_all(Warp& warp, std::uint32_t members, const Instruction& /*in*/) {
  const auto leader = static_cast<std::uint32_t>(__builtin_ctz(members));
  for_each_lane(warp, members, [&](Thread& thread) {
    thread.set(thread.current->d[0], leader);
    thread.set_bits(thread.current->d[1], thread.lane == leader ? 1 : 0);
  });
}

bool resolve_elect(Modifiers& modifiers, Instruction& in) {
  if (!modifiers.take("sync") || in.destinations != 2 || in.sources != 1) return false;
  in.handler = [](Thread& thread, const Instruction& i) {
    thread.warp.meet(thread, thread.get<std::uint32_t>(i.s[0]), &elect_all);
  };
  return true;
}

constexpr std::array<OperationRow, 6> kRows{{
    {"shfl", &resolve_shuffle},
    {"vote", &resolve_vote},
    {"redux", &resolve_reduce},
    {"match", &resolve_match},
    {"activemask", &resolve_active_mask},
    {"elect", &resolve_elect},
}};

}  // namespace

std::span<const OperationRow> warp_operations() { return kRows; }

}  // namespace seto::software_gpu
