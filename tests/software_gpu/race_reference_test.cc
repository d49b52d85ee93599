// The race check against the definitions of the PTX memory model, worked out event by event for short random programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/race_check.h"
#include "tests/software_gpu/random.h"

namespace seto::software_gpu {
namespace {

constexpr std::size_t kMost = 40;
using Set = std::bitset<kMost>;

struct Event {
  enum class Kind : std::uint8_t { read, write, update, fence, barrier };

  Kind kind = Kind::read;
  std::size_t thread = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  Order order = Order::weak;
  Scope scope = Scope::system;
  int source = -1;  // the strong write that it reads
  Set before{};     // base causality order
  Set observed{};   // the writes that precede it in observation order

  [[nodiscard]] bool is_access() const { return kind <= Kind::update; }
  [[nodiscard]] bool reads() const { return kind == Kind::read || kind == Kind::update; }
  [[nodiscard]] bool writes() const { return kind == Kind::write || kind == Kind::update; }
  [[nodiscard]] bool is_at_place_of(const Event& other) const { return address == other.address && bytes == other.bytes; }
};

// Threads 0 and 1 share a block, thread 2 is in another one of their GPU, thread 3 is on another GPU.
constexpr std::size_t kThreads = 4;
constexpr std::uint32_t kBlockOf[kThreads] = {1, 1, 2, 3};
constexpr std::uint32_t kGpuOf[kThreads] = {0, 0, 0, 1};

// Read as the manual states it; nothing is compressed or forgotten.
class Reference final {
 public:
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

  void add(Event event) {
    const auto index = events_.size();
    events_.push_back(event);
    Event& added = events_.back();
    for (std::size_t i = index; i-- > 0;) {
      if (events_[i].thread != added.thread) continue;
      added.before = events_[i].before;
      added.before.set(i);
      break;
    }
    if (added.reads() && added.source >= 0) {
      const auto source = static_cast<std::size_t>(added.source);
      if (is_morally_strong(events_[source], added)) {
        added.observed.set(source);
        if (events_[source].kind == Event::Kind::update) added.observed |= events_[source].observed;
      }
    }
    synchronise(added, index);
  }
  // The last events, one for each of these threads, are one barrier.
  void join(std::size_t count) {
    Set all;
    for (std::size_t i = events_.size() - count; i < events_.size(); ++i) {
      all |= events_[i].before;
      all.set(i);
    }
    for (std::size_t i = events_.size() - count; i < events_.size(); ++i) events_[i].before |= all;
  }
  // Whether the last event has a race. A lenient view counts a write as observed with a later one of its place.
  [[nodiscard]] bool last_has_race(bool lenient) const {
    const Event& last = events_.back();
    for (std::size_t i = 0; last.is_access() && i + 1 < events_.size(); ++i) {
      const Event& other = events_[i];
      const bool conflict = other.is_access() && other.thread != last.thread && (other.writes() || last.writes()) &&
                            other.address < last.address + last.bytes && last.address < other.address + other.bytes;
      if (conflict && !is_morally_strong(other, last) && !is_before_last(i, lenient)) return true;
    }
    return false;
  }

 private:
  static bool sees(const Event& event, const Event& other) {
    return includes(event.scope, kGpuOf[event.thread] == kGpuOf[other.thread], kBlockOf[event.thread] == kBlockOf[other.thread]);
  }
  static bool is_morally_strong(const Event& a, const Event& b) {
    if (a.is_access() && b.is_access() && !a.is_at_place_of(b)) return false;
    return is_strong(a.order) && is_strong(b.order) && sees(a, b) && sees(b, a);
  }

