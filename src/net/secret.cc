#include "src/net/secret.h"

// Uses the direct SHA256 functions wherever a thread may run at any time: OpenSSL's provider functions take process-wide locks,
// which a forked child may inherit in the locked state, and they free tables at exit that a thread may still use.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "src/base/fd.h"
#include "src/net/token.h"

namespace seto {
namespace {

constexpr std::string_view kTextLabel = "seto secret of text";

// The cost of scrypt: 16 MiB, and 38 to 43 ms of a core (AMD EPYC; 18 to 22 ms with half of kCost, 100 with twice as much). Part
// of the protocol: ranks with other values derive other keys. There is nothing that all ranks know and other jobs do not before
// they have met, so the salt is fixed: one table of guesses would serve against every job.
constexpr std::uint64_t kCost = std::uint64_t{1} << 14;
constexpr std::uint64_t kBlockSize = 8;
constexpr std::uint64_t kParallel = 1;
constexpr std::uint64_t kMemoryLimit = std::uint64_t{32} << 20;
constexpr std::string_view kSalt = "seto secret of passphrase";
// A program that uses more secrets than that computes some of them again.
constexpr std::size_t kMostStretched = 16;

// A buffer that is wiped when it is destroyed.
struct Wiped {
  std::array<char, kSecretFileLimit + 1> bytes{};
  ~Wiped() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

Status check_owner_alone(int fd, const char* path) {
  struct stat state {};
  if (fstat(fd, &state) != 0) return system_failure(Code::unavailable, "cannot read the mode of the secret file '%s'", path);
  if (!S_ISREG(state.st_mode)) return failure(Code::invalid_argument, "the secret file '%s' is not a regular file", path);
  if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return failure(Code::invalid_argument,
                   "the secret file '%s' is readable or writable by users other than its owner (mode %03o): run chmod 600 on it",
                   path, static_cast<unsigned>(state.st_mode & 0777));
  }
  return {};
}

Result<std::size_t> read_all(int fd, const char* path, Wiped& into) {
  std::size_t size = 0;
  while (size < into.bytes.size()) {
    const ssize_t got = read(fd, into.bytes.data() + size, into.bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(Code::unavailable, "cannot read the secret file '%s'", path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

std::string_view without_end_of_line(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// A key block of HMAC (RFC 2104): the key (its hash if it is longer than a block), padded to one block, XORed with a mask.
struct Block {
  std::array<unsigned char, SHA256_CBLOCK> bytes{};
  Block(std::string_view key, unsigned char mask) {
    if (key.size() > bytes.size())
      SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), bytes.data());
    else
      std::copy(key.begin(), key.end(), bytes.begin());
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(byte ^ mask);
  }
  ~Block() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

Digest hash(const Block& block, const void* data, std::size_t size) {
  Digest digest{};
  static_assert(sizeof digest == SHA256_DIGEST_LENGTH);
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, block.bytes.data(), block.bytes.size());
  SHA256_Update(&state, data, size);
  SHA256_Final(digest.data(), &state);
  OPENSSL_cleanse(&state, sizeof state);
  return digest;
}

// A library context of its own neither reads the configuration of OpenSSL on this machine nor changes what the program uses.
Result<Secret> stretch(std::string_view text) {
  keep_openssl_at_exit();
  const std::unique_ptr<OSSL_LIB_CTX, decltype(&OSSL_LIB_CTX_free)> context(OSSL_LIB_CTX_new(), &OSSL_LIB_CTX_free);
  std::array<std::uint8_t, Secret::kSize> bytes{};
  const auto* const salt = reinterpret_cast<const unsigned char*>(kSalt.data());
  if (context == nullptr || EVP_PBE_scrypt_ex(text.data(), text.size(), salt, kSalt.size(), kCost, kBlockSize, kParallel,
                                              kMemoryLimit, bytes.data(), bytes.size(), context.get(), nullptr) != 1) {
    return failure(Code::unavailable, "OpenSSL cannot derive the key from the secret (scrypt needs 16 MiB of memory)");
  }
  const Secret made(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return made;
}

// Secrets that this process has computed, by the hash of the text. The mutex is held meanwhile: the ranks of a process that start
// at the same time compute it once.
struct Stretched {
  std::mutex mutex;
  std::vector<std::pair<Secret, Secret>> known;
};

Stretched& stretched() {
  static Stretched& one = *new Stretched;  // threads may still use it while the process exits
  return one;
}

}  // namespace

Digest hmac_sha256(std::string_view key, std::string_view data) {
  const Digest inner = hash(Block(key, 0x36), data.data(), data.size());
  return hash(Block(key, 0x5c), inner.data(), inner.size());
}

bool equal(std::string_view left, std::string_view right) {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

void keep_openssl_at_exit() { static_cast<void>(OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr)); }

bool equal(const Secret& left, const Secret& right) { return equal(left.bytes(), right.bytes()); }

Secret::Secret(Secret&& other) noexcept : bytes_(other.bytes_) { OPENSSL_cleanse(other.bytes_.data(), kSize); }

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    bytes_ = other.bytes_;
    OPENSSL_cleanse(other.bytes_.data(), kSize);
  }
  return *this;
}

Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), kSize); }

