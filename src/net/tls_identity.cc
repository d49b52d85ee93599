#include "src/net/tls_identity.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>
#include <vector>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/net/secret.h"

namespace seto {
namespace {

constexpr std::size_t kFileLimit = std::size_t{4} << 20;
constexpr std::size_t kNameLimit = 120;
constexpr int kLeastSecurityBits = 112;  // those of RSA with 2048 bits: TLS refuses less (tls_context.cc)

struct OfProcess {
  std::uint32_t generation = 0;
  const OfProcess* of_parent = nullptr;  // of the process that forked this one
  OSSL_LIB_CTX* library = nullptr;
  std::mutex mutex;
  std::vector<std::unique_ptr<TlsIdentity>> identities;
};

// That of this process, or null. Never freed, but for those of threads that were not the first; without a lock, which a thread of
// a parent may hold for ever.
OfProcess* of_process() {
  static std::atomic<OfProcess*> present{nullptr};
  const std::uint32_t generation = fork_generation();
  OfProcess* found = present.load(std::memory_order_acquire);
  if (found != nullptr && found->generation == generation) return found;
  keep_openssl_at_exit();
  auto made = std::make_unique<OfProcess>();
  made->generation = generation;
  made->of_parent = found;
  made->library = OSSL_LIB_CTX_new();
  if (made->library == nullptr) return nullptr;
  if (present.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return made.release();
  OSSL_LIB_CTX_free(made->library);
  return found;
}

// The bytes of a file, which are wiped afterwards: they may be a key.
struct Content {
  std::string bytes;
  Content() = default;
  Content(Content&&) = default;
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  Content& operator=(Content&&) = default;
  ~Content() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

enum class Readers : std::uint8_t { anyone, owner_alone };

Status check_kind(int fd, const char* setting, const std::string& path, Readers readers, std::size_t& size) {
  struct stat state {};
  if (fstat(fd, &state) != 0) return system_failure(Code::unavailable, "cannot read the mode of %s='%s'", setting, path.c_str());
  if (!S_ISREG(state.st_mode)) return failure(Code::invalid_argument, "%s='%s' is not a regular file", setting, path.c_str());
  if (readers == Readers::owner_alone && (state.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return failure(Code::invalid_argument,
                   "%s='%s' is readable or writable by users other than its owner (mode %03o): run chmod 600 on it", setting,
                   path.c_str(), static_cast<unsigned>(state.st_mode & 0777));
  size = static_cast<std::size_t>(state.st_size);
  if (size > kFileLimit)
    return failure(Code::invalid_argument, "%s='%s' is longer than %zu bytes: is it the right file?", setting, path.c_str(),
                   kFileLimit);
  return {};
}

Result<Content> read_file(const char* setting, const std::string& path, Readers readers) {
  // Without O_NONBLOCK the open of a named pipe would block until another process writes.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return system_failure(Code::invalid_argument, "cannot open %s='%s'", setting, path.c_str());
  std::size_t size = 0;
  SETO_TRY(check_kind(fd.get(), setting, path, readers, size));
  Content content;
  content.bytes.resize(size);
  for (std::size_t filled = 0; filled < size;) {
    const ssize_t got = ::read(fd.get(), content.bytes.data() + filled, size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(Code::unavailable, "cannot read %s='%s'", setting, path.c_str());
    if (got == 0) size = filled;
    filled += static_cast<std::size_t>(got);
  }
  content.bytes.resize(size);
  return content;
}

// Instead of a question at the terminal.
int no_passphrase(char* /*to*/, int /*most*/, int /*writes*/, void* /*pointer*/) { return -1; }

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
Bio bytes_of(const Content& content) {
  return {BIO_new_mem_buf(content.bytes.data(), static_cast<int>(content.bytes.size())), &BIO_free};
}

// The next certificate, which the calling code frees. Null at the end, and where something else follows.
X509* next_certificate(BIO* from) {
  X509* made = X509_new_ex(tls_library_of_process(), nullptr);
  if (made != nullptr && PEM_read_bio_X509(from, &made, no_passphrase, nullptr) != nullptr) return made;
  X509_free(made);
  return nullptr;
}

// Whether the last certificate was followed by the end, not by a damaged one.
bool at_end_of_certificates() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

std::string text_of(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return "?";
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, std::min(static_cast<std::size_t>(std::max(size, 0L)), kNameLimit)};
}

std::string text_of(const ASN1_TIME* when) {
  std::tm parts{};
  char text[40];
  if (ASN1_TIME_to_tm(when, &parts) != 1 || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) return "?";
  return text;
}

Status missing_of(const TlsFiles& files) {
  const auto state = [](const std::string& path) { return path.empty() ? "not set" : "set"; };
  return failure(Code::invalid_argument,
                 "TLS with certificates needs three files: SETO_TLS_CERTIFICATE is %s, SETO_TLS_KEY is %s and SETO_TLS_CA is %s: "
                 "set all of them, or none",
                 state(files.certificate), state(files.key), state(files.authorities));
}

}  // namespace

ossl_lib_ctx_st* tls_library_of_process() {
  OfProcess* const process = of_process();
  return process == nullptr ? nullptr : process->library;
}

Result<std::shared_ptr<const TlsCredentials>> TlsCredentials::read(const TlsFiles& files) {
  if (tls_library_of_process() == nullptr) return failure(Code::unavailable, "OpenSSL cannot be used");
  ERR_clear_error();
  std::shared_ptr<TlsCredentials> made(new TlsCredentials);
  Status done = made->read_certificates(files.certificate);
  if (done.ok()) done = made->read_authorities(files.authorities);
  if (done.ok()) done = made->read_key(files);
  ERR_clear_error();
  if (!done.ok()) return done;
  return std::shared_ptr<const TlsCredentials>(std::move(made));
}

Status TlsCredentials::read_certificates(const std::string& path) {
  SETO_ASSIGN(const Content content, read_file("SETO_TLS_CERTIFICATE", path, Readers::anyone));
  const Bio from = bytes_of(content);
  certificate_ = next_certificate(from.get());
  if (certificate_ == nullptr)
    return failure(Code::invalid_argument, "SETO_TLS_CERTIFICATE='%s' holds no certificate that can be read: it must be in PEM",
                   path.c_str());
  chain_ = sk_X509_new_null();
  while (X509* const next = next_certificate(from.get())) {
    if (sk_X509_push(chain_, next) <= 0) X509_free(next);
  }
  if (!at_end_of_certificates())
    return failure(Code::invalid_argument, "a further certificate in SETO_TLS_CERTIFICATE='%s' is damaged", path.c_str());
  if (X509_check_purpose(certificate_, X509_PURPOSE_SSL_CLIENT, 0) != 1 ||
      X509_check_purpose(certificate_, X509_PURPOSE_SSL_SERVER, 0) != 1)
    return failure(Code::invalid_argument,
                   "the certificate of SETO_TLS_CERTIFICATE='%s' is not for both ends of a connection: make it with "
                   "extendedKeyUsage = serverAuth, clientAuth",
                   path.c_str());
  return {};
}

Status TlsCredentials::read_key(const TlsFiles& files) {
  SETO_ASSIGN(const Content content, read_file("SETO_TLS_KEY", files.key, Readers::owner_alone));
  key_ = PEM_read_bio_PrivateKey_ex(bytes_of(content).get(), nullptr, no_passphrase, nullptr, tls_library_of_process(), nullptr);
  if (key_ == nullptr)
    return failure(Code::invalid_argument,
                   "SETO_TLS_KEY='%s' holds no private key that can be read: it must be in PEM, without a passphrase",
                   files.key.c_str());
  if (EVP_PKEY_get_security_bits(key_) < kLeastSecurityBits)
    return failure(Code::invalid_argument,
                   "the key of SETO_TLS_KEY='%s' is too short: use P-256, Ed25519, or RSA of 2048 bits or more",
                   files.key.c_str());
  if (X509_check_private_key(certificate_, key_) != 1)
    return failure(Code::invalid_argument,
                   "the key of SETO_TLS_KEY='%s' does not belong to the certificate of SETO_TLS_CERTIFICATE='%s'",
                   files.key.c_str(), files.certificate.c_str());
  return {};
}

Status TlsCredentials::read_authorities(const std::string& path) {
  SETO_ASSIGN(const Content content, read_file("SETO_TLS_CA", path, Readers::anyone));
  const Bio from = bytes_of(content);
  authorities_ = X509_STORE_new();
  // A CA between the host and the root is enough, if the file names it.
  if (authorities_ == nullptr || X509_STORE_set_flags(authorities_, X509_V_FLAG_PARTIAL_CHAIN) != 1)
    return failure(Code::unavailable, "OpenSSL cannot be used");
  std::size_t count = 0;
  while (X509* const next = next_certificate(from.get())) {
    if (X509_STORE_add_cert(authorities_, next) == 1) ++count;
    X509_free(next);
  }
  if (at_end_of_certificates() && count > 0) return {};
  return failure(Code::invalid_argument, "SETO_TLS_CA='%s' holds %s: it must be in PEM", path.c_str(),
                 count > 0 ? "a damaged certificate" : "no certificate that can be read");
}

TlsCredentials::~TlsCredentials() {
  X509_free(certificate_);
  sk_X509_pop_free(chain_, X509_free);
  EVP_PKEY_free(key_);
  X509_STORE_free(authorities_);
}

Status TlsCredentials::valid_at(std::time_t when, const TlsFiles& files) const {
  if (X509_cmp_time(X509_get0_notAfter(certificate_), &when) < 0)
    return failure(Code::invalid_argument,
                   "the certificate of this host expired on %s: renew SETO_TLS_CERTIFICATE='%s', or check the clock",
                   last_day_of(certificate_).c_str(), files.certificate.c_str());
  if (X509_cmp_time(X509_get0_notBefore(certificate_), &when) > 0)
    return failure(Code::invalid_argument,
                   "the certificate of this host (SETO_TLS_CERTIFICATE='%s') is not valid before %s: check the clock",
                   files.certificate.c_str(), first_day_of(certificate_).c_str());
  return {};
}

Result<TlsIdentity*> TlsIdentity::of(const TlsFiles& files) {
  if (files.none()) return nullptr;
  if (files.certificate.empty() || files.key.empty() || files.authorities.empty()) return missing_of(files);
  OfProcess* const process = of_process();
  if (process == nullptr) return failure(Code::unavailable, "OpenSSL cannot be used");
  const std::lock_guard lock(process->mutex);
  for (const auto& one : process->identities)
    if (one->files() == files) return one.get();
  auto made = std::make_unique<TlsIdentity>(files);
  SETO_TRY(made->credentials().status());
  process->identities.push_back(std::move(made));
  return process->identities.back().get();
}

TlsIdentity::Stamp TlsIdentity::stamp_of(const std::string& path) {
  struct stat state {};
  if (stat(path.c_str(), &state) != 0) return {};
  return {static_cast<std::uint64_t>(state.st_dev),
          static_cast<std::uint64_t>(state.st_ino),
          static_cast<std::int64_t>(state.st_size),
          {state.st_mtim.tv_sec, state.st_mtim.tv_nsec, state.st_ctim.tv_sec, state.st_ctim.tv_nsec}};
}

// The stamps are taken before the files are read: a file that changes meanwhile has another one at the next look.
Result<std::shared_ptr<const TlsCredentials>> TlsIdentity::credentials() {
  if (generation_ != fork_generation()) return used_in_forked_child();
  const std::lock_guard lock(mutex_);
  const Stamps now{stamp_of(files_.certificate), stamp_of(files_.key), stamp_of(files_.authorities)};
  if (credentials_ != nullptr && now == read_) return credentials_;
  auto read = TlsCredentials::read(files_);
  const Status usable = read.ok() ? read.value()->valid_at(std::time(nullptr), files_) : read.status();
  if (usable.ok()) {
    SETO_LOG(info, "the certificate of SETO_TLS_CERTIFICATE='%s', valid until %s, serves connections from now on",
             files_.certificate.c_str(), last_day_of(read.value()->certificate()).c_str());
    read_ = now;
    credentials_ = std::move(read).value();
    return credentials_;
  }
  if (credentials_ == nullptr) return usable;
  if (!(warned_ == now))
    SETO_LOG(warn, "%s; new connections use the certificate that was read before", std::string(usable.text()).c_str());
  warned_ = now;
  return credentials_;
}

std::string subject_of(const x509_st* certificate) { return text_of(X509_get_subject_name(certificate)); }
std::string issuer_of(const x509_st* certificate) { return text_of(X509_get_issuer_name(certificate)); }
std::string first_day_of(const x509_st* certificate) { return text_of(X509_get0_notBefore(certificate)); }
std::string last_day_of(const x509_st* certificate) { return text_of(X509_get0_notAfter(certificate)); }

}  // namespace seto
