#include "src/bootstrap/providers/rendezvous_bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/bootstrap/init_counts.h"
#include "src/bootstrap/rendezvous/outgoing_connection.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

// The server ends a round at the deadline and says who is missing: its answer may come a little after our own clock.
constexpr std::uint64_t kAnswerGraceMs = 1'000;

constexpr int kFirstPauseMs = 10;
constexpr int kLongestPauseMs = 200;
constexpr std::uint64_t kAttemptMs = 3'000;
constexpr int kHangUpLimit = 20;

constexpr const char* kServerEnded =
    "the rendezvous ended in the middle of the init: the process that made the unique id, or of rank 0, has ended or was killed";

// How often it is seen, while results are handed down, whether the init was given up: nobody wakes whoever waits.
constexpr int kLookMs = 20;

// Long enough for a few bytes that fit any socket.
constexpr std::uint64_t kLastWordMs = 300;

// What is told of a deadline is never that it was stopped: that would end the round for all, and blame those who have not come.
std::uint64_t stated_ms(Deadline until) { return static_cast<std::uint64_t>(until.unless(nullptr).remaining_ms()); }

Status given_up(Rank rank) { return failure(Code::invalid_usage, "rank %d: its init was given up", rank); }

std::string nobody_text(const UniqueId& id) {
  std::string text = "nobody answers for this unique id: the process that made it has ended, ";
  if (id.serves == UniqueId::Serves::communicator) text += "it was used before (an id serves one communicator), ";
  if (id.contact.addresses.empty())
    return text + "or it is on another machine or in another network namespace, and has no network";
  return text + "or no address of its machine can be reached from here";
}

RendezvousBootstrap::Miss miss_of(const MemberCall& call) {
  using Miss = RendezvousBootstrap::Miss;
  if (!call.reached()) return Miss::nobody;
  if (!call.over()) return Miss::slow;
  if (call.refused()) return Miss::none;
  return call.hung_up() ? Miss::hung_up : Miss::stranger;
}

Claim claim_of(Rank rank, std::uint64_t number) {
  Claim claim;
  claim.purpose = static_cast<std::uint8_t>(GatheringPurpose::rendezvous);
  claim.caller_context = static_cast<std::uint64_t>(rank);
  claim.attempt = number;
  return claim;
}

}  // namespace

RendezvousBootstrap::RendezvousBootstrap(Request request) : request_(std::move(request)), reader_(result_limit(request_.size)) {}

// Rank and size are judged by the server, so that every rank hears of a wrong one.
Result<RendezvousBootstrap> RendezvousBootstrap::join(Request request, Deadline until, const Again& again) {
  RendezvousBootstrap self(std::move(request));
  SETO_TRY(self.reach(until, again));
  SETO_TRY(self.enter(until));
  return self;
}

Result<RendezvousBootstrap> RendezvousBootstrap::join(const UniqueIdBytes& bytes, Rank rank, int size, Deadline until,
                                                      const NetworkChoice& network) {
  SETO_ASSIGN(const UniqueId id, decode(bytes));
  Request request = request_by(id);
  if (id.serves == UniqueId::Serves::job) request.number = next_init(hex_text(bytes), rank);
  request.rank = rank;
  request.size = size;
  request.network = network;
  return join(std::move(request), until);
}

RendezvousBootstrap::Request RendezvousBootstrap::request_by(const UniqueId& id) {
  Request request;
  request.server = id.contact;
  request.key = rendezvous_key(id.token);
  request.nobody = nobody_text(id);
  request.job_secret = request.key.derive("seto job");
  return request;
}

// There is nothing to wait on for a server that is not there yet, or has too many callers: it is looked for again and again, ever
// more seldom.
Status RendezvousBootstrap::reach(Deadline until, const Again& again) {
  int hang_ups = 0;
  Status heard;
  std::uint64_t attempt_ms = kAttemptMs;
  for (int pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    Miss miss = Miss::none;
    // What was reached by an address of old must not use up the time in which a new one appears.
    Status connected = connect(again ? until.sooner_ms(attempt_ms) : until, miss);
    const bool crowded = miss == Miss::hung_up && ++hang_ups < kHangUpLimit;
    if (connected.ok() || miss == Miss::none || !(crowded || again)) return connected;
    if (miss == Miss::stranger) heard = connected;
    if (until.passed()) return heard.ok() || until.stopped() ? connected : heard;  // more than that the last attempt was cut off
    const Deadline pause = until.sooner_ms(static_cast<std::uint64_t>(pause_ms));
    while (!pause.passed()) static_cast<void>(poll(nullptr, 0, pause.wait_ms()));
    if (until.stopped()) return given_up(request_.rank);
    const bool worth_it = again && again(request_, miss);
    if (until.passed() || !(crowded || worth_it)) return connected;
    if (miss == Miss::slow) attempt_ms *= 2;  // or one that needs longer would never be heard
  }
}

