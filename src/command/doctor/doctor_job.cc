// The host check of a job. It uses the C API only, as any program of the job could.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/command/checked_calls.h"
#include "src/command/commands.h"
#include "src/command/doctor/doctor.h"
#include "src/command/doctor/transfer.h"

namespace seto::command {
namespace {

using Json = nlohmann::json;

// Hosts beyond this number are checked, but not measured against each other.
constexpr std::size_t kMostHosts = 32;
constexpr std::size_t kMostWay = 96;                       // bytes of the description of a pair's connection
constexpr std::size_t kMostChecks = std::size_t{1} << 16;  // bytes of one rank's report
constexpr double kAllSeconds = 60;                         // budget for all pairs
constexpr double kLatencySeconds = 0.05;
constexpr double kTransferSeconds = 0.15;  // one direction, plus a round trip for each transfer; each repetition takes half of it
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::uint64_t kMostRounds = 2000;
constexpr std::uint64_t kFirstRounds = 10;
constexpr double kClocksApartUs = 1e5;

std::uint64_t now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

// The measurements of one end of a pair.
struct Pair {
  double latency_us = -1;
  double offset_us = 0;
  double there = -1;  // bytes per second
  double back = -1;
};

// ---- the two ends of a pair ----

double transfer(CheckedCalls& calls, int peer, std::vector<unsigned char>& piece, std::size_t bytes) {
  unsigned char done = 0;
  const std::uint64_t start = now_ns(CLOCK_MONOTONIC);
  for (std::size_t left = bytes; left > 0; left -= std::min(left, piece.size()))
    calls.send(piece.data(), std::min(left, piece.size()), peer);
  calls.receive(&done, 1, peer);
  return static_cast<double>(now_ns(CLOCK_MONOTONIC) - start) * 1e-9;
}

void take(CheckedCalls& calls, int peer, std::vector<unsigned char>& piece, std::size_t bytes) {
  const unsigned char done = 1;
  for (std::size_t left = bytes; left > 0; left -= std::min(left, piece.size()))
    calls.receive(piece.data(), std::min(left, piece.size()), peer);
  calls.send(&done, 1, peer);
}

// Bytes per second of the largest transfer: the best of a few repetitions, minus the round trip that ends each. For a transfer
// that takes hardly longer than a round trip, a part of the round trip may remain.
double send_measured(CheckedCalls& calls, int peer, double seconds, double round_s) {
  std::vector<unsigned char> piece(kPiece, 1);
  double rate = -1;
  std::uint64_t bytes = kFirstTransfer;
  for (int left = kBestOf; calls.ok() && left > 0;) {
    calls.send(&bytes, sizeof bytes, peer);
    const double took = transfer(calls, peer, piece, bytes);
    const double net = std::max({took - round_s, took / 4, 1e-9});
    const std::uint64_t next = left == kBestOf ? next_transfer(bytes, net, seconds) : 0;
    rate = next > 0 ? 0 : std::max(rate, static_cast<double>(bytes) / net);
    if (next > 0)
      bytes = next;
    else
      --left;
  }
  bytes = 0;
  calls.send(&bytes, sizeof bytes, peer);
  return rate;
}

void receive_measured(CheckedCalls& calls, int peer) {
  std::vector<unsigned char> piece(kPiece);
  while (calls.ok()) {
    std::uint64_t bytes = 0;
    calls.receive(&bytes, sizeof bytes, peer);
    if (bytes == 0) return;
    take(calls, peer, piece, std::min<std::uint64_t>(bytes, kMostTransfer));
  }
}

struct Rounds {
  std::vector<double> round_us;
  double offset_us = 0;  // from the quickest round, whose answer was taken closest to the middle
};

Rounds ask_rounds(CheckedCalls& calls, int peer, std::uint64_t count) {
  Rounds rounds;
  for (std::uint64_t i = 0; i < count && calls.ok(); ++i) {
    std::uint64_t theirs = 0;
    const std::uint64_t wall = now_ns(CLOCK_REALTIME);
    const std::uint64_t start = now_ns(CLOCK_MONOTONIC);
    calls.send(&theirs, sizeof theirs, peer);
    calls.receive(&theirs, sizeof theirs, peer);
    const double took = static_cast<double>(now_ns(CLOCK_MONOTONIC) - start) * 1e-3;
    if (rounds.round_us.empty() || took < *std::min_element(rounds.round_us.begin(), rounds.round_us.end()))
      rounds.offset_us = static_cast<double>(static_cast<std::int64_t>(theirs - wall)) * 1e-3 - took / 2;
    rounds.round_us.push_back(took);
  }
  std::sort(rounds.round_us.begin(), rounds.round_us.end());
  return rounds;
}

void answer_rounds(CheckedCalls& calls, int peer, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count && calls.ok(); ++i) {
    std::uint64_t nothing = 0;
    calls.receive(&nothing, sizeof nothing, peer);
    const std::uint64_t wall = now_ns(CLOCK_REALTIME);
    calls.send(&wall, sizeof wall, peer);
  }
}

Pair measure(CheckedCalls& calls, int peer, double share) {
  Pair pair;
  const Rounds first = ask_rounds(calls, peer, kFirstRounds);
  if (!calls.ok()) return pair;
  const double quickest = std::max(first.round_us.front(), 0.1);
  const std::uint64_t count =
      std::clamp<std::uint64_t>(static_cast<std::uint64_t>(kLatencySeconds * share * 1e6 / quickest), kFirstRounds, kMostRounds);
  calls.send(&count, sizeof count, peer);
  const Rounds rounds = ask_rounds(calls, peer, count);
  if (!calls.ok()) return pair;
  pair.latency_us = rounds.round_us[rounds.round_us.size() / 2] / 2;
  pair.offset_us = rounds.round_us.front() < first.round_us.front() ? rounds.offset_us : first.offset_us;
  const double round_s = std::min(rounds.round_us.front(), first.round_us.front()) * 1e-6;
  calls.send(&round_s, sizeof round_s, peer);
  pair.there = send_measured(calls, peer, kTransferSeconds * share, round_s);
  receive_measured(calls, peer);
  calls.receive(&pair.back, sizeof pair.back, peer);
  return pair;
}

void measure_passively(CheckedCalls& calls, int peer, double share) {
  answer_rounds(calls, peer, kFirstRounds);
  std::uint64_t count = 0;
  calls.receive(&count, sizeof count, peer);
  answer_rounds(calls, peer, std::min(count, kMostRounds));
  double round_s = 0;
  calls.receive(&round_s, sizeof round_s, peer);
  receive_measured(calls, peer);
  const double rate = send_measured(calls, peer, kTransferSeconds * share, round_s);
  calls.send(&rate, sizeof rate, peer);
}

// ---- all ranks ----

std::vector<HostReport> gather_reports(CheckedCalls& calls, const HostReport& own, int ranks) {
  const Json json = {{"host", own.host}, {"version", own.version}, {"checks", own.checks}};
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize(kMostChecks, ' ');  // a longer report is cut, which makes it invalid JSON; it is detected below
  std::string all(kMostChecks * static_cast<std::size_t>(ranks), '\0');
  calls.gather(text.data(), all.data(), kMostChecks);
  std::vector<HostReport> reports;
  for (int rank = 0; rank < ranks; ++rank) {
    const Json read = Json::parse(all.substr(kMostChecks * static_cast<std::size_t>(rank), kMostChecks), nullptr, false);
    const auto text_in = [&](const char* key) {
      return read.is_object() && read.contains(key) ? read[key].get<std::string>() : "";
    };
    reports.push_back({text_in("host"), text_in("version"), text_in("checks")});
  }
  return reports;
}

// Chooses the ranks that measure: one for each host; on a single host every rank.
HostMatrix measuring_ranks(const std::vector<HostReport>& reports) {
  HostMatrix matrix;
  std::map<std::string, int> first;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) first.try_emplace(reports[rank].host, static_cast<int>(rank));
  for (std::size_t rank = 0; rank < reports.size() && matrix.size() < kMostHosts; ++rank) {
    const std::string& host = reports[rank].host;
    if (first.size() > 1 && first[host] != static_cast<int>(rank)) continue;
    matrix.ranks.push_back(static_cast<int>(rank));
    matrix.hosts.push_back(first.size() > 1 ? host : "rank " + std::to_string(rank));
  }
  const std::size_t cells = matrix.size() * matrix.size();
  matrix.latency_us.assign(cells, 0);
  matrix.bytes_per_second.assign(cells, 0);
  matrix.offset_us.assign(cells, 0);
  matrix.ways.assign(cells, "");
  matrix.ciphers.assign(cells, "");
  return matrix;
}

