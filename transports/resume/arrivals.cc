#include "transports/resume/arrivals.h"

#include "src/base/check.h"

namespace seto::resume {

Result<Arrivals::Begun> Arrivals::begin(std::uint32_t path, std::uint64_t number) {
  SETO_CHECK(path < kMostPaths && reading_[path].number == 0);
  if (number == 0) return failure(Code::remote_error, "a frame without a number: the connection is given up");
  const bool whole = received_.has(number);
  if (!whole && !received_.within(number))
    return failure(Code::remote_error, "a frame far ahead of a missing one: the connection is given up");
  Begun begun{whole ? Action::drop : Action::place, 0};
  for (std::uint32_t other = 0; other < kMostPaths && !whole; ++other)
    if (reading_[other].number == number) begun = {Action::join, other};
  reading_[path] = {number, whole};
  return begun;
}

Arrivals::Completed Arrivals::complete(std::uint32_t path) {
  SETO_CHECK(path < kMostPaths && reading_[path].number != 0);
  const Reading whole = reading_[path];
  reading_[path] = {};
  if (whole.turned_away) return {};
  Completed completed{true, 0};
  for (std::uint32_t other = 0; other < kMostPaths; ++other) {
    if (reading_[other].number != whole.number) continue;
    reading_[other].turned_away = true;
    completed.turn_away |= PathSet{1} << other;
  }
  received_.add(whole.number);
  return completed;
}

Arrivals::Half Arrivals::path_broke(std::uint32_t path) {
  SETO_CHECK(path < kMostPaths);
  const Reading half = reading_[path];
  reading_[path] = {};
  if (half.number == 0) return {};
  bool alone = !half.turned_away;
  for (const Reading& other : reading_) alone = alone && other.number != half.number;
  return {half.number, alone};
}

}  // namespace seto::resume
