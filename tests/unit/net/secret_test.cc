#include "src/net/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <new>
#include <string>

namespace seto {
namespace {

using ::testing::HasSubstr;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    text += two;
  }
  return text;
}

// A file that is removed with the test.
class SecretFile final {
 public:
  explicit SecretFile(const std::string& content, mode_t mode = 0600) {
    const int fd = mkstemp(path_.data());
    if (fd < 0 || fchmod(fd, mode) != 0 || close(fd) != 0) std::abort();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~SecretFile() { unlink(path_.c_str()); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "seto_secret_XXXXXX";
};

std::string failure_of(const std::string& path) {
  const auto secret = Secret::of_file(path);
  return secret.ok() ? "it was read" : std::string(secret.status().text());
}

// Test cases 1, 2 and 6 of RFC 4231.
TEST(Secret, HashIsTheOneOfTheStandard) {
  const auto text_of = [](std::string_view key, std::string_view data) {
    const Digest digest = hmac_sha256(key, data);
    return hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
  };
  EXPECT_EQ(text_of(std::string(20, '\x0b'), "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(text_of("Jefe", "what do ya want for nothing?"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(text_of(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Secret, DerivesByLabelAndContext) {
  const Secret key = Secret::of_text("key");
  const Secret child = key.derive("label", "context");
  const Digest expected = hmac_sha256(key.bytes(), std::string_view("label\0context", 13));
  EXPECT_EQ(hex(child.bytes()), hex({reinterpret_cast<const char*>(expected.data()), expected.size()}));
  EXPECT_FALSE(equal(child, key.derive("label", "contexs")));
  EXPECT_FALSE(equal(child, key.derive("labelcontext")));
  EXPECT_FALSE(equal(child, key));
  EXPECT_TRUE(equal(child, Secret::of_text("key").derive("label", "context")));
}

TEST(Secret, RandomSecretsDifferAndAnEmptyOneIsEmpty) {
  EXPECT_FALSE(equal(Secret::random(), Secret::random()));
  EXPECT_TRUE(Secret().none());
  EXPECT_FALSE(Secret::random().none());
  EXPECT_FALSE(Secret::of_text("").none());
}

TEST(Secret, AMovedFromSecretIsEmptyAndACopyStays) {
  Secret first = Secret::random();
  const Secret copy = first;
  Secret second = std::move(first);
  EXPECT_TRUE(first.none());  // NOLINT: what a move leaves is part of the contract
  EXPECT_TRUE(equal(second, copy));
  first = std::move(second);
  EXPECT_TRUE(second.none());  // NOLINT
  EXPECT_TRUE(equal(first, copy));
}

TEST(Secret, WipesItsBytesWhenDestroyed) {
  alignas(Secret) std::array<char, sizeof(Secret)> room{};
  auto* const secret = new (room.data()) Secret(Secret::random());
  EXPECT_FALSE(secret->none());
  secret->~Secret();
  const volatile char* const bytes = room.data();
  for (std::size_t index = 0; index < room.size(); ++index) EXPECT_EQ(bytes[index], 0);
}

// scrypt with 16 MiB. A dictionary that is tried with one hash for each word finds nothing.
TEST(Secret, APassphraseIsExpensiveToGuess) {
  const Secret secret = Secret::of_passphrase("open sesame").value();
  EXPECT_EQ(hex(secret.bytes()), "d3c6e406b7a72fc20b62ed31c7ada7b6e21d1c82182efcbad020c03f8b16a9ed");
  EXPECT_FALSE(equal(secret, Secret::of_text("open sesame")));
  EXPECT_FALSE(equal(secret, Secret::of_passphrase("open sesamf").value()));
}

TEST(Secret, OfTheUserIsAPassphraseOrAFile) {
  Config config;
  EXPECT_FALSE(user_secret(config).value().has_value());
  config.secret = "open sesame";
  const Secret expected = Secret::of_passphrase("open sesame").value();
  EXPECT_TRUE(equal(user_secret(config).value().value(), expected));
  const SecretFile file("open barley");
  config.secret_file = file.path();
  EXPECT_TRUE(equal(user_secret(config).value().value(), Secret::of_passphrase("open barley").value())) << "the file comes first";
}

TEST(Secret, TheFileIsReadWithoutItsNewline) {
  const Secret expected = Secret::of_passphrase("open sesame").value();
  for (const char* content : {"open sesame", "open sesame\n", "open sesame\r\n"}) {
    const SecretFile file(content);
    const auto secret = Secret::of_file(file.path());
    ASSERT_TRUE(secret.ok()) << secret.status().text();
    EXPECT_TRUE(equal(secret.value(), expected)) << content;
  }
  const SecretFile two_lines("open sesame\n\n");
  EXPECT_FALSE(equal(Secret::of_file(two_lines.path()).value(), expected));
  const SecretFile largest(std::string(kSecretFileLimit, 'x'));
  EXPECT_TRUE(Secret::of_file(largest.path()).ok());
}

TEST(Secret, AnUnusableFileIsNamedWithTheRemedy) {
  const std::string missing = ::testing::TempDir() + "seto_no_such_file";
  EXPECT_THAT(failure_of(missing), HasSubstr("'" + missing + "' does not exist here: make it once"));
  const SecretFile empty("");
  EXPECT_THAT(failure_of(empty.path()), HasSubstr("is empty"));
  const SecretFile blank("\n");
  EXPECT_THAT(failure_of(blank.path()), HasSubstr("is empty"));
  const SecretFile large(std::string(kSecretFileLimit + 1, 'x'));
  EXPECT_THAT(failure_of(large.path()), HasSubstr("longer than 4096 bytes"));
  EXPECT_THAT(failure_of(::testing::TempDir()), HasSubstr("is not a regular file"));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0777U}) {
    const SecretFile open_to_others("secret", mode);
    EXPECT_THAT(failure_of(open_to_others.path()), HasSubstr("readable or writable by users other than its owner"))
        << std::oct << mode;
    EXPECT_THAT(failure_of(open_to_others.path()), HasSubstr("chmod 600"));
  }
}

TEST(Secret, APipeInsteadOfAFileIsRejectedAtOnce) {
  const std::string path = ::testing::TempDir() + "seto_secret_pipe_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(failure_of(path), HasSubstr("is not a regular file"));
  unlink(path.c_str());
}

}  // namespace
}  // namespace seto
