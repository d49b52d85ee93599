#include "src/core/connect/rank_announcement.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/base/config_table.h"
#include "src/net/secret.h"
#include "transports/peer_closed.h"

namespace seto {
namespace {

constexpr std::uint64_t kMostCores = 1 << 20;

Code code_in(const std::string& outcome) { return static_cast<Code>(outcome.front()); }

// How far a failure is from its cause: many ranks see that a peer has ended, and all ranks see a timeout.
int distance(const std::string& outcome) {
  switch (code_in(outcome)) {
    case Code::remote_error:
      return outcome.find(kPeerClosed) == std::string::npos ? 1 : 2;
    case Code::timeout:
      return 3;
    case Code::aborted:
      return 4;
    default:
      return 0;
  }
}

std::string bytes_of(const Attempts& attempts) {
  return {reinterpret_cast<const char*>(attempts.data()), attempts.size() * sizeof(AttemptId)};
}

// Numbers take eight bytes; a text follows its length. Little-endian, like every machine that this library runs on.
class Writer {
 public:
  void number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(const std::string& text) {
    number(text.size());
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// The input may be malformed: after the first read that fails, all further reads fail.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  void number(std::uint64_t& value) {
    valid_ = valid_ && bytes_.size() >= sizeof value;
    if (!valid_) return;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  void text(std::string& text) {
    std::uint64_t size = 0;
    number(size);
    valid_ = valid_ && size <= bytes_.size();
    if (!valid_) return;
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  [[nodiscard]] bool at_end() const { return valid_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool valid_ = true;
};

}  // namespace

std::string RankAnnouncement::encoded() const {
  Writer writer;
  for (const std::string* text : {&place.host, &place.process, &site, &found_site, &seat, &words, &outcome, &bound})
    writer.text(*text);
  for (const std::uint64_t number :
       {place.context, nonce, static_cast<std::uint64_t>(cores), machine, static_cast<std::uint64_t>(machine_cores), uplink_mbit,
        downlink_mbit, pacing_mbit, connect, relay, near_us, tls, topology, file_host})
    writer.number(number);
  writer.text(bytes_of(offered));
  return writer.take();
}

Result<RankAnnouncement> RankAnnouncement::decoded(const std::string& text) {
  RankAnnouncement result;
  Reader reader(text);
  std::uint64_t cores = 0;
  std::uint64_t machine_cores = 0;
  std::string offers;
  for (std::string* field : {&result.place.host, &result.place.process, &result.site, &result.found_site, &result.seat,
                             &result.words, &result.outcome, &result.bound})
    reader.text(*field);
  for (std::uint64_t* number :
       {&result.place.context, &result.nonce, &cores, &result.machine, &machine_cores, &result.uplink_mbit, &result.downlink_mbit,
        &result.pacing_mbit, &result.connect, &result.relay, &result.near_us, &result.tls, &result.topology, &result.file_host})
    reader.number(*number);
  reader.text(offers);
  if (!reader.at_end()) return failure(Code::remote_error, "its announcement is shorter or longer than its lengths say");
  result.cores = static_cast<int>(std::clamp<std::uint64_t>(cores, 1, kMostCores));
  result.machine_cores = static_cast<int>(std::clamp<std::uint64_t>(machine_cores, 1, kMostCores));
  if (const auto bound = CoreSet::parse(result.bound); !result.bound.empty() && (!bound || bound->empty()))
    return failure(Code::remote_error, "its announcement is malformed: it names no set of cores");
  if (offers.size() % sizeof(AttemptId) != 0 || offers.size() / sizeof(AttemptId) > kOffersLimit)
    return failure(Code::remote_error, "its announcement is malformed: %zu bytes of connection numbers", offers.size());
  result.offered.resize(offers.size() / sizeof(AttemptId));
  if (!offers.empty()) std::memcpy(result.offered.data(), offers.data(), offers.size());
  if (!std::is_sorted(result.offered.begin(), result.offered.end()))
    return failure(Code::remote_error, "its announcement is malformed: its connection numbers are not sorted");
  return result;
}

Status same_tls(const std::vector<RankAnnouncement>& all) {
  const auto text = [](std::uint64_t mode) {
    mode &= ~kTlsWithCertificates;
    return mode < std::size(kTlsNames) ? std::string(kTlsNames[mode]) : std::to_string(mode);
  };
  const std::uint64_t first = all.front().tls;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::uint64_t one = all[rank].tls;
    if ((one ^ first) == kTlsWithCertificates)
      return failure(
          Code::invalid_usage,
          "SETO_TLS_CERTIFICATE is %s on rank 0 and %s on rank %zu: set it, SETO_TLS_KEY and SETO_TLS_CA on all ranks, "
          "or on none",
          first > one ? "set" : "not set", first > one ? "not set" : "set", rank);
    if (one != first)
      return failure(Code::invalid_usage, "SETO_TLS is '%s' on rank 0 and '%s' on rank %zu: it must be the same on all ranks",
                     text(first).c_str(), text(one).c_str(), rank);
  }
  return {};
}

Status same_topology(const std::vector<RankAnnouncement>& all) {
  const auto text = [](std::uint64_t digest) {
    char digits[64];
    std::snprintf(digits, sizeof digits, "a file with digest %016" PRIx64, digest);
    return digest == 0 ? std::string("no file") : std::string(digits);
  };
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].topology != all.front().topology)
      return failure(Code::invalid_usage,
                     "SETO_TOPOLOGY_FILE is %s on rank 0 and %s on rank %zu: all ranks need a file of the same content, or none",
                     text(all.front().topology).c_str(), text(all[rank].topology).c_str(), rank);
  return {};
}

std::string EndpointAnnouncement::encoded() const {
  Writer writer;
  for (const TransportAnnouncement& one : transports)
    for (const std::string* text : {&one.address, &one.seat}) writer.text(*text);
  for (const std::string* text : {&secret, &secret_check, &outcome}) writer.text(*text);
  writer.number(wants ? 1 : 0);
  return writer.take();
}

Result<EndpointAnnouncement> EndpointAnnouncement::decoded(const std::string& text, std::size_t transports) {
  EndpointAnnouncement result;
  Reader reader(text);
  result.transports.resize(transports);
  for (TransportAnnouncement& one : result.transports)
    for (std::string* field : {&one.address, &one.seat}) reader.text(*field);
  for (std::string* field : {&result.secret, &result.secret_check, &result.outcome}) reader.text(*field);
  std::uint64_t wants = 0;
  reader.number(wants);
  result.wants = wants != 0;
  const auto is_empty_or_whole = [](const std::string& field) { return field.empty() || field.size() == Secret::kSize; };
  if (!reader.at_end() || !is_empty_or_whole(result.secret) || !is_empty_or_whole(result.secret_check))
    return failure(Code::remote_error, "its announcement of addresses is malformed");
  return result;
}

std::string FinalAnnouncement::encoded() const {
  Writer writer;
  writer.text(outcome);
  writer.text({reinterpret_cast<const char*>(round_trips_us.data()), round_trips_us.size() * sizeof(std::uint32_t)});
  return writer.take();
}

Result<FinalAnnouncement> FinalAnnouncement::decoded(const std::string& text) {
  FinalAnnouncement result;
  Reader reader(text);
  std::string round_trips;
  for (std::string* field : {&result.outcome, &round_trips}) reader.text(*field);
  if (!reader.at_end() || round_trips.size() % sizeof(std::uint32_t) != 0)
    return failure(Code::remote_error, "its announcement of round trips is malformed");
  result.round_trips_us.resize(round_trips.size() / sizeof(std::uint32_t));
  if (!round_trips.empty()) std::memcpy(result.round_trips_us.data(), round_trips.data(), round_trips.size());
  return result;
}

Result<std::vector<RankAnnouncement>> announcements_of(const std::vector<std::string>& texts) {
  std::vector<RankAnnouncement> all;
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    Result<RankAnnouncement> announcement = RankAnnouncement::decoded(texts[peer]);
    if (!announcement.ok())
      return failure(Code::remote_error, "rank %zu: %s", peer, std::string(announcement.status().text()).c_str());
    all.push_back(std::move(announcement).value());
  }
  return all;
}

