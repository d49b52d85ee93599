#include "src/net/auth_handshake.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/check.h"

namespace seto {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are sent in the byte order of memory");

constexpr std::uint32_t kMagic = 0x6d0c7e50;
constexpr std::size_t kNonceSize = 32;
constexpr std::size_t kVerdictBodySize = kVerdictSize - kProofSize;
constexpr std::size_t kNothingMore = 0;

enum Kind : std::uint32_t { kHello = 1, kChallenge, kNotice, kVerdict };
enum Notice : std::uint32_t {
  kNoticeOtherProtocol = 1,
  kNoticeOtherKey,
  kNoticeNoKeyThere,
  kNoticeNoKeyHere,
  kNoticeCertificates
};
enum Diagnosis : std::uint32_t { kAccepted = 0, kRefused, kRefusedAborted };

constexpr std::string_view kKeyLabel = "seto membership";
constexpr std::string_view kKeyIdLabel = "seto key id";
constexpr std::string_view kHelloIdLabel = "seto key of a hello";
constexpr std::string_view kSessionLabel = "seto session";
constexpr std::string_view kAnswererLabel = "answerer";
constexpr std::string_view kCallerLabel = "caller";
constexpr std::string_view kVerdictLabel = "verdict";
constexpr std::string_view kTlsLabel = "tls";
constexpr std::string_view kBindingLabel = "channel binding";
// The last number of a hello.
constexpr std::uint32_t kEncryptedBit = 1;
constexpr std::uint32_t kCertificatesBit = 2;
constexpr std::uint32_t kUnknownBits = 0xfc;
constexpr unsigned kModeShift = 8;

template <class T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(std::string_view& bytes) {
  T value{};
  SETO_CHECK(bytes.size() >= sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

void put_padded(std::string& bytes, std::string_view text, std::size_t size) {
  const std::size_t length = std::min(text.size(), size);
  bytes.append(text.substr(0, length)).append(size - length, '\0');
}

// Replaces unprintable characters of received text, which may be garbage; stops at the first zero.
std::string readable(std::string_view bytes) {
  std::string text(bytes.substr(0, std::min(bytes.size(), bytes.find('\0'))));
  for (char& header : text)
    if (header < ' ' || header > '~') header = '?';
  return text;
}

void put_preamble(std::string& bytes, const Versions& versions) {
  put(bytes, kMagic);
  put(bytes, versions.protocol);
  put_padded(bytes, versions.library, kVersionSize);
}

std::string new_nonce() {
  std::string nonce(kNonceSize, '\0');
  fill_random(nonce.data(), nonce.size());
  return nonce;
}

HelloId hello_id(const Secret& key, std::string_view nonce) {
  HelloId id{};
  if (key.none()) return id;
  const Secret derived = key.derive(kHelloIdLabel, nonce);
  std::memcpy(id.data(), derived.bytes().data(), id.size());
  return id;
}

std::string_view proof_of(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

Digest prove(const Secret& key, std::string_view label, std::string_view transcript) {
  std::string data(label);
  data += '\0';
  data += transcript;
  return hmac_sha256(key.bytes(), data);
}

Status check_preamble(std::string_view preamble, const Versions& ours, const char* no_member) {
  if (take<std::uint32_t>(preamble) != kMagic) return failure(Code::remote_error, "%s", no_member);
  const auto protocol = take<std::uint32_t>(preamble);
  if (protocol == ours.protocol) return {};
  return failure(Code::remote_error,
                 "the library there is version %s and speaks protocol %u, the one here is version %.*s and speaks protocol %u: "
                 "install the same version on every machine",
                 readable(preamble).c_str(), protocol, static_cast<int>(ours.library.size()), ours.library.data(), ours.protocol);
}

Status other_library(std::string_view theirs, std::string_view ours) {
  return failure(Code::remote_error,
                 "the library there is version %.*s, the one here is version %.*s: install the same version on every machine",
                 static_cast<int>(theirs.size()), theirs.data(), static_cast<int>(ours.size()), ours.data());
}

Status other_tls_mode(TlsMode theirs, TlsMode ours) {
  const std::string_view there = name_of(theirs);
  const std::string_view here = name_of(ours);
  return failure(Code::invalid_usage, "SETO_TLS is %.*s on one rank and %.*s on another: give all ranks the same",
                 static_cast<int>(there.size()), there.data(), static_cast<int>(here.size()), here.data());
}

Status other_certificates(bool caller_has_them) {
  return failure(
      Code::invalid_usage,
      "SETO_TLS_CERTIFICATE is %s on the rank that connected and %s on the one that answered: set it, SETO_TLS_KEY and "
      "SETO_TLS_CA on all ranks, or on none",
      caller_has_them ? "set" : "not set", caller_has_them ? "not set" : "set");
}

std::string library_in(std::string_view preamble) {
  return readable(preamble.substr(kPreambleSize - kVersionSize, kVersionSize));
}

Status reason_of_notice(std::uint32_t what, bool certificates_here) {
  switch (what) {
    case kNoticeOtherKey:
      return failure(Code::remote_error,
                     "the process there has no job with this secret: it belongs to another job, has left this one, or "
                     "SETO_SECRET_FILE or SETO_SECRET differ between the two");
    case kNoticeNoKeyThere:
      return failure(Code::remote_error,
                     "there is a secret here and none there: set SETO_SECRET_FILE or SETO_SECRET for every rank, or for none");
    case kNoticeNoKeyHere:
      return failure(Code::remote_error,
                     "there is a secret there and none here: set SETO_SECRET_FILE or SETO_SECRET for every rank, or for none");
    case kNoticeCertificates:
      return other_certificates(certificates_here);
    default:
      return failure(Code::remote_error, "the peer sent an unknown notice");
  }
}

std::string hello_of(const Secret& key, const Claim& claim, const Versions& versions, const ChannelTerms& terms) {
  std::string hello;
  hello.reserve(kHelloSize);
  put_preamble(hello, versions);
  put(hello, kHello | std::uint32_t{claim.purpose} << 16);
  const std::string nonce = new_nonce();
  put(hello, hello_id(key, nonce));
  hello += nonce;
  put(hello, claim.caller);
  put(hello, claim.answerer);
  put(hello, claim.caller_context);
  put(hello, claim.answerer_context);
  put(hello, claim.attempt);
  put(hello, claim.index);
  put(hello, static_cast<std::uint32_t>(terms.tls.mode) << kModeShift | (terms.encrypted ? kEncryptedBit : 0) |
                 (terms.tls.identity != nullptr ? kCertificatesBit : 0));
  SETO_CHECK(hello.size() == kHelloSize);
  return hello;
}

}  // namespace

KeyId key_id(const Secret& key) {
  KeyId id{};
  if (key.none()) return id;
  const Secret derived = key.derive(kKeyIdLabel);
  std::memcpy(id.data(), derived.bytes().data(), id.size());
  return id;
}

CallerHandshake::CallerHandshake(const Secret& key, const Claim& claim, Versions versions, ChannelTerms terms)
    : key_(key.derive(kKeyLabel)),
      claim_(claim),
      versions_(versions),
      terms_(terms),
      out_(hello_of(key, claim, versions, terms)),
      transcript_(out_) {
  if (terms_.encrypted) tls_key_ = key_.derive(kTlsLabel, transcript_);
}

std::size_t CallerHandshake::wanted() const {
  switch (stage_) {
    case Stage::preamble:
      return kPreambleSize - in_.size();
    case Stage::challenge:
      return kChallengeSize - in_.size();
    case Stage::verdict:
      return kVerdictSize - in_.size();
    case Stage::channel:
    case Stage::over:
      break;
  }
  return kNothingMore;
}

Status CallerHandshake::feed(std::string_view bytes) {
  SETO_CHECK(bytes.size() <= wanted());
  in_.append(bytes);
  if (over() || wanted() > 0) return {};
  Status handled = handle_message();
  if (!handled.ok()) stage_ = Stage::over;
  return handled;
}

Status CallerHandshake::handle_message() {
  if (stage_ == Stage::verdict) return handle_verdict();
  if (stage_ == Stage::challenge) return handle_challenge();
  SETO_TRY(check_preamble(in_, versions_, "the peer is not a process of this library"));
  stage_ = Stage::challenge;
  return {};
}

Status CallerHandshake::handle_challenge() {
  std::string_view rest = std::string_view(in_).substr(kPreambleSize);
  const auto kind = take<std::uint32_t>(rest);
  if (kind == kNotice) {
    const auto what = take<std::uint32_t>(rest);
    misfit_ = what == kNoticeCertificates;
    key_unknown_ = what != kNoticeOtherProtocol && !misfit_;
    return reason_of_notice(what, terms_.tls.identity != nullptr);
  }
  if (kind != kChallenge) return failure(Code::remote_error, "the peer sent its handshake in the wrong order");
  rest.remove_prefix(kNonceSize);
  const auto process = take<Token>(rest);
  transcript_.append(in_, 0, in_.size() - kProofSize);
  if (!equal(proof_of(prove(key_, kAnswererLabel, transcript_)), rest)) {
    return failure(Code::remote_error, "the peer could not prove that it has the secret of this job");
  }
  transcript_.append(rest);
  if (claim_.answerer != Token{} && process != claim_.answerer) {
    return failure(Code::remote_error, "another process of this job listens there, not the expected one");
  }
  proven_ = !terms_.encrypted;
  peer_library_ = library_in(in_);
  in_.clear();
  if (terms_.encrypted) {
    stage_ = Stage::channel;
  } else {
    answer_challenge();
  }
  return {};
}

void CallerHandshake::bind_channel(const Secret& binding) {
  SETO_CHECK(stage_ == Stage::channel);
  proven_ = true;
  transcript_.append(kBindingLabel).append(binding.bytes());
  answer_challenge();
}

void CallerHandshake::answer_challenge() {
  out_ = proof_of(prove(key_, kCallerLabel, transcript_));
  transcript_.append(out_);
  stage_ = Stage::verdict;
}

// Checks the version of the library here too: the answerer refuses another version, and the caller reports both versions itself.
Status CallerHandshake::handle_verdict() {
  const std::string_view body = std::string_view(in_).substr(0, kVerdictBodySize);
  transcript_.append(body);
  if (!equal(proof_of(prove(key_, kVerdictLabel, transcript_)), std::string_view(in_).substr(kVerdictBodySize))) {
    return failure(Code::remote_error, "the peer could not prove its verdict");
  }
  std::string_view rest = body;
  if (take<std::uint32_t>(rest) != kVerdict) {
    return failure(Code::remote_error, "the peer sent its handshake in the wrong order");
  }
  stage_ = Stage::over;
  const auto code = take<std::uint32_t>(rest);
  accepted_ = code == kAccepted && peer_library_ == versions_.library;
  refused_ = !accepted_;
  if (accepted_) return {};
  if (peer_library_ != versions_.library) return other_library(peer_library_, versions_.library);
  return {code == kRefusedAborted ? Code::aborted : Code::remote_error, readable(rest)};
}

Secret CallerHandshake::session() const { return key_.derive(kSessionLabel, transcript_); }

std::size_t AnswererHandshake::wanted() const {
  switch (stage_) {
    case Stage::preamble:
      return kPreambleSize - in_.size();
    case Stage::hello:
      return kHelloSize - in_.size();
    case Stage::proof:
      return kProofSize - in_.size();
    case Stage::key_wanted:
    case Stage::channel:
    case Stage::verdict_wanted:
    case Stage::over:
      break;
  }
  return kNothingMore;
}

Status AnswererHandshake::feed(std::string_view bytes) {
  SETO_CHECK(bytes.size() <= wanted());
  in_.append(bytes);
  if (bytes.empty() || wanted() > 0) return {};
  Status handled = stage_ == Stage::preamble ? handle_preamble() : stage_ == Stage::hello ? handle_hello() : handle_proof();
  if (!handled.ok()) stage_ = Stage::over;
  return handled;
}

Status AnswererHandshake::handle_preamble() {
  Status greeted = check_preamble(in_, versions_, "what it sent is not the preamble of a process of this library");
  stage_ = Stage::hello;
  // A peer with another protocol reads only the preamble of this notice.
  if (!greeted.ok() && in_.compare(0, sizeof kMagic, reinterpret_cast<const char*>(&kMagic), sizeof kMagic) == 0) {
    put_notice(kNoticeOtherProtocol);
  }
  return greeted;
}

Status AnswererHandshake::handle_hello() {
  std::string_view rest = std::string_view(in_).substr(kPreambleSize);
  const auto kind = take<std::uint32_t>(rest);
  claim_.purpose = static_cast<std::uint8_t>(kind >> 16);
  hello_id_ = take<HelloId>(rest);
  nonce_ = rest.substr(0, kNonceSize);
  rest.remove_prefix(kNonceSize);
  claim_.caller = take<Token>(rest);
  claim_.answerer = take<Token>(rest);
  claim_.caller_context = take<std::uint64_t>(rest);
  claim_.answerer_context = take<std::uint64_t>(rest);
  claim_.attempt = take<std::uint64_t>(rest);
  claim_.index = take<std::uint32_t>(rest);
  const auto terms = take<std::uint32_t>(rest);
  theirs_ = {static_cast<TlsMode>(terms >> kModeShift), (terms & kEncryptedBit) != 0, (terms & kCertificatesBit) != 0};
  const bool known_terms = terms >> kModeShift <= static_cast<std::uint32_t>(TlsMode::always) && (terms & kUnknownBits) == 0;
  if ((kind & 0xff00ffff) != kHello || !known_terms) {
    return failure(Code::remote_error, "what it sent is not the hello of a process of this library");
  }
  peer_library_ = library_in(in_);
  transcript_ = std::exchange(in_, {});
  stage_ = Stage::key_wanted;
  return {};
}

bool AnswererHandshake::names(const Secret& key) const {
  const auto text_of = [](const HelloId& id) { return std::string_view(reinterpret_cast<const char*>(id.data()), id.size()); };
  const HelloId expected = hello_id(key, nonce_);
  return equal(text_of(hello_id_), text_of(expected));
}

void AnswererHandshake::set_key(const Secret& key) {
  SETO_CHECK(stage_ == Stage::key_wanted);
  if (theirs_.encrypted && theirs_.certificates != (tls_.identity != nullptr)) {
    put_notice(kNoticeCertificates);
    stage_ = Stage::over;
    misfit_ = other_certificates(theirs_.certificates);
    return;
  }
  key_ = key.derive(kKeyLabel);
  if (theirs_.encrypted) tls_key_ = key_.derive(kTlsLabel, transcript_);
  put_preamble(out_, versions_);
  put(out_, kChallenge);
  out_ += new_nonce();
  put(out_, self_);
  transcript_.append(out_);
  const Digest proof = prove(key_, kAnswererLabel, transcript_);
  out_.append(proof_of(proof));
  transcript_.append(proof_of(proof));
  stage_ = theirs_.encrypted ? Stage::channel : Stage::proof;
}

void AnswererHandshake::bind_channel(const Secret& binding) {
  SETO_CHECK(stage_ == Stage::channel);
  transcript_.append(kBindingLabel).append(binding.bytes());
  stage_ = Stage::proof;
}

void AnswererHandshake::refuse_unknown(MissingKey missing) {
  SETO_CHECK(stage_ == Stage::key_wanted);
  const bool caller_has_none = names_no_key();
  put_notice(caller_has_none ? kNoticeNoKeyHere : missing == MissingKey::any_key ? kNoticeNoKeyThere : kNoticeOtherKey);
  stage_ = Stage::over;
}

Status AnswererHandshake::handle_proof() {
  if (!equal(proof_of(prove(key_, kCallerLabel, transcript_)), in_)) {
    return failure(Code::remote_error, "it could not prove that it has the secret of the job that it named");
  }
  transcript_.append(std::exchange(in_, {}));
  proven_ = true;
  stage_ = Stage::verdict_wanted;
  Status fits;
  if (peer_library_ != versions_.library) {
    fits = other_library(peer_library_, versions_.library);
  } else if (claim_.answerer != Token{} && claim_.answerer != self_) {
    fits = failure(Code::remote_error, "it named another process of this job, not this one");
  } else if (theirs_.mode != tls_.mode) {
    fits = other_tls_mode(theirs_.mode, tls_.mode);
  } else if (theirs_.certificates != (tls_.identity != nullptr)) {
    fits = other_certificates(theirs_.certificates);
  }
  if (!fits.ok()) refuse(fits);
  return fits;
}

void AnswererHandshake::accept() {
  SETO_CHECK(stage_ == Stage::verdict_wanted);
  put_verdict(kAccepted, {});
}

void AnswererHandshake::refuse(const Status& reason) {
  SETO_CHECK(stage_ == Stage::verdict_wanted && !reason.ok());
  put_verdict(reason.code() == Code::aborted ? kRefusedAborted : kRefused, reason.text());
}

Secret AnswererHandshake::session() const { return key_.derive(kSessionLabel, transcript_); }

void AnswererHandshake::put_notice(std::uint32_t what) {
  put_preamble(out_, versions_);
  put(out_, kNotice);
  put(out_, what);
  out_.resize(kChallengeSize, '\0');
}

void AnswererHandshake::put_verdict(std::uint32_t code, std::string_view text) {
  std::string body;
  put(body, kVerdict);
  put(body, code);
  put_padded(body, text, kVerdictTextLimit);
  transcript_.append(body);
  out_.append(body).append(proof_of(prove(key_, kVerdictLabel, transcript_)));
  stage_ = Stage::over;
}

}  // namespace seto
