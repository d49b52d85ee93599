#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace seto {

// The keyed hash with which everything here is proved and derived.
using Digest = std::array<std::uint8_t, 32>;
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view data);

// Takes the same time wherever the first difference lies; only the sizes may tell.
[[nodiscard]] bool equal(std::string_view left, std::string_view right);

// Longer files of secrets are taken for a mistake.
inline constexpr std::size_t kSecretFileLimit = 4096;

// A key that the processes of one job share, and nobody else has. Its bytes are wiped when it goes.
class Secret final {
 public:
  static constexpr std::size_t kSize = 32;

  // None: all zero. Whoever proves himself with it proves nothing.
  Secret() = default;
  explicit Secret(const std::array<std::uint8_t, kSize>& bytes) : bytes_(bytes) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  [[nodiscard]] static Secret random();
  // The same text, the same secret. Any length; how hard it is to guess is the text's affair.
  [[nodiscard]] static Secret of_text(std::string_view text);
  // Of the file's content, less one end of line at its end: what of_text makes of it. Fails where the file is missing, empty, no
  // regular file, longer than kSecretFileLimit, or open to others than its owner; the text names the file and says what to do.
  [[nodiscard]] static Result<Secret> of_file(const std::string& path);

  [[nodiscard]] bool none() const;
  // A key for one use: HMAC-SHA256(this, label, a zero byte, context). A label holds no zero byte.
  [[nodiscard]] Secret derive(std::string_view label, std::string_view context = {}) const;
  [[nodiscard]] std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), kSize}; }

 private:
  std::array<std::uint8_t, kSize> bytes_{};
};

[[nodiscard]] bool equal(const Secret& left, const Secret& right);

}  // namespace seto