AttemptId attempt_of(const std::vector<std::string>& texts) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325;
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t sum = kOffset;
  for (const std::string& text : texts)
    for (const char byte : text) sum = (sum ^ static_cast<unsigned char>(byte)) * kPrime;
  return sum;
}

void RankAnnouncement::take_cores(const CoreSet& usable) {
  cores = std::max(1, static_cast<int>(usable.count()));
  if (cores < machine_cores) bound = usable.text();
}

namespace {

// The part of the other's time that it may spend on the cores of this one.
double part_on_cores_of(const RankAnnouncement& one, const RankAnnouncement& other) {
  if (one.bound.empty() || one.bound == other.bound) return 1;
  if (other.bound.empty()) return std::min(1.0, static_cast<double>(one.cores) / other.cores);
  const CoreSet own = CoreSet::parse(one.bound).value_or(CoreSet());
  const CoreSet its = CoreSet::parse(other.bound).value_or(CoreSet());
  return its.empty() ? 1 : static_cast<double>(own.both(its).count()) / static_cast<double>(its.count());
}

// The ranks by host and by machine.
struct Crowds {
  explicit Crowds(const std::vector<RankAnnouncement>& all) {
    for (const RankAnnouncement& one : all) {
      hosts[one.place.host].push_back(&one);
      if (one.machine != 0) ++machines[one.machine];
    }
  }

