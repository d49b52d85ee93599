#include "src/core/communicator/audited_flows.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <utility>

#include "src/core/record/observability.h"
#include "transports/moving_way.h"

namespace seto {
namespace {

constexpr int kLastLinesMs = 2'000;

// The addresses at both ends in the words of a connection: "TCP 10.0.0.1 -> 10.0.0.2".
std::pair<std::string_view, std::string_view> addresses_in(std::string_view way) {
  constexpr std::string_view kArrow = " -> ";
  const std::size_t arrow = way.find(kArrow);
  const std::size_t begin = way.find(' ') + 1;
  if (arrow == std::string_view::npos || begin > arrow) return {way, {}};
  const std::string_view there = way.substr(arrow + kArrow.size());
  return {way.substr(begin, arrow - begin), there.substr(0, there.find(','))};
}

// All addresses that data went over, in their order: it moves where a path breaks.
void put_ways(JsonWriter& json, const Connection& connection) {
  const auto* const moving = dynamic_cast<const MovingWay*>(&connection);
  json.key("ways").open('[');
  for (const std::string& way : moving == nullptr ? std::vector<std::string>{} : moving->ways_taken()) {
    const auto [here, there] = addresses_in(way);
    json.open('[').value(here).value(there).close(']');
  }
  json.close(']');
}

}  // namespace

void AuditedFlows::begin(const Config& config, const std::string& name) {
  const ConnectedRanks& ranks = members_.connected();
  if (config.audit_file.empty() || ranks.sites.links.sites() < 2) return;
  const std::uint32_t own = ranks.sites.of_rank[static_cast<std::size_t>(members_.rank())];
  for (Rank peer = 0; peer < members_.ranks(); ++peer)
    if (ranks.sites.of_rank[static_cast<std::size_t>(peer)] != own && members_.connection_to(peer) != nullptr)
      flows_.push_back({peer, members_.connection_to(peer)->traffic()});
  log_ = AuditLog::of_process({config.audit_file, config.audit_file_bytes});
  name_ = name;
  codec_ = config.codec.empty() ? "auto" : config.codec;
  start_us_ = wall_us();
  for (const Flow& flow : flows_) {
    JsonWriter json;
    describe(json, "flow_begin", flow.peer);
    log_->add(std::move(json.close('}')).text());
  }
}

void AuditedFlows::end(const Status& outcome) {
  if (log_ == nullptr) return;
  const std::string now = rfc3339(wall_us());
  for (const Flow& flow : flows_) {
    const Connection::Traffic all = members_.connection_to(flow.peer)->traffic();
    JsonWriter json;
    describe(json, "flow_end", flow.peer);
    put_ways(json, *members_.connection_to(flow.peer));
    json.key("end").value(now);
    json.key("bytes_sent").number(all.sent - flow.before.sent);
    json.key("bytes_received").number(all.received - flow.before.received);
    json.key("outcome").value(outcome.ok() ? "ended" : outcome.text());
    log_->add(std::move(json.close('}')).text());
  }
  // A disk that hangs keeps its thread, and the log with it: this process goes on.
  if (!log_->flush(Deadline::after_ms(kLastLinesMs))) (void)new std::shared_ptr<AuditLog>(log_);
  log_.reset();
}

void AuditedFlows::describe(JsonWriter& json, const char* event, Rank peer) const {
  const ConnectedRanks& ranks = members_.connected();
  const auto site_of = [&](Rank rank) -> const std::string& {
    return ranks.site_names[ranks.sites.of_rank[static_cast<std::size_t>(rank)]];
  };
  std::array<char, 20> attempt{};
  std::snprintf(attempt.data(), attempt.size(), "%016" PRIx64, static_cast<std::uint64_t>(ranks.attempt));
  const Connection& connection = *members_.connection_to(peer);
  const std::string way = present_way(connection);
  const auto [here, there] = addresses_in(way);
  json.open('{').key("event").value(event).key("time").value(rfc3339(wall_us()));
  json.key("communicator").value(attempt.data()).key("name").value(name_);
  json.key("rank").number(static_cast<std::uint64_t>(members_.rank()));
  json.key("peer_rank").number(static_cast<std::uint64_t>(peer));
  json.key("site").value(site_of(members_.rank())).key("peer_site").value(site_of(peer));
  json.key("place").value(members_.place_of(members_.rank())).key("peer_place").value(members_.place_of(peer));
  json.key("address").value(here).key("peer_address").value(there);
  json.key("codec").value(codec_).key("cipher").value(connection.cipher());
  json.key("start").value(rfc3339(start_us_));
}

}  // namespace seto