// The dump of this rank tells where the others are and how they are reached.
struct Dumped {
  bool sites_stated = false;
  std::vector<std::string> sites;  // by rank
  // By rank: the way to it in words, and the cipher of the data that goes there.
  std::vector<std::string> ways;
  std::vector<std::string> ciphers;
};

Dumped own_dump(setoComm_t comm, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  Dumped dumped{false, std::vector<std::string>(all), std::vector<std::string>(all), std::vector<std::string>(all)};
  std::size_t size = 0;
  if (setoCommDump(comm, setoFormatJson, nullptr, 0, &size) != setoSuccess) return dumped;
  std::string text(size + kMostChecks, '\0');  // the dump may have grown
  if (setoCommDump(comm, setoFormatJson, text.data(), text.size(), &size) != setoSuccess) return dumped;
  text.resize(std::min(size, text.size() - 1));
  const Json dump = Json::parse(text, nullptr, false);
  if (!dump.is_object() || !dump.contains("peers")) return dumped;
  dumped.sites_stated = dump.value("sites", "") == "stated";
  for (std::size_t rank = 0; rank < all && rank < dump["peers"].size(); ++rank) {
    const Json& peer = dump["peers"][rank];
    dumped.sites[rank] = peer.value("site", "");
    dumped.ways[rank] = peer.value("way", "");
    dumped.ciphers[rank] = peer.value("cipher", "");
  }
  return dumped;
}

