#include "src/core/introduction.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace seto {
namespace {

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

// Of one machine, so in the machine's byte order.
std::string bytes_of(const Attempts& attempts) {
  return {reinterpret_cast<const char*>(attempts.data()), attempts.size() * sizeof(AttemptId)};
}

Code code_in(const std::string& outcome) { return static_cast<Code>(outcome.front()); }

}  // namespace

std::string Introduction::encoded() const {
  return host + '\0' + site + '\0' + std::to_string(context) + '\0' + std::to_string(board) + '\0' + std::to_string(identity) +
         '\0' + std::to_string(cores) + '\0' + outcome + '\0' + std::to_string(offered.size()) + '\0' + bytes_of(offered) +
         process;
}

Result<Introduction> Introduction::decoded(const std::string& text) {
  std::array<std::string, 8> fields;
  std::size_t at = 0;
  for (std::string& field : fields) {
    const std::size_t end = text.find('\0', at);
    if (end == std::string::npos) return failure(Code::remote_error, "its introduction is cut short");
    field = text.substr(at, end - at);
    at = end + 1;
  }
  Introduction result;
  result.host = fields[0];
  result.site = fields[1];
  result.context = std::strtoull(fields[2].c_str(), nullptr, 10);
  result.board = std::strtoull(fields[3].c_str(), nullptr, 10);
  result.identity = std::strtoull(fields[4].c_str(), nullptr, 10);
  result.cores = std::max(1, std::atoi(fields[5].c_str()));
  result.outcome = fields[6];
  const std::size_t offers = std::strtoull(fields[7].c_str(), nullptr, 10);
  if (offers > kOffersLimit || text.size() - at < offers * sizeof(AttemptId))
    return failure(Code::remote_error, "its introduction offers %zu connections: that is garbage", offers);
  result.offered.resize(offers);
  if (offers > 0) std::memcpy(result.offered.data(), text.data() + at, offers * sizeof(AttemptId));
  if (!std::is_sorted(result.offered.begin(), result.offered.end()))
    return failure(Code::remote_error, "its introduction offers connections out of order: that is garbage");
  result.process = text.substr(at + offers * sizeof(AttemptId));
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

double crowding(const std::vector<Introduction>& all) {
  double most = 1;
  for (const Introduction& one : all) {
    const auto ranks = std::count_if(all.begin(), all.end(), [&](const Introduction& other) { return other.host == one.host; });
    most = std::max(most, static_cast<double>(ranks) / one.cores);
  }
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
