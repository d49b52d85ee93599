#include "src/core/choice/cost_model.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>

#include "src/base/far_link.h"
#include "src/base/text.h"

namespace seto {
namespace {

struct Constant {
  std::string_view key;
  double& (*in)(CostModel& costs);
  double scale;  // from the text's unit to seconds or bytes per second
  bool may_be_zero = false;
};

constexpr Constant kConstants[] = {
    {"node.latency_us", [](CostModel& costs) -> double& { return costs.node.latency_seconds; }, 1e-6},
    {"node.gigabytes_per_second", [](CostModel& costs) -> double& { return costs.node.bytes_per_second; }, 1e9},
    {"node.message_us", [](CostModel& costs) -> double& { return costs.node.message_seconds; }, 1e-6, true},
    {"node.cached_gigabytes_per_second", [](CostModel& costs) -> double& { return costs.node.cached_bytes_per_second; }, 1e9,
     true},
    {"node.cached_kilobytes", [](CostModel& costs) -> double& { return costs.node.cached_bytes; }, 1024, true},
    {"node.long_message_kilobytes", [](CostModel& costs) -> double& { return costs.node.long_message_bytes; }, 1024},
    {"node.last_level_kilobytes", [](CostModel& costs) -> double& { return costs.node.last_level_bytes; }, 1024, true},
    {"site.latency_us", [](CostModel& costs) -> double& { return costs.site.latency_seconds; }, 1e-6},
    {"site.gigabytes_per_second", [](CostModel& costs) -> double& { return costs.site.bytes_per_second; }, 1e9},
    {"site.message_us", [](CostModel& costs) -> double& { return costs.site.message_seconds; }, 1e-6, true},
    {"world.latency_us", [](CostModel& costs) -> double& { return costs.world.latency_seconds; }, 1e-6},
    {"world.gigabytes_per_second", [](CostModel& costs) -> double& { return costs.world.bytes_per_second; }, 1e9},
    {"world.message_us", [](CostModel& costs) -> double& { return costs.world.message_seconds; }, 1e-6, true},
    {"codec.gigabytes_per_second", [](CostModel& costs) -> double& { return costs.codec_bytes_per_second; }, 1e9},
    {"switch_us", [](CostModel& costs) -> double& { return costs.switch_seconds; }, 1e-6},
};

constexpr double kLargest = 1e9;
constexpr std::streamsize kLongestFile = 64 << 10;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Status unknown(std::string_view key, int line) {
  std::array<std::string_view, std::size(kConstants)> keys;
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = kConstants[i].key;
  const std::string_view guess = nearest(key, keys);
  return failure(Code::invalid_argument, "line %d: '%.64s' is not a constant%s%s (seto info constants prints them all)", line,
                 std::string(key).c_str(), guess.empty() ? "" : "; did you mean ", guess.data() == nullptr ? "" : guess.data());
}

Status unreadable(const std::string& path) {
  const std::string reason = std::generic_category().message(errno);
  return failure(Code::invalid_argument,
                 "SETO_TUNING_FILE: %s cannot be read: %s; name a file as printed by seto info constants, or unset it",
                 path.c_str(), reason.c_str());
}

Status take(CostModel& costs, std::string_view line, int number) {
  const auto end_of_key = std::min(line.find_first_of(" \t="), line.size());
  const std::string_view key = line.substr(0, end_of_key);
  std::string_view rest = trimmed(line.substr(end_of_key));
  if (rest.starts_with('=')) rest = trimmed(rest.substr(1));
  const std::string value(rest);
  for (const Constant& constant : kConstants) {
    if (constant.key != key) continue;
    char* end = nullptr;
    const double parsed = std::strtod(value.c_str(), &end);
    const bool is_too_small = constant.may_be_zero ? parsed < 0 : parsed <= 0;
    if (value.empty() || *end != '\0' || !std::isfinite(parsed) || is_too_small || parsed > kLargest)
      return failure(Code::invalid_argument, "line %d: %s = '%.64s': give a number %s, at most 1e9", number, constant.key.data(),
                     value.c_str(), constant.may_be_zero ? "of 0 or more" : "above 0");
    constant.in(costs) = parsed * constant.scale;
    return {};
  }
  return unknown(key, number);
}

}  // namespace

std::string_view name_of(CostSource source) {
  switch (source) {
    case CostSource::shipped:
    case CostSource::expected:
      return "shipped";
    case CostSource::file:
      return "file";
    case CostSource::measured:
      return "measured";
  }
  return "unknown";
}

bool CostModel::has_shipped(TierKind kind) const {
  const auto is_near = [](double value, double other) { return std::abs(value - other) <= 1e-5 * other; };
  const TierCost& own = of(kind);
  const TierCost shipped = CostModel().of(kind);
  return is_near(own.latency_seconds, shipped.latency_seconds) && is_near(own.bytes_per_second, shipped.bytes_per_second) &&
         is_near(own.message_seconds, shipped.message_seconds) &&
         is_near(own.cached_bytes_per_second, shipped.cached_bytes_per_second) && is_near(own.cached_bytes, shipped.cached_bytes);
}

SiteRing ring_of(const SiteLinks& links) {
  SiteRing ring;
  if (links.sites() < 3) return ring;
  ring.order = site_order(site_costs(links)).sites;
  double sum = 0;
  double fastest = std::numeric_limits<double>::infinity();
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < ring.order.size(); ++i) {
    const LinkFacts& link = links.between(static_cast<std::uint32_t>(ring.order[i]),
                                          static_cast<std::uint32_t>(ring.order[(i + 1) % ring.order.size()]));
    const double latency = link.round_trip_s.value_or(0) / 2;
    sum += latency;
    fastest = std::min(fastest, latency);
    slowest = std::min(slowest, link.bytes_per_second.value_or(0));
  }
  ring.latency_seconds = (sum - fastest) / static_cast<double>(ring.order.size() - 1);
  ring.bytes_per_second = slowest;
  for (std::uint32_t from = 0; from < links.sites(); ++from)
    for (std::uint32_t to = 0; to < links.sites(); ++to)
      if (from != to)
        ring.fastest_link_rate = std::max(ring.fastest_link_rate, links.between(from, to).bytes_per_second.value_or(0));
  return ring;
}

