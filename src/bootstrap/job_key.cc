#include "src/bootstrap/job_key.h"

#include <cstddef>
#include <string_view>

#include "src/base/types.h"
#include "src/bootstrap/bootstrap.h"

namespace seto {
namespace {

constexpr std::string_view kCheckLabel = "seto check of the secret";
constexpr std::string_view kKeyLabel = "seto key with the secret";

// At least one rank has no secret, and at least one has one.
Status one_without(const std::vector<Rank>& with, const std::vector<Rank>& without) {
  return failure(Code::invalid_usage,
                 "%s %s no secret, but %s %s one: set SETO_SECRET_FILE or SETO_SECRET for every rank, or for none",
                 rank_list(without).c_str(), without.size() == 1 ? "has" : "have", rank_list(with).c_str(),
                 with.size() == 1 ? "has" : "have");
}

}  // namespace

std::string secret_check(const std::optional<Secret>& secret, std::uint64_t attempt) {
  if (!secret) return {};
  const std::string_view context(reinterpret_cast<const char*>(&attempt), sizeof attempt);
  return std::string(secret->derive(kCheckLabel, context).bytes());
}

Status check_same_secret(const std::vector<std::string>& checks) {
  std::vector<Rank> with;
  std::vector<Rank> without;
  std::vector<Rank> other;  // than rank 0
  for (std::size_t index = 0; index < checks.size(); ++index) {
    const auto rank = static_cast<Rank>(index);
    (checks[index].empty() ? without : with).push_back(rank);
    if (checks[index] != checks.front()) other.push_back(rank);
  }
  if (other.empty()) return {};
  if (!without.empty()) return one_without(with, without);
  return failure(
      Code::invalid_usage,
      "%s %s another secret than rank 0: set SETO_SECRET_FILE or SETO_SECRET to the same secret for every rank, or for none",
      rank_list(other).c_str(), other.size() == 1 ? "has" : "have");
}

Secret with_user_secret(const Secret& key, const std::optional<Secret>& secret) {
  return secret ? secret->derive(kKeyLabel, key.bytes()) : key;
}

}  // namespace seto
