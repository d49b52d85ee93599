#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "tests/lab/network.h"

namespace seto::lab {
namespace {

std::string counters_text(const LinkCounters& counters) {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::array<char, 384> text{};
  std::snprintf(text.data(), text.size(),
                R"("packets": %llu, "segments": %llu, "bytes": %llu, "passed_segments": %llu, "passed_bytes": %llu, )"
                R"("lost": %llu, "overflow": %llu, "swallowed": %llu, "most_backlog": %.0f)",
                number(counters.packets), number(counters.segments), number(counters.bytes), number(counters.passed_segments),
                number(counters.passed_bytes), number(counters.lost), number(counters.overflow), number(counters.swallowed),
                counters.most_backlog);
  return text.data();
}

std::string lateness_text(const Lateness& lateness) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), R"("late_avg_us": %.1f, "late_max_us": %.1f)", lateness.average_us(),
                static_cast<double>(lateness.most) / 1e3);
  return text.data();
}

std::string quoted_name(const std::string& name) { return std::string(1, '"').append(name).append(1, '"'); }

// "segments_by_dscp": {"0": 12, "46": 3}, and likewise the bytes: the code points that were seen.
std::string classes_text(const std::array<MarkedTraffic, 64>& by_dscp) {
  std::string segments, bytes;
  for (std::size_t mark = 0; mark < by_dscp.size(); ++mark) {
    if (by_dscp[mark].segments == 0) continue;
    const std::string name = (segments.empty() ? "" : ", ") + quoted_name(std::to_string(mark)) + ": ";
    segments += name + std::to_string(by_dscp[mark].segments);
    bytes += name + std::to_string(by_dscp[mark].bytes);
  }
  return "\"segments_by_dscp\": {" + segments + "}, \"bytes_by_dscp\": {" + bytes + "}";
}

void append(std::string& list, const std::string& name, const std::string& figures) {
  if (!list.empty()) list += ", ";
  list.append(quoted_name(name)).append(": {").append(figures).append("}");
}

}  // namespace

Lateness Network::lateness_of_all() const {
  Lateness all;
  for (const Link& source : links_) {
    all.count += source.lateness.count;
    all.sum += source.lateness.sum;
    all.most = std::max(all.most, source.lateness.most);
  }
  return all;
}

Nanoseconds Network::shortest_round_trip() const {
  Nanoseconds shortest = kFarAway;
  for (std::size_t from = 0; from < sites(); ++from) {
    for (std::size_t to = 0; to < from; ++to) {
      shortest = std::min(shortest, link(from, to).model.settings().delay + link(to, from).model.settings().delay);
    }
  }
  return shortest;
}

std::string Network::statistics() const {
  std::string links, uplinks, downlinks;
  for (std::size_t from = 0; from < sites(); ++from) {
    const Access& own = access_[from];
    if (own.uplink.settings().rate > 0) append(uplinks, std::to_string(from), counters_text(own.uplink.counters()));
    if (own.downlink.settings().rate > 0) append(downlinks, std::to_string(from), counters_text(own.downlink.counters()));
    for (std::size_t to = 0; to < sites(); ++to) {
      const Link& source = link(from, to);
      if (source.model.counters().packets == 0) continue;
      const std::string figures =
          counters_text(source.model.counters()) + ", " + lateness_text(source.lateness) + ", " + classes_text(source.by_dscp);
      append(links, std::to_string(from) + ">" + std::to_string(to), figures);
    }
  }
  std::string text = "{";
  text.append(lateness_text(lateness_of_all()));
  text.append(", \"round_trip_us\": ").append(std::to_string(shortest_round_trip() / 1000));
  text.append(", \"links\": {").append(links);
  text.append("}, \"uplinks\": {").append(uplinks);
  return text.append("}, \"downlinks\": {").append(downlinks).append("}");
}

}  // namespace seto::lab