// Once given up, it still tries for as long as a last word takes.
Status RendezvousBootstrap::connect(Deadline until, Miss& miss) {
  bool last_word = until.stopped();
  Deadline patience = last_word ? Deadline::after_ms(kLastWordMs) : until;
  MemberCall call(request_.server, request_.key, claim_of(request_.rank, request_.number));
  call.begin(patience);
  while (!call.over() && !patience.passed()) {
    std::vector<pollfd> entries;
    call.prepare(entries);
    static_cast<void>(poll(entries.data(), entries.size(), std::min(call.wait_ms(), patience.wait_ms())));
    call.advance();
    if (!patience.stopped()) continue;
    patience = Deadline::after_ms(kLastWordMs);
    last_word = true;
  }
  auto fd = call.take();
  if (fd.ok()) {
    fd_ = std::move(fd).value();
    return {};
  }
  if (until.stopped()) return last_word ? given_up(request_.rank) : connect(until, miss);
  const Code code = fd.status().code();
  miss = miss_of(call);
  if (miss == Miss::nobody && code != Code::unavailable) {
    return failure(code, "rank %d: %s (%s)", request_.rank, request_.nobody.c_str(), std::string(fd.status().text()).c_str());
  }
  if (code == Code::timeout) return no_word();
  return failure(code, "rank %d cannot join the rendezvous: %s", request_.rank, std::string(fd.status().text()).c_str());
}

Status RendezvousBootstrap::enter(Deadline until) {
  const auto reach = request_.server.addresses.empty() ? Doors::Reach::machine : Doors::Reach::network;
  seat_ =
      TreeSeat::take({request_.rank, request_.size, request_.number, request_.key.derive("seto tree")}, request_.network, reach);
  const std::string hello = encode_hello({request_.number, request_.rank, request_.size, stated_ms(until), seat_.contact()});
  if (until.stopped()) {  // the others hear of a rank that came and left
    static_cast<void>(send_all(hello, Deadline::after_ms(kLastWordMs)).ok());
    return given_up(request_.rank);
  }
  const Deadline patience = until.later_ms(kAnswerGraceMs);
  // A server that closed may have said why before: its last words are read even if ours were not taken.
  const Status sent = send_all(hello, patience);
  if (!sent.ok() && sent.code() != Code::remote_error) return sent;
  Frame frame;
  for (FrameReader::Outcome outcome = reader_.next(frame); outcome != FrameReader::Outcome::frame;
       outcome = reader_.next(frame)) {
    if (outcome == FrameReader::Outcome::garbage) return failure(Code::remote_error, "the rendezvous sent garbage");
    if (!wait_for(fd_.get(), POLLIN, patience).ok()) return until.stopped() ? given_up(request_.rank) : no_word();
    SETO_TRY(read_some().status());
  }
  if (frame.kind == FrameKind::failure) return decode_failure(frame.body);
  auto parent = decode_ready(frame.body);
  if (frame.kind != FrameKind::ready || !parent)
    return failure(Code::internal, "the rendezvous gave an answer of the wrong kind");
  seat_.set_parent(std::move(*parent));
  return {};
}

Result<std::vector<std::string>> RendezvousBootstrap::all_gather(std::string mine, Deadline until) {
  if (generation_ != fork_generation()) {
    return failure(Code::invalid_usage, "this bootstrap was made before fork() and is dead in the child; make a new one there");
  }
  if (!broken_.ok()) return broken_;
  Result<std::vector<std::string>> all = gather(mine, until);
  if (!all.ok()) {
    broken_ = all.status();
    fd_.close();
    seat_ = TreeSeat();
  }
  return all;
}

