#include "src/net/tls/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/check.h"
#include "src/net/tls/certificate_text.h"
#include "src/net/tls/tls_context.h"

namespace seto {
namespace {

constexpr std::string_view kIdentity = "seto";
constexpr std::string_view kKeyLabel = "seto tls key";
constexpr std::string_view kExporterLabel = "EXPORTER-seto-channel";
constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
// Parts below this size are copied together into one record.
constexpr std::size_t kSmallPart = 4096;

// The error is an alert that the peer has sent.
bool is_alert(unsigned long code) { return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET; }

TlsSession* session_of(const SSL* ssl) { return static_cast<TlsSession*>(SSL_get_app_data(ssl)); }

}  // namespace

// The functions that OpenSSL calls.
struct TlsSocket {
  static int read(BIO* bio, char* to, int most) {
    TlsSession& session = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (session.hold_input_ || (session.got_some_ && session.read_short_)) {
      BIO_set_retry_read(bio);
      return -1;
    }
    if (!session.early_.empty()) {
      const std::size_t size = std::min(session.early_.size(), static_cast<std::size_t>(most));
      std::memcpy(to, session.early_.data(), size);
      session.early_.erase(0, size);
      return static_cast<int>(size);
    }
    ssize_t got = 0;
    do {
      got = recv(session.fd_, to, static_cast<std::size_t>(most), MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
      BIO_set_retry_read(bio);
      return -1;
    }
    if (got < 0) session.receive_error_ = errno;
    if (got <= 0) {
      session.eof_ = true;
      return got < 0 ? -1 : 0;
    }
    session.read_short_ = got < most;
    if (!session.done_) {
      session.handshake_bytes_ += static_cast<std::size_t>(got);
      if (session.handshake_bytes_ > TlsSession::kHandshakeLimit) {
        session.why_ = "the peer's TLS handshake is too long";
        return -1;
      }
    }
    return static_cast<int>(got);
  }

  // Sends nothing: records are sent together, by flush().
  static int write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    static_cast<TlsSession*>(BIO_get_data(bio))->out_.append(bytes, static_cast<std::size_t>(size));
    return size;
  }

  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  // OpenSSL frees the result. Null after a failure.
  static SSL_SESSION* new_session(SSL* ssl) {
    static constexpr unsigned char kSuite[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256; only its hash counts
    const SSL_CIPHER* const suite = SSL_CIPHER_find(ssl, kSuite);
    SSL_SESSION* const made = SSL_SESSION_new();
    const std::string_view key = session_of(ssl)->key_.bytes();
    if (made != nullptr && suite != nullptr &&
        SSL_SESSION_set1_master_key(made, reinterpret_cast<const unsigned char*>(key.data()), key.size()) == 1 &&
        SSL_SESSION_set_cipher(made, suite) == 1 && SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) == 1)
      return made;
    SSL_SESSION_free(made);
    return nullptr;
  }

  // The caller's key. A second call, after a retry request, gives the hash; both suites have the same.
  static int use_session(SSL* ssl, const EVP_MD* /*hash*/, const unsigned char** identity, std::size_t* size,
                         SSL_SESSION** session) {
    *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
    *size = kIdentity.size();
    *session = new_session(ssl);
    return *session != nullptr ? 1 : 0;
  }

  // The answerer's key.
  static int find_session(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
    *session = nullptr;
    const std::string_view named(reinterpret_cast<const char*>(identity), size);
    if (named != kIdentity) return 1;  // no such key: the handshake fails, as there is no certificate either
    *session = new_session(ssl);
    return *session != nullptr ? 1 : 0;
  }

