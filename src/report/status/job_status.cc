#include "src/report/status/job_status.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/control/local/status_query.h"
#include "src/core/dump/status_format.h"
#include "src/report/dump_parser.h"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#endif

namespace seto {

#if __has_include(<nlohmann/json.hpp>)
namespace {

using Json = nlohmann::ordered_json;

// Reads tolerantly, as dump_parser.cc: what is missing or has another type is empty.
const Json& at(const Json& object, const char* key) {
  static const Json* const nothing = new Json;
  if (!object.is_object()) return *nothing;
  const auto found = object.find(key);
  return found == object.end() ? *nothing : *found;
}

std::uint64_t number(const Json& object, const char* key) {
  const Json& value = at(object, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

double real(const Json& object, const char* key) {
  const Json& value = at(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string text(const Json& object, const char* key) {
  const Json& value = at(object, key);
  return value.is_string() ? printable(value.get<std::string>()) : std::string();
}

const Json& list(const Json& object, const char* key) {
  static const Json* const nothing = new Json(Json::array());
  const Json& value = at(object, key);
  return value.is_array() ? value : *nothing;
}

Result<Json> parsed(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return failure(Code::invalid_argument, "not JSON, or cut off (%zu bytes)", text.size());
  const std::uint64_t schema = number(json, "seto_status");
  if (schema != kStatusSchema)
    return failure(Code::invalid_argument, "not a status of schema %llu, which this version of Seto reads",
                   static_cast<unsigned long long>(kStatusSchema));
  return json;
}

std::string written(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Identifies a link between two states of a host.
struct LinkName {
  std::uint64_t pid;
  std::string communicator;
  std::uint64_t rank;
  std::uint64_t peer;
  auto operator<=>(const LinkName&) const = default;
};

struct Counted {
  std::uint64_t time_us = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

// Calls `visit` with the name, the counters and the JSON of each link that has counters.
template <typename AnyJson, typename Visit>
void for_each_link(AnyJson& status, const Visit& visit) {
  if (list(status, "processes").empty()) return;
  for (auto& process : status["processes"]) {
    if (list(process, "communicators").empty()) continue;
    for (auto& communicator : process["communicators"]) {
      if (list(communicator, "links").empty()) continue;
      for (auto& link : communicator["links"]) {
        if (at(link, "bytes_sent").is_null()) continue;
        const LinkName name{number(process, "pid"), text(communicator, "communicator"), number(communicator, "rank"),
                            number(link, "peer")};
        visit(name, Counted{number(process, "time_us"), number(link, "bytes_sent"), number(link, "bytes_received")}, link);
      }
    }
  }
}

void add_rates(Json& now, const Json& before) {
  std::map<LinkName, Counted> known;
  for_each_link(before, [&](const LinkName& name, const Counted& count, const Json&) { known[name] = count; });
  for_each_link(now, [&](const LinkName& name, const Counted& count, Json& link) {
    const auto earlier = known.find(name);
    if (earlier == known.end() || count.time_us <= earlier->second.time_us) return;
    const double seconds = static_cast<double>(count.time_us - earlier->second.time_us) * 1e-6;
    const auto rate = [&](std::uint64_t later, std::uint64_t sooner) {
      return later < sooner ? 0 : static_cast<double>(later - sooner) / seconds;
    };
    link["sent_per_second"] = rate(count.sent, earlier->second.sent);
    link["received_per_second"] = rate(count.received, earlier->second.received);
  });
}

std::string site_name(const ReadCommunicator& communicator, std::uint64_t site) {
  return site < communicator.sites.size() ? communicator.sites[site].name : std::to_string(site);
}

// A process with an older library states one path.
std::string used_paths(const Json& json) {
  const Json& used = at(json, "used_paths");
  if (!used.is_array()) return std::to_string(number(json, "path"));
  std::string text;
  for (const Json& path : used)
    if (path.is_number_unsigned()) text += (text.empty() ? "" : ", ") + std::to_string(path.get<std::uint64_t>());
  return text;
}

ReadLink link_of(const Json& json, const ReadCommunicator& communicator) {
  ReadLink link;
  link.peer = number(json, "peer");
  link.place = text(json, "place");
  link.site = site_name(communicator, number(json, "site"));
  link.way = text(json, "way");
  link.state = text(json, "state");
  link.why = text(json, "why");
  link.silent_ms = number(json, "silent_ms");
  link.cipher = text(json, "cipher");
  if (at(json, "sockets").is_number_unsigned()) link.sockets = number(json, "sockets");
  link.paths = number(json, "paths");
  link.used_paths = used_paths(json);
  link.bytes_sent = number(json, "bytes_sent");
  link.bytes_received = number(json, "bytes_received");
  link.bytes_per_second = number(json, "bytes_per_second");
  link.round_trip_us = number(json, "round_trip_us");
  link.shortest_round_trip_us = number(json, "shortest_round_trip_us");
  link.tcp_bytes_sent = number(json, "tcp_bytes_sent");
  link.tcp_bytes_resent = number(json, "tcp_bytes_resent");
  if (at(json, "sent_per_second").is_number()) link.sent_per_second = real(json, "sent_per_second");
  if (at(json, "received_per_second").is_number()) link.received_per_second = real(json, "received_per_second");
  return link;
}

ReadCommunicator communicator_of(const Json& json) {
  ReadCommunicator communicator;
  communicator.id = text(json, "communicator");
  communicator.name = text(json, "name");
  communicator.rank = number(json, "rank");
  communicator.ranks = number(json, "ranks");
  communicator.state = text(json, "state");
  communicator.failure = text(json, "failure");
  communicator.issued = number(at(json, "operations"), "issued");
  communicator.done = number(at(json, "operations"), "done");
  const Json& call = at(json, "call");
  communicator.call = text(call, "text");
  communicator.call_operation = number(call, "operation");
  communicator.call_us = number(call, "for_us");
  const Json& codec = at(json, "codec");
  communicator.codec = text(codec, "setting");
  communicator.latest_codec = text(codec, "latest");
  communicator.codec_ratio = real(codec, "ratio");
  for (const Json& site : list(json, "sites")) communicator.sites.push_back({text(site, "name"), text(site, "ranks")});
  communicator.site = site_name(communicator, number(json, "site"));
  for (const Json& link : list(json, "links")) communicator.links.push_back(link_of(link, communicator));
  communicator.links_left_out = number(json, "links_left_out");
  return communicator;
}

ReadStatus status_in(const Json& json) {
  ReadStatus status;
  status.host = text(json, "host");
  for (const Json& one : list(json, "processes")) {
    ReadProcess process;
    process.pid = number(one, "pid");
    process.program = text(one, "program");
    process.failure = text(one, "failure");
    for (const Json& communicator : list(one, "communicators")) process.communicators.push_back(communicator_of(communicator));
    process.communicators_left_out = number(one, "communicators_left_out");
    status.processes.push_back(std::move(process));
  }
  return status;
}

}  // namespace

Result<std::string> collect_status(std::span<const StatusAnswer> answers, std::string_view host, std::uint64_t time_us) {
  Json all{{"seto_status", kStatusSchema}, {"host", host}, {"time_us", time_us}, {"processes", Json::array()}};
  for (const StatusAnswer& answer : answers) {
    Result<Json> process = answer.failure.ok() ? parsed(answer.text) : Result<Json>(answer.failure);
    if (process.ok())
      all["processes"].push_back(std::move(process).value());
    else
      all["processes"].push_back(Json{{"pid", answer.pid}, {"failure", std::string(process.status().text())}});
  }
  return written(all);
}

Result<std::string> report_status(std::string_view now, std::string_view before, ReportFormat format) {
  SETO_ASSIGN(Json status, parsed(now));
  if (!before.empty()) {
    SETO_ASSIGN(const Json earlier, parsed(before));
    add_rates(status, earlier);
  }
  return format == ReportFormat::json ? written(status) : status_text(status_in(status));
}

#else

Result<std::string> collect_status(std::span<const StatusAnswer>, std::string_view, std::uint64_t) {
  return failure(Code::unavailable, "this library was built without nlohmann-json, so it cannot read the status of processes");
}

Result<std::string> report_status(std::string_view, std::string_view, ReportFormat) { return collect_status({}, {}, 0); }

#endif

}  // namespace seto