  [[nodiscard]] double ranks_per_core_at(const RankAnnouncement& one) const {
    double on_cores = 0;
    for (const RankAnnouncement* const other : hosts.at(one.place.host)) on_cores += part_on_cores_of(one, *other);
    const double on_machine = one.machine == 0 ? 0 : machines.at(one.machine);
    return std::max({1.0, on_cores / one.cores, on_machine / one.machine_cores});
  }

  std::unordered_map<std::string_view, std::vector<const RankAnnouncement*>> hosts;
  std::unordered_map<std::uint64_t, int> machines;
};

}  // namespace

double ranks_per_core_at(const RankAnnouncement& one, const std::vector<RankAnnouncement>& all) {
  return Crowds(all).ranks_per_core_at(one);
}

double most_ranks_per_core(const std::vector<RankAnnouncement>& all) {
  const Crowds crowds(all);
  double most = 1;
  for (const auto& [host, ranks] : crowds.hosts) {
    std::set<std::pair<int, std::string_view>> seen;  // ranks with equal cores are equally crowded
    for (const RankAnnouncement* const one : ranks)
      if (seen.insert({one->cores, one->bound}).second) most = std::max(most, crowds.ranks_per_core_at(*one));
  }
  return most;
}

bool on_several_machines(const std::vector<RankAnnouncement>& all) {
  return std::any_of(all.begin(), all.end(),
                     [&](const RankAnnouncement& one) { return one.machine == 0 || one.machine != all.front().machine; });
}

std::string outcome_text(const Status& made) {
  std::string text;
  if (made.ok()) return text;
  text += static_cast<char>(made.code());
  return text.append(made.text());
}

Status common_outcome(Rank own, const Status& mine, const std::vector<std::string>& outcomes) {
  const std::string* nearest = nullptr;
  Rank culprit = 0;
  for (std::size_t peer = 0; peer < outcomes.size(); ++peer) {
    if (outcomes[peer].empty()) continue;
    if (nearest != nullptr && distance(outcomes[peer]) >= distance(*nearest)) continue;
    nearest = &outcomes[peer];
    culprit = static_cast<Rank>(peer);
  }
  if (nearest == nullptr) return {};
  const Code code = code_in(*nearest);
  const bool alike = culprit == own || (code == Code::timeout && mine.code() == code);
  return {alike && code != Code::aborted ? code : Code::remote_error,
          std::string(connect_failure(culprit, {code, nearest->substr(1)}).text())};
}

Status connect_failure(Rank rank, const Status& reason) {
  if (reason.code() == Code::aborted) return reason;
  return failure(reason.code(), "rank %d could not connect: %s", rank, std::string(reason.text()).c_str());
}

}  // namespace seto
