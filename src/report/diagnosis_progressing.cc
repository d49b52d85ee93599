#include "src/report/diagnosis_progressing.h"

#include <algorithm>

#include "src/core/call/ids.h"
#include "src/report/diagnosis_phrases.h"

namespace seto {
namespace {

// Waits of this length are usual in a collective.
constexpr std::uint64_t kSoonUs = 300'000;
// If dumps were taken further apart than this, or the clocks of hosts differ by more, the order of the dumps proves nothing.
constexpr std::uint64_t kComparableUs = 10'000'000;

std::uint64_t age_us(const ReadDump& dump, std::uint64_t since_us) { return dump.time_us - std::min(dump.time_us, since_us); }

bool by_time(const ReadDump& left, const ReadDump& right) { return left.time_us < right.time_us; }
bool by_operation(const ReadDump& left, const ReadDump& right) { return left.issued < right.issued; }

// A state that lasted for `age` may have changed after this dump if the dump is old enough compared with the latest one.
bool may_have_gone_on(const DumpGroup& group, const ReadDump& dump, std::uint64_t age) {
  const auto [first, last] = std::minmax_element(group.dumps.begin(), group.dumps.end(), by_time);
  return last->time_us - first->time_us <= kComparableUs && age <= kSoonUs + (last->time_us - dump.time_us);
}

bool goes_on(const DumpGroup& group, const ReadDump& dump) {
  const ReadCall* const call = stuck_call(dump);
  if (call == nullptr) return true;
  const std::uint64_t age = age_us(dump, call->since_us());
  if (age <= kSoonUs) return true;
  const bool ended_later = std::any_of(group.dumps.begin(), group.dumps.end(), [&](const ReadDump& other) {
    return other.time_us > dump.time_us && call->operation != 0 && other.done >= call->operation;
  });
  return ended_later && may_have_gone_on(group, dump, age);
}

std::string lasting(std::uint64_t us) { return seconds_text(0, us); }

}  // namespace

std::optional<Diagnosis> progressing(const DumpGroup& group) {
  if (first_to_fail(group) != nullptr ||
      !std::all_of(group.dumps.begin(), group.dumps.end(), [&](const ReadDump& dump) { return goes_on(group, dump); }))
    return {};
  std::optional<std::uint64_t> longest;
  for (const ReadDump& dump : group.dumps)
    if (const ReadCall* const call = stuck_call(dump); call != nullptr)
      longest = std::max(longest.value_or(0), age_us(dump, call->since_us()));
  const auto [behind, ahead] = std::minmax_element(group.dumps.begin(), group.dumps.end(), by_operation);
  const std::uint64_t quiet = age_us(*behind, last_sign_us(*behind));
  if (!longest && (behind->issued == ahead->issued || (quiet > kSoonUs && !may_have_gone_on(group, *behind, quiet)))) return {};
  const auto [first, last] = std::minmax_element(group.dumps.begin(), group.dumps.end(), by_time);
  const std::string where = "operations " + std::to_string(behind->issued) + " to " + std::to_string(ahead->issued) +
                            ", in dumps taken " + lasting(last->time_us - first->time_us) + " apart";
  if (!longest) return Diagnosis{"well", "no rank waits: ranks are at " + where, ahead->issued, {}};
  return Diagnosis{"well",
                   "the job seems to progress: no rank has waited for longer than " + lasting(*longest) + ", at " + where +
                       "; if it hangs, take the dumps again, all at the same time",
                   ahead->issued,
                   {}};
}

}  // namespace seto