  // Keeps the reason of the first failure. The verdict is OpenSSL's.
  static int check_certificate(int accepted, X509_STORE_CTX* check) {
    const auto* const ssl = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
    std::string& why = session_of(ssl)->why_;
    if (accepted != 1 && why.empty()) why = refused_certificate(check);
    return accepted;
  }
};

namespace {

// One object for all sessions, never freed; those of threads that were not the first are. OpenSSL takes no lock of it, so that it
// also serves in forked children, and none is taken here, for a thread of a parent may hold it for ever.
const BIO_METHOD* socket_method() {
  static std::atomic<BIO_METHOD*> present{nullptr};
  BIO_METHOD* found = present.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "seto socket");
  if (made == nullptr) return nullptr;
  BIO_meth_set_read(made, TlsSocket::read);
  BIO_meth_set_write(made, TlsSocket::write);
  BIO_meth_set_ctrl(made, TlsSocket::control);
  if (present.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
  BIO_meth_free(made);
  return found;
}

}  // namespace

Result<std::unique_ptr<TlsSession>> TlsSession::create(int fd, Role role, const TlsTrust& trust, const Options& options) {
  keep_openssl_at_exit();
  ERR_clear_error();
  SSL_CTX* const context = tls_context_of_process();
  const BIO_METHOD* const socket = socket_method();
  if (context == nullptr || socket == nullptr)
    return failure(Code::unavailable, "OpenSSL cannot be used: %s", take_tls_error().c_str());
  std::unique_ptr<TlsSession> session(new TlsSession(fd, role, trust.key.derive(kKeyLabel), options));
  session->ssl_ = SSL_new(context);
  BIO* const bio = session->ssl_ == nullptr ? nullptr : BIO_new(socket);
  if (bio == nullptr) return failure(Code::unavailable, "OpenSSL cannot be used: %s", take_tls_error().c_str());
  BIO_set_data(bio, session.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(session->ssl_, bio, bio);
  SSL_set_app_data(session->ssl_, session.get());
  if (role == Role::caller)
    SSL_set_connect_state(session->ssl_);
  else
    SSL_set_accept_state(session->ssl_);
  SETO_TRY(trust.identity == nullptr ? session->use_key() : session->use_certificates(*trust.identity));
  return session;
}

Status TlsSession::use_key() {
  SSL_set_psk_use_session_callback(ssl_, TlsSocket::use_session);
  SSL_set_psk_find_session_callback(ssl_, TlsSocket::find_session);
  if (role_ == Role::caller) SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);  // no certificate is trusted in place of the key
  return {};
}

Status TlsSession::use_certificates(TlsIdentity& identity) {
  certificates_ = true;
  SETO_ASSIGN(const auto credentials, identity.credentials());
  SSL_set_verify(ssl_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, TlsSocket::check_certificate);
  if (options_.when != 0) X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl_), options_.when);
  if (SSL_use_certificate(ssl_, credentials->certificate()) == 1 && SSL_use_PrivateKey(ssl_, credentials->key()) == 1 &&
      SSL_set1_chain(ssl_, credentials->chain()) == 1 && SSL_set1_verify_cert_store(ssl_, credentials->authorities()) == 1)
    return {};
  return failure(Code::invalid_argument, "the certificate of SETO_TLS_CERTIFICATE='%s' cannot be used: %s",
                 identity.files().certificate.c_str(), take_tls_error().c_str());
}

bool TlsSession::peer_is_proved() const {
  if (SSL_version(ssl_) != TLS1_3_VERSION) return false;
  if (!certificates_) return SSL_session_reused(ssl_) == 1;
  return SSL_session_reused(ssl_) == 0 && SSL_get0_peer_certificate(ssl_) != nullptr && SSL_get_verify_result(ssl_) == X509_V_OK;
}

// In a forked child a lock inside OpenSSL may be held for ever.
TlsSession::~TlsSession() {
  if (generation_ != fork_generation()) return;
  ERR_clear_error();
  SSL_free(ssl_);
  ERR_clear_error();
}

Status TlsSession::fail(const char* what) {
  const unsigned long code = ERR_peek_last_error();
  if (why_.empty() && certificates_ && is_alert(code))
    why_ = certificate_refused_there(ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET, SSL_get_certificate(ssl_));
  if (why_.empty()) why_ = std::string(what) + ": " + take_tls_error();
  ERR_clear_error();
  return failure(Code::remote_error, "%s", why_.c_str());
}

Status TlsSession::start() {
  SETO_CHECK(role_ == Role::caller && handshake_bytes_ == 0);
  hold_input_ = true;
  auto begun = advance();
  hold_input_ = false;
  return begun.status();
}

Result<bool> TlsSession::advance() {
  SETO_CHECK(generation_ == fork_generation());
  if (done_) return true;
  ERR_clear_error();
  const int answer = SSL_do_handshake(ssl_);
  const bool waits = answer != 1 && SSL_want_read(ssl_) && ERR_peek_error() == 0 && !eof_ && why_.empty();
  Status failed;
  if (answer != 1 && !waits) {
    if (eof_ && receive_error_ == 0 && why_.empty()) why_ = "the peer closed the connection during the TLS handshake";
    if (receive_error_ != 0) why_ = std::string("the TLS handshake failed: ") + std::strerror(receive_error_);
    failed = fail(certificates_ ? "the TLS handshake failed"
                                : "the TLS handshake failed, as it does when the two ends have different secrets");
  }
  const bool sent = flush() || errno == EAGAIN;  // also the alert that tells the peer
  if (!failed.ok()) return failed;
  if (!sent) return failure(Code::remote_error, "the TLS handshake failed: %s", std::strerror(send_error_));
  if (waits) return false;
  if (!peer_is_proved()) return fail(certificates_ ? "TLS without a certificate" : "TLS without the key of the job");
  done_ = true;
  return true;
}

