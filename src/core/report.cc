#include "src/core/report.h"

#include <algorithm>
#include <map>

#include "src/bootstrap/bootstrap.h"

namespace seto {
namespace {

constexpr std::uint64_t kApartUs = 10'000'000;

// Two dumps of a rank: the later one tells more.
void add(Case& one, ReadDump dump, std::vector<std::string>& left_out) {
  const auto same =
      std::find_if(one.dumps.begin(), one.dumps.end(), [&](const ReadDump& other) { return other.rank == dump.rank; });
  if (same == one.dumps.end()) {
    one.dumps.push_back(std::move(dump));
    return;
  }
  if (same->time_us < dump.time_us) std::swap(*same, dump);
  left_out.push_back(dump.source + ": rank " + std::to_string(dump.rank) + " has a later dump, " + same->source);
}

std::vector<std::string> remarks_on(const Case& one) {
  std::vector<std::string> remarks;
  const auto [first, last] =
      std::minmax_element(one.dumps.begin(), one.dumps.end(),
                          [](const ReadDump& left, const ReadDump& right) { return left.time_us < right.time_us; });
  if (last->time_us - first->time_us > kApartUs)
    remarks.push_back("these dumps were taken up to " + std::to_string((last->time_us - first->time_us) / 1'000'000) +
                      " s apart (by the clocks of their hosts)");
  if (!one.missing.empty()) remarks.push_back("no dump of " + rank_list(one.missing));
  if (const ReadDump* const knows = first_to_fail(one); knows != nullptr)
    remarks.push_back("rank " + std::to_string(knows->rank) + " failed first: " + knows->failure);
  for (const ReadDump& dump : one.dumps)
    if (dump.calls.empty() && dump.issued > 0)
      remarks.push_back("rank " + std::to_string(dump.rank) + " ran without a flight recorder (SETO_RECORDER=0)");
  return remarks;
}

}  // namespace

const ReadDump* Case::of(Rank rank) const {
  const auto found = std::find_if(dumps.begin(), dumps.end(), [&](const ReadDump& dump) { return dump.rank == rank; });
  return found == dumps.end() ? nullptr : &*found;
}

const ReadCall* stuck_call(const ReadDump& dump) {
  const auto found = std::find_if(dump.calls.begin(), dump.calls.end(), [](const ReadCall& call) { return call.waits(); });
  return found == dump.calls.end() ? nullptr : &*found;
}

const ReadCall* call_of(const ReadDump& dump, std::uint64_t operation) {
  const auto found =
      std::find_if(dump.calls.rbegin(), dump.calls.rend(), [&](const ReadCall& call) { return call.operation == operation; });
  return operation == 0 || found == dump.calls.rend() ? nullptr : &*found;
}

const ReadDump* first_to_fail(const Case& one) {
  const ReadDump* first = nullptr;
  for (const ReadDump& dump : one.dumps)
    if (dump.failed && (first == nullptr || dump.failed_at_us < first->failed_at_us)) first = &dump;
  return first;
}

// Who ended a communicator often did so because of another one.
int place_among_cases(const Verdict& verdict) { return verdict.kind == "well" ? 2 : verdict.kind == "left" ? 1 : 0; }

std::vector<Case> cases_of(std::vector<ReadDump> dumps, std::vector<std::string>& left_out) {
  std::map<std::pair<std::string, int>, Case> found;
  for (ReadDump& dump : dumps) {
    Case& one = found[{dump.attempt, dump.ranks}];
    add(one, std::move(dump), left_out);
  }
  std::vector<Case> cases;
  for (auto& [key, one] : found) {
    std::sort(one.dumps.begin(), one.dumps.end(),
              [](const ReadDump& left, const ReadDump& right) { return left.rank < right.rank; });
    for (Rank rank = 0; rank < one.ranks(); ++rank)
      if (one.of(rank) == nullptr) one.missing.push_back(rank);
    one.verdict = judge(one);
    one.remarks = remarks_on(one);
    cases.push_back(std::move(one));
  }
  std::stable_sort(cases.begin(), cases.end(), [](const Case& left, const Case& right) {
    const int places[] = {place_among_cases(left.verdict), place_among_cases(right.verdict)};
    return places[0] != places[1] ? places[0] < places[1] : left.dumps.size() > right.dumps.size();
  });
  return cases;
}

}  // namespace seto
