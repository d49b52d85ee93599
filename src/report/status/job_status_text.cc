#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "src/report/status/job_status.h"

namespace seto {
namespace {

using Row = std::vector<std::string>;

std::string formatted(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string bytes_text(double bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return formatted(unit == 0 || bytes >= 99.95 ? "%.0f " : "%.1f ", bytes) + kUnits[unit];
}

std::string bytes_text(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string milliseconds(std::uint64_t us) {
  return us == 0 ? "-" : formatted(us < 10'000 ? "%.2f ms" : "%.1f ms", static_cast<double>(us) * 1e-3);
}

std::string seconds(std::uint64_t us) { return formatted("%.1f s", static_cast<double>(us) * 1e-6); }

std::string counted(std::size_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

std::string state_of(const ReadLink& link) {
  const std::string since = link.silent_ms > 0 ? " " + seconds(link.silent_ms * 1000) : std::string();
  if (link.state == "cut_off") return "cut off for" + since;
  if (link.state == "silent") return "silent for" + since;
  if (link.state == "not_open") return "not open";
  if (link.state == "broken") return "broken, being opened again";
  return link.state;
}

std::string resent_of(const ReadLink& link) {
  if (link.tcp_bytes_sent == 0) return "-";
  return formatted("%.2f %%", 100 * static_cast<double>(link.tcp_bytes_resent) / static_cast<double>(link.tcp_bytes_sent));
}

// Columns that are shown if a link has something to say in them.
struct Columns {
  bool paths = false;
  bool rates = false;
};

Row row_of(const ReadCommunicator& communicator, const ReadLink& link, Columns columns) {
  Row row = {std::to_string(communicator.rank), std::to_string(link.peer), link.site, state_of(link), link.way};
  const bool known = link.sockets.has_value();
  const auto add = [&](const std::string& cell) { row.push_back(known ? cell : "-"); };
  add(link.bytes_per_second == 0 ? "-" : bytes_text(link.bytes_per_second) + "/s");
  add(milliseconds(link.round_trip_us));
  add(milliseconds(link.shortest_round_trip_us));
  add(std::to_string(link.sockets.value_or(0)));
  add(resent_of(link));
  add(bytes_text(link.bytes_sent));
  add(bytes_text(link.bytes_received));
  if (columns.rates) {
    add(link.sent_per_second ? bytes_text(*link.sent_per_second) + "/s" : "-");
    add(link.received_per_second ? bytes_text(*link.received_per_second) + "/s" : "-");
  }
  if (columns.paths) add(link.used_paths + " of " + std::to_string(link.paths));
  row.push_back(link.cipher);
  return row;
}

std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) line += " " + row[i] + std::string(widths[i] - row[i].size() + 1, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// One rank of the communicator, with its process.
struct Member {
  const ReadProcess* process;
  const ReadCommunicator* communicator;
};

std::string member_line(const Member& member) {
  const ReadCommunicator& rank = *member.communicator;
  std::string text = "  rank " + std::to_string(rank.rank) + " (process " + std::to_string(member.process->pid) + "), at site " +
                     rank.site + ": " + std::to_string(rank.issued) + " operations issued, " + std::to_string(rank.done) +
                     " done";
  if (!rank.call.empty()) {
    text += rank.call_operation == 0 ? "; in a call" : "; in operation " + std::to_string(rank.call_operation);
    text += " (" + rank.call + ") for " + seconds(rank.call_us);
  }
  if (rank.state == "failed") text += "; failed: " + rank.failure;
  return text + "\n";
}

bool is_one(const std::string& ranks) { return ranks.find_first_of(",-") == std::string::npos; }

std::string title(const ReadCommunicator& one) {
  std::string text = "communicator " + one.id + (one.name.empty() ? "" : " '" + one.name + "'") + ": " +
                     counted(one.ranks, "rank", "ranks") + " at " + counted(one.sites.size(), "site", "sites");
  for (std::size_t i = 0; i < one.sites.size(); ++i)
    text += (i == 0 ? ", " : "; ") + one.sites[i].name + (is_one(one.sites[i].ranks) ? " (rank " : " (ranks ") +
            one.sites[i].ranks + ")";
  text += "\n  codec " + one.codec;
  if (!one.latest_codec.empty())
    text += ", by now " + one.latest_codec + ": " + formatted("%.2f", one.codec_ratio) + " times fewer bytes";
  return text + "\n";
}

// The reasons why links are not open, which are too long for the table.
std::string reasons(const std::vector<Member>& members) {
  std::string text;
  for (const Member& member : members)
    for (const ReadLink& link : member.communicator->links)
      if (!link.why.empty()) text += "  rank " + std::to_string(link.peer) + " (" + link.place + "): " + link.why + "\n";
  return text;
}

std::string communicator_text(const std::vector<Member>& members) {
  std::string text = title(*members.front().communicator);
  std::uint64_t left_out = 0;
  Columns columns;
  for (const Member& member : members) {
    text += member_line(member);
    left_out += member.communicator->links_left_out;
    for (const ReadLink& link : member.communicator->links) {
      columns.paths = columns.paths || link.paths > 1;
      columns.rates = columns.rates || link.sent_per_second.has_value();
    }
  }
  Row titles = {"rank",       "peer",     "site",    "state",  "way",  "rate",
                "round trip", "shortest", "sockets", "resent", "sent", "received"};
  if (columns.rates) titles.insert(titles.end(), {"sending", "receiving"});
  if (columns.paths) titles.emplace_back("path");
  titles.emplace_back("cipher");
  std::vector<Row> rows = {titles};
  for (const Member& member : members)
    for (const ReadLink& link : member.communicator->links) rows.push_back(row_of(*member.communicator, link, columns));
  if (rows.size() > 1)
    text += table(rows) + reasons(members);
  else if (left_out == 0)
    text += "  no links between sites\n";
  if (left_out > 0) text += "  " + std::to_string(left_out) + " further links are not shown\n";
  return text;
}

}  // namespace

std::string status_text(const ReadStatus& status) {
  std::string text =
      "host " + status.host + ": " + counted(status.processes.size(), "process", "processes") + " of this user with Seto\n";
  std::vector<std::pair<std::string, std::vector<Member>>> communicators;  // in the order in which they are found
  for (const ReadProcess& process : status.processes) {
    text += "  process " + std::to_string(process.pid) + (process.program.empty() ? "" : " (" + process.program + ")") + ": ";
    text += !process.failure.empty()
                ? process.failure
                : counted(process.communicators.size() + process.communicators_left_out, "communicator", "communicators");
    text += "\n";
    for (const ReadCommunicator& one : process.communicators) {
      const auto known =
          std::find_if(communicators.begin(), communicators.end(), [&](const auto& each) { return each.first == one.id; });
      if (known == communicators.end())
        communicators.push_back({one.id, {{&process, &one}}});
      else
        known->second.push_back({&process, &one});
    }
  }
  for (const auto& [id, members] : communicators) text += "\n" + communicator_text(members);
  return text;
}

}  // namespace seto
