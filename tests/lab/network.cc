#include "tests/lab/network.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "tests/lab/settings.h"

namespace seto::lab {
namespace {

// Of one link in one pass: the others wait no longer than this.
constexpr std::size_t kDeliveriesPerPass = 32;

std::string link_statistics(std::size_t from, std::size_t to, const Link& link) {
  const LinkCounters& counters = link.model.counters();
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(),
                R"("%zu>%zu": {"packets": %llu, "segments": %llu, "bytes": %llu, "passed_segments": %llu, "passed_bytes": %llu, )"
                R"("lost": %llu, "overflow": %llu, "swallowed": %llu, "most_backlog": %.0f, "late_avg_us": %.1f, )"
                R"("late_max_us": %.1f})",
                from, to, static_cast<unsigned long long>(counters.packets), static_cast<unsigned long long>(counters.segments),
                static_cast<unsigned long long>(counters.bytes), static_cast<unsigned long long>(counters.passed_segments),
                static_cast<unsigned long long>(counters.passed_bytes), static_cast<unsigned long long>(counters.lost),
                static_cast<unsigned long long>(counters.overflow), static_cast<unsigned long long>(counters.swallowed),
                counters.most_backlog, link.lateness.average_us(), static_cast<double>(link.lateness.most) / 1e3);
  return text.data();
}

}  // namespace

double Lateness::average_us() const { return count == 0 ? 0 : static_cast<double>(sum) / 1e3 / static_cast<double>(count); }

void Lateness::add(Nanoseconds late) {
  ++count;
  sum += late;
  most = std::max(most, late);
}

Network::Network(std::size_t sites, const LinkSettings& links, std::uint64_t seed) : sites_(sites) {
  links_.reserve(sites * sites);
  for (std::size_t index = 0; index < sites * sites; ++index) {
    links_.push_back({.model = LinkModel(links, seed * 1'000'003 + index), .on_its_way = {}, .lateness = {}});
  }
}

void Network::enter(Nanoseconds now, std::size_t from, const OffloadHeader& offload, Packet packet) {
  const auto to = destination_site(packet);
  const auto shape = shape_of(offload, packet);
  if (!to || *to >= sites_ || *to == from || !shape) return;
  Link& target = link(from, *to);
  pieces_.clear();
  target.model.offer(now, shape->segments, pieces_);
  if (pieces_.empty()) return;
  const auto bytes = std::make_shared<const std::vector<std::byte>>(packet.begin(), packet.end());
  for (const Piece& piece : pieces_) {
    target.on_its_way.push_back({.due = piece.due, .fragment = fragment_of(offload, packet, *shape, piece), .packet = bytes});
  }
}

std::size_t Network::deliver(Nanoseconds now, Sink& sink) {
  std::size_t delivered = 0;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    Link& source = links_[index];
    for (std::size_t turn = 0; turn < kDeliveriesPerPass && !source.on_its_way.empty(); ++turn, ++delivered) {
      const Delivery& first = source.on_its_way.front();
      if (first.due > now) break;
      source.lateness.add(now - first.due);
      sink.deliver(index % sites_, first);
      source.on_its_way.pop_front();
    }
  }
  return delivered;
}

Nanoseconds Network::next_due() const {
  Nanoseconds next = kFarAway;
  for (const Link& source : links_) {
    if (!source.on_its_way.empty()) next = std::min(next, source.on_its_way.front().due);
  }
  return next;
}

Status Network::change(Nanoseconds now, std::string_view line) {
  const auto words = words_of(line, ' ');
  if (words.size() < 2) return {Code::invalid_argument, quoted(line) + ": wanted PAIRS OPTION..."};
  SETO_ASSIGN(const auto pairs, parse_pairs(words[0], sites_));
  std::vector<LinkSettings> changed;
  for (const SitePair& pair : pairs) {
    LinkSettings& settings = changed.emplace_back(link(pair.from, pair.to).model.settings());
    for (std::size_t index = 1; index < words.size(); ++index) SETO_TRY(set_option(settings, words[index]));
  }
  for (std::size_t index = 0; index < pairs.size(); ++index) {
    Link& target = link(pairs[index].from, pairs[index].to);
    target.model.change(now, changed[index]);
    if (changed[index].cut) target.on_its_way.clear();
  }
  return {};
}

std::string Network::statistics() const {
  std::string text;
  Lateness all;
  for (std::size_t from = 0; from < sites_; ++from) {
    for (std::size_t to = 0; to < sites_; ++to) {
      const Link& source = link(from, to);
      if (source.model.counters().packets == 0) continue;
      text += (text.empty() ? "" : ", ") + link_statistics(from, to, source);
      all.count += source.lateness.count;
      all.sum += source.lateness.sum;
      all.most = std::max(all.most, source.lateness.most);
    }
  }
  std::array<char, 128> head{};
  std::snprintf(head.data(), head.size(), R"({"late_avg_us": %.1f, "late_max_us": %.1f, "links": {)", all.average_us(),
                static_cast<double>(all.most) / 1e3);
  return head.data() + text + "}";
}

}  // namespace seto::lab