// For each pair of measuring ranks the text that the first of them has for the other.
void gather_texts(CheckedCalls& calls, const std::vector<std::string>& own, const HostMatrix& matrix,
                  std::vector<std::string>& texts) {
  std::string mine;
  std::size_t told = 0;
  for (const int rank : matrix.ranks) {
    mine += own[static_cast<std::size_t>(rank)].substr(0, kMostWay);
    mine.resize(++told * kMostWay, ' ');
  }
  std::string all(mine.size() * own.size(), ' ');
  calls.gather(mine.data(), all.data(), mine.size());
  for (std::size_t row = 0; row < matrix.size(); ++row)
    for (std::size_t column = 0; column < matrix.size(); ++column) {
      const std::size_t at = static_cast<std::size_t>(matrix.ranks[row]) * mine.size() + column * kMostWay;
      const std::string one = all.substr(at, kMostWay);
      texts[row * matrix.size() + column] = one.substr(0, one.find_last_not_of(' ') + 1);
    }
}

// Measures one pair after another, so that measurements do not disturb each other.
void measure_pairs(CheckedCalls& calls, int own, HostMatrix& matrix) {
  const std::size_t count = matrix.size();
  const double pairs = static_cast<double>(count * (count - 1)) / 2;
  const double share = pairs > kAllSeconds ? kAllSeconds / pairs : 1;
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      if (own == matrix.ranks[a]) {
        const Pair pair = measure(calls, matrix.ranks[b], share);
        matrix.latency_us[a * count + b] = matrix.latency_us[b * count + a] = pair.latency_us;
        matrix.bytes_per_second[a * count + b] = pair.there;
        matrix.bytes_per_second[b * count + a] = pair.back;
        matrix.offset_us[a * count + b] = pair.offset_us;
        matrix.offset_us[b * count + a] = -pair.offset_us;
      } else if (own == matrix.ranks[b]) {
        measure_passively(calls, matrix.ranks[a], share);
      }
      calls.barrier();
    }
  calls.add(matrix.latency_us.data(), matrix.latency_us.size());
  calls.add(matrix.bytes_per_second.data(), matrix.bytes_per_second.size());
  calls.add(matrix.offset_us.data(), matrix.offset_us.size());
}

