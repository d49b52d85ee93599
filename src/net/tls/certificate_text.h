#pragma once

#include <string>

struct x509_st;
struct x509_store_ctx_st;

namespace seto {

// Tells why the check of a peer's certificate has failed, and what to do.
[[nodiscard]] std::string refused_certificate(x509_store_ctx_st* check);

// Tells what the peer's alert says of the certificate of this host. Empty: the alert is about something else.
[[nodiscard]] std::string certificate_refused_there(int alert, const x509_st* own);

}  // namespace seto
