#include "src/command/run/hosts.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "src/base/text.h"

namespace seto::command {
namespace {

constexpr std::uint64_t kMostSlots = 65'536;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// A remote shell would take a name that begins with '-' for an option.
bool is_host(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.find_first_of(" \t=,;&|<>'\"`$()") == std::string_view::npos;
}

Result<HostSlots> parse_host(std::string_view text) {
  std::string_view host = text;
  std::optional<std::string_view> slots;
  if (const std::size_t mark = text.find("slots="); mark != std::string_view::npos) {
    host = trimmed(text.substr(0, mark));
    slots = text.substr(mark + 6);
  } else if (text.starts_with("[") && text.find(']') != std::string_view::npos) {
    const std::size_t end = text.find(']');
    host = text.substr(1, end - 1);
    if (end + 1 < text.size()) slots = text.substr(text[end + 1] == ':' ? end + 2 : text.size());
  } else if (std::count(text.begin(), text.end(), ':') == 1) {  // more than one colon: an IPv6 address
    host = text.substr(0, text.find(':'));
    slots = text.substr(host.size() + 1);
  }
  HostSlots found{std::string(host), 0};
  const std::optional<std::uint64_t> count = slots ? parse_uint(*slots) : std::optional<std::uint64_t>(0);
  if (!is_host(host) || !count || *count > kMostSlots || (slots && *count == 0))
    return failure(Code::invalid_argument, "'%.80s' is not a host: write name or name:slots", std::string(text).c_str());
  found.slots = static_cast<int>(*count);
  return found;
}

Result<std::vector<HostSlots>> parse_each(std::string_view text, char separator) {
  std::vector<HostSlots> hosts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (separator == '\n') item = item.substr(0, item.find('#'));
    item = trimmed(item);
    if (item.empty() && separator == '\n') continue;
    SETO_ASSIGN(HostSlots host, parse_host(item));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) return failure(Code::invalid_argument, "the list names no host");
  return hosts;
}

// Merges repeated hosts, so that each host has one connection to its ranks.
std::vector<HostSlots> merged(const std::vector<HostSlots>& hosts) {
  std::vector<HostSlots> once;
  for (const HostSlots& host : hosts) {
    const auto same = std::find_if(once.begin(), once.end(), [&](const HostSlots& other) { return other.host == host.host; });
    if (same == once.end()) {
      once.push_back(host);
      if (host.slots == 0) once.back().slots = 1;
    } else {
      same->slots += std::max(1, host.slots);
    }
  }
  return once;
}

}  // namespace

Result<std::vector<HostSlots>> parse_hosts(std::string_view list) { return parse_each(list, ','); }
Result<std::vector<HostSlots>> parse_host_file(std::string_view text) { return parse_each(text, '\n'); }

Result<std::vector<Placement>> place_ranks(const std::vector<HostSlots>& hosts, int ranks) {
  std::vector<HostSlots> once = merged(hosts);
  const bool said = std::any_of(hosts.begin(), hosts.end(), [](const HostSlots& host) { return host.slots > 0; });
  const int slots = std::accumulate(once.begin(), once.end(), 0, [](int sum, const HostSlots& host) { return sum + host.slots; });
  if (ranks == 0) ranks = slots;
  if (said && ranks > slots)
    return failure(Code::invalid_argument, "%d ranks, but the hosts have %d slots: give them more (name:slots)", ranks, slots);
  std::vector<Placement> placed;
  int next = 0;
  for (std::size_t index = 0; index < once.size() && next < ranks; ++index) {
    const int hosts_left = static_cast<int>(once.size() - index);
    const int share = said ? once[index].slots : (ranks - next + hosts_left - 1) / hosts_left;
    Placement placement{once[index].host, {}};
    for (int count = std::min(share, ranks - next); count > 0; --count) placement.ranks.push_back(next++);
    placed.push_back(std::move(placement));
  }
  return placed;
}

}  // namespace seto::command