  // Release patterns that end with a write which precedes a read of an acquire pattern that ends with this event.
  void synchronise(Event& last, std::size_t index) {
    const bool is_fence = last.kind == Event::Kind::fence;
    if (!is_fence && !(last.reads() && acquires(last.order))) return;
    for (std::size_t r = 0; r <= index; ++r) {
      const Event& read = events_[r];
      if (read.thread != last.thread || !read.reads() || (!is_fence && !read.is_at_place_of(last))) continue;
      for (std::size_t w = 0; w < index; ++w)
        if (read.observed[w]) synchronise_with(last, w);
    }
  }
  void synchronise_with(Event& last, std::size_t w) {
    const Event& write = events_[w];
    for (std::size_t x = 0; x <= w; ++x) {
      const Event& first = events_[x];
      const bool begins =
          first.thread == write.thread &&
          (first.kind == Event::Kind::fence || (first.writes() && releases(first.order) && first.is_at_place_of(write)));
      if (!begins || !sees(first, last) || !sees(last, first)) continue;
      last.before |= first.before;
      last.before.set(x);
    }
  }
  [[nodiscard]] bool is_before_last(std::size_t i, bool lenient) const {
    const Event& last = events_.back();
    if (last.before[i]) return true;
    for (std::size_t r = 0; r + 1 < events_.size(); ++r) {
      if (!last.before[r] || !events_[r].reads() || events_[r].observed.none()) continue;
      if (events_[r].observed[i]) return true;
      for (std::size_t w = i; lenient && w + 1 < events_.size(); ++w)
        if (events_[r].observed[w] && events_[w].is_at_place_of(events_[i]) && is_strong(events_[i].order)) return true;
    }
    return false;
  }

  std::vector<Event> events_;
};

// Runs the same events on the race check.
class Checked final {
 public:
  Checked() {
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu)
      check_.launch({.request = {.program = &program_, .kernel = "k", .gpu = gpu}, .number = gpu + 1});
    for (std::uint32_t block = 0; block < 3; ++block) blocks_.push_back(check_.start_block(block + 1, block / 2 + 1, {}));
    for (std::size_t thread = 0; thread < kThreads; ++thread)
      threads_.emplace_back(blocks_[kBlockOf[thread] - 1], thread == 1 ? 1 : 0);
  }

  // False: a race.
  bool run(const Event& event) {
    ThreadOrder& thread = threads_[event.thread];
    const RaceCheck::Access access{
        .address = event.address, .bytes = event.bytes, .order = event.order, .scope = event.scope, .line = 1};
    const WriteRef source = event.source >= 0 ? written_[static_cast<std::size_t>(event.source)] : nullptr;
    WriteRef made;
    try {
      if (event.kind == Event::Kind::read) {
        check_.read(thread, access, source);
      } else if (event.kind == Event::Kind::write) {
        made = check_.write(thread, access);
      } else if (event.kind == Event::Kind::update) {
        const auto update = check_.begin_update(thread, access);
        check_.end_update(thread, access, source, *update);
        made = update;
      } else if (event.kind == Event::Kind::fence) {
        RaceCheck::fence(thread, event.scope);
      }
    } catch (const Fault&) {
      return false;
    }
    written_.push_back(made);
    return true;
  }
  // Threads 0 and 1 meet at a barrier of their block or of their warp.
  void meet(bool whole_block) {
    const std::vector<Release> arrivals{threads_[0].release(Scope::block), threads_[1].release(Scope::block)};
    if (whole_block)
      join_block(blocks_[0], arrivals, {&threads_[0], &threads_[1]});
    else
      join_arrivals(arrivals, {&threads_[0], &threads_[1]});
    written_.resize(written_.size() + 2);
  }

