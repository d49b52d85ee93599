#include "src/core/moving.h"

#include <algorithm>

#include "src/core/call/ids.h"
#include "src/core/verdict_words.h"

namespace seto {
namespace {

// Waits of this length are the usual way of a collective.
constexpr std::uint64_t kSoonUs = 300'000;
// Of dumps further apart, or of hosts whose clocks are, the order says nothing.
constexpr std::uint64_t kComparableUs = 10'000'000;

std::uint64_t age_us(const ReadDump& dump, std::uint64_t since_us) { return dump.time_us - std::min(dump.time_us, since_us); }

bool by_time(const ReadDump& left, const ReadDump& right) { return left.time_us < right.time_us; }
bool by_operation(const ReadDump& left, const ReadDump& right) { return left.issued < right.issued; }

// What lasts longer may have gone on after this dump, if it is not older than the dumps that came later.
bool may_have_gone_on(const Case& one, const ReadDump& dump, std::uint64_t age) {
  const auto [first, last] = std::minmax_element(one.dumps.begin(), one.dumps.end(), by_time);
  return last->time_us - first->time_us <= kComparableUs && age <= kSoonUs + (last->time_us - dump.time_us);
}

bool goes_on(const Case& one, const ReadDump& dump) {
  const ReadCall* const call = stuck_call(dump);
  if (call == nullptr) return true;
  const std::uint64_t age = age_us(dump, call->since_us());
  if (age <= kSoonUs) return true;
  const bool ended_later = std::any_of(one.dumps.begin(), one.dumps.end(), [&](const ReadDump& other) {
    return other.time_us > dump.time_us && call->operation != 0 && other.done >= call->operation;
  });
  return ended_later && may_have_gone_on(one, dump, age);
}

std::string lasting(std::uint64_t us) { return seconds_text(0, us); }

}  // namespace

std::optional<Verdict> moving(const Case& one) {
  if (first_to_fail(one) != nullptr ||
      !std::all_of(one.dumps.begin(), one.dumps.end(), [&](const ReadDump& dump) { return goes_on(one, dump); }))
    return {};
  std::optional<std::uint64_t> longest;
  for (const ReadDump& dump : one.dumps)
    if (const ReadCall* const call = stuck_call(dump); call != nullptr)
      longest = std::max(longest.value_or(0), age_us(dump, call->since_us()));
  const auto [behind, ahead] = std::minmax_element(one.dumps.begin(), one.dumps.end(), by_operation);
  const std::uint64_t quiet = age_us(*behind, last_sign_us(*behind));
  if (!longest && (behind->issued == ahead->issued || (quiet > kSoonUs && !may_have_gone_on(one, *behind, quiet)))) return {};
  const auto [first, last] = std::minmax_element(one.dumps.begin(), one.dumps.end(), by_time);
  const std::string where = "operations " + std::to_string(behind->issued) + " to " + std::to_string(ahead->issued) +
                            ", in dumps taken " + lasting(last->time_us - first->time_us) + " apart";
  if (!longest) return Verdict{"well", "nobody waits: ranks are at " + where, ahead->issued, {}};
  return Verdict{"well",
                 "the job seems to move: no rank has waited for longer than " + lasting(*longest) + ", at " + where +
                     "; if it stands still, take them again, all at once",
                 ahead->issued,
                 {}};
}

}  // namespace seto