Result<Secret> TlsSession::channel_binding() const {
  SETO_CHECK(done_);
  std::array<std::uint8_t, Secret::kSize> bytes{};
  const int exported =
      SSL_export_keying_material(ssl_, bytes.data(), bytes.size(), kExporterLabel.data(), kExporterLabel.size(), nullptr, 0, 0);
  if (exported != 1) return failure(Code::internal, "OpenSSL exports no key: %s", take_tls_error().c_str());
  return Secret(bytes);
}

ssize_t TlsSession::receive(std::span<const iovec> parts) {
  SETO_CHECK(done_ && generation_ == fork_generation());
  got_some_ = read_short_ = false;
  dry_ = false;
  ssize_t total = 0;
  for (const iovec& part : parts) {
    const ssize_t got = receive_part(part);
    if (got < 0 && total == 0) return got;
    total += std::max<ssize_t>(got, 0);
    if (got < static_cast<ssize_t>(part.iov_len)) break;
  }
  if (unsent() > 0) static_cast<void>(flush());  // the answer to a message of TLS itself
  return total;
}

ssize_t TlsSession::receive_held(std::span<const iovec> parts) {
  hold_input_ = true;
  const ssize_t got = receive(parts);
  hold_input_ = false;
  return got;
}

// Fills the part, unless the socket has no more for now.
ssize_t TlsSession::receive_part(const iovec& part) {
  ssize_t total = 0;
  while (total < static_cast<ssize_t>(part.iov_len)) {
    if (!why_.empty()) break;
    ERR_clear_error();
    std::size_t got = 0;
    char* const to = static_cast<char*>(part.iov_base) + total;
    if (SSL_read_ex(ssl_, to, part.iov_len - static_cast<std::size_t>(total), &got) == 1) {
      got_some_ = true;
      total += static_cast<ssize_t>(got);
      continue;
    }
    // An alert of the peer ends the connection too, and leaves an error.
    if (eof_ || ((SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0 && ERR_peek_error() == 0)) {
      dry_ = true;
      ERR_clear_error();
      if (total > 0 || receive_error_ == 0) return total;
      errno = receive_error_;
      return -1;
    }
    if (SSL_want_read(ssl_) && ERR_peek_error() == 0) {
      dry_ = true;
      if (total > 0) return total;
      errno = EAGAIN;
      return -1;
    }
    static_cast<void>(
        fail(is_alert(ERR_peek_last_error()) ? "the peer ended TLS" : "the connection carries data that the peer has not sent"));
  }
  if (total > 0) return total;
  static_cast<void>(flush());
  dry_ = true;
  errno = EBADMSG;
  return -1;
}

bool TlsSession::renew_key() {
  if (++records_ <= options_.records_of_key) return true;
  records_ = 1;
  return SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
}

bool TlsSession::encrypt(const void* bytes, std::size_t size) {
  ERR_clear_error();
  std::size_t taken = 0;
  if (renew_key() && SSL_write_ex(ssl_, bytes, size, &taken) == 1 && taken == size) return true;
  static_cast<void>(fail("TLS cannot encrypt"));
  send_error_ = EBADMSG;
  return false;
}

// Stops only where the socket has no room, as a socket does: its owner then waits for room.
ssize_t TlsSession::send(std::span<const iovec> parts) {
  SETO_CHECK(done_ && generation_ == fork_generation());
  if (!flush() && (errno != EAGAIN || unsent() >= kMostUnsent)) return -1;
  std::array<char, kRecord> small;
  std::size_t filled = 0;
  ssize_t total = 0;
  bool room = true;
  for (const iovec& part : parts) {
    const char* from = static_cast<const char*>(part.iov_base);
    std::size_t left = part.iov_len;
    while (left > 0 && (room = unsent() < kMostUnsent || flush())) {
      const bool gathers = filled > 0 || left < kSmallPart;
      const std::size_t size = std::min(left, kRecord - filled);
      if (gathers) std::memcpy(small.data() + filled, from, size);
      if (gathers) filled += size;
      if (!gathers && !encrypt(from, size)) return -1;
      if (filled == kRecord && !encrypt(small.data(), std::exchange(filled, 0))) return -1;
      from += size;
      left -= size;
      total += static_cast<ssize_t>(size);
    }
    if (!room) break;
  }
  if (filled > 0 && !encrypt(small.data(), filled)) return -1;
  if (!flush() && errno != EAGAIN) return -1;
  return total;
}

// An error stays: the bytes that were accepted cannot be taken back.
bool TlsSession::flush() {
  while (send_error_ == 0 && unsent() > 0) {
    const ssize_t sent = ::send(fd_, out_.data() + out_begin_, unsent(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0) send_error_ = errno;
    if (sent > 0) out_begin_ += static_cast<std::size_t>(sent);
  }
  if (unsent() == 0) {
    out_.clear();
    out_begin_ = 0;
  }
  if (send_error_ == 0) return true;
  errno = send_error_;
  return false;
}

const char* TlsSession::cipher() const { return SSL_get_cipher_name(ssl_); }

}  // namespace seto