 private:
  Program program_;
  RaceCheck check_{true, true};
  std::deque<BlockOrder> blocks_;
  std::deque<ThreadOrder> threads_;
  std::vector<WriteRef> written_;  // by event
};

Event random_event(Random& random, const std::vector<Event>& events) {
  constexpr Scope kScopes[] = {Scope::block, Scope::gpu, Scope::system, Scope::system};
  Event event{
      .kind = static_cast<Event::Kind>(random.below(4)), .thread = random.below(kThreads), .scope = kScopes[random.below(4)]};
  if (event.kind == Event::Kind::fence) {
    event.order = Order::acquire_release;
    return event;
  }
  constexpr std::uint64_t kAddresses[] = {0x1000, 0x1004, 0x1000, 0x1010};
  const std::uint32_t place = random.below(4);
  event.address = random.one_in(3) ? kAddresses[place] : 0x1010;
  event.bytes = event.address == 0x1000 && place == 2 ? 8 : 4;
  const bool acquires_here = random.one_in(2);
  switch (event.kind) {
    case Event::Kind::read:
      event.order = random.one_in(4) ? Order::weak : acquires_here ? Order::acquire : Order::relaxed;
      break;
    case Event::Kind::write:
      event.order = random.one_in(4) ? Order::weak : acquires_here ? Order::release : Order::relaxed;
      break;
    default:
      event.order = static_cast<Order>(static_cast<std::uint32_t>(Order::relaxed) + random.below(4));
  }
  if (!event.reads() || !is_strong(event.order)) return event;
  // It reads the last write of its place, or sometimes an older one, but none that is older than what its thread knows of the
  // place.
  int oldest = -1;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& own = events[i];
    if (own.thread != event.thread || !own.is_at_place_of(event)) continue;
    oldest = own.writes() && is_strong(own.order) ? static_cast<int>(i) : std::max(oldest, own.source);
  }
  for (std::size_t i = events.size(); i-- > 0 && static_cast<int>(i) >= oldest;) {
    const Event& write = events[i];
    if (write.writes() && is_strong(write.order) && write.is_at_place_of(event)) {
      event.source = static_cast<int>(i);
      if (!random.one_in(4)) break;
    }
  }
  return event;
}

std::string text_of(const std::vector<Event>& events) {
  constexpr const char* kKinds[] = {"read", "write", "update", "fence", "barrier"};
  constexpr const char* kOrders[] = {"weak", "nc", "relaxed", "acquire", "release", "acq_rel", "sc"};
  constexpr const char* kScopes[] = {"cta", "gpu", "sys"};
  std::string text;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    text += std::to_string(i) + ": thread " + std::to_string(event.thread) + " " + kKinds[static_cast<std::size_t>(event.kind)] +
            " " + kOrders[static_cast<std::size_t>(event.order)] + " " + kScopes[static_cast<std::size_t>(event.scope)] + ", " +
            std::to_string(event.bytes) + " bytes at " + std::to_string(event.address) + ", reads from " +
            std::to_string(event.source) + "\n";
  }
  return text;
}

// The first event after which the check and the reference disagree, as text; "" if none does. `races` counts the races.
std::string disagreement(std::uint64_t seed, std::uint64_t& races) {
  Random random(seed);
  Reference reference;
  Checked checked;
  while (reference.events().size() + 2 <= kMost) {
    if (random.one_in(12)) {
      for (std::size_t thread = 0; thread < 2; ++thread) reference.add({.kind = Event::Kind::barrier, .thread = thread});
      reference.join(2);
      checked.meet(random.one_in(2));
      continue;
    }
    const Event event = random_event(random, reference.events());
    Reference with_event = reference;
    with_event.add(event);
    // A race ends the program, so most of them are left out.
    if (with_event.last_has_race(false) && !random.one_in(16)) continue;
    reference = with_event;
    const bool reported = !checked.run(event);
    const auto where = [&] { return text_of(reference.events()) + "the last event"; };
    if (reported && !reference.last_has_race(false)) return where() + " has no race, but one is reported";
    if (!reported && reference.last_has_race(true)) return where() + " has a race that is not reported";
    if (reported || reference.last_has_race(false)) {
      ++races;
      return "";
    }
  }
  return "";
}

TEST(RaceReference, TheCheckAgreesWithTheDefinitions) {
  const std::uint64_t seeds = std::getenv("ALL_SEEDS") != nullptr ? 400'000 : 40'000;
  std::uint64_t races = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) ASSERT_EQ(disagreement(seed, races), "") << "seed " << seed;
  EXPECT_GT(races, seeds / 4) << "the programs should have races";
}

}  // namespace
}  // namespace seto::software_gpu
