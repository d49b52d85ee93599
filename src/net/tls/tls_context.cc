#include "src/net/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/fork.h"
#include "src/net/tls_identity.h"
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace seto {
namespace {

// How much one call reads from a socket at most: four records.
constexpr std::size_t kReadBuffer = 65'536;

// 112 bits, for keys and signatures of certificates: no RSA below 2048 bits, no SHA-1. Stated, because each build of OpenSSL has
// a default of its own.
constexpr int kSecurityLevel = 2;

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

struct TlsContext {
  std::uint32_t generation = 0;
  const TlsContext* of_parent = nullptr;  // of the process that forked this one
  SSL_CTX* context = nullptr;
};

bool fill(TlsContext& made) {
  OSSL_LIB_CTX* const library = tls_library_of_process();
  if (library == nullptr) return false;
  SSL_CTX* const context = made.context = SSL_CTX_new_ex(library, nullptr, TLS_method());
  if (context == nullptr) return false;
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_security_level(context, kSecurityLevel);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadBuffer);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 && SSL_CTX_set_ciphersuites(context, cipher_suites()) == 1 &&
         SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1 && SSL_CTX_set_num_tickets(context, 0) == 1;
}

}  // namespace

// Those of threads that were not the first are freed. Without a lock, which a thread of a parent may hold for ever.
ssl_ctx_st* tls_context_of_process() {
  static std::atomic<const TlsContext*> present{nullptr};
  const std::uint32_t generation = fork_generation();
  const TlsContext* found = present.load(std::memory_order_acquire);
  if (found != nullptr && found->generation == generation) return found->context;
  auto made = std::make_unique<TlsContext>();
  made->generation = generation;
  made->of_parent = found;
  const bool filled = fill(*made);
  if (filled && present.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return made.release()->context;
  SSL_CTX_free(made->context);
  return filled ? found->context : nullptr;
}

std::string take_tls_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  std::string reason = text == nullptr ? "unknown reason" : text;
  ERR_clear_error();
  return reason;
}

}  // namespace seto
