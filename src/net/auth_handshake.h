#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/status.h"
#include "src/net/secret.h"
#include "src/net/token.h"
#include "src/net/version.h"

namespace seto {

// How two processes prove to each other that they belong to one job, before either hears anything else of the other: a challenge
// both ways under the job's key, bound to who calls whom and what for. Here only bytes: who has a socket moves them.
//   caller -> answerer: hello      its nonce, what it claims, which key it means
//   answerer -> caller: challenge  its nonce, who it is, and the proof that it has the key
//   caller -> answerer: proof      that it has the key
//   answerer -> caller: verdict    accepted, or refused and why; proved, so that a refusal is believed of a member only
// or, instead of a challenge, a notice: why there will be none. It proves nothing and is only words.
// Each proof covers every byte that went before it, both ways, under a label of its own: nothing of it fits another connection,
// another direction or another place. All messages have one fixed size each, numbers are little-endian, and no number of a peer
// is a size. The first 24 bytes of hello, challenge and notice (what this is, protocol, library) stay as they are in every
// version.

inline constexpr std::uint32_t kMembershipProtocol = 1;

inline constexpr std::size_t kGreetingSize = 24;
inline constexpr std::size_t kHelloSize = 132;
inline constexpr std::size_t kChallengeSize = 108;  // a notice too
inline constexpr std::size_t kProofSize = 32;
inline constexpr std::size_t kVerdictSize = 280;
// Of a refusal's text.
inline constexpr std::size_t kVerdictTextLimit = 240;

// Which key is meant, without saying it: all zero for none.
using KeyId = std::array<std::uint8_t, 8>;
[[nodiscard]] KeyId key_id(const Secret& key);

// Who calls whom, and what for. Both ends of a proven connection hold the same.
struct Claim {
  std::uint8_t purpose = 0;
  Token caller{};    // process
  Token answerer{};  // all zero: whoever has the key
  std::uint64_t caller_context = 0;
  std::uint64_t answerer_context = 0;
  std::uint64_t attempt = 0;
  std::uint32_t index = 0;
  auto operator<=>(const Claim&) const = default;
};

struct Versions {
  std::uint32_t protocol = kMembershipProtocol;
  std::string_view library = library_version();
};

// The side that connected. Send what out() holds, read at most wanted() bytes, feed them, until over().
class CallerHandshake final {
 public:
  CallerHandshake(const Secret& key, const Claim& claim, Versions versions = {});

  // To be sent now; empties it.
  [[nodiscard]] std::string take_out() { return std::exchange(out_, {}); }
  // How many bytes to read at most; 0 once it is over. Never more than the handshake has: what follows it stays unread.
  [[nodiscard]] std::size_t wanted() const;
  // At most wanted() bytes. After a failure it is over, and the text says what is wrong and what to do.
  [[nodiscard]] Status feed(std::string_view bytes);
  [[nodiscard]] bool over() const { return stage_ == Stage::over; }

  // The peer has shown that it has the key and is who was wanted: what it says from then on is a member's.
  [[nodiscard]] bool proven() const { return proven_; }
  // A notice said that the key is not known there: it may be a moment later.
  [[nodiscard]] bool key_unknown() const { return key_unknown_; }
  // Once over: accepted, or refused by a member, in the words that feed() gave.
  [[nodiscard]] bool accepted() const { return accepted_; }
  [[nodiscard]] bool refused() const { return refused_; }
  // Known to both ends, and to nobody else, once accepted.
  [[nodiscard]] Secret session() const;

 private:
  enum class Stage : std::uint8_t { greeting, challenge, verdict, over };
  [[nodiscard]] Status hear();
  [[nodiscard]] Status hear_challenge();
  [[nodiscard]] Status hear_verdict();

  Secret key_;
  Claim claim_;
  Versions versions_;
  Stage stage_ = Stage::greeting;
  std::string out_;
  std::string in_;          // of the message under way
  std::string transcript_;  // every byte so far, both ways
  std::string their_library_;
  bool proven_ = false;
  bool key_unknown_ = false;
  bool accepted_ = false;
  bool refused_ = false;
};

// The side that was connected to. After the hello its owner looks for the key and gives it, or refuses; after the proof it
// decides.
class AnswererHandshake final {
 public:
  enum class Stage : std::uint8_t { greeting, hello, key_wanted, proof, verdict_wanted, over };

  explicit AnswererHandshake(const Token& self, Versions versions = {}) : self_(self), versions_(versions) {}

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] std::string take_out() { return std::exchange(out_, {}); }
  // 0 while the owner's word is awaited, and once over.
  [[nodiscard]] std::size_t wanted() const;
  // At most wanted() bytes. After a failure it is over: what out() holds then may still be sent. A failure of a proven one is a
  // member's that runs another version of the library, or that means another process.
  [[nodiscard]] Status feed(std::string_view bytes);

  // From Stage::key_wanted on. The claim is believed from Stage::verdict_wanted on.
  [[nodiscard]] const KeyId& wanted_key() const { return key_id_; }
  [[nodiscard]] const Claim& claim() const { return claim_; }
  [[nodiscard]] bool proven() const { return proven_; }

  // Stage::key_wanted: the key of that id.
  void give(const Secret& key);
  // Or that there is none here: of this id, or none at all.
  enum class Lack : std::uint8_t { of_this_key, of_any_key };
  void refuse_unknown(Lack lack);

  // Stage::verdict_wanted.
  void accept();
  // As the peer gets it: Code::aborted stays, everything else becomes Code::remote_error; the text is cut at kVerdictTextLimit.
  void refuse(const Status& reason);
  [[nodiscard]] Secret session() const;

 private:
  [[nodiscard]] Status hear_greeting();
  [[nodiscard]] Status hear_hello();
  [[nodiscard]] Status hear_proof();
  void say_notice(std::uint32_t what);
  void say_verdict(std::uint32_t code, std::string_view text);

  Token self_;
  Versions versions_;
  Secret key_;
  KeyId key_id_{};
  Claim claim_;
  Stage stage_ = Stage::greeting;
  std::string out_;
  std::string in_;
  std::string transcript_;
  std::string their_library_;
  bool proven_ = false;
};

}  // namespace seto
