#include "src/core/device_memory/stream_users.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace seto {
namespace {

constexpr std::size_t kMostStreams = 64;  // that a rank remembers

// Global state of the process, never destroyed: communicators may outlive static objects.
struct Users {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<StreamUsers*>> users;  // by communicator
};

Users& all_users() {
  static auto* const only = new Users;
  return *only;
}

}  // namespace

StreamUsers::StreamUsers(std::uint64_t token, Rank rank, cuda::Context context) : token_(token), rank_(rank), context_(context) {
  const std::lock_guard lock(all_users().mutex);
  all_users().users[token_].push_back(this);
}

StreamUsers::~StreamUsers() {
  const std::lock_guard lock(all_users().mutex);
  std::vector<StreamUsers*>& users = all_users().users[token_];
  std::erase(users, this);
  if (users.empty()) all_users().users.erase(token_);
}

Status StreamUsers::take(cuda::Stream stream, std::uint64_t operation) {
  const std::lock_guard lock(all_users().mutex);
  for (const StreamUsers* other : all_users().users[token_]) {
    if (other == this || other->context_ != context_) continue;
    const auto used = other->last_.find(stream);
    if (used == other->last_.end() || used->second < operation) continue;
    return failure(Code::invalid_usage,
                   "stream: rank %d of this communicator has launched the same operation on it, so the kernel of rank %d could "
                   "not run beside it: give each rank on this GPU a stream of its own",
                   other->rank_, rank_);
  }
  if (last_.size() >= kMostStreams && last_.count(stream) == 0)
    last_.erase(std::min_element(last_.begin(), last_.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
  last_[stream] = operation;
  return {};
}

}  // namespace seto