// "kernel differs: Linux 6.1 on a, b; Linux 5.4 on c".
void compare(const std::map<std::string, std::vector<std::string>>& hosts_by_value, const std::string& what, JobReport& report) {
  if (hosts_by_value.size() < 2) return;
  std::string text = "warn  " + what + " differs:";
  for (const auto& [value, hosts] : hosts_by_value) {
    text += (text.back() == ':' ? " " : "; ") + value + " on ";
    for (std::size_t i = 0; i < hosts.size(); ++i) text += (i == 0 ? "" : ", ") + hosts[i];
  }
  report.differences.push_back(text);
}

void compare_hosts(const std::vector<HostReport>& reports, JobReport& report) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> topics;
  std::map<std::string, bool> seen;
  for (const HostReport& one : reports) {
    if (!seen.emplace(one.host, true).second) continue;
    topics["version of Seto"][one.version].push_back(one.host);
    const Json json = Json::parse(one.checks, nullptr, false);
    if (!json.is_object() || !json.contains("checks")) {
      report.differences.push_back("warn  " + one.host + " sent a report that cannot be read");
      continue;
    }
    for (const Json& check : json["checks"]) {
      if (check.value("same", 0) == 1) topics[check.value("topic", "")][check.value("found", "")].push_back(one.host);
      if (check.value("level", "") != "bad") continue;
      ++report.bad;
      report.differences.push_back("bad   " + one.host + ", " + check.value("topic", "") + ": " + check.value("found", "") +
                                   "; fix: " + check.value("fix", ""));
    }
  }
  for (const auto& [topic, values] : topics) compare(values, topic, report);
  const HostMatrix& matrix = report.matrix;
  for (std::size_t i = 1; i < matrix.size(); ++i)
    if (std::abs(matrix.offset_us[i]) > kClocksApartUs)
      report.differences.push_back("warn  the clock of " + matrix.hosts[i] + " is " + std::to_string(matrix.offset_us[i] * 1e-6) +
                                   " s ahead of that of " + matrix.hosts[0] + ": synchronise them (chronyd)");
}

}  // namespace

int examine_job(setoComm_t comm, const HostReport& own, JobReport& report) {
  int rank = 0;
  (void)setoCommUserRank(comm, &rank);
  (void)setoCommCount(comm, &report.ranks);
  CheckedCalls calls(comm);
  const std::vector<HostReport> reports = gather_reports(calls, own, report.ranks);
  report.matrix = measuring_ranks(reports);
  measure_pairs(calls, rank, report.matrix);
  // By now data has gone everywhere, so the ciphers are those in use.
  const Dumped dumped = own_dump(comm, report.ranks);
  gather_texts(calls, dumped.ways, report.matrix, report.matrix.ways);
  gather_texts(calls, dumped.ciphers, report.matrix, report.matrix.ciphers);
  report.sites_stated = dumped.sites_stated;
  for (const int one : report.matrix.ranks) report.matrix.sites.push_back(dumped.sites[static_cast<std::size_t>(one)]);
  if (!calls.ok()) {
    std::fprintf(stderr, "bad   job  rank %d: %s\n", rank, calls.failure().c_str());
    return kFailed;
  }
  compare_hosts(reports, report);
  for (std::string& line : far_within_sites(report)) report.differences.push_back(std::move(line));
  return 0;
}

}  // namespace seto::command
