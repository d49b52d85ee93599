#include "src/command/probe/site_probe.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/text.h"
#include "src/command/checked_calls.h"
#include "src/command/commands.h"
#include "src/command/output.h"
#include "src/command/probe/probe_steps.h"
#include "src/command/probe/rate_meter.h"

namespace seto::command {
namespace {

using Json = nlohmann::json;
using Piece = std::vector<unsigned char>;

constexpr int kFirstRoundTrips = 3;
// Pieces are sent in batches, and a byte answers each batch. Two batches are under way: between processes of one host at most
// four messages may wait to be received, and a receiver that waits with its answer would receive nothing.
constexpr std::size_t kBatches = 2;
constexpr std::size_t kMostPieces = 500;  // of a batch: two are what 10 Gbit/s need for 100 ms
// A batch that takes longer than this waits in queues, so larger ones would only make these longer. The slack keeps all sockets
// busy while one of them lags.
constexpr double kRoundTripsOfBatch = 4;
constexpr double kSlackSeconds = 0.25;
constexpr double kProgressSeconds = 1;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// ---- the two ends of a probe ----

double measure_round_trip(CheckedCalls& calls, int peer) {
  double shortest = 0;
  for (int i = 0; i < kFirstRoundTrips && calls.ok(); ++i) {
    unsigned char byte = 0;
    const double start = now_s();
    calls.send(&byte, 1, peer);
    calls.receive(&byte, 1, peer);
    const double took = now_s() - start;
    shortest = i == 0 ? took : std::min(shortest, took);
  }
  calls.send(&shortest, sizeof shortest, peer);
  return shortest;
}

double answer_round_trips(CheckedCalls& calls, int peer) {
  for (int i = 0; i < kFirstRoundTrips; ++i) {
    unsigned char byte = 0;
    calls.receive(&byte, 1, peer);
    calls.send(&byte, 1, peer);
  }
  double shortest = 0;
  calls.receive(&shortest, sizeof shortest, peer);
  return shortest;
}

// The first byte of a piece.
enum Mark : unsigned char { kPlain, kEndsBatch, kEndsProbe };

// Sends batches until the receiver has enough, as its answers say, or the limit is sent. Returns the bytes sent.
std::uint64_t send_pieces(CheckedCalls& calls, int peer, double round_trip_s) {
  const double longest_s = kRoundTripsOfBatch * round_trip_s + kSlackSeconds;
  Piece piece(kProbePiece, kPlain);
  std::deque<double> under_way;  // when the last piece of each batch was sent
  std::size_t pieces = 1;        // of the next batch
  std::uint64_t bytes = 0;
  const auto send = [&](Mark mark) {
    piece.front() = mark;
    if (mark != kPlain) under_way.push_back(now_s());
    calls.send(piece.data(), piece.size(), peer);
    bytes += piece.size();
  };
  bool ends = false;
  while (calls.ok() && (!ends || !under_way.empty())) {
    while (calls.ok() && !ends && under_way.size() < kBatches && bytes < kMostProbeBytes) {
      const std::size_t left = (kMostProbeBytes - bytes + kProbePiece - 1) / kProbePiece;
      for (std::size_t i = std::min(pieces, left); i-- > 0;) send(i > 0 ? kPlain : kEndsBatch);
    }
    unsigned char enough = 0;
    calls.receive(&enough, 1, peer);
    if (now_s() - under_way.front() <= longest_s) pieces = std::min(pieces + (pieces + 1) / 2, kMostPieces);
    under_way.pop_front();
    if ((enough == 0 && bytes < kMostProbeBytes) || ends) continue;
    ends = true;
    send(kEndsProbe);
  }
  return bytes;
}

struct Received {
  double bytes_per_second = 0;
  bool rises = false;  // it still rose when the probe ended
};

Received receive_pieces(CheckedCalls& calls, int peer, double round_trip_s) {
  RateMeter meter(round_trip_s);
  Piece piece(kProbePiece, kPlain);
  unsigned char enough = 0;
  while (calls.ok() && piece.front() != kEndsProbe) {
    calls.receive(piece.data(), piece.size(), peer);
    if (enough == 0) meter.add(piece.size(), now_s());
    if (enough == 0 && meter.done()) enough = 1;
    if (piece.front() != kPlain) calls.send(&enough, 1, peer);
  }
  return {meter.bytes_per_second(), meter.rises()};
}

// ---- all ranks ----

// The topology of the job as this rank knows it. A null one: this rank tells none.
Json part_of(const std::string& own, int& status) {
  if (own.empty()) return {};
  const setoTopologyText_t file = {"this rank", nullptr, own.data(), own.size(), 1, 0};
  const std::string text =
      ask([&](char* into, size_t capacity, size_t* size) { return setoTopology(&file, 1, setoFormatJson, into, capacity, size); },
          status);
  return status == 0 ? Json::parse(text, nullptr, false) : Json();
}

// The first rank of each site: the lowest of those that tell its topology.
std::vector<int> first_ranks(CheckedCalls& calls, const Json& part, int ranks, std::size_t& sites) {
  int own[2] = {-1, 0};  // the site of this rank, and how many there are
  if (part.is_object()) {
    own[0] = part["hosts"].front().value("site", 0);
    own[1] = static_cast<int>(part["sites"].size());
  }
  std::vector<int> all(2 * static_cast<std::size_t>(ranks));
  calls.gather(own, all.data(), sizeof own);
  sites = static_cast<std::size_t>(std::max(0, all[1]));
  std::vector<int> first(sites, -1);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank)
    if (const int site = all[2 * rank];
        site >= 0 && static_cast<std::size_t>(site) < sites && first[static_cast<std::size_t>(site)] < 0)
      first[static_cast<std::size_t>(site)] = static_cast<int>(rank);
  return first;
}

// Bytes per second by link, a row for each sending site; with the bytes that were sent.
struct Rates {
  std::vector<double> by_link;
  std::vector<double> rises;  // by link, not 0: the rate is higher than that
  double bytes = 0;
  std::uint64_t links = 0;
};

void say_probed(const char* who, std::uint64_t links, double bytes) {
  std::fprintf(stderr, "%sprobed %llu %s, %.0f MB\n", who, static_cast<unsigned long long>(links), links == 1 ? "link" : "links",
               bytes * 1e-6);
}

Rates measure_links(CheckedCalls& calls, int rank, const std::vector<int>& first) {
  const std::size_t sites = first.size();
  Rates rates{std::vector<double>(sites * sites), std::vector<double>(sites * sites), 0, 0};
  double told_s = now_s();
  for (const std::vector<SitePair>& step : probe_steps(sites)) {
    double sent = 0;
    for (const SitePair& link : step) {
      const int to = first[link.to];
      const int from = first[link.from];
      if (rank == from) sent = static_cast<double>(send_pieces(calls, to, measure_round_trip(calls, to)));
      if (rank != to) continue;
      const Received received = receive_pieces(calls, from, answer_round_trips(calls, from));
      rates.by_link[link.from * sites + link.to] = received.bytes_per_second;
      rates.rises[link.from * sites + link.to] = received.rises ? 1 : 0;
    }
    calls.add(&sent, 1);  // which also ends the step on all ranks
    rates.bytes += sent;
    rates.links += step.size();
    if (!calls.ok()) return rates;
    if (rank == 0 && rates.links < sites * (sites - 1) && now_s() - told_s >= kProgressSeconds) {
      told_s = now_s();
      say_probed("seto: ", rates.links, rates.bytes);
    }
  }
  calls.add(rates.by_link.data(), rates.by_link.size());
  calls.add(rates.rises.data(), rates.rises.size());
  return rates;
}

void say_what_rises(const Json& part, const Rates& rates) {
  const std::size_t sites = part["sites"].size();
  for (std::size_t link = 0; link < rates.rises.size(); ++link)
    if (rates.rises[link] != 0)
      std::fprintf(
          stderr,
          "seto: the rate from site %s to site %s still rose when its probe ended: the link carries more than is printed\n",
          part["sites"][link / sites].value("name", "").c_str(), part["sites"][link % sites].value("name", "").c_str());
}

std::string attribute(const char* name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, " %s=\"%.9g\"", name, value);
  return text;
}

