#include "src/topology/draw/number_words.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <span>

namespace seto {
namespace {

struct Unit {
  double size;
  const char* name;
};

// Three digits of the number in the largest unit that leaves at least 1 before the point.
std::string in_units(double value, std::span<const Unit> units) {
  std::size_t at = 0;
  while (at + 1 < units.size() && value < units[at].size) ++at;
  const double scaled = value / units[at].size;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", scaled < 99.95 && scaled > 0 ? 1 : 0, scaled, units[at].name);
  return text.data();
}

}  // namespace

std::string rate_words(double bytes_per_second) {
  static constexpr std::array<Unit, 5> kUnits = {{{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}}};
  return in_units(bytes_per_second, kUnits);
}

std::string time_words(double seconds) {
  static constexpr std::array<Unit, 3> kUnits = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}}};
  return in_units(seconds, kUnits);
}

std::string link_words(const LinkFacts& facts) {
  std::string words;
  const auto add = [&](const std::string& part) { words.append(words.empty() ? "" : ", ").append(part); };
  if (facts.bytes_per_second) add(rate_words(*facts.bytes_per_second));
  if (facts.round_trip_s) add(time_words(*facts.round_trip_s) + " round trip");
  if (facts.loss) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "loss %.3g %%", *facts.loss * 100);
    add(text.data());
  }
  if (facts.socket_bytes_per_second) add(rate_words(*facts.socket_bytes_per_second) + " a socket");
  if (words.empty()) return "not known";
  words.append(" (").append(name_of(facts.source));
  if (facts.age_s) words.append(", ").append(time_words(*facts.age_s)).append(" ago");
  return words + ")";
}

}  // namespace seto
