#include "src/plan/hazards.h"

#include <algorithm>

#include "src/plan/chunk_map.h"

namespace seto {
namespace {

void need(std::vector<Dependency>& all, HazardTracker::Access earlier, std::uint32_t own_lane) {
  if (earlier.lane == own_lane) return;  // the steps of a lane run in order
  const auto same = std::find_if(all.begin(), all.end(), [&](const Dependency& d) { return d.lane == earlier.lane; });
  if (same == all.end()) {
    all.push_back({earlier.lane, earlier.position + 1});
  } else {
    same->steps = std::max(same->steps, earlier.position + 1);
  }
}

}  // namespace

std::uint32_t PlaceTable::id(Space space, std::uint32_t index) {
  if (space == Space::input && in_place_ == InPlace::yes) {
    if (const auto same = output_index(shape_, rank_, chunk_of_input(shape_, rank_, index))) {
      space = Space::output;
      index = *same;
    }
  }
  if (space == Space::scratch) {
    const auto [place, is_new] = scratch_ids_.try_emplace(index, size_);
    size_ += is_new ? 1 : 0;
    return place->second;
  }
  auto& known = ids_[static_cast<std::size_t>(space)];
  if (known.size() <= index) known.resize(std::max<std::size_t>(index + 1, known.size() * 2), 0);
  if (known[index] == 0) known[index] = ++size_;
  return known[index] - 1;
}

void HazardTracker::touch(Space space, std::uint32_t index, std::uint32_t count, bool writes) {
  if (space == Space::channel) return;
  for (std::uint32_t i = 0; i < count; ++i) touched_.push_back({table_.id(space, index + i), writes});
  places_.resize(std::max<std::size_t>(places_.size(), table_.size()));
}

void HazardTracker::read(Space space, std::uint32_t index, std::uint32_t count) { touch(space, index, count, false); }
void HazardTracker::write(Space space, std::uint32_t index, std::uint32_t count) { touch(space, index, count, true); }

std::vector<Dependency> HazardTracker::take(Access step) {
  std::vector<Dependency> needed;
  for (const Touched& touched : touched_) {
    const Place& place = places_[touched.place];
    if (place.written) need(needed, place.writer, step.lane);
    if (!touched.writes) continue;
    for (const Access& reader : place.readers) need(needed, reader, step.lane);
  }
  for (const Touched& touched : touched_) {
    Place& place = places_[touched.place];
    if (touched.writes) {
      place.readers.clear();
      place.written = true;
      place.writer = step;
    } else {
      place.readers.push_back(step);
    }
  }
  touched_.clear();
  std::sort(needed.begin(), needed.end(), [](const Dependency& a, const Dependency& b) { return a.lane < b.lane; });
  return needed;
}

}  // namespace seto
