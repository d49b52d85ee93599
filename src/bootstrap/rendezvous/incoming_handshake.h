#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/fork.h"
#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

// A connection that has not proved yet that it belongs here. It is heard for a few hundred bytes.
class MemberAnswer final {
 public:
  explicit MemberAnswer(PrivateFd fd) : fd_(std::move(fd)) {}

  enum class Outcome : std::uint8_t { more, proven, gone };
  // Reads and writes what can be without waiting.
  // Whoever names the key of `presence`, if there is one, only asks who is here: that is proved to him, and he is gone.
  [[nodiscard]] Outcome advance(const Secret& key, const Secret* presence = nullptr);
  [[nodiscard]] bool wants_to_write() const { return !out_.empty(); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  // It named the right key: a member, or somebody who has overheard one.
  [[nodiscard]] bool greeted() const { return greeted_; }
  // It named a wrong one.
  [[nodiscard]] bool has_another_key() const { return another_key_; }
  // Once gone. Ok: it only hung up, as a probe does, or a member that was quicker by another way.
  [[nodiscard]] const Status& reason() const { return reason_; }
  // Once proven.
  [[nodiscard]] const Claim& claim() const { return handshake_.claim(); }
  [[nodiscard]] PrivateFd take_fd() { return std::move(fd_); }
  // So far, both ways.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] Status hear(std::string_view bytes, const Secret& key, const Secret* presence);
  [[nodiscard]] bool flush();

  PrivateFd fd_;
  AnswererHandshake handshake_{Token{}};
  std::string out_;
  std::uint64_t bytes_ = 0;
  bool greeted_ = false;
  bool asks_only_ = false;
  bool another_key_ = false;
  Status reason_;
};

}  // namespace seto
