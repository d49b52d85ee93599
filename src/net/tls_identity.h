#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>

#include "src/base/config.h"
#include "src/base/fork.h"
#include "src/base/result.h"

struct evp_pkey_st;
struct ossl_lib_ctx_st;
struct stack_st_X509;
struct x509_st;
struct x509_store_st;

namespace seto {

// The library context of OpenSSL for TLS in this process, or null: no configuration file and no setting of the program changes
// what this library accepts. Nothing of it is ever freed, because a thread may still use it at exit. A forked child makes
// another, because a lock of its parent's may be held for ever there.
[[nodiscard]] ossl_lib_ctx_st* tls_library_of_process();

// Paths of PEM files: SETO_TLS_CERTIFICATE, SETO_TLS_KEY and SETO_TLS_CA. All three are set, or none is.
struct TlsFiles {
  std::string certificate;  // that of this host, then those of CAs between it and the CA that others know
  std::string key;
  std::string authorities;
  bool operator==(const TlsFiles&) const = default;
  [[nodiscard]] bool none() const { return certificate.empty() && key.empty() && authorities.empty(); }
};

// The content of the files when they were read: a key that belongs to the certificate, which callers and answerers may use.
class TlsCredentials final {
 public:
  static Result<std::shared_ptr<const TlsCredentials>> read(const TlsFiles& files);
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;
  ~TlsCredentials();

  // Ok if the certificate of this host is valid at that time.
  [[nodiscard]] Status valid_at(std::time_t when, const TlsFiles& files) const;
  [[nodiscard]] x509_st* certificate() const { return certificate_; }
  [[nodiscard]] stack_st_X509* chain() const { return chain_; }
  [[nodiscard]] evp_pkey_st* key() const { return key_; }
  [[nodiscard]] x509_store_st* authorities() const { return authorities_; }

 private:
  TlsCredentials() = default;
  [[nodiscard]] Status read_certificates(const std::string& path);
  [[nodiscard]] Status read_key(const TlsFiles& files);
  [[nodiscard]] Status read_authorities(const std::string& path);

  x509_st* certificate_ = nullptr;
  stack_st_X509* chain_ = nullptr;
  evp_pkey_st* key_ = nullptr;
  x509_store_st* authorities_ = nullptr;
};

// The certificate with which this process shows who it is, and the CAs of those that it accepts. Any thread. One for each set of
// files in a process, never destroyed.
class TlsIdentity final {
 public:
  // Fails if some files are missing or of no use now; the text says what to do. Null: no files are set.
  static Result<TlsIdentity*> of(const TlsFiles& files);
  explicit TlsIdentity(TlsFiles files) : files_(std::move(files)) {}
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;
  ~TlsIdentity() = default;

  // Looks at the files, and reads them again if they have changed. While what they hold is of no use, as between the replacement
  // of the certificate and that of the key, the former credentials stay; the first look that finds it so logs a warning.
  [[nodiscard]] Result<std::shared_ptr<const TlsCredentials>> credentials();
  [[nodiscard]] const TlsFiles& files() const { return files_; }

 private:
  // Differs once a file was replaced or changed.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    std::int64_t size = -1;
    std::array<std::int64_t, 4> times{};  // of its content and of its mode
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 3>;
  [[nodiscard]] static Stamp stamp_of(const std::string& path);

  const std::uint32_t generation_ = fork_generation();
  const TlsFiles files_;
  std::mutex mutex_;
  Stamps read_{};    // those of the credentials
  Stamps warned_{};  // those of files that were of no use
  std::shared_ptr<const TlsCredentials> credentials_;
};

// How a process uses TLS: which connections, and whether with certificates or with the job's key (no identity).
struct TlsChoice {
  TlsMode mode = TlsMode::sites;
  TlsIdentity* identity = nullptr;
  TlsChoice() = default;
  TlsChoice(TlsMode which) : mode(which) {}  // NOLINT(google-explicit-constructor): most connections have no certificates
  TlsChoice(TlsMode which, TlsIdentity* who) : mode(which), identity(who) {}
};

// For messages. What a peer sent is printable afterwards.
[[nodiscard]] std::string subject_of(const x509_st* certificate);
[[nodiscard]] std::string issuer_of(const x509_st* certificate);
[[nodiscard]] std::string first_day_of(const x509_st* certificate);
[[nodiscard]] std::string last_day_of(const x509_st* certificate);

}  // namespace seto
