#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/status.h"
#include "src/net/auth_claim.h"
#include "src/net/secret.h"
#include "src/net/token.h"

namespace seto {

// The authentication handshake: two processes prove to each other that they belong to one job before either accepts any other
// data. Both sides answer a challenge under the job's key, and the proofs are bound to the claim: the caller (the side that
// connected), the answerer (the side that accepted) and the purpose. These classes handle bytes only; their owner has the socket.
//   caller -> answerer: hello      the caller's nonce, its claim, and which key it has, told by a keyed hash of the nonce
//   answerer -> caller: challenge  the answerer's nonce, its process token, and its proof of the key
//   caller -> answerer: proof      the caller's proof of the key
//   answerer -> caller: verdict    accepted, or refused with a reason; it carries a proof, so only a member can refuse
// Instead of a challenge the answerer may send a notice that says why it sends no challenge. A notice proves nothing.
// The hello says whether TLS follows (ChannelTerms). Each proof covers every byte sent before it in both directions, under its
// own label, so it is useless on another connection, in another direction or at another step. Each message has a fixed size,
// numbers are little-endian, and no received number is used as a size. The preamble (magic, protocol, library version: the first
// 24 bytes of hello, challenge and notice) is the same in every version.

// The side that connected. Until over(): send take_out(), read at most wanted() bytes, and pass them to feed().
class CallerHandshake final {
 public:
  CallerHandshake(const Secret& key, const Claim& claim, Versions versions = {}, ChannelTerms terms = {});

  // The bytes to send now.
  [[nodiscard]] std::string take_out() { return std::exchange(out_, {}); }
  // The most bytes to read now; 0 once the handshake is over. Never reads beyond the handshake: later bytes stay in the socket.
  [[nodiscard]] std::size_t wanted() const;
  // Takes at most wanted() bytes. A failure ends the handshake; its text says what is wrong and what to do.
  [[nodiscard]] Status feed(std::string_view bytes);
  [[nodiscard]] bool over() const { return stage_ == Stage::over; }

  // The key for TLS: only these two processes know it, and it serves this hello alone.
  [[nodiscard]] const Secret& tls_key() const { return tls_key_; }
  // The answer to the challenge waits until TLS is up, and bind_channel() is called with its binding.
  [[nodiscard]] bool wants_channel() const { return stage_ == Stage::channel; }
  void bind_channel(const Secret& binding);

  // The peer has proved that it has the key and is the process that was meant: later messages come from a member of the job. With
  // certificates another host that has one may have passed on that proof, and only a verdict comes from a member.
  [[nodiscard]] bool proven() const { return proven_; }
  // A notice said that the peer does not know the key. The peer may learn the key a moment later.
  [[nodiscard]] bool key_unknown() const { return key_unknown_; }
  // A notice said that the peer knows the key, and that only one of the two ends uses certificates.
  [[nodiscard]] bool misfit() const { return misfit_; }
  // Once over: accepted, or refused by a member with the text that feed() returned.
  [[nodiscard]] bool accepted() const { return accepted_; }
  [[nodiscard]] bool refused() const { return refused_; }
  // A key that only both ends know, once accepted.
  [[nodiscard]] Secret session() const;

 private:
  enum class Stage : std::uint8_t { preamble, challenge, channel, verdict, over };
  [[nodiscard]] Status handle_message();
  [[nodiscard]] Status handle_challenge();
  [[nodiscard]] Status handle_verdict();
  void answer_challenge();

  Secret key_;
  Claim claim_;
  Versions versions_;
  ChannelTerms terms_;
  Secret tls_key_;
  Stage stage_ = Stage::preamble;
  std::string out_;
  std::string in_;          // the message that is being received
  std::string transcript_;  // every byte so far, both ways
  std::string peer_library_;
  bool proven_ = false, key_unknown_ = false, misfit_ = false, accepted_ = false, refused_ = false;
};

// The side that accepted the connection. After the hello its owner sets the key or refuses; after the proof its owner accepts or
// refuses.
class AnswererHandshake final {
 public:
  enum class Stage : std::uint8_t { preamble, hello, key_wanted, channel, proof, verdict_wanted, over };

  explicit AnswererHandshake(const Token& self, Versions versions = {}, const TlsChoice& tls = {})
      : self_(self), versions_(versions), tls_(tls) {}

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] std::string take_out() { return std::exchange(out_, {}); }
  // 0 while the handshake waits for its owner, and once it is over.
  [[nodiscard]] std::size_t wanted() const;
  // Takes at most wanted() bytes. A failure ends the handshake; take_out() may still hold bytes to send. If proven() is true
  // after a failure, the peer is a member that runs another version of the library or that means another process.
  [[nodiscard]] Status feed(std::string_view bytes);

  // From Stage::key_wanted on. The claim is believed from Stage::verdict_wanted on.
  [[nodiscard]] bool names(const Secret& key) const;
  [[nodiscard]] bool names_no_key() const { return hello_id_ == HelloId{}; }
  [[nodiscard]] const HelloId& hello() const { return hello_id_; }
  [[nodiscard]] const Claim& claim() const { return claim_; }
  [[nodiscard]] bool proven() const { return proven_; }

  // TLS follows, as the caller said in its hello. From Stage::key_wanted on.
  [[nodiscard]] bool encrypted() const { return theirs_.encrypted; }

  // Stage::key_wanted: the key that the hello names. Ends the handshake if TLS cannot follow as the caller wants it (misfit()).
  void set_key(const Secret& key);
  [[nodiscard]] const Status& misfit() const { return misfit_; }
  // Stage::channel: as at the caller.
  [[nodiscard]] const Secret& tls_key() const { return tls_key_; }
  void bind_channel(const Secret& binding);
  // Stage::key_wanted: this process lacks the named key, or has no key at all.
  enum class MissingKey : std::uint8_t { this_key, any_key };
  void refuse_unknown(MissingKey missing);

  // Stage::verdict_wanted.
  void accept();
  // The peer receives Code::aborted unchanged and every other code as Code::remote_error; the text is cut at kVerdictTextLimit.
  void refuse(const Status& reason);
  [[nodiscard]] Secret session() const;

 private:
  [[nodiscard]] Status handle_preamble();
  [[nodiscard]] Status handle_hello();
  [[nodiscard]] Status handle_proof();
  void put_notice(std::uint32_t what);
  void put_verdict(std::uint32_t code, std::string_view text);

  Token self_;
  Versions versions_;
  TlsChoice tls_;       // here
  StatedTerms theirs_;  // of the caller
  Secret key_;
  Secret tls_key_;
  HelloId hello_id_{};
  std::string nonce_;  // of the caller
  Claim claim_;
  Stage stage_ = Stage::preamble;
  std::string out_;
  std::string in_;
  std::string transcript_;
  std::string peer_library_;
  bool proven_ = false;
  Status misfit_;
};

}  // namespace seto
