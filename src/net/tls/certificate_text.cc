#include "src/net/tls/certificate_text.h"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "src/net/tls_identity.h"

namespace seto {

std::string refused_certificate(x509_store_ctx_st* check) {
  const X509* const one = X509_STORE_CTX_get_current_cert(check);
  const int error = X509_STORE_CTX_get_error(check);
  const bool of_peer = X509_STORE_CTX_get_error_depth(check) == 0;
  if (one == nullptr) return std::string("the peer's certificate is not accepted: ") + X509_verify_cert_error_string(error);
  const std::string which =
      (of_peer ? "the peer's certificate (" : "the CA that signed the peer's certificate (") + subject_of(one) + ")";
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return which + " expired on " + last_day_of(one) +
             (of_peer ? ": renew SETO_TLS_CERTIFICATE there" : ": renew it, and SETO_TLS_CA on all hosts") +
             ", or check the clocks of both hosts";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return which + " is not valid before " + first_day_of(one) + ": check the clocks of both hosts";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return which + " is signed by " + issuer_of(one) +
             ", which SETO_TLS_CA of this host does not hold: give all hosts the CAs of all certificates";
    case X509_V_ERR_INVALID_PURPOSE:
      return which + " is not for this end of a connection: make it with extendedKeyUsage = serverAuth, clientAuth";
    default:
      return which + " is not accepted: " + X509_verify_cert_error_string(error);
  }
}

std::string certificate_refused_there(int alert, const x509_st* own) {
  const std::string ours = "the peer refused the certificate of this host (" + subject_of(own) + ", signed by " + issuer_of(own) +
                           ", valid until " + last_day_of(own) + "): ";
  switch (alert) {
    case SSL_AD_CERTIFICATE_EXPIRED:
      return ours + "it has expired, or is not valid yet: renew SETO_TLS_CERTIFICATE here, or check the clocks of both hosts";
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_DECRYPT_ERROR:
      return ours + "SETO_TLS_CA there does not hold that CA: give all hosts the CAs of all certificates";
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return ours + SSL_alert_desc_string_long(alert);
    default:
      return {};
  }
}

}  // namespace seto