namespace {

// The round trip that the kernel knows; 0: unknown, as within a node.
double kernel_round_trip(const Sites& sites, TierKind kind) {
  if (kind == TierKind::node) return 0;
  return (kind == TierKind::site ? sites.longest_within_s : sites.links.worst().round_trip_s).value_or(0);
}

// An exchange between processes takes the time of both schedulers, too: tens of microseconds where ranks share cores. What takes
// longer says that other programs kept the cores busy, and nothing of the link.
constexpr double kMostSoftwareSeconds = 100e-6;
constexpr double kLongestNearRoundTrip = (kFarRoundTripUs - 1) * 1e-6;

void limit_latency(TierCost& cost, double round_trip_s) {
  if (round_trip_s <= 0) return;
  double longest = round_trip_s + 2 * kMostSoftwareSeconds;
  if (!is_far_seconds(round_trip_s)) longest = std::min(longest, kLongestNearRoundTrip);
  cost.latency_seconds = std::min(cost.latency_seconds, longest / 2);
  cost.message_seconds = std::min(cost.message_seconds, cost.latency_seconds / 2);  // the latency contains two of them
}

}  // namespace

bool CostModel::knows_near_link(const Sites& sites, TierKind kind) {
  const double round_trip_s = kernel_round_trip(sites, kind);
  return round_trip_s > 0 && !is_far_seconds(round_trip_s);
}

bool CostModel::knows_link(const Sites& sites) { return is_far_seconds(sites.links.worst().round_trip_s.value_or(0)); }

void CostModel::use(const Sites& sites) {
  sites_are_stated = sites.stated;
  if (source != CostSource::measured) return;
  for (const TierKind kind : {TierKind::site, TierKind::world}) limit_latency(of(kind), kernel_round_trip(sites, kind));
  if (!knows_link(sites)) return;
  between_sites = sites.links.worst();
  links_digest = sites.links.digest();
  ring = ring_of(sites.links);
  world.latency_seconds = *between_sites.round_trip_s / 2;
  double slowest = 0;  // of the stated links of sites
  for (const PortRates& one : sites.rates) slowest = slowest == 0 ? one.slower() : std::min(slowest, one.slower());
  const double between = between_sites.bytes_per_second.value_or(slowest > 0 ? slowest : kAssumedBytesPerSecond);
  world.bytes_per_second = slowest > 0 ? std::min(slowest, between) : between;
}

std::string costs_text(const CostModel& costs) {
  std::string text;
  CostModel copy = costs;
  for (const Constant& constant : kConstants) {
    char line[96];
    std::snprintf(line, sizeof line, "%s %.6g\n", constant.key.data(), constant.in(copy) / constant.scale);
    text += line;
  }
  return text;
}

std::string unused_constants(const CostModel& stated, const CostModel& used) {
  const auto same = [](double one, double other) { return std::abs(one - other) <= 1e-5 * std::max(one, other); };
  std::string names;
  CostModel shipped;
  CostModel wanted = stated;
  CostModel taken = used;
  for (const Constant& constant : kConstants) {
    const double value = constant.in(wanted);
    if (same(value, constant.in(shipped)) || same(value, constant.in(taken))) continue;
    names.append(names.empty() ? "" : ", ").append(constant.key);
  }
  return names;
}

Result<CostModel> parse_costs(std::string_view text, CostSource source) {
  CostModel costs;
  costs.source = source;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (const Status taken = take(costs, line, number); !taken.ok()) return Status(taken.code(), escaped(taken.text()));
  }
  return costs;
}

Result<CostModel> read_costs(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(path);
  std::string text(kLongestFile + 1, '\0');
  file.read(text.data(), kLongestFile + 1);
  if (file.bad()) return unreadable(path);  // a directory opens
  if (file.gcount() > kLongestFile)
    return failure(Code::invalid_argument, "SETO_TUNING_FILE: %s is longer than 64 KiB, so it is not a file of constants",
                   path.c_str());
  text.resize(static_cast<std::size_t>(file.gcount()));
  Result<CostModel> costs = parse_costs(text, CostSource::file);
  if (!costs.ok())
    return failure(Code::invalid_argument, "SETO_TUNING_FILE: %s, %s", path.c_str(), std::string(costs.status().text()).c_str());
  return costs;
}

}  // namespace seto