Result<std::vector<std::string>> RendezvousBootstrap::gather(const std::string& mine, Deadline until) {
  if (mine.size() > kGatherMessageLimit) {
    return failure(Code::invalid_argument, "rank %d: a bootstrap message of %zu bytes is over the limit of %zu", request_.rank,
                   mine.size(), kGatherMessageLimit);
  }
  const std::string bytes = encode_contribution(stated_ms(until), mine);
  if (until.stopped()) return given_up(request_.rank);
  const Status sent = send_all(bytes, until.later_ms(kAnswerGraceMs));
  if (!sent.ok() && sent.code() != Code::remote_error) return sent;
  SETO_ASSIGN(const std::string body, wait_for_result(until));
  auto all = decode_result(body, request_.size);
  if (!all) return failure(Code::internal, "the rendezvous sent a result that cannot be read");
  return std::move(*all);
}

// Reads the server, and drives the tree until the result is here and handed on.
Result<std::string> RendezvousBootstrap::wait_for_result(Deadline until) {
  Round round;
  const Deadline patience = until.later_ms(kAnswerGraceMs);
  while (true) {
    SETO_TRY(hear_server(round));
    seat_.advance();
    if (round.complete && !round.result) {
      round.result = seat_.take_result();
      if (!round.result && !round.asked && (seat_.parent_lost() || until.passed())) SETO_TRY(ask(round));
    }
    if (round.result && round.complete && !std::exchange(round.handing_down, true)) seat_.hand_down(*round.result);
    if (round.result && seat_.handed_down()) return std::move(*round.result);
    if (until.stopped() && round.result) return given_up(request_.rank);  // whom it has not served asks the server
    if (patience.passed() && !round.result) return until.stopped() ? given_up(request_.rank) : no_word();
    std::vector<pollfd> entries{{round.server_gone ? -1 : fd_.get(), POLLIN, 0}};
    seat_.prepare(entries);
    const int wait = std::min(seat_.wait_ms(), round.result ? kLookMs : patience.wait_ms());
    static_cast<void>(poll(entries.data(), entries.size(), wait));
  }
}

Status RendezvousBootstrap::hear_server(Round& round) {
  while (!round.server_gone) {
    Frame frame;
    const FrameReader::Outcome outcome = reader_.next(frame);
    if (outcome == FrameReader::Outcome::garbage) return failure(Code::remote_error, "the rendezvous sent garbage");
    if (outcome == FrameReader::Outcome::frame) {
      SETO_TRY(hear(round, frame));
      continue;
    }
    auto more = read_some();
    if (more.ok() && *more) continue;
    if (more.ok()) return {};
    round.server_gone = round.result || (round.complete && !round.asked);
    if (!round.server_gone) return more.status();
  }
  return {};
}

Status RendezvousBootstrap::hear(Round& round, Frame& frame) {
  switch (frame.kind) {
    case FrameKind::tree_result:
      round.complete = true;
      round.result = std::move(frame.body);
      return {};
    case FrameKind::result:
      round.result = std::move(frame.body);
      return {};
    case FrameKind::complete:
      round.complete = true;
      seat_.expect();
      return {};
    case FrameKind::orphan:
      if (const auto child = decode_orphan(frame.body)) seat_.orphaned(*child);
      return {};
    case FrameKind::failure:
      // Of a later round than this one, which has ended well: it is heard again when there is a next.
      if (!round.complete && !round.result) return decode_failure(frame.body);
      broken_ = decode_failure(frame.body);
      return {};
    default:
      return failure(Code::internal, "the rendezvous gave an answer of the wrong kind");
  }
}

Status RendezvousBootstrap::ask(Round& round) {
  if (round.server_gone) return failure(Code::remote_error, "%s", kServerEnded);
  round.asked = true;
  return send_all(encode_frame(FrameKind::ask, {}), Deadline::after_ms(kAnswerGraceMs));
}

Status RendezvousBootstrap::send_all(const std::string& bytes, Deadline until) {
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

Result<bool> RendezvousBootstrap::read_some() {
  std::array<char, 65'536> bytes;
  while (true) {
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) return failure(Code::remote_error, "%s", kServerEnded);
    reader_.append({bytes.data(), static_cast<std::size_t>(got)});
    return true;
  }
}

Status RendezvousBootstrap::no_word() const {
  return failure(
      Code::timeout,
      "rank %d: the rendezvous did not answer before the deadline of the init (SETO_INIT_TIMEOUT_MS); its process may be stopped",
      request_.rank);
}

}  // namespace seto
