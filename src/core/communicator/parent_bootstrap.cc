#include "src/core/communicator/parent_bootstrap.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace seto {
namespace {

constexpr std::uint64_t kLeft = ~std::uint64_t{0};

}  // namespace

Result<std::string> gather_bytes(Communicator& communicator, std::string_view mine, Deadline until) {
  std::string all(mine.size() * static_cast<std::size_t>(communicator.ranks()), '\0');
  Call call;
  call.collective = Collective::all_gather;
  call.input = mine.data();
  call.output = all.data();
  call.count = mine.size();
  call.type = DataType::uint8;
  call.deadline_ms = static_cast<std::uint32_t>(std::max(1, until.remaining_ms()));
  SETO_TRY(communicator.run(call));
  return all;
}

ParentBootstrap::ParentBootstrap(Communicator& parent, std::vector<Rank> members)
    : parent_(parent), members_(std::move(members)) {
  const auto own = std::find(members_.begin(), members_.end(), parent.rank());
  rank_ = static_cast<Rank>(own - members_.begin());
}

ParentBootstrap::~ParentBootstrap() {
  const Deadline until = Deadline::after_ms(parent_.config().init_timeout_ms);
  for (bool all_left = false; !all_left && !parent_.failed();) {
    const Result<Round> last = round({nullptr}, until);
    if (!last.ok()) return;
    all_left = std::find(last.value().left.begin(), last.value().left.end(), false) == last.value().left.end();
  }
}

Result<std::vector<std::string>> ParentBootstrap::all_gather(std::string mine, Deadline until) {
  if (!broken_.ok()) return broken_;
  if (mine.size() > kGatherMessageLimit) {
    return failure(Code::invalid_argument, "rank %d: a bootstrap message of %zu bytes is over the limit of %zu", rank_,
                   mine.size(), kGatherMessageLimit);
  }
  Result<Round> whole = round({&mine}, until);
  if (!whole.ok()) return broken_ = whole.status();
  std::vector<std::string> messages;
  for (std::size_t index = 0; index < members_.size(); ++index) {
    const auto member = static_cast<std::size_t>(members_[index]);
    if (whole->left[member])
      return broken_ = failure(Code::remote_error, "rank %zu has left: its init failed or was given up", index);
    messages.push_back(std::move(whole->messages[member]));
  }
  return messages;
}

// Two collectives of the parent: first the lengths, then the messages padded to the longest. All ranks see the same lengths, so
// either all or none make the second call.
Result<ParentBootstrap::Round> ParentBootstrap::round(Contribution mine, Deadline until) {
  const std::uint64_t length = mine.message == nullptr ? kLeft : mine.message->size();
  SETO_ASSIGN(const std::string flat, gather_bytes(parent_, {reinterpret_cast<const char*>(&length), sizeof length}, until));
  const auto ranks = static_cast<std::size_t>(parent_.ranks());
  std::vector<std::uint64_t> lengths(ranks);
  std::memcpy(lengths.data(), flat.data(), flat.size());
  Round result{std::vector<std::string>(ranks), std::vector<bool>(ranks)};
  std::uint64_t longest = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    result.left[rank] = lengths[rank] == kLeft;
    if (result.left[rank]) continue;
    if (lengths[rank] > kGatherMessageLimit)
      return failure(Code::remote_error, "rank %zu: a bootstrap message of %llu bytes", rank,
                     static_cast<unsigned long long>(lengths[rank]));
    longest = std::max(longest, lengths[rank]);
  }
  if (longest == 0) return result;
  std::string padded = mine.message == nullptr ? std::string() : *mine.message;
  padded.resize(longest);
  SETO_ASSIGN(const std::string all, gather_bytes(parent_, padded, until));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (!result.left[rank]) result.messages[rank] = all.substr(rank * longest, lengths[rank]);
  return result;
}

}  // namespace seto
