#include "src/core/connect/rank_announcement.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/net/secret.h"

namespace seto {
namespace {

constexpr std::uint64_t kMostCores = 1 << 20;
constexpr std::uint64_t kMostSockets = 16;

// How far a failure of that kind is from its cause: a peer's end is felt by many, and a wait in vain by all.
int distance(Code code) {
  switch (code) {
    case Code::remote_error:
      return 1;
    case Code::timeout:
      return 2;
    case Code::aborted:
      return 3;
    default:
      return 0;
  }
}

std::string bytes_of(const Attempts& attempts) {
  return {reinterpret_cast<const char*>(attempts.data()), attempts.size() * sizeof(AttemptId)};
}

// Numbers of eight bytes, texts after their length; little-endian, as every machine that this library runs on.
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

// What comes of a peer may be garbage: once something is missing, everything is.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  void number(std::uint64_t& value) {
    sound_ = sound_ && bytes_.size() >= sizeof value;
    if (!sound_) return;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  void text(std::string& text) {
    std::uint64_t size = 0;
    number(size);
    sound_ = sound_ && size <= bytes_.size();
    if (!sound_) return;
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  [[nodiscard]] bool whole() const { return sound_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool sound_ = true;
};

Code code_in(const std::string& outcome) { return static_cast<Code>(outcome.front()); }

}  // namespace

std::string Introduction::encoded() const {
  Writer writer;
  for (const std::string* text : {&host, &site, &process, &place, &outcome}) writer.text(*text);
  for (const std::uint64_t number :
       {context, board, identity, static_cast<std::uint64_t>(cores), machine, static_cast<std::uint64_t>(machine_cores)})
    writer.number(number);
  writer.text(bytes_of(offered));
  return writer.take();
}

Result<Introduction> Introduction::decoded(const std::string& text) {
  Introduction result;
  Reader reader(text);
  std::uint64_t cores = 0;
  std::uint64_t machine_cores = 0;
  std::string offers;
  for (std::string* field : {&result.host, &result.site, &result.process, &result.place, &result.outcome}) reader.text(*field);
  for (std::uint64_t* number : {&result.context, &result.board, &result.identity, &cores, &result.machine, &machine_cores})
    reader.number(*number);
  reader.text(offers);
  if (!reader.whole()) return failure(Code::remote_error, "its introduction is cut short, or longer than it says");
  result.cores = static_cast<int>(std::clamp<std::uint64_t>(cores, 1, kMostCores));
  result.machine_cores = static_cast<int>(std::clamp<std::uint64_t>(machine_cores, 1, kMostCores));
  if (offers.size() % sizeof(AttemptId) != 0 || offers.size() / sizeof(AttemptId) > kOffersLimit)
    return failure(Code::remote_error, "its introduction offers connections in %zu bytes: that is garbage", offers.size());
  result.offered.resize(offers.size() / sizeof(AttemptId));
  if (!offers.empty()) std::memcpy(result.offered.data(), offers.data(), offers.size());
  if (!std::is_sorted(result.offered.begin(), result.offered.end()))
    return failure(Code::remote_error, "its introduction offers connections out of order: that is garbage");
  return result;
}

std::string DoorNotice::encoded() const {
  Writer writer;
  for (const std::string* text : {&door, &secret, &outcome}) writer.text(*text);
  writer.number(sockets);
  return writer.take();
}

Result<DoorNotice> DoorNotice::decoded(const std::string& text) {
  DoorNotice result;
  Reader reader(text);
  for (std::string* field : {&result.door, &result.secret, &result.outcome}) reader.text(*field);
  std::uint64_t sockets = 0;
  reader.number(sockets);
  if (!reader.whole() || sockets < 1 || sockets > kMostSockets ||
      (!result.secret.empty() && result.secret.size() != Secret::kSize))
    return failure(Code::remote_error, "what it says of how it is reached is garbage");
  result.sockets = static_cast<std::uint32_t>(sockets);
  return result;
}

Result<std::vector<Introduction>> introductions_of(const std::vector<std::string>& texts) {
  std::vector<Introduction> all;
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    Result<Introduction> introduction = Introduction::decoded(texts[peer]);
    if (!introduction.ok())
      return failure(Code::remote_error, "rank %zu: %s", peer, std::string(introduction.status().text()).c_str());
    all.push_back(std::move(introduction).value());
  }
  return all;
}

AttemptId attempt_of(const std::vector<std::string>& texts) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325;
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t sum = kOffset;
  for (const std::string& text : texts)
    for (const char letter : text) sum = (sum ^ static_cast<unsigned char>(letter)) * kPrime;
  return sum;
}

double crowding_at(const Introduction& one, const std::vector<Introduction>& all) {
  const auto on_host = std::count_if(all.begin(), all.end(), [&](const Introduction& other) { return other.host == one.host; });
  const auto on_machine = std::count_if(
      all.begin(), all.end(), [&](const Introduction& other) { return other.machine != 0 && other.machine == one.machine; });
  return std::max({1.0, static_cast<double>(on_host) / one.cores, static_cast<double>(on_machine) / one.machine_cores});
}

double crowding(const std::vector<Introduction>& all) {
  std::unordered_map<std::string_view, const Introduction*> places;  // one rank of each host
  for (const Introduction& one : all) {
    const Introduction*& least = places[one.host];
    if (least == nullptr || one.cores < least->cores) least = &one;
  }
  double most = 1;
  for (const auto& [host, one] : places) most = std::max(most, crowding_at(*one, all));
  return most;
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
    if (nearest != nullptr && distance(code_in(outcomes[peer])) >= distance(code_in(*nearest))) continue;
    nearest = &outcomes[peer];
    culprit = static_cast<Rank>(peer);
  }
  if (nearest == nullptr) return {};
  const Code code = code_in(*nearest);
  const bool alike = culprit == own || (code == Code::timeout && mine.code() == code);
  return {alike && code != Code::aborted ? code : Code::remote_error,
          std::string(gave_up(culprit, {code, nearest->substr(1)}).text())};
}

Status gave_up(Rank rank, const Status& reason) {
  if (reason.code() == Code::aborted) return reason;
  return failure(reason.code(), "rank %d could not connect: %s", rank, std::string(reason.text()).c_str());
}

}  // namespace seto
