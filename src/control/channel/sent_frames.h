#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace seto {

// The counted frames that one end of a control channel has sent (decision 32). Not thread safe.
class SentFrames final {
 public:
  // From now on frames are kept until the peer has heard them; before, they are counted only.
  void keep() { keeps_ = true; }
  [[nodiscard]] bool keeps() const { return keeps_; }

  void add(const std::string& frame) {
    ++sent_;
    if (!keeps_) return;
    kept_.push_back(frame);
    kept_bytes_ += frame.size();
  }

  // The peer has received so many. Returns false if so many were never sent.
  [[nodiscard]] bool heard(std::uint64_t count) {
    if (count > sent_) return false;
    for (; !kept_.empty() && sent_ - kept_.size() < count; kept_.pop_front()) kept_bytes_ -= kept_.front().size();
    return true;
  }

  // Whether a peer that has received so many can get all that follow.
  [[nodiscard]] bool has_all_after(std::uint64_t count) const { return count <= sent_ && count >= sent_ - kept_.size(); }

  // In the order in which they were sent.
  [[nodiscard]] const std::deque<std::string>& kept() const { return kept_; }
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_; }

  // Nothing is sent any more.
  void clear() {
    kept_.clear();
    kept_bytes_ = 0;
  }

 private:
  bool keeps_ = false;
  std::uint64_t sent_ = 0;
  std::deque<std::string> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace seto
