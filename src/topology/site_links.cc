#include "src/topology/site_links.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

namespace seto {
namespace {

using Value = std::optional<double>;

// The bounds of a number that a link can have.
struct Bounds {
  const char* name;
  Value LinkFacts::*value;
  double least;
  double most;
};
constexpr Bounds kBounds[] = {
    {"bytes per second", &LinkFacts::bytes_per_second, 1e3, 1e13},
    {"round trip in seconds", &LinkFacts::round_trip_s, 1e-6, 10},
    {"loss", &LinkFacts::loss, 0, 1},
    {"bytes per second of a socket", &LinkFacts::socket_bytes_per_second, 1e3, 1e13},
};

Value bounded(double value, const Bounds& bounds) {
  if (std::isnan(value) || (value <= 0 && bounds.least > 0)) return std::nullopt;
  return std::clamp(value, bounds.least, bounds.most);
}

// Combines two statements of a value. An unknown one does not count.
template <class Best>
void keep(Value& known, const Value& told, const Best& best) {
  if (told) known = known ? best(*known, *told) : *told;
}

double less(double one, double other) { return std::min(one, other); }
double more(double one, double other) { return std::max(one, other); }

std::uint32_t folded(std::uint32_t digest, std::uint64_t word) {
  for (int byte = 0; byte < 8; ++byte, word >>= 8) digest = (digest ^ static_cast<std::uint32_t>(word & 0xff)) * 16777619U;
  return digest;
}

}  // namespace

std::string text_of(const LinkFacts& link) {
  char part[96];
  std::string text("round trip unknown");
  if (link.round_trip_s) {
    std::snprintf(part, sizeof part, "round trip %.3g ms (%s)", *link.round_trip_s * 1e3, name_of(link.source).data());
    text = part;
  }
  if (link.bytes_per_second) {
    std::snprintf(part, sizeof part, ", %.3g MB/s", *link.bytes_per_second * 1e-6);
    text += part;
  } else {
    text += ", rate unknown";
  }
  if (link.loss.value_or(0) > 0) {
    std::snprintf(part, sizeof part, ", loss %.2g %%", *link.loss * 100);
    text += part;
  }
  if (link.socket_bytes_per_second) {
    std::snprintf(part, sizeof part, ", %.3g MB/s a socket", *link.socket_bytes_per_second * 1e-6);
    text += part;
  }
  return text;
}

std::string bound_values(LinkFacts& link, const std::string& stated_by) {
  std::string replaced;
  for (const Bounds& bounds : kBounds) {
    const Value value = link.*bounds.value;
    if (!value) continue;
    link.*bounds.value = bounded(*value, bounds);
    if (link.*bounds.value == value) continue;
    char text[160];
    if (link.*bounds.value)
      std::snprintf(text, sizeof text, " = %.3g; %.3g is used", *value, *(link.*bounds.value));
    else
      std::snprintf(text, sizeof text, " = %.3g; it counts as unknown", *value);
    replaced.append(replaced.empty() ? "" : "; ").append(stated_by).append(" states ").append(bounds.name).append(text);
  }
  return replaced;
}

std::string SiteLinks::add(const Statement& statement) {
  if (statement.from >= sites_ || statement.to >= sites_)
    return "rank " + std::to_string(statement.rank) + " states a link of site " +
           std::to_string(std::max(statement.from, statement.to)) + ", but there are " + std::to_string(sites_) + " sites";
  LinkFacts& known = links_[index(statement.from, statement.to)];
  LinkFacts told = statement.link;
  std::string replaced =
      bound_values(told, "rank " + std::to_string(statement.rank) + " (link from site " + std::to_string(statement.from) +
                             " to site " + std::to_string(statement.to) + ")");
  keep(known.bytes_per_second, told.bytes_per_second, more);
  keep(known.round_trip_s, told.round_trip_s, less);
  keep(known.loss, told.loss, less);
  keep(known.socket_bytes_per_second, told.socket_bytes_per_second, more);
  known.source = std::max(known.source, told.source);
  return replaced;
}

LinkFacts SiteLinks::worst() const {
  LinkFacts worst{.medium = LinkMedium::wide_area};
  bool first = true;
  for (std::uint32_t from = 0; from < sites_; ++from)
    for (std::uint32_t to = 0; to < sites_; ++to) {
      if (from == to) continue;
      const LinkFacts& link = between(from, to);
      if (std::exchange(first, false)) {
        worst = link;
        continue;
      }
      const auto combine = [&](Value LinkFacts::*value, double (*which)(double, double)) {
        const bool both = worst.*value && link.*value;
        worst.*value = both ? Value(which(*(worst.*value), *(link.*value))) : std::nullopt;
      };
      combine(&LinkFacts::bytes_per_second, less);
      combine(&LinkFacts::round_trip_s, more);
      combine(&LinkFacts::loss, more);
      combine(&LinkFacts::socket_bytes_per_second, less);
      worst.source = std::min(worst.source, link.source);
    }
  return worst;
}

std::uint32_t digest_of(const LinkFacts& link) {
  constexpr std::uint64_t kUnknown = ~std::uint64_t{0};  // no bits of a bounded value
  std::uint32_t digest = 2166136261U;
  for (const Bounds& bounds : kBounds) {
    const Value& value = link.*bounds.value;
    digest = folded(digest, value ? std::bit_cast<std::uint64_t>(*value) : kUnknown);
  }
  return folded(digest, static_cast<std::uint64_t>(link.source));
}

SiteLinks::Pair SiteLinks::longest() const {
  Pair pair;
  double longest = -1;
  for (std::uint32_t from = 0; from < sites_; ++from)
    for (std::uint32_t to = 0; to < sites_; ++to) {
      if (from == to || between(from, to).round_trip_s.value_or(0) <= longest) continue;
      longest = between(from, to).round_trip_s.value_or(0);
      pair = {from, to};
    }
  return pair;
}

std::string SiteLinks::text() const {
  std::string text;
  for (std::uint32_t from = 0; from < sites_; ++from)
    for (std::uint32_t to = 0; to < sites_; ++to)
      if (from != to) text += std::to_string(from) + ">" + std::to_string(to) + " " + text_of(between(from, to)) + "\n";
  return text;
}

std::string text_of(const Sites& sites) {
  const std::uint32_t count = sites.links.sites();
  std::string text = std::to_string(count) + (count == 1 ? " site" : " sites");
  if (count > 1)
    text += sites.by_file   ? " stated by SETO_TOPOLOGY_FILE"
            : sites.stated  ? " stated by SETO_SITE_ID"
            : sites.guessed ? " guessed from round trips near the limit (SETO_SITE_ID states them)"
                            : " found by round trips";
  std::string_view separator = ": ";
  std::string links = sites.links.text();
  for (std::string_view rest = links; !rest.empty(); separator = "; ") {
    const std::size_t end = rest.find('\n');
    text.append(separator).append(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  for (std::size_t site = 0; site < sites.rates.size(); ++site) {
    char rates[160];
    std::snprintf(rates, sizeof rates, "; site %zu sends %.4g Mbit/s and receives %.4g Mbit/s (%s)", site,
                  sites.rates[site].up * 8e-6, sites.rates[site].down * 8e-6, sites.is_rate_of_file(site) ? "file" : "stated");
    text += rates;
  }
  return text;
}

std::size_t slowest_site(const Sites& sites) {
  const auto slower = [](const PortRates& one, const PortRates& other) { return one.slower() < other.slower(); };
  return static_cast<std::size_t>(std::min_element(sites.rates.begin(), sites.rates.end(), slower) - sites.rates.begin());
}

std::uint32_t SiteLinks::digest() const {
  std::uint32_t digest = folded(2166136261U, sites_);
  for (const LinkFacts& link : links_) digest = folded(digest, digest_of(link));
  return digest;
}

}  // namespace seto
