#include "src/core/encounters.h"

#include <algorithm>
#include <string>

namespace seto {
namespace {

using Ranks = std::vector<const Introduction*>;

// Those of `some` that somebody of `others` does not know.
Household strangers(const Ranks& some, const Ranks& others) {
  Household result{some.front()->process, {}};
  for (const Introduction* one : some)
    if (!std::all_of(others.begin(), others.end(), [one](const Introduction* other) { return acquainted(*one, *other); }))
      result.contexts.push_back(one->context);
  return result;
}

}  // namespace

bool acquainted(const Introduction& one, const Introduction& other) {
  return std::any_of(one.offered.begin(), one.offered.end(),
                     [&](AttemptId attempt) { return std::binary_search(other.offered.begin(), other.offered.end(), attempt); });
}

std::vector<Neighbour::Introduced> encounters(const std::vector<Introduction>& all, const Introduction& own, AttemptId attempt) {
  std::vector<Ranks> processes;  // of the machine
  Ranks ours;
  for (const Introduction& one : all) {
    if (one.host != own.host) continue;
    if (one.process == own.process) {
      ours.push_back(&one);
      continue;
    }
    auto found = std::find_if(processes.begin(), processes.end(),
                              [&](const Ranks& ranks) { return ranks.front()->process == one.process; });
    if (found == processes.end()) found = processes.emplace(found);
    found->push_back(&one);
  }
  std::vector<Neighbour::Introduced> result;
  for (const Ranks& theirs : processes) {
    Neighbour::Introduced each{strangers(ours, theirs), strangers(theirs, ours), attempt};
    if (!each.own.contexts.empty()) result.push_back(std::move(each));
  }
  return result;
}

}  // namespace seto
