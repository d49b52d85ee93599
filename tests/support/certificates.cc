#include "tests/support/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace seto::testing {
namespace {

constexpr long kSecondsOfDay = 86'400;

void require(bool true_here) {
  if (!true_here) std::abort();
}

template <class Write>
std::string pem_of(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  require(bio != nullptr && write(bio) == 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<std::size_t>(std::max(size, 0L)));
  BIO_free(bio);
  return text;
}

void extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  require(made != nullptr && X509_add_ext(certificate, made, -1) == 1);
  X509_EXTENSION_free(made);
}

EVP_PKEY* new_key(const std::string& kind) {
  EVP_PKEY* key = nullptr;
  if (kind == "ED25519") {
    key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  } else if (kind.starts_with("RSA-")) {
    key = EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", static_cast<std::size_t>(std::stoul(kind.substr(4))));
  } else {
    key = EVP_EC_gen(kind.c_str());
  }
  require(key != nullptr);
  return key;
}

// Unsigned; its issuer is still missing.
X509* begin(const CertificateTerms& terms, EVP_PKEY* key) {
  static std::atomic<long> number{1};
  X509* const made = X509_new();
  require(made != nullptr && X509_set_version(made, 2) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(made), number++);
  X509_gmtime_adj(X509_getm_notBefore(made), terms.first_day * kSecondsOfDay);
  X509_gmtime_adj(X509_getm_notAfter(made), terms.last_day * kSecondsOfDay);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(terms.name.c_str()), -1, -1, 0);
  require(X509_set_pubkey(made, key) == 1);
  return made;
}

// Frees both.
Issued take_pem(X509* certificate, EVP_PKEY* key) {
  Issued issued{pem_of([&](BIO* to) { return PEM_write_bio_X509(to, certificate); }),
                pem_of([&](BIO* to) { return PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr); })};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

}  // namespace

Issued self_signed(const CertificateTerms& terms) {
  EVP_PKEY* const key = new_key(terms.key);
  X509* const made = begin(terms, key);
  X509_set_issuer_name(made, X509_get_subject_name(made));
  extend(made, made, NID_ext_key_usage, terms.usage);
  require(X509_sign(made, key, EVP_sha256()) > 0);
  return take_pem(made, key);
}

CertificateAuthority::CertificateAuthority(const std::string& name) : CertificateAuthority(name, nullptr, true) {}

CertificateAuthority::CertificateAuthority(const std::string& name, const CertificateAuthority* above, bool may_sign)
    : key_(new_key("P-256")) {
  certificate_ = begin({name, -10, 3'650, "", ""}, key_);
  X509* const issuer = above == nullptr ? certificate_ : above->certificate_;
  X509_set_issuer_name(certificate_, X509_get_subject_name(issuer));
  extend(certificate_, issuer, NID_basic_constraints, may_sign ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (may_sign) extend(certificate_, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
  require(X509_sign(certificate_, above == nullptr ? key_ : above->key_, EVP_sha256()) > 0);
}

CertificateAuthority::~CertificateAuthority() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

std::unique_ptr<CertificateAuthority> CertificateAuthority::below(const std::string& name, bool may_sign) const {
  return std::unique_ptr<CertificateAuthority>(new CertificateAuthority(name, this, may_sign));
}

Issued CertificateAuthority::issue(const CertificateTerms& terms) const {
  EVP_PKEY* const key = new_key(terms.key);
  X509* const made = begin(terms, key);
  X509_set_issuer_name(made, X509_get_subject_name(certificate_));
  extend(made, certificate_, NID_basic_constraints, "CA:FALSE");
  extend(made, certificate_, NID_ext_key_usage, terms.usage);
  require(X509_sign(made, key_, EVP_sha256()) > 0);
  return take_pem(made, key);
}

std::string CertificateAuthority::pem() const {
  return pem_of([&](BIO* to) { return PEM_write_bio_X509(to, certificate_); });
}

}  // namespace seto::testing
