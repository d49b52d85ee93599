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
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace seto {
namespace {

constexpr std::string_view kIdentity = "seto";
constexpr std::string_view kKeyLabel = "seto tls key";
constexpr std::string_view kExporterLabel = "EXPORTER-seto-channel";
constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
// Parts below this size are copied together into one record.
constexpr std::size_t kSmallPart = 4096;
// How much one call reads from a socket at most: four records.
constexpr std::size_t kReadBuffer = 65'536;

bool has_aes_instructions() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("aes") != 0;
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return false;
#endif
}

// Without AES instructions ChaCha20 is several times faster, and no slower than AES by timing tells the key. Both suites use
// SHA-256, so one key serves either.
const char* cipher_suites() {
  return has_aes_instructions() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
}

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
};

namespace {

struct TlsContext {
  std::uint32_t generation = 0;
  const TlsContext* of_parent = nullptr;  // of the process that forked this one
  OSSL_LIB_CTX* library = nullptr;
  SSL_CTX* context = nullptr;
  BIO_METHOD* socket = nullptr;
};

// A library context of its own: no configuration file and no setting of the program changes what this library accepts, and
// nothing of it is freed at exit while a thread may still use it.
bool fill(TlsContext& made) {
  OSSL_LIB_CTX* const library = made.library = OSSL_LIB_CTX_new();
  if (library == nullptr) return false;
  SSL_CTX* const context = made.context = SSL_CTX_new_ex(library, nullptr, TLS_method());
  BIO_METHOD* const socket = made.socket = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "seto socket");
  if (context == nullptr || socket == nullptr) return false;
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_use_session_callback(context, TlsSocket::use_session);
  SSL_CTX_set_psk_find_session_callback(context, TlsSocket::find_session);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadBuffer);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 && SSL_CTX_set_ciphersuites(context, cipher_suites()) == 1 &&
         SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1 && SSL_CTX_set_num_tickets(context, 0) == 1 &&
         BIO_meth_set_read(socket, TlsSocket::read) == 1 && BIO_meth_set_write(socket, TlsSocket::write) == 1 &&
         BIO_meth_set_ctrl(socket, TlsSocket::control) == 1;
}

// That of this process, or null. A forked child makes its own, because a lock of its parent's may be held for ever there. Never
// freed, but for those of threads that were not the first; without a lock, for the same reason.
const TlsContext* context_of_process() {
  static std::atomic<const TlsContext*> present{nullptr};
  const std::uint32_t generation = fork_generation();
  const TlsContext* found = present.load(std::memory_order_acquire);
  if (found != nullptr && found->generation == generation) return found;
  auto made = std::make_unique<TlsContext>();
  made->generation = generation;
  made->of_parent = found;
  const bool filled = fill(*made);
  if (filled && present.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return made.release();
  SSL_CTX_free(made->context);
  BIO_meth_free(made->socket);
  OSSL_LIB_CTX_free(made->library);
  return filled ? found : nullptr;
}

std::string reason_of_failure() {
  const unsigned long code = ERR_peek_last_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  std::string reason = text == nullptr ? "unknown reason" : text;
  ERR_clear_error();
  return reason;
}

}  // namespace

Result<std::unique_ptr<TlsSession>> TlsSession::create(int fd, Role role, const Secret& key, const Options& options) {
  keep_openssl_at_exit();
  ERR_clear_error();
  const TlsContext* const context = context_of_process();
  if (context == nullptr) return failure(Code::unavailable, "OpenSSL cannot be used: %s", reason_of_failure().c_str());
  std::unique_ptr<TlsSession> session(new TlsSession(fd, role, key.derive(kKeyLabel), options));
  session->ssl_ = SSL_new(context->context);
  BIO* const bio = session->ssl_ == nullptr ? nullptr : BIO_new(context->socket);
  if (bio == nullptr) return failure(Code::unavailable, "OpenSSL cannot be used: %s", reason_of_failure().c_str());
  BIO_set_data(bio, session.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(session->ssl_, bio, bio);
  SSL_set_app_data(session->ssl_, session.get());
  if (role == Role::caller) {
    SSL_set_connect_state(session->ssl_);
    SSL_set_verify(session->ssl_, SSL_VERIFY_PEER, nullptr);  // no certificate is trusted in place of the key
  } else {
    SSL_set_accept_state(session->ssl_);
  }
  return session;
}

// In a forked child a lock inside OpenSSL may be held for ever.
TlsSession::~TlsSession() {
  if (generation_ != fork_generation()) return;
  ERR_clear_error();
  SSL_free(ssl_);
  ERR_clear_error();
}

Status TlsSession::fail(const char* what) {
  if (why_.empty()) why_ = std::string(what) + ": " + reason_of_failure();
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
    if (eof_ && receive_error_ == 0) why_ = "the peer closed the connection during the TLS handshake";
    if (receive_error_ != 0) why_ = std::string("the TLS handshake failed: ") + std::strerror(receive_error_);
    failed = fail("the TLS handshake failed, as it does when the two ends have different secrets");
  }
  const bool sent = flush() || errno == EAGAIN;  // also the alert that tells the peer
  if (!failed.ok()) return failed;
  if (!sent) return failure(Code::remote_error, "the TLS handshake failed: %s", std::strerror(send_error_));
  if (waits) return false;
  if (SSL_session_reused(ssl_) != 1 || SSL_version(ssl_) != TLS1_3_VERSION) return fail("TLS without the key of the job");
  done_ = true;
  return true;
}

Result<Secret> TlsSession::channel_binding() const {
  SETO_CHECK(done_);
  std::array<std::uint8_t, Secret::kSize> bytes{};
  const int exported =
      SSL_export_keying_material(ssl_, bytes.data(), bytes.size(), kExporterLabel.data(), kExporterLabel.size(), nullptr, 0, 0);
  if (exported != 1) return failure(Code::internal, "OpenSSL exports no key: %s", reason_of_failure().c_str());
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
    if (eof_ || (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0) {
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
    static_cast<void>(fail("the connection carries data that the peer has not sent"));
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