Secret Secret::random() {
  Secret secret;
  fill_random(secret.bytes_.data(), kSize);
  return secret;
}

Secret Secret::of_text(std::string_view text) {
  Secret secret;
  secret.bytes_ = hmac_sha256(kTextLabel, text);
  return secret;
}

Result<Secret> Secret::of_passphrase(std::string_view text) {
  const Secret name = of_text(text);
  const std::lock_guard lock(stretched().mutex);
  auto& known = stretched().known;
  for (const auto& [of, secret] : known)
    if (equal(of, name)) return secret;
  SETO_ASSIGN(const Secret secret, stretch(text));
  if (known.size() >= kMostStretched) known.clear();
  known.emplace_back(name, secret);
  return secret;
}

Result<Secret> Secret::of_file(const std::string& path) {
  // Without O_NONBLOCK the open of a named pipe would block until another process writes.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) {
    return failure(
        Code::invalid_argument,
        "the secret file '%s' does not exist here: make it once (openssl rand -hex 32 > FILE; chmod 600 FILE) and copy "
        "it to every machine of the job",
        path.c_str());
  }
  if (!fd.valid()) return system_failure(Code::invalid_argument, "cannot open the secret file '%s'", path.c_str());
  SETO_TRY(check_owner_alone(fd.get(), path.c_str()));
  Wiped content;
  SETO_ASSIGN(const std::size_t size, read_all(fd.get(), path.c_str(), content));
  if (size > kSecretFileLimit) {
    return failure(Code::invalid_argument, "the secret file '%s' is longer than %zu bytes: is it the right file?", path.c_str(),
                   kSecretFileLimit);
  }
  const std::string_view text = without_end_of_line({content.bytes.data(), size});
  if (text.empty()) return failure(Code::invalid_argument, "the secret file '%s' is empty", path.c_str());
  return of_passphrase(text);
}

bool Secret::none() const { return equal(*this, Secret()); }

Secret Secret::derive(std::string_view label, std::string_view context) const {
  std::string data(label);
  data += '\0';
  data += context;
  Secret derived;
  derived.bytes_ = hmac_sha256(bytes(), data);
  return derived;
}

Result<std::optional<Secret>> user_secret(const Config& config) {
  if (!config.secret_file.empty()) {
    SETO_ASSIGN(const Secret secret, Secret::of_file(config.secret_file));
    return std::optional<Secret>(secret);
  }
  if (config.secret.empty()) return std::optional<Secret>();
  SETO_ASSIGN(const Secret secret, Secret::of_passphrase(config.secret));
  return std::optional<Secret>(secret);
}

}  // namespace seto
