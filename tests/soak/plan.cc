#include "tests/soak/plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/soak/limits.h"

namespace seto::soak {
namespace {

// Returns each of `many` values once in as many generations, in an order that the seed shuffles each time. A value that first
// appeared late in a run would look like a leak.
int in_turn(const Shape& shape, std::uint64_t generation, int many, std::uint64_t salt) {
  std::vector<int> order(static_cast<std::size_t>(many));
  std::iota(order.begin(), order.end(), 0);
  const auto block = static_cast<std::uint64_t>(many);
  Random random(mixed(mixed(shape.seed, salt), generation / block));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order[generation % block];
}

// The groups that exist while a plan is drawn.
class Draft final {
 public:
  Draft(Plan& plan, const Shape& shape) : plan_(plan), new_contexts_(shape.cuts == 0), random_(mixed(plan.key, 3)) {
    Group all;
    for (int rank = 0; rank < shape.ranks; ++rank) all.members.push_back(rank);
    plan_.groups.push_back(all);
    live_.push_back(0);
  }

  void add_act() {
    const std::uint64_t drawn = random_.below(100);
    if (drawn < 14)
      split();
    else if (drawn < 20)
      drop();
    else if (drawn < 27)
      together();
    else if (drawn < 33)
      reject();
    else
      batch();
  }

  [[nodiscard]] int any_group() { return live_[random_.below(live_.size())]; }
  [[nodiscard]] int any_member(int group) {
    const Group& one = plan_.groups[static_cast<std::size_t>(group)];
    return random_.index(one.size());
  }

 private:
  void batch() {
    Act act{What::batch, {}, 0, random_.next()};
    for (std::uint64_t many = random_.one_in(4) ? 1 + random_.below(3) : 1; many > 0; --many) act.groups.push_back(any_group());
    plan_.acts.push_back(act);
  }

  void together() {
    if (live_.size() > 1) plan_.acts.push_back({What::together, live_, 0, random_.next()});
  }

  void reject() {
    const int group = any_group();
    if (plan_.groups[static_cast<std::size_t>(group)].size() < 2) return;
    plan_.acts.push_back({What::rejected, {group}, any_member(group), random_.next()});
  }

  void drop() {
    const int group = any_group();
    if (group == 0) return;
    live_.erase(std::find(live_.begin(), live_.end(), group));
    plan_.acts.push_back({What::drop, {group}, 0, random_.next()});
  }

  void split() {
    const int parent = any_group();
    const int colors = 1 + random_.index(3);
    if (static_cast<int>(live_.size()) + colors > kMostGroups) return;
    const Group whole = plan_.groups[static_cast<std::size_t>(parent)];
    Group part;
    part.parent = parent;
    part.shares_context = !random_.one_in(4) || !new_contexts_;
    for (int member = 0; member < whole.size(); ++member) {
      part.colors.push_back(random_.one_in(10) ? -1 : random_.index(colors));
      part.keys.push_back(random_.index(5) - 2);
    }
    Act act{What::split, {parent}, 0, random_.next()};
    for (int color = 0; color < colors; ++color) {
      Group one = part;
      std::vector<int> ranks;
      for (int rank = 0; rank < whole.size(); ++rank)
        if (part.colors[static_cast<std::size_t>(rank)] == color) ranks.push_back(rank);
      std::stable_sort(ranks.begin(), ranks.end(), [&](int left, int right) {
        return part.keys[static_cast<std::size_t>(left)] < part.keys[static_cast<std::size_t>(right)];
      });
      for (const int rank : ranks) one.members.push_back(whole.members[static_cast<std::size_t>(rank)]);
      const int number = static_cast<int>(plan_.groups.size());
      act.groups.push_back(number);
      if (!ranks.empty()) live_.push_back(number);
      plan_.groups.push_back(std::move(one));
    }
    plan_.acts.push_back(act);
  }

