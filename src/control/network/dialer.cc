#include "src/control/network/dialer.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "src/control/network/connect_request.h"
#include "src/control/network/listen_address.h"
#include "src/net/tcp_socket.h"

namespace seto {
namespace {

// Passes every network of IPv6, and tunnels over others. A long control message that vanished on the way, because a tunnel is
// narrower than this host believes, would hold up the heartbeats behind it.
constexpr int kShortSegment = 1'200;

int longest_segment_of(const Dialer::Target& target) {
  const std::uint8_t purpose = target.claim.purpose;
  return target.short_segments || purpose == kPurposeControl || purpose == kPurposeControlAgain ? kShortSegment : 0;
}

}  // namespace

Dialer::Dialer(const Target& target)
    : key_(target.key),
      claim_(target.claim),
      tls_(target.tls),
      plain_(target.plain),
      longest_segment_(longest_segment_of(target)),
      of_path_(target.of_path) {
  for (const SocketAddress& address : target.addresses) {
    Attempt attempt;
    attempt.address = address;
    if (attempts_.size() < of_path_)
      for (const SocketAddress& own : target.own_of_path)
        if (own.family == address.family && !attempt.from) attempt.from = own;
    attempts_.push_back(std::move(attempt));
  }
}

Result<std::optional<SecureStream>> Dialer::advance(int wait_ms) {
  start_due();
  SETO_TRY(broken_);
  std::vector<pollfd> entries;
  std::vector<Attempt*> of_entries;
  for (Attempt& attempt : attempts_) {
    if (!attempt.active()) continue;
    const bool reads = attempt.channel && !attempt.channel->wants_to_write();
    entries.push_back(
        {attempt.channel ? attempt.channel->fd() : attempt.fd.get(), static_cast<short>(reads ? POLLIN : POLLOUT), 0});
    of_entries.push_back(&attempt);
  }
  if (next_ < attempts_.size()) wait_ms = std::min(wait_ms, next_start_.remaining_ms());
  const int ready = entries.empty() ? 0 : poll(entries.data(), entries.size(), wait_ms);
  for (std::size_t index = 0; ready > 0 && index < entries.size(); ++index) {
    Attempt& attempt = *of_entries[index];
    if (entries[index].revents == 0 || attempt.ended) continue;
    SETO_TRY(handle(attempt));
    if (attempt.channel && attempt.channel->handshake().accepted())
      return std::optional<SecureStream>(attempt.channel->take_stream());
  }
  if (all_ended()) return failure(Code::remote_error, "%s", report().c_str());
  return std::optional<SecureStream>();
}

void Dialer::start_due() {
  while (next_ < attempts_.size() && !found_) {
    const bool idle = std::none_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.active(); });
    if (!idle && !next_start_.passed()) return;
    start(attempts_[next_++]);
    next_start_ = Deadline::after_ms(next_ == of_path_ ? kOtherPathMs : kDialStaggerMs);
  }
}

void Dialer::start(Attempt& attempt) {
  attempt.started = true;
  auto fd = begin_connect(attempt.address, attempt.from ? &*attempt.from : nullptr, longest_segment_);
  if (fd.ok()) {
    attempt.fd = std::move(fd).value();
    return;
  }
  const bool alone = std::none_of(attempts_.begin(), attempts_.end(),
                                  [&](const Attempt& other) { return &other != &attempt && other.active(); });
  if (alone && fd.status().code() == Code::unavailable) broken_ = fd.status();
  attempt.not_listening = fd.status().code() != Code::unavailable;  // without a descriptor the peer was not contacted
  end(attempt, fd.status());
}

void Dialer::end(Attempt& attempt, Status why) {
  attempt.ended = true;
  attempt.why = std::move(why);
  attempt.fd.close();
  if (attempt.channel) attempt.channel->close();
}

// A failure ends the attempts at all addresses.
Status Dialer::handle(Attempt& attempt) {
  if (attempt.channel) return read_handshake(attempt);
  if (Status connected = end_connect(attempt.fd, attempt.address); !connected.ok()) {
    attempt.not_listening = true;
    end(attempt, std::move(connected));
    return {};
  }
  const TlsMode mode = plain_ && tls_.mode == TlsMode::sites ? TlsMode::off : tls_.mode;
  const ChannelTerms terms{tls_, encrypts(mode, attempt.fd.get())};
  attempt.channel.emplace(std::move(attempt.fd), key_, claim_, terms);
  return read_handshake(attempt);
}

// The first address that authenticates is final, also if it refuses then.
Status Dialer::read_handshake(Attempt& attempt) {
  const AuthProgress progress = attempt.channel->advance();
  const CallerHandshake& handshake = attempt.channel->handshake();
  if (progress == AuthProgress::failed && handshake.proven()) {
    refused_ = true;
    return attempt.channel->why();
  }
  if (progress == AuthProgress::failed) {
    attempt.may_change = handshake.key_unknown();
    attempt.tls_failed = handshake.misfit() || (tls_.identity != nullptr && handshake.wants_channel());
    end(attempt, failure(Code::remote_error, "%s: %s", to_text(attempt.address).c_str(),
                         std::string(attempt.channel->why().text()).c_str()));
  } else if (progress == AuthProgress::closed) {
    attempt.may_change = true;
    end(attempt, failure(Code::remote_error, "%s closed the connection", to_text(attempt.address).c_str()));
  } else if (handshake.proven() && !found_) {
    found_ = attempt.address;
    keep_only(attempt);
  }
  return {};
}

void Dialer::keep_only(const Attempt& attempt) {
  for (Attempt& other : attempts_)
    if (&other != &attempt && !other.ended)
      end(other, failure(Code::remote_error, "%s was not needed", to_text(other.address).c_str()));
  next_ = attempts_.size();
}

bool Dialer::all_ended() const {
  return std::all_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.ended; });
}

bool Dialer::none_listening() const {
  return std::all_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& attempt) { return attempt.ended && attempt.not_listening; });
}

bool Dialer::some_refused() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& attempt) { return attempt.ended && attempt.not_listening && is_refusal(attempt.why); });
}

bool Dialer::key_unknown() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& attempt) { return attempt.channel && attempt.channel->handshake().key_unknown(); });
}

bool Dialer::tls_failed() const {
  return std::any_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.tls_failed; });
}

bool Dialer::may_change() const {
  return std::any_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.may_change; });
}

bool Dialer::hopeless() const {
  return std::any_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.ended; }) &&
         std::none_of(attempts_.begin(), attempts_.end(),
                      [](const Attempt& attempt) { return attempt.active() && attempt.channel; });
}

std::string Dialer::report() const {
  std::string text;
  for (const Attempt& attempt : attempts_) {
    if (!text.empty()) text += "; ";
    if (attempt.ended) {
      text += attempt.why.text();
    } else if (attempt.channel) {
      text += to_text(attempt.address) +
              (attempt.channel->handshake().proven() ? " did not accept or refuse the connection" : " did not prove who it is");
    } else {
      text += no_answer(attempt.address).text();
    }
  }
  return text;
}

}  // namespace seto