std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (const char byte : text) {
    if (byte == '&' || byte == '<' || byte == '>' || byte == '"' || byte == '\'')
      escaped.append("&#").append(std::to_string(static_cast<int>(byte))).append(";");
    else
      escaped += byte;
  }
  return escaped;
}

// The links that the job knows, with the measured rates.
std::string topology_of(const Json& part, const std::vector<double>& by_link) {
  const std::size_t sites = part["sites"].size();
  std::string text = "<system version=\"1\">\n";
  for (const Json& site : part["sites"]) text += "<seto_site name=\"" + xml_escaped(site.value("name", "")) + "\"/>\n";
  for (std::size_t from = 0; from < sites; ++from)
    for (std::size_t to = 0; to < sites; ++to) {
      const double rate = by_link[from * sites + to];
      if (rate <= 0) continue;
      text += "<seto_link kind=\"between\" from=\"" + std::to_string(from) + "\" to=\"" + std::to_string(to) + "\"" +
              attribute("bytes_per_second", rate);
      for (const Json& known : part["between_sites"])
        if (known["from"] == from && known["to"] == to && known["link"].contains("round_trip_s"))
          text += attribute("round_trip_s", known["link"]["round_trip_s"].get<double>());
      text += " source=\"measured\"/>\n";
    }
  return text + "</system>\n";
}

}  // namespace

int probe_sites(const JobCommunicator& job, const std::string& own, ProbedSites& probed) {
  CheckedCalls calls(job.comm());
  int status = 0;
  const Json part = part_of(own, status);
  std::size_t sites = 0;
  const std::vector<int> first = first_ranks(calls, part, job.ranks(), sites);
  if (calls.ok() && sites < 2) return status;
  if (calls.ok() && std::find(first.begin(), first.end(), -1) != first.end()) {
    if (job.rank() == 0)
      std::fprintf(stderr, "seto: --probe: a site has no rank that knows its own topology, so nothing is probed\n");
    return kFailed;
  }
  const Rates rates = measure_links(calls, job.rank(), first);
  if (!calls.ok()) {
    std::fprintf(stderr, "seto: rank %d: the probe failed: %s\n", job.rank(), calls.failure().c_str());
    return kFailed;
  }
  probed.links = rates.links;
  probed.bytes = static_cast<std::uint64_t>(rates.bytes);
  if (job.rank() == 0) {
    probed.topology = topology_of(part, rates.by_link);
    say_what_rises(part, rates);
    say_probed("", rates.links, rates.bytes);
  }
  return status;
}

}  // namespace seto::command
