#include "tests/lab/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "src/base/text.h"

namespace seto::lab {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// Parses a number that is not negative, followed by one of the units.
std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0) || number > 1e15) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (rest == unit.name) return number * unit.factor;
  }
  return std::nullopt;
}

Status refused(std::string_view option, std::string_view wanted) {
  return {Code::invalid_argument, quoted(option) + ": wanted " + std::string(wanted)};
}

template <class T, class U>
bool assign(T& target, const std::optional<U>& value) {
  if (value) target = static_cast<T>(*value);
  return value.has_value();
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  return text == "off" ? std::optional(false) : std::nullopt;
}

std::optional<BurstLoss> parse_burst_loss(std::string_view text) {
  const auto words = words_of(text, ',');
  if (words.size() < 2 || words.size() > 3) return std::nullopt;
  BurstLoss burst;
  if (!assign(burst.enter, parse_chance(words[0])) || !assign(burst.leave, parse_chance(words[1]))) return std::nullopt;
  if (words.size() == 3 && !assign(burst.loss, parse_chance(words[2]))) return std::nullopt;
  return burst;
}

std::optional<std::uint64_t> parse_small_size(std::string_view text) {
  const auto value = parse_size(text);
  return value && *value <= std::numeric_limits<std::uint16_t>::max() ? value : std::nullopt;
}

}  // namespace

std::string quoted(std::string_view text) { return std::string("'").append(text).append("'"); }

std::vector<std::string_view> words_of(std::string_view line, char separator) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(separator), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::optional<double> parse_rate(std::string_view text) {
  constexpr std::array<Unit, 4> kUnits = {{{"", 1}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}}};
  return parse_with_unit(text, kUnits);
}

std::optional<Nanoseconds> parse_duration(std::string_view text) {
  constexpr std::array<Unit, 4> kUnits = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  const auto value = text == "0" ? std::optional(0.0) : parse_with_unit(text, kUnits);
  return value && *value <= 60e9 ? std::optional(static_cast<Nanoseconds>(*value)) : std::nullopt;
}

std::optional<double> parse_chance(std::string_view text) {
  constexpr std::array<Unit, 2> kUnits = {{{"", 1}, {"%", 0.01}}};
  const auto value = parse_with_unit(text, kUnits);
  return value && *value <= 1 ? value : std::nullopt;
}

Status set_option(LinkSettings& settings, std::string_view option) {
  const std::size_t equals = std::min(option.find('='), option.size());
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = option.substr(std::min(equals + 1, option.size()));
  const auto outcome = [&](bool understood, std::string_view wanted) { return understood ? Status() : refused(option, wanted); };
  if (name == "rate") return outcome(assign(settings.rate, parse_rate(value)), "bits a second, as 25m or 1g");
  if (name == "delay") return outcome(assign(settings.delay, parse_duration(value)), "a time of at most 60s, as 5ms");
  if (name == "jitter") return outcome(assign(settings.jitter, parse_duration(value)), "a time of at most 60s, as 200us");
  if (name == "loss") return outcome(assign(settings.loss, parse_chance(value)), "a chance, as 0.1% or 0.001");
  if (name == "burst-loss") return outcome(assign(settings.burst_loss, parse_burst_loss(value)), "ENTER,LEAVE[,LOSS], chances");
  if (name == "bucket") return outcome(assign(settings.bucket_bytes, parse_size(value)), "bytes, as 64K");
  if (name == "overhead") return outcome(assign(settings.overhead, parse_small_size(value)), "bytes below 64K");
  if (name == "largest") return outcome(assign(settings.largest, parse_small_size(value)), "bytes of IP below 64K, or 0");
  if (name == "cut") return outcome(assign(settings.cut, parse_switch(value)), "on or off");
  if (name == "hole") return outcome(assign(settings.hole, parse_switch(value)), "on or off");
  if (name == "closed") return outcome(assign(settings.closed, parse_switch(value)), "on or off");
  if (name == "queue" && value == "auto") {
    settings.queue_bytes.reset();
    return {};
  }
  if (name == "queue") return outcome(assign(settings.queue_bytes, parse_size(value)), "bytes, as 256K, or auto");
  return refused(option, "rate delay jitter loss burst-loss queue bucket overhead largest cut hole or closed, with =");
}

Status set_access_option(LinkSettings& settings, std::string_view option) {
  constexpr std::array<std::string_view, 4> kNames = {"rate", "queue", "bucket", "overhead"};
  const std::string_view name = option.substr(0, option.find('='));
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return set_option(settings, option);
  return refused(option, "rate queue bucket or overhead of an uplink or a downlink, with =");
}

Result<std::size_t> parse_site(std::string_view text, std::size_t sites) {
  const auto site = parse_uint(text);
  if (site && *site < sites) return static_cast<std::size_t>(*site);
  return refused(text, "a site from 0 to " + std::to_string(sites - 1));
}

Result<std::vector<std::size_t>> parse_sites(std::string_view text, std::size_t sites) {
  std::vector<std::size_t> chosen;
  if (text == "*") {
    for (std::size_t site = 0; site < sites; ++site) chosen.push_back(site);
    return chosen;
  }
  SETO_ASSIGN(const std::size_t site, parse_site(text, sites));
  chosen.push_back(site);
  return chosen;
}

Result<std::vector<SitePair>> parse_pairs(std::string_view text, std::size_t sites) {
  std::vector<SitePair> pairs;
  if (text == "*") {
    for (std::size_t from = 0; from < sites; ++from) {
      for (std::size_t to = 0; to < sites; ++to) {
        if (from != to) pairs.push_back({from, to});
      }
    }
    return pairs;
  }
  const std::size_t sign = text.find_first_of(">-");
  if (sign == std::string_view::npos) return refused(text, "FROM>TO, ONE-OTHER or *");
  SETO_ASSIGN(const std::size_t from, parse_site(text.substr(0, sign), sites));
  SETO_ASSIGN(const std::size_t to, parse_site(text.substr(sign + 1), sites));
  if (from == to) return refused(text, "two different sites");
  pairs.push_back({from, to});
  if (text[sign] == '-') pairs.push_back({to, from});
  return pairs;
}

}  // namespace seto::lab
