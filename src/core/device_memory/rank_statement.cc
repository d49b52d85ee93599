#include "src/core/device_memory/rank_statement.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "src/core/device_memory/gpu_context.h"
#include "src/net/token.h"

namespace seto {
namespace {

static_assert(std::is_trivially_copyable_v<RankStatement>);

constexpr char kGood = '+', kBad = '-';

constexpr std::uint32_t kMostBlocks = 32;  // of a call
// The same where messages cross hosts: a call may take a second between sites, and a minute while a path is cut. Until then its
// blocks keep their places on the GPU.
constexpr std::uint32_t kMostBlocksBetweenHosts = 2;

// A message begins with how it went. After kBad come the code and the text of the failure.
std::string message_of(const Status& status, std::string content) {
  if (status.ok()) return kGood + std::move(content);
  return std::string{kBad, static_cast<char>(status.code())} + std::string(status.text());
}

Code code_in(char character) {
  const auto number = static_cast<unsigned char>(character);
  return number == 0 || number > static_cast<unsigned char>(Code::internal) ? Code::remote_error : static_cast<Code>(number);
}

// The contents of all ranks, or the failure of the lowest rank that failed.
Result<std::vector<std::string>> gather(Bootstrap& bootstrap, std::string message, Deadline until) {
  SETO_ASSIGN(std::vector<std::string> messages, bootstrap.all_gather(std::move(message), until));
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    std::string& one = messages[rank];
    if (!one.empty() && one[0] == kGood) {
      one.erase(0, 1);
      continue;
    }
    if (one.size() < 2) return failure(Code::remote_error, "rank %zu: its statement about its GPU is malformed", rank);
    return failure(code_in(one[1]), "rank %zu: %s", rank, one.c_str() + 2);
  }
  return messages;
}

std::uint32_t ranks_like(const RankStatement& one, const std::vector<RankStatement>& statements) {
  return static_cast<std::uint32_t>(std::count_if(statements.begin(), statements.end(), [&](const auto& other) {
    return other.process == one.process && text_of(other.gpu) == text_of(one.gpu);
  }));
}

}  // namespace

bool shares_gpu(const std::vector<RankStatement>& statements, Rank rank) {
  return ranks_like(statements[static_cast<std::size_t>(rank)], statements) > 1;
}

// Ranks of one process share their GPU at the same time; processes take turns.
Result<std::uint32_t> blocks_of(const std::vector<RankStatement>& statements, std::uint32_t most) {
  std::uint32_t fewest = most;
  for (const RankStatement& one : statements) {
    const std::uint32_t sharing = ranks_like(one, statements);
    if (one.resident_blocks < sharing)
      return failure(
          Code::unavailable,
          "%u ranks of one process share GPU %d (%s), which holds only %u blocks of the library's kernels at once: put "
          "fewer ranks on it",
          sharing, one.device, text_of(one.gpu).c_str(), one.resident_blocks);
    fewest = std::min(fewest, one.resident_blocks / sharing);
  }
  return fewest;
}

Result<std::uint32_t> blocks_of(const std::vector<RankStatement>& statements, const Tiers& tiers) {
  return blocks_of(statements, is_one_host(tiers) ? kMostBlocks : kMostBlocksBetweenHosts);
}

bool is_one_host(const Tiers& tiers) { return tiers.count() == 1 && tiers.kind(0) == TierKind::node; }

std::vector<bool> nearby_ranks(const Tiers& tiers, Rank rank, int ranks) {
  std::vector<bool> nearby;
  for (Rank peer = 0; peer < ranks; ++peer)
    nearby.push_back(peer == rank || tiers.kind(tiers.between(rank, peer)) == TierKind::node);
  return nearby;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill_random(&number, sizeof number);
  return number;
}

bool is_one_process(const std::vector<RankStatement>& statements) {
  return std::all_of(statements.begin(), statements.end(),
                     [&](const RankStatement& one) { return one.process == statements[0].process; });
}

std::uint64_t number_of_process() {
  static const std::uint64_t number = random_number();
  return number;
}

Result<std::vector<RankStatement>> exchange(Bootstrap& bootstrap, const Result<RankStatement>& mine, Deadline until) {
  std::string content;
  if (mine.ok()) content.assign(reinterpret_cast<const char*>(&mine.value()), sizeof(RankStatement));
  Result<std::vector<std::string>> gathered = gather(bootstrap, message_of(mine.status(), std::move(content)), until);
  // A rank that is too late knows better why than those that waited for it.
  if (!mine.ok() && gathered.status().code() == Code::timeout) return mine.status();
  SETO_ASSIGN(const std::vector<std::string> contents, std::move(gathered));
  std::vector<RankStatement> statements(contents.size());
  for (std::size_t rank = 0; rank < contents.size(); ++rank) {
    if (contents[rank].size() == sizeof(RankStatement))
      std::memcpy(&statements[rank], contents[rank].data(), sizeof(RankStatement));
    if (statements[rank].layout != mine.value().layout)
      return failure(Code::invalid_usage,
                     "rank %zu has another build of the library: device memory needs the same one on all ranks", rank);
  }
  return statements;
}

Result<std::vector<std::string>> exchange_findings(Bootstrap& bootstrap, const Result<std::string>& mine, Deadline until) {
  SETO_ASSIGN(std::vector<std::string> all,
              gather(bootstrap, message_of(mine.status(), mine.ok() ? mine.value() : std::string()), until));
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].size() != all.size())
      return failure(Code::remote_error, "rank %zu: its findings about the other ranks are malformed", rank);
  return all;
}

Result<std::string> obstacle_of_any(const Status& mine, std::size_t ranks, Bootstrap& bootstrap, Deadline until) {
  SETO_ASSIGN(const std::vector<std::string> findings,
              exchange_findings(bootstrap, std::string(ranks, mine.ok() ? kGood : kBad), until));
  if (!mine.ok()) return std::string(mine.text());
  for (std::size_t rank = 0; rank < findings.size(); ++rank)
    if (findings[rank][0] != kGood) return "rank " + std::to_string(rank) + " says why";
  return std::string();
}

Status agree(Bootstrap& bootstrap, const Status& mine, Deadline until) {
  return gather(bootstrap, message_of(mine, ""), until).status();
}

}  // namespace seto
