#include "src/bootstrap/local_bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/net/local_socket.h"

namespace seto {
namespace {

// The server ends a round at the deadline and says who is missing: its answer may come a little after our own clock.
constexpr std::uint64_t kAnswerGraceMs = 1'000;

constexpr const char* kServerEnded =
    "the rendezvous ended in the middle of the init: the process that made the unique id has ended or was killed";

std::size_t result_limit(int size) {
  return kGatherTotalLimit + sizeof(std::uint64_t) * static_cast<std::size_t>(std::clamp(size, 1, kBootstrapRankLimit));
}

// Long enough for a few bytes that fit any socket.
constexpr std::uint64_t kLastWordMs = 100;

// What is told of a deadline is never that it was stopped: that would end the round for all, and blame those who have not come.
std::uint64_t stated_ms(Deadline until) { return static_cast<std::uint64_t>(until.unless(nullptr).remaining_ms()); }

Status given_up(Rank rank) { return failure(Code::invalid_usage, "rank %d: its init was given up", rank); }

}  // namespace

LocalBootstrap::LocalBootstrap(PrivateFd fd, Rank rank, int size)
    : fd_(std::move(fd)), rank_(rank), size_(size), reader_(result_limit(size)) {}

// Rank and size are judged by the server, so that every rank hears of a wrong one.
Result<LocalBootstrap> LocalBootstrap::join(const UniqueIdBytes& id, Rank rank, int size, Deadline until) {
  SETO_ASSIGN(const UniqueId where, decode(id));
  Result<PrivateFd> fd = connect_local(where.socket_name, SocketKind::stream, until);
  if (!fd.ok() && fd.status().code() == Code::remote_error) {
    return failure(
        Code::remote_error,
        "rank %d: nobody answers for this unique id: it was used before (an id serves one communicator), the process that "
        "made it has ended, or it is on another machine or in another network namespace",
        rank);
  }
  if (!fd.ok()) return fd.status();
  SETO_TRY(check_same_user(fd->get()));
  LocalBootstrap self(std::move(fd).value(), rank, size);
  const Hello hello{where.token, rank, size, stated_ms(until)};
  if (until.stopped()) {  // the others hear of a rank that came and left
    (void)self.send_all(encode_hello(hello), Deadline::after_ms(kLastWordMs)).ok();
    return given_up(rank);
  }
  const Result<Frame> ready = self.exchange(encode_hello(hello), FrameKind::ready, until);
  if (!ready.ok()) return ready.status();
  return self;
}

Result<std::vector<std::string>> LocalBootstrap::all_gather(std::string mine, Deadline until) {
  if (generation_ != fork_generation()) {
    return failure(Code::invalid_usage, "this bootstrap was made before fork() and is dead in the child; make a new one there");
  }
  if (!broken_.ok()) return broken_;
  Result<std::vector<std::string>> all = gather(mine, until);
  if (!all.ok()) {
    broken_ = all.status();
    fd_.close();
  }
  return all;
}

Result<std::vector<std::string>> LocalBootstrap::gather(const std::string& mine, Deadline until) {
  if (mine.size() > kGatherMessageLimit) {
    return failure(Code::invalid_argument, "rank %d: a bootstrap message of %zu bytes is over the limit of %zu", rank_,
                   mine.size(), kGatherMessageLimit);
  }
  const std::string bytes = encode_contribution(stated_ms(until), mine);
  if (until.stopped()) return given_up(rank_);
  SETO_ASSIGN(const Frame result, exchange(bytes, FrameKind::result, until));
  auto all = decode_result(result.body, size_);
  if (!all) return failure(Code::internal, "the rendezvous sent a result that cannot be read");
  return std::move(*all);
}

Result<Frame> LocalBootstrap::exchange(const std::string& bytes, FrameKind answer, Deadline until) {
  const Deadline patience = until.later_ms(kAnswerGraceMs);
  // A server that closed may have said why before: its last words are read even if ours were not taken.
  const Status sent = send_all(bytes, patience);
  if (!sent.ok() && sent.code() != Code::remote_error) return sent;
  SETO_ASSIGN(Frame frame, receive(patience));
  if (frame.kind == FrameKind::failure) return decode_failure(frame.body);
  if (frame.kind != answer) return failure(Code::internal, "the rendezvous gave an answer of the wrong kind");
  return frame;
}

Status LocalBootstrap::send_all(const std::string& bytes, Deadline until) {
  for (std::size_t offset = 0; offset < bytes.size();) {
    const ssize_t sent = send(fd_.get(), bytes.data() + offset, bytes.size() - offset, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      offset += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      SETO_TRY(wait_for(fd_.get(), POLLOUT, until));
    } else if (errno != EINTR) {
      return failure(Code::remote_error, "%s", kServerEnded);
    }
  }
  return {};
}

Result<Frame> LocalBootstrap::receive(Deadline until) {
  std::array<char, 65'536> bytes;
  Frame frame;
  while (true) {
    const FrameReader::Outcome outcome = reader_.next(frame);
    if (outcome == FrameReader::Outcome::frame) return frame;
    if (outcome == FrameReader::Outcome::garbage) return failure(Code::remote_error, "the rendezvous sent garbage");
    if (!wait_for(fd_.get(), POLLIN, until).ok()) {
      return failure(Code::timeout, "rank %d: the rendezvous did not answer before the deadline; its process may be stopped",
                     rank_);
    }
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) reader_.append({bytes.data(), static_cast<std::size_t>(got)});
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return failure(Code::remote_error, "%s", kServerEnded);
  }
}

}  // namespace seto
