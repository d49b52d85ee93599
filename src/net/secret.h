#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/config.h"
#include "src/base/result.h"

namespace seto {

// The keyed hash for all proofs and derived keys.
using Digest = std::array<std::uint8_t, 32>;
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view data);

// Constant-time comparison; only the sizes may affect the time.
[[nodiscard]] bool equal(std::string_view left, std::string_view right);

// A longer secret file is refused as a probable mistake.
inline constexpr std::size_t kSecretFileLimit = 4096;

// A key that only the processes of one job share. The destructor wipes its bytes.
class Secret final {
 public:
  static constexpr std::size_t kSize = 32;

  // No secret: all zero. A proof with it proves nothing.
  Secret() = default;
  explicit Secret(const std::array<std::uint8_t, kSize>& bytes) : bytes_(bytes) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  [[nodiscard]] static Secret random();
  // The same text gives the same secret. Any length; the secret is as hard to guess as the text. For names, and for tokens that
  // a program drew at random.
  [[nodiscard]] static Secret of_text(std::string_view text);
  // For a text that a person may have chosen: each guess of it costs as much as this call, memory included (scrypt, RFC 7914). A
  // process computes it once for each text.
  [[nodiscard]] static Result<Secret> of_passphrase(std::string_view text);
  // of_passphrase() of the file's content without its last end of line. Fails if the file is missing, empty, not a regular file,
  // longer than kSecretFileLimit, or accessible to others than its owner; the text names the file and says what to do.
  [[nodiscard]] static Result<Secret> of_file(const std::string& path);

  [[nodiscard]] bool none() const;
  // A key for one use: HMAC-SHA256(this, label, a zero byte, context). A label holds no zero byte.
  [[nodiscard]] Secret derive(std::string_view label, std::string_view context = {}) const;
  [[nodiscard]] std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), kSize}; }

 private:
  std::array<std::uint8_t, kSize> bytes_{};
};

// Before each use of OpenSSL that needs its initialization: at the end of the process it frees nothing then, while threads of
// this library may still use it. No effect if the program has used OpenSSL before.
void keep_openssl_at_exit();

[[nodiscard]] bool equal(const Secret& left, const Secret& right);

// The secret that the user gave to the ranks of a job: that of SETO_SECRET_FILE, else that of SETO_SECRET.
[[nodiscard]] Result<std::optional<Secret>> user_secret(const Config& config);

}  // namespace seto
