#include "src/report/job_report.h"

#include <algorithm>
#include <map>

#include "src/bootstrap/bootstrap.h"

namespace seto {
namespace {

constexpr std::uint64_t kApartUs = 10'000'000;

// If a rank has two dumps, the later one is kept.
void add(DumpGroup& group, ReadDump dump, std::vector<std::string>& left_out) {
  const auto same =
      std::find_if(group.dumps.begin(), group.dumps.end(), [&](const ReadDump& other) { return other.rank == dump.rank; });
  if (same == group.dumps.end()) {
    group.dumps.push_back(std::move(dump));
    return;
  }
  if (same->source == dump.source && same->time_us == dump.time_us) {
    left_out.push_back(dump.source + ": given twice");
    return;
  }
  if (same->time_us < dump.time_us) std::swap(*same, dump);
  left_out.push_back(dump.source + ": rank " + std::to_string(dump.rank) + " has a later dump, " + same->source);
}

std::vector<std::string> remarks_on(const DumpGroup& group) {
  std::vector<std::string> remarks;
  const auto [first, last] =
      std::minmax_element(group.dumps.begin(), group.dumps.end(),
                          [](const ReadDump& left, const ReadDump& right) { return left.time_us < right.time_us; });
  if (last->time_us - first->time_us > kApartUs)
    remarks.push_back("these dumps were taken up to " + std::to_string((last->time_us - first->time_us) / 1'000'000) +
                      " s apart (by the clocks of their hosts)");
  if (!group.missing.empty()) remarks.push_back("no dump of " + rank_list(group.missing));
  if (const ReadDump* const knows = first_to_fail(group); knows != nullptr)
    remarks.push_back("rank " + std::to_string(knows->rank) + " failed first: " + knows->failure);
  for (const ReadDump& dump : group.dumps)
    if (dump.calls.empty() && dump.issued > 0)
      remarks.push_back("rank " + std::to_string(dump.rank) + " ran without a flight recorder (SETO_RECORDER=0)");
  return remarks;
}

}  // namespace

const ReadDump* DumpGroup::of(Rank rank) const {
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

const ReadDump* first_to_fail(const DumpGroup& group) {
  const ReadDump* first = nullptr;
  for (const ReadDump& dump : group.dumps)
    if (dump.failed && (first == nullptr || dump.failed_at_us < first->failed_at_us)) first = &dump;
  return first;
}

// Sort order: a communicator that a rank left is listed after those with another problem, because the rank often left because of
// that problem.
int sort_key(const Diagnosis& diagnosis) { return diagnosis.kind == "well" ? 2 : diagnosis.kind == "left" ? 1 : 0; }

std::vector<DumpGroup> group_dumps(std::vector<ReadDump> dumps, std::vector<std::string>& left_out) {
  std::map<std::pair<std::string, int>, DumpGroup> found;
  for (ReadDump& dump : dumps) {
    DumpGroup& group = found[{dump.attempt, dump.ranks}];
    add(group, std::move(dump), left_out);
  }
  std::vector<DumpGroup> groups;
  for (auto& [key, group] : found) {
    std::sort(group.dumps.begin(), group.dumps.end(),
              [](const ReadDump& left, const ReadDump& right) { return left.rank < right.rank; });
    for (Rank rank = 0; rank < group.ranks(); ++rank)
      if (group.of(rank) == nullptr) group.missing.push_back(rank);
    group.diagnosis = diagnose(group);
    group.remarks = remarks_on(group);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const DumpGroup& left, const DumpGroup& right) {
    const int places[] = {sort_key(left.diagnosis), sort_key(right.diagnosis)};
    return places[0] != places[1] ? places[0] < places[1] : left.dumps.size() > right.dumps.size();
  });
  return groups;
}

}  // namespace seto
