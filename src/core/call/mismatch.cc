#include "src/core/call/mismatch.h"

#include <charconv>
#include <limits>

namespace seto {
namespace {

constexpr std::string_view kOperation = "operation ";
constexpr std::string_view kButRank = ", but rank ";
constexpr std::string_view kButPlans = ", but plan it differently";

std::string beginning(const Mismatch& mismatch) { return std::string(kOperation) + std::to_string(mismatch.operation) + ": "; }

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take_number(std::string_view& text, std::uint64_t limit, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > limit) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_rank(std::string_view& text, Rank& rank) {
  std::uint64_t number = 0;
  if (!take_number(text, std::numeric_limits<Rank>::max(), number)) return false;
  rank = static_cast<Rank>(number);
  return true;
}

}  // namespace

std::string Mismatch::of_calls(std::string_view rank_calls, std::string_view peer_calls) const {
  std::string text = beginning(*this) + "rank " + std::to_string(rank) + " calls ";
  text.append(rank_calls).append(kButRank).append(std::to_string(peer)).append(" calls ").append(peer_calls);
  return text;
}

std::string Mismatch::of_plans(std::string_view call) const {
  std::string text = beginning(*this) + "ranks " + std::to_string(rank) + " and " + std::to_string(peer) + " call ";
  text.append(call).append(kButPlans);
  return text + ": parts, algorithm, codec, slice bytes and slot depth (SETO_* variables too) must be the same on all ranks";
}

std::optional<ReadMismatch> read_mismatch(std::string_view failure) {
  ReadMismatch read;
  std::string_view rest = failure;
  if (!take(rest, kOperation) || !take_number(rest, std::numeric_limits<std::uint64_t>::max(), read.mismatch.operation) ||
      !take(rest, ": "))
    return {};
  read.difference = rest;
  if (take(rest, "ranks ")) {
    if (!take_rank(rest, read.mismatch.rank) || !take(rest, " and ") || !take_rank(rest, read.mismatch.peer) ||
        !take(rest, " call ") || rest.find(kButPlans) == std::string_view::npos)
      return {};
    return read;
  }
  if (!take(rest, "rank ") || !take_rank(rest, read.mismatch.rank) || !take(rest, " calls ")) return {};
  const std::size_t but = rest.find(kButRank);
  if (but == std::string_view::npos) return {};
  rest.remove_prefix(but + kButRank.size());
  if (!take_rank(rest, read.mismatch.peer) || !take(rest, " calls ")) return {};
  return read;
}

}  // namespace seto
