#include "src/core/choice/version_switch.h"

#include <algorithm>

namespace seto {

std::uint64_t VersionSwitch::promise(std::uint64_t issued) {
  if (!answered_) answered_ = std::max(issued, agreed_.back().after);
  return *answered_;
}

bool VersionSwitch::commit(std::uint64_t version, std::uint64_t after) {
  if (!answered_ || after < *answered_ + kAhead || version <= newest()) return false;
  agreed_.push_back({version, after});
  answered_.reset();
  return true;
}

std::optional<std::uint64_t> VersionSwitch::version_of(std::uint64_t operation) const {
  if (answered_ && operation > *answered_ + kAhead) return std::nullopt;
  std::uint64_t version = agreed_.front().number;
  for (const Version& one : agreed_)
    if (one.after < operation) version = one.number;
  return version;
}

std::uint64_t VersionSwitch::last_like(std::uint64_t operation) const {
  for (const Version& one : agreed_)
    if (one.after >= operation) return one.after;
  return answered_ ? *answered_ + kAhead : kAlways;
}

void VersionSwitch::enter(std::uint64_t operation) {
  while (agreed_.size() > 1 && agreed_[1].after < operation) agreed_.erase(agreed_.begin());
}

void VersionVote::begin(std::uint64_t version) {
  version_ = version;
  missing_ = answers_.size();
  answers_.assign(missing_, false);
  after_ = 0;
}

bool VersionVote::answer(Rank rank, std::uint64_t version, std::uint64_t issued) {
  const auto index = static_cast<std::size_t>(rank);
  if (version_ != version || rank < 0 || index >= answers_.size() || answers_[index] || issued > kLastOperation) return false;
  answers_[index] = true;
  after_ = std::max(after_, issued + VersionSwitch::kAhead);
  if (--missing_ > 0) return false;
  version_.reset();
  return true;
}

}  // namespace seto
