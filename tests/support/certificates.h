#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace seto::testing {

// A certificate and its key as PEM.
struct Issued {
  std::string certificate;
  std::string key;
};

struct CertificateTerms {
  std::string name = "host";
  long first_day = -1;  // from now
  long last_day = 365;
  std::string usage = "serverAuth,clientAuth";
  std::string key = "P-256";  // or another curve, ED25519, RSA-2048, RSA-1024
};

// A certificate that its own key has signed.
Issued self_signed(const CertificateTerms& terms = {});

// A CA that lives as long as a test. Its key is made when it is.
class CertificateAuthority final {
 public:
  explicit CertificateAuthority(const std::string& name = "CA of a test");
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;
  ~CertificateAuthority();

  [[nodiscard]] Issued issue(const CertificateTerms& terms = {}) const;
  // A CA that this one has signed. It must not outlive this one. `may_sign`: its certificate says that it is a CA.
  [[nodiscard]] std::unique_ptr<CertificateAuthority> below(const std::string& name, bool may_sign = true) const;
  // Its own certificate.
  [[nodiscard]] std::string pem() const;

 private:
  CertificateAuthority(const std::string& name, const CertificateAuthority* above, bool may_sign);
  evp_pkey_st* key_ = nullptr;
  x509_st* certificate_ = nullptr;
};

// A folder for the files of one host, which is removed with the test.
class HostFiles final {
 public:
  HostFiles(const Issued& issued, const std::string& authorities) {
    std::string pattern = (std::filesystem::temp_directory_path() / "seto_tls_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    put_certificate(issued.certificate);
    put_key(issued.key);
    put_authorities(authorities);
  }
  explicit HostFiles(const CertificateAuthority& authority) : HostFiles(authority.issue(), authority.pem()) {}
  ~HostFiles() { std::filesystem::remove_all(folder_); }
  HostFiles(const HostFiles&) = delete;
  HostFiles& operator=(const HostFiles&) = delete;

  // Each replaces the file at once, as programs that renew certificates do.
  void put_certificate(const std::string& content) const { put(certificate(), content); }
  void put_key(const std::string& content) const { put(key(), content); }
  void put_authorities(const std::string& content) const { put(authorities(), content); }

  [[nodiscard]] std::string certificate() const { return (folder_ / "certificate.pem").string(); }
  [[nodiscard]] std::string key() const { return (folder_ / "key.pem").string(); }
  [[nodiscard]] std::string authorities() const { return (folder_ / "ca.pem").string(); }

 private:
  static void put(const std::string& path, const std::string& content) {
    const std::string before = path + ".new";
    std::ofstream(before, std::ios::binary) << content;
    std::filesystem::permissions(before, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::filesystem::rename(before, path);
  }
  std::filesystem::path folder_;
};

}  // namespace seto::testing
