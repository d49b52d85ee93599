#include "src/control/network/dialer.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/control/network/listen_address.h"
#include "src/control/network/accepted_peers.h"
#include "src/net/tcp_socket.h"

namespace seto {

Dial::Dial(const Target& target) : key_(target.key), claim_(target.claim) {
  for (const SocketAddress& address : target.addresses) {
    Line line;
    line.address = address;
    lines_.push_back(std::move(line));
  }
}

Result<std::optional<PrivateFd>> Dial::advance(int wait_ms) {
  start_due();
  SETO_TRY(broken_);
  std::vector<pollfd> entries;
  std::vector<Line*> of_entries;
  for (Line& line : lines_) {
    if (!line.active()) continue;
    entries.push_back({line.fd.get(), static_cast<short>(line.handshake ? POLLIN : POLLOUT), 0});
    of_entries.push_back(&line);
  }
  if (next_ < lines_.size()) wait_ms = std::min(wait_ms, next_start_.remaining_ms());
  const int ready = entries.empty() ? 0 : poll(entries.data(), entries.size(), wait_ms);
  for (std::size_t index = 0; ready > 0 && index < entries.size(); ++index) {
    Line& line = *of_entries[index];
    if (entries[index].revents == 0 || line.ended) continue;
    SETO_TRY(handle(line));
    if (line.handshake && line.handshake->accepted()) return std::optional<PrivateFd>(std::move(line.fd));
  }
  if (all_ended()) return failure(Code::remote_error, "%s", report().c_str());
  return std::optional<PrivateFd>();
}

void Dial::start_due() {
  while (next_ < lines_.size() && !found_) {
    const bool idle = std::none_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.active(); });
    if (!idle && !next_start_.passed()) return;
    start(lines_[next_++]);
    next_start_ = Deadline::after_ms(kDialStaggerMs);
  }
}

void Dial::start(Line& line) {
  line.started = true;
  auto fd = begin_connect(line.address);
  if (fd.ok()) {
    line.fd = std::move(fd).value();
    return;
  }
  const bool alone =
      std::none_of(lines_.begin(), lines_.end(), [&](const Line& other) { return &other != &line && other.active(); });
  if (alone && fd.status().code() == Code::unavailable) broken_ = fd.status();
  line.nobody = fd.status().code() != Code::unavailable;  // who has no descriptor has asked nobody
  end(line, fd.status());
}

void Dial::end(Line& line, Status why) {
  line.ended = true;
  line.why = std::move(why);
  line.fd.close();
}

// A failure ends the whole attempt.
Status Dial::handle(Line& line) {
  if (line.handshake) return talk(line);
  if (Status connected = end_connect(line.fd, line.address); !connected.ok()) {
    line.nobody = true;
    end(line, std::move(connected));
    return {};
  }
  line.handshake.emplace(key_, claim_);
  if (!send_whole(line.fd.get(), line.handshake->take_out())) {
    line.may_change = true;
    end(line, failure(Code::remote_error, "%s closed the connection at once", to_text(line.address).c_str()));
  }
  return {};
}

Status Dial::talk(Line& line) {
  while (line.handshake->wanted() > 0) {
    std::array<char, kVerdictSize> bytes;
    const ssize_t got = recv(line.fd.get(), bytes.data(), std::min(bytes.size(), line.handshake->wanted()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return {};
    if (got <= 0) {
      line.may_change = true;
      end(line, failure(Code::remote_error, "%s closed the connection", to_text(line.address).c_str()));
      return {};
    }
    SETO_TRY(hear(line, {bytes.data(), static_cast<std::size_t>(got)}));
    if (line.ended) return {};
  }
  return {};
}

// Once one has proved itself it is the one, whatever it says then.
Status Dial::hear(Line& line, std::string_view bytes) {
  CallerHandshake& handshake = *line.handshake;
  Status heard = handshake.feed(bytes);
  if (!heard.ok() && handshake.proven()) {
    refused_ = true;
    return heard;
  }
  if (!heard.ok()) {
    line.may_change = handshake.key_unknown();
    end(line, failure(Code::remote_error, "%s: %s", to_text(line.address).c_str(), std::string(heard.text()).c_str()));
    return {};
  }
  if (handshake.proven() && !found_) {
    found_ = line.address;
    keep_only(line);
  }
  if (const std::string out = handshake.take_out(); !out.empty() && !send_whole(line.fd.get(), out)) {
    line.may_change = true;
    end(line, failure(Code::remote_error, "%s closed the connection", to_text(line.address).c_str()));
  }
  return {};
}

void Dial::keep_only(const Line& line) {
  for (Line& other : lines_)
    if (&other != &line && !other.ended)
      end(other, failure(Code::remote_error, "%s was not needed", to_text(other.address).c_str()));
  next_ = lines_.size();
}

bool Dial::all_ended() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.ended; });
}

bool Dial::nobody_there() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.ended && line.nobody; });
}

bool Dial::key_unknown() const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [](const Line& line) { return line.handshake && line.handshake->key_unknown(); });
}

bool Dial::may_change() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.may_change; });
}

bool Dial::hopeless() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.ended; }) &&
         std::none_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.active() && line.handshake; });
}

std::string Dial::report() const {
  std::string text;
  for (const Line& line : lines_) {
    if (!text.empty()) text += "; ";
    if (line.ended) {
      text += line.why.text();
    } else if (line.handshake) {
      text += to_text(line.address) + (line.handshake->proven() ? " did not say yes or no" : " did not prove who it is");
    } else {
      text += no_answer(line.address).text();
    }
  }
  return text;
}

}  // namespace seto