  Plan& plan_;
  const bool new_contexts_;  // not while connections are cut: an init does not survive that
  Random random_;
  std::vector<int> live_;
};

// While connections are cut, all endings are orderly.
Ending drawn_ending(const Shape& shape, std::uint64_t generation) {
  if (shape.ending >= 0) return static_cast<Ending>(shape.ending);
  constexpr int kOrderly = 2;
  static_assert(static_cast<int>(Ending::destroy) < kOrderly && static_cast<int>(Ending::finalize) < kOrderly);
  return static_cast<Ending>(in_turn(shape, generation, shape.cuts == 0 ? kEndings : kOrderly, 12));
}

void draw_ending(Plan& plan, const Shape& shape, std::uint64_t generation, Draft& draft) {
  Random random(mixed(plan.key, 4));
  plan.ending = drawn_ending(shape, generation);
  const bool killed = plan.ending == Ending::kill || plan.ending == Ending::kill_while_making;
  if (killed && shape.processes < 2) plan.ending = Ending::destroy;
  if (killed) {
    do {
      plan.culprit = random.index(shape.ranks);
    } while (shape.processes > 1 && shape.process_of(plan.culprit) == shape.survivor());
    return;
  }
  plan.group = random.one_in(2) ? 0 : draft.any_group();
  const Group* group = &plan.groups[static_cast<std::size_t>(plan.group)];
  if (group->size() < 2) group = &plan.groups[static_cast<std::size_t>(plan.group = 0)];
  plan.culprit = group->members[static_cast<std::size_t>(draft.any_member(plan.group))];
}

}  // namespace

int Group::rank_of(int member) const {
  const auto found = std::find(members.begin(), members.end(), member);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

const char* name_of(Ending ending) {
  static constexpr std::array<const char*, kEndings> kNames = {
      "destroy", "finalize", "abort", "abort_pending", "mismatch", "kill", "kill_while_making"};
  return kNames[static_cast<std::size_t>(ending)];
}

const char* name_of(Way way) {
  static constexpr std::array<const char*, kWays> kNames = {"unique_id", "file", "several_ids", "callback", "grouped"};
  return kNames[static_cast<std::size_t>(way)];
}

const char* name_of(Medium medium) {
  static constexpr std::array<const char*, 3> kNames = {"auto", "all_apart", "two_nodes"};
  return kNames[static_cast<std::size_t>(medium)];
}

std::string Plan::text() const {
  return std::string("way ") + name_of(way) + (blocking ? "" : " (not blocking)") + ", medium " + name_of(medium) + ", " +
         std::to_string(groups.size()) + " groups, " + std::to_string(acts.size()) + " acts, ending " + name_of(ending) +
         " by rank " + std::to_string(culprit) + " in group " + std::to_string(group) + (in_fp16 ? ", sums in fp16" : "");
}

Plan plan_of(const Shape& shape, std::uint64_t generation) {
  Plan plan;
  plan.key = mixed(shape.seed, generation);
  Random random(plan.key);
  plan.way = static_cast<Way>(in_turn(shape, generation, kWays, 10));
  plan.blocking = !random.one_in(4);
  plan.own_context = random.one_in(2);
  plan.watched = random.one_in(3);
  if (shape.transport == Transport::mixed) plan.medium = static_cast<Medium>(in_turn(shape, generation, 3, 11));
  if (shape.transport == Transport::tcp) plan.medium = Medium::all_apart;
  Draft draft(plan, shape);
  for (std::uint64_t many = 5 + random.below(shape.cuts == 0 ? 25 : 40); many > 0; --many) draft.add_act();
  plan.in_fp16 = shape.cuts != 0 && random.one_in(2);
  draw_ending(plan, shape, generation, draft);
  if (plan.ending == Ending::kill_while_making) {
    plan.acts.clear();
    plan.way = Way::unique_id;  // with the other ways a program would wait for the dead rank
  }
  return plan;
}

}  // namespace seto::soak
