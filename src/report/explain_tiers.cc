#include "src/report/explain_tiers.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>

#include "src/base/far_link.h"
#include "src/base/text.h"
#include "src/codec/codec.h"
#include "src/core/call/ids.h"
#include "src/engine/coding.h"

namespace seto {
namespace {

constexpr std::string_view kKinds[] = {"node", "site", "world"};

// Three digits, or all digits before the point if there are more: "%.3g" alone turns 1000 into 1e+03.
std::string three_digits(double number) {
  char text[32];
  std::snprintf(text, sizeof text, number < 999.5 ? "%.3g" : "%.0f", number);
  return text;
}

bool follows_from_link(TierKind kind, const CostModel& costs) {
  return kind == TierKind::world && costs.between_sites.round_trip_s.has_value();
}

void add_origins(TierFacts& facts, TierKind kind, const CostModel& costs, const Sites* sites) {
  facts.latency_origin = facts.rate_origin = name_of(costs.source);
  if (costs.source != CostSource::measured) return;
  const bool by_link = follows_from_link(kind, costs);
  if (kind == TierKind::node && costs.has_shipped(kind)) {
    facts.latency_origin = facts.rate_origin = "shipped: what was measured is not plausible";
    return;
  }
  if (!by_link) {
    facts.latency_origin = "measured by exchanges";
    facts.rate_origin = is_far_seconds(2 * facts.latency_seconds) && kind != TierKind::node ? "assumed" : facts.latency_origin;
    return;
  }
  const std::string source(name_of(costs.between_sites.source));
  const bool is_stated = sites != nullptr && !sites->rates.empty();
  if (is_stated)
    facts.rate_origin = sites->is_rate_of_file(slowest_site(*sites)) ? "of the slowest site, file" : "stated by the slowest site";
  else if (costs.between_sites.bytes_per_second)
    facts.rate_origin = sites != nullptr && sites->link_rates_of_file ? "file" : source;
  else
    facts.rate_origin = "assumed";
  facts.latency_origin = "half the round trip";
  if (sites != nullptr) {
    const SiteLinks::Pair pair = sites->links.longest();
    facts.link = std::to_string(pair.from) + ">" + std::to_string(pair.to);
    facts.latency_origin += " of " + facts.link;
  }
  facts.latency_origin += ", " + source;
}

void add_codec(TierFacts& facts, int tier, const Question& question, const Choice& choice) {
  if ((choice.coded_tiers >> tier & 1) != 0) {
    facts.codec = codec_name(choice.codec);
    facts.codec_origin = question.codec_by_link ? "chosen for the link" : "permitted by the caller";
    return;
  }
  facts.codec = "exact";
  if ((question.codec_tiers >> tier & 1) != 0)
    facts.codec_origin = std::string(codec_name(question.codec)) + " would not be faster";
}

void add_pins(TierFacts& facts, const Config& config) {
  facts.sockets_are_set = config.tcp_streams != kAutomatic;
  if (facts.sockets_are_set) facts.flow.sockets = static_cast<std::uint32_t>(config.tcp_streams);
  facts.slice_is_set = config.slice_bytes != kAutomatic;
  if (facts.slice_is_set) facts.slice_bytes = config.slice_bytes;
}

}  // namespace

std::string rate_text(double bytes_per_second) {
  const bool is_giga = bytes_per_second >= 1e9;
  return three_digits(bytes_per_second * (is_giga ? 1e-9 : 1e-6)) + (is_giga ? " GB/s" : " MB/s");
}

std::string rate_text(const Sites& sites, std::uint64_t version) {
  const auto text = [version](double rate, const char* origin) {
    return "the slowest rate is " + rate_text(rate) + " (" + origin + ", version " + std::to_string(version) + ")";
  };
  if (!sites.rates.empty()) {
    const std::size_t slowest = slowest_site(sites);
    return text(sites.rates[slowest].slower(), sites.is_rate_of_file(slowest) ? "file" : "stated");
  }
  const std::optional<double> known = sites.links.worst().bytes_per_second;
  if (!known) return text(kAssumedBytesPerSecond, "assumed");
  return text(*known, sites.link_rates_of_file ? "file" : "measured");
}

std::string text_of(const SiteRing& ring) {
  if (ring.order.empty()) return {};
  std::string text("ring of sites: ");
  for (const int site : ring.order) text += std::to_string(site) + " > ";
  text += std::to_string(ring.order.front()) + ", " + duration_text(ring.latency_seconds) + " a hop";
  return ring.bytes_per_second > 0 ? text + ", " + rate_text(ring.bytes_per_second) : text + ", rate unknown";
}

std::string_view kind_name(const Tiers& tiers, int tier) { return kKinds[static_cast<std::size_t>(tiers.kind(tier))]; }

std::string duration_text(double seconds) {
  char text[32];
  if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.2f us", seconds * 1e6);
  else if (seconds < 1)
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

std::string amount_text(double bytes) {
  static constexpr const char* kUnits[] = {"", "K", "M", "G", "T"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return three_digits(bytes) + kUnits[unit];
}

std::vector<TierFacts> tier_facts(const Question& question, const Tiers& tiers, const CostModel& costs, const Choice& choice,
                                  const Config& config, const LiveFacts* live) {
  const CostModel model = question.deterministic ? CostModel() : costs;
  std::vector<TierFacts> all;
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const TierKind kind = tiers.kind(tier);
    TierFacts facts;
    facts.tier = kind_name(tiers, tier);
    facts.members = tiers.size(tier);
    facts.latency_seconds = model.of(kind).latency_seconds;
    facts.bytes_per_second = model.of(kind).bytes_per_second;
    facts.message_seconds = model.of(kind).message_seconds;
    facts.cached_bytes_per_second = model.of(kind).cached_bytes_per_second;
    facts.cached_bytes = model.of(kind).cached_bytes;
    facts.long_message_bytes = model.of(kind).long_message_bytes;
    add_origins(facts, kind, model, live == nullptr ? nullptr : &live->sites);
    if (kind == TierKind::world && tiers.slowest_rate() > 0) {
      facts.bytes_per_second = tiers.slowest_rate();
      if (live == nullptr) facts.rate_origin = "stated by the slowest site";
    }
    add_codec(facts, tier, question, choice);
    facts.has_flow = kind != TierKind::node;
    facts.flow = flow_on(kind, tiers, model);
    facts.slice_bytes = choice.cut.slice_bytes;
    add_pins(facts, config);
    if (facts.codec != "exact")
      facts.slice_bytes = encoded_size(codec_of(choice.codec), facts.slice_bytes / size_of(question.type));
    all.push_back(std::move(facts));
  }
  return all;
}

std::string text_of(const TierFacts& facts) {
  std::string text = "  " + std::string(facts.tier) + " " + std::to_string(facts.members) +
                     (facts.members == 1 ? " member: " : " members: ") + duration_text(facts.latency_seconds);
  if (facts.latency_origin == facts.rate_origin)
    text += ", " + rate_text(facts.bytes_per_second) + " (" + facts.rate_origin + ")";
  else
    text += " (" + facts.latency_origin + "), " + rate_text(facts.bytes_per_second) + " (" + facts.rate_origin + ")";
  if (facts.has_flow) {
    text += "; window " + amount_text(static_cast<double>(facts.flow.window_bytes)) + ", " + std::to_string(facts.flow.sockets) +
            (facts.flow.sockets == 1 ? " socket" : " sockets") + " for a pair of ranks" +
            (facts.sockets_are_set ? " (SETO_TCP_STREAMS)" : "");
    text += ", slices of " + size_text(facts.slice_bytes) + " on the wire" + (facts.slice_is_set ? " (SETO_SLICE_BYTES)" : "");
  } else {
    text += "; shared memory, long messages from " + amount_text(facts.long_message_bytes);
  }
  text += ", " + facts.codec;
  return text + (facts.codec_origin.empty() ? "\n" : " (" + facts.codec_origin + ")\n");
}

void add_facts(JsonWriter& json, const TierFacts& facts) {
  json.open('{').key("tier").value(facts.tier).key("members").number(static_cast<std::uint64_t>(facts.members));
  json.key("latency_seconds").number(facts.latency_seconds).key("latency_origin").value(facts.latency_origin);
  json.key("bytes_per_second").number(facts.bytes_per_second).key("rate_origin").value(facts.rate_origin);
  json.key("message_seconds").number(facts.message_seconds);
  if (facts.cached_bytes_per_second > 0)
    json.key("cached_bytes_per_second").number(facts.cached_bytes_per_second).key("cached_bytes").number(facts.cached_bytes);
  if (facts.long_message_bytes > 0) json.key("long_message_bytes").number(facts.long_message_bytes);
  if (!facts.link.empty()) json.key("link").value(facts.link);
  if (facts.has_flow) {
    json.key("window_bytes").number(facts.flow.window_bytes).key("sockets").number(std::uint64_t{facts.flow.sockets});
    json.key("wire_slice_bytes").number(facts.slice_bytes);
  }
  json.key("codec").value(facts.codec == "exact" ? "none" : facts.codec);
  if (!facts.codec_origin.empty()) json.key("codec_origin").value(facts.codec_origin);
  json.close('}');
}

std::string greatest_loss(const Estimate& lost, const Estimate& chosen, const Tiers& tiers) {
  double most = 0;
  std::string what;
  const auto consider = [&](double more, const std::string& name) {
    if (more <= most) return;
    most = more;
    what = name;
  };
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const TierEstimate& own = lost.tiers[static_cast<std::size_t>(tier)];
    const TierEstimate& best = chosen.tiers[static_cast<std::size_t>(tier)];
    const std::string name(kind_name(tiers, tier));
    consider(own.latency_seconds - best.latency_seconds, "hops on " + name);
    consider(own.wire_seconds - best.wire_seconds, "wire on " + name);
    consider(own.message_seconds - best.message_seconds, "messages on " + name);
  }
  consider(lost.memory_seconds - chosen.memory_seconds, "memory");
  consider(lost.step_seconds - chosen.step_seconds, "steps");
  return what.empty() ? "its slices overlap less" : what + " " + duration_text(most) + " more";
}

}  // namespace seto
