#include "transports/shm/process_pairs.h"

#include <algorithm>
#include <string>
#include <utility>

namespace seto {
namespace {

using Members = std::vector<const AttemptMember*>;

// The contexts of `some` that lack a connection to at least one of `others`.
ProcessContexts unconnected(const Members& some, const Members& others) {
  ProcessContexts result{some.front()->place->process, {}};
  for (const AttemptMember* one : some)
    if (!std::all_of(others.begin(), others.end(),
                     [one](const AttemptMember* other) { return both_hold_connection(*one, *other); }))
      result.contexts.push_back(one->place->context);
  return result;
}

}  // namespace

bool both_hold_connection(const AttemptMember& one, const AttemptMember& other) {
  return std::any_of(one.held.begin(), one.held.end(),
                     [&](AttemptId attempt) { return std::binary_search(other.held.begin(), other.held.end(), attempt); });
}

std::vector<LocalProcess::Pair> process_pairs(const Attempt& attempt) {
  const Place& own = *attempt.members[attempt.own].place;
  std::vector<Members> processes;  // other processes of the host
  Members ours;
  for (const AttemptMember& one : attempt.members) {
    if (one.place->host != own.host) continue;
    if (one.place->process == own.process) {
      ours.push_back(&one);
      continue;
    }
    auto found = std::find_if(processes.begin(), processes.end(),
                              [&](const Members& members) { return members.front()->place->process == one.place->process; });
    if (found == processes.end()) found = processes.emplace(found);
    found->push_back(&one);
  }
  std::vector<LocalProcess::Pair> result;
  for (const Members& theirs : processes) {
    LocalProcess::Pair each{unconnected(ours, theirs), unconnected(theirs, ours), attempt.id};
    if (!each.own.contexts.empty()) result.push_back(std::move(each));
  }
  return result;
}

}  // namespace seto
