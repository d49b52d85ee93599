#pragma once

#include <string>

struct ssl_ctx_st;

namespace seto {

// The context that all TLS sessions of this process have in common: TLS 1.3 alone, two suites, no tickets. Null after a failure
// of OpenSSL. Never freed; each forked child makes its own (tls_library_of_process).
[[nodiscard]] ssl_ctx_st* tls_context_of_process();

// The last error of OpenSSL in this thread, which is forgotten.
[[nodiscard]] std::string take_tls_error();

}  // namespace seto
