#include "src/bootstrap/providers/callback.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace seto {
namespace {

constexpr std::uint32_t kMagic = 0x5e70ca11;

struct Announcement {
  std::uint32_t magic = kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint32_t unused = 0;
  std::uint64_t length = 0;
};

}  // namespace

Result<CallbackBootstrap> CallbackBootstrap::create(AllGatherCallback callback, Rank rank, int size) {
  if (callback.function == nullptr) return failure(Code::invalid_argument, "the bootstrap's all_gather function is NULL");
  if (size < 1 || size > kBootstrapRankLimit) {
    return failure(Code::invalid_argument, "a communicator of %d ranks: it can have 1 to %d", size, kBootstrapRankLimit);
  }
  if (rank < 0 || rank >= size) return failure(Code::invalid_argument, "rank %d is not one of 0 to %d", rank, size - 1);
  return CallbackBootstrap(callback, rank, size);
}

Result<std::vector<std::string>> CallbackBootstrap::all_gather(std::string mine, Deadline until) {
  if (!broken_.ok()) return broken_;
  Result<std::vector<std::string>> all = gather(mine, until);
  if (!all.ok()) broken_ = all.status();
  return all;
}

Result<std::vector<std::string>> CallbackBootstrap::gather(const std::string& mine, Deadline until) {
  SETO_ASSIGN(const std::vector<std::size_t> lengths, gather_lengths(mine.size(), until));
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::string> all(static_cast<std::size_t>(size_));
  if (longest == 0) return all;
  std::string padded = mine;
  padded.resize(longest);
  SETO_ASSIGN(const std::string flat, call(padded.data(), longest, until));
  for (std::size_t index = 0; index < all.size(); ++index) all[index] = flat.substr(index * longest, lengths[index]);
  return all;
}

// Every rank sees the same announcements, so either all ranks fail here with the same error or none does.
Result<std::vector<std::size_t>> CallbackBootstrap::gather_lengths(std::size_t length, Deadline until) {
  Announcement mine;
  mine.rank = rank_;
  mine.size = size_;
  mine.length = length;
  SETO_ASSIGN(const std::string flat, call(&mine, sizeof mine, until));
  std::vector<std::size_t> lengths;
  std::uint64_t longest = 0;
  for (Rank index = 0; index < size_; ++index) {
    Announcement one;
    std::memcpy(&one, flat.data() + static_cast<std::size_t>(index) * sizeof one, sizeof one);
    if (one.magic != kMagic) {
      return failure(Code::remote_error,
                     "the bootstrap's all_gather returned no message of rank %d: it must fill size bytes for each rank", index);
    }
    if (one.rank != index || one.size != size_) {
      return failure(Code::remote_error, "the bootstrap's all_gather put rank %d of %d at the place of rank %d of %d", one.rank,
                     one.size, index, size_);
    }
    if (one.length > kGatherMessageLimit) {
      return failure(Code::invalid_argument, "rank %d: a bootstrap message of %llu bytes is over the limit of %zu", index,
                     static_cast<unsigned long long>(one.length), kGatherMessageLimit);
    }
    longest = std::max(longest, one.length);
    lengths.push_back(one.length);
  }
  if (longest * lengths.size() > kGatherTotalLimit) {
    return failure(Code::invalid_argument,
                   "bootstrap messages of %llu bytes from each of %d ranks are over the limit of %zu in all",
                   static_cast<unsigned long long>(longest), size_, kGatherTotalLimit);
  }
  return lengths;
}

Result<std::string> CallbackBootstrap::call(const void* mine, std::size_t length, Deadline until) {
  if (until.passed())
    return failure(Code::timeout, "the deadline of the init passed between calls of the bootstrap's all_gather");
  std::string all(length * static_cast<std::size_t>(size_), '\0');
  const int answer = callback_.function(mine, all.data(), length, callback_.argument);
  if (answer != 0) return failure(Code::remote_error, "the bootstrap's all_gather returned %d on rank %d", answer, rank_);
  return all;
}

}  // namespace seto
