#include "src/bootstrap/providers/rendezvous_bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/bootstrap/init_counts.h"
#include "src/bootstrap/rendezvous/outgoing_connection.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

// The server ends a round at the deadline and names the missing ranks. Its answer may arrive a little after the deadline of this
// clock.
constexpr std::uint64_t kAnswerGraceMs = 1'000;

constexpr int kFirstPauseMs = 10;
constexpr int kLongestPauseMs = 200;
constexpr std::uint64_t kAttemptMs = 3'000;
constexpr int kHangUpLimit = 20;

constexpr const char* kServerEnded =
    "the rendezvous ended during the init: the process that made the unique id, or of rank 0, has ended or was killed";

// The interval of the check whether the init was given up, while results are forwarded: no event wakes the waiting thread.
constexpr int kLookMs = 20;

// Long enough to send a few bytes, which fit any socket buffer.
constexpr std::uint64_t kLeaveMs = 300;

// The deadline as sent to the server does not include the stop: that would end the round for all ranks and blame those that have
// not joined.
std::uint64_t stated_ms(Deadline until) { return static_cast<std::uint64_t>(until.unless(nullptr).remaining_ms()); }

Status given_up(Rank rank) { return failure(Code::invalid_usage, "rank %d: its init was given up", rank); }

std::string unreachable_text(const UniqueId& id) {
  std::string text = "no process answers for this unique id: the process that made it has ended, ";
  if (id.serves == UniqueId::Serves::communicator) text += "it was used before (an id serves one communicator), ";
  if (id.address.addresses.empty())
    return text + "or it is on another machine or in another network namespace, and has no network";
  return text + "or no address of its machine can be reached from here";
}

RendezvousBootstrap::ConnectFailure connect_failure_of(const OutgoingConnection& call) {
  using ConnectFailure = RendezvousBootstrap::ConnectFailure;
  if (!call.reached()) return ConnectFailure::not_listening;
  if (!call.over()) return ConnectFailure::silent;
  if (call.refused()) return ConnectFailure::none;
  return call.hung_up() ? ConnectFailure::closed : ConnectFailure::other_job;
}

Claim claim_of(Rank rank, std::uint64_t number) {
  Claim claim;
  claim.purpose = static_cast<std::uint8_t>(RendezvousPurpose::rendezvous);
  claim.caller_context = static_cast<std::uint64_t>(rank);
  claim.attempt = number;
  return claim;
}

}  // namespace

RendezvousBootstrap::RendezvousBootstrap(Request request) : request_(std::move(request)), reader_(result_limit(request_.size)) {}

// The server checks rank and size, so that every rank fails with the reason.
Result<RendezvousBootstrap> RendezvousBootstrap::join(Request request, Deadline until, const Retry& retry) {
  RendezvousBootstrap self(std::move(request));
  SETO_TRY(self.reach(until, retry));
  SETO_TRY(self.send_hello(until));
  return self;
}

Result<RendezvousBootstrap> RendezvousBootstrap::join(const UniqueIdBytes& bytes, Rank rank, int size, Deadline until,
                                                      const NetworkChoice& network) {
  SETO_ASSIGN(const UniqueId id, decode(bytes));
  Request request = request_for(id);
  if (id.serves == UniqueId::Serves::job) request.number = next_init(hex_text(bytes), rank);
  request.rank = rank;
  request.size = size;
  request.network = network;
  return join(std::move(request), until);
}

RendezvousBootstrap::Request RendezvousBootstrap::request_for(const UniqueId& id) {
  Request request;
  request.server = id.address;
  request.key = rendezvous_key(id.token);
  request.unreachable_text = unreachable_text(id);
  request.job_secret = request.key.derive("seto job");
  return request;
}

// A server that has not started yet, or has too many connections, gives no event to wait for. So the attempts are repeated, with
// growing pauses.
Status RendezvousBootstrap::reach(Deadline until, const Retry& retry) {
  int hang_ups = 0;
  Status reason;
  std::uint64_t attempt_ms = kAttemptMs;
  const std::uint64_t begun_ns = monotonic_ns();
  for (int pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    ConnectFailure failed_by = ConnectFailure::none;
    // An attempt at an outdated address must not use up the time in which a new address appears.
    Status connected = connect(retry ? until.sooner_ms(attempt_ms) : until, failed_by);
    const bool crowded = failed_by == ConnectFailure::closed && ++hang_ups < kHangUpLimit;
    if (connected.ok() || failed_by == ConnectFailure::none || !(crowded || retry)) return connected;
    if (failed_by == ConnectFailure::other_job) reason = connected;
    if (until.passed())
      return reason.ok() || until.stopped() ? connected : reason;  // explains more than the timeout of the last attempt
    tell_patience(begun_ns, failed_by);
    const Deadline pause = until.sooner_ms(static_cast<std::uint64_t>(pause_ms));
    while (!pause.passed()) static_cast<void>(poll(nullptr, 0, pause.wait_ms()));
    if (until.stopped()) return given_up(request_.rank);
    const bool worth_it = retry && retry(request_, failed_by);
    if (until.passed() || !(crowded || worth_it)) return connected;
    if (failed_by == ConnectFailure::silent) attempt_ms *= 2;  // a server may need longer than the first limit
  }
}

// The deadline of an init is far away, and a wrong address or a firewall must not be silent until then.
void RendezvousBootstrap::tell_patience(std::uint64_t begun_ns, ConnectFailure failed_by) {
  const std::uint64_t tried_ms = (monotonic_ns() - begun_ns) / 1'000'000;
  if (request_.goal.empty() || told_patience_ || tried_ms < request_.tell_after_ms) return;
  told_patience_ = true;
  const bool silent = failed_by == ConnectFailure::silent;
  SETO_LOG(warn,
           "rank %d has tried for %llu s to reach %s (%s); check that rank 0 was started, and that its site lets this port in",
           request_.rank, static_cast<unsigned long long>(tried_ms / 1'000), request_.goal.c_str(),
           silent ? "it accepts the connection, but does not answer" : latest_failure_.c_str());
}

// After a stop it still tries for kLeaveMs, to report that this rank has left.
Status RendezvousBootstrap::connect(Deadline until, ConnectFailure& failed_by) {
  bool last_word = until.stopped();
  Deadline patience = last_word ? Deadline::after_ms(kLeaveMs) : until;
  OutgoingConnection call(request_.server, request_.key, claim_of(request_.rank, request_.number), request_.network.tls);
  call.begin(patience);
  while (!call.over() && !patience.passed()) {
    std::vector<pollfd> entries;
    call.prepare(entries);
    static_cast<void>(poll(entries.data(), entries.size(), std::min(call.wait_ms(), patience.wait_ms())));
    call.advance();
    if (!patience.stopped()) continue;
    patience = Deadline::after_ms(kLeaveMs);
    last_word = true;
  }
  auto fd = call.take();
  if (fd.ok()) {
    fd_ = std::move(fd).value();
    return {};
  }
  if (until.stopped()) return last_word ? given_up(request_.rank) : connect(until, failed_by);
  const Code code = fd.status().code();
  failed_by = connect_failure_of(call);
  latest_failure_ = fd.status().text();
  if (failed_by == ConnectFailure::not_listening && code != Code::unavailable) {
    return failure(code, "rank %d: %s (%s)", request_.rank, request_.unreachable_text.c_str(),
                   std::string(fd.status().text()).c_str());
  }
  if (code == Code::timeout) return no_answer_in_time();
  return failure(code, "rank %d cannot join the rendezvous: %s", request_.rank, std::string(fd.status().text()).c_str());
}

Status RendezvousBootstrap::send_hello(Deadline until) {
  const auto reach = request_.server.addresses.empty() ? Listeners::Reach::machine : Listeners::Reach::network;
  tree_node_ = ResultTreeNode::create({request_.rank, request_.size, request_.number, request_.key.derive("seto tree")},
                                      request_.network, reach);
  const std::string hello = encode_hello({request_.number, request_.rank, request_.size, stated_ms(until), tree_node_.address()});
  if (until.stopped()) {  // the server reports to the others that this rank has left
    static_cast<void>(send_all(hello, Deadline::after_ms(kLeaveMs)).ok());
    return given_up(request_.rank);
  }
  const Deadline patience = until.later_ms(kAnswerGraceMs);
  // A server that closed the connection may have sent a reason before. It is read even if the hello could not be sent.
  const Status sent = send_all(hello, patience);
  if (!sent.ok() && sent.code() != Code::remote_error) return sent;
  Frame frame;
  for (FrameReader::Outcome outcome = reader_.next(frame); outcome != FrameReader::Outcome::frame;
       outcome = reader_.next(frame)) {
    if (outcome == FrameReader::Outcome::garbage) return failure(Code::remote_error, "the rendezvous sent malformed data");
    if (!fd_.pending() && !wait_for(fd_.get(), POLLIN, patience).ok())
      return until.stopped() ? given_up(request_.rank) : no_answer_in_time();
    SETO_TRY(read_some().status());
  }
  if (frame.kind == FrameKind::failure) return decode_failure(frame.body);
  auto parent = decode_ready(frame.body);
  if (frame.kind != FrameKind::ready || !parent) return failure(Code::internal, "the rendezvous sent a frame of the wrong kind");
  tree_node_.set_parent(std::move(*parent));
  return {};
}

Result<std::vector<std::string>> RendezvousBootstrap::all_gather(std::string mine, Deadline until) {
  if (generation_ != fork_generation()) {
    return failure(Code::invalid_usage,
                   "this bootstrap was made before fork() and cannot be used in the child; make a new one there");
  }
  if (!broken_.ok()) return broken_;
  Result<std::vector<std::string>> all = gather(mine, until);
  if (!all.ok()) {
    broken_ = all.status();
    fd_.close();
    tree_node_ = ResultTreeNode();
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
  if (!all) return failure(Code::internal, "the rendezvous sent a malformed result");
  return std::move(*all);
}

// Reads the server's frames and drives the tree until the result is here and has been forwarded.
Result<std::string> RendezvousBootstrap::wait_for_result(Deadline until) {
  Round round;
  const Deadline patience = until.later_ms(kAnswerGraceMs);
  while (true) {
    SETO_TRY(read_server(round));
    tree_node_.advance();
    if (round.complete && !round.result) {
      round.result = tree_node_.take_result();
      if (!round.result && !round.asked && (tree_node_.parent_lost() || until.passed())) SETO_TRY(ask(round));
    }
    if (round.result && round.complete && !std::exchange(round.sent_to_children, true))
      tree_node_.send_to_children(*round.result);
    if (round.result && tree_node_.children_served()) return std::move(*round.result);
    if (until.stopped() && round.result) return given_up(request_.rank);  // children without the result ask the server
    if (patience.passed() && !round.result) return until.stopped() ? given_up(request_.rank) : no_answer_in_time();
    std::vector<pollfd> entries{{round.server_lost ? -1 : fd_.get(), POLLIN, 0}};
    tree_node_.prepare(entries);
    const int wait = std::min(tree_node_.wait_ms(), round.result ? kLookMs : patience.wait_ms());
    static_cast<void>(poll(entries.data(), entries.size(), wait));
  }
}

Status RendezvousBootstrap::read_server(Round& round) {
  while (!round.server_lost) {
    Frame frame;
    const FrameReader::Outcome outcome = reader_.next(frame);
    if (outcome == FrameReader::Outcome::garbage) return failure(Code::remote_error, "the rendezvous sent malformed data");
    if (outcome == FrameReader::Outcome::frame) {
      SETO_TRY(handle(round, frame));
      continue;
    }
    auto more = read_some();
    if (more.ok() && *more) continue;
    if (more.ok()) return {};
    round.server_lost = round.result || (round.complete && !round.asked);
    if (!round.server_lost) return more.status();
  }
  return {};
}

Status RendezvousBootstrap::handle(Round& round, Frame& frame) {
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
      tree_node_.expect();
      return {};
    case FrameKind::orphan:
      if (const auto child = decode_orphan(frame.body)) tree_node_.orphaned(*child);
      return {};
    case FrameKind::failure:
      // The failure concerns a later round; this one has succeeded. The next round finds the failure again.
      if (!round.complete && !round.result) return decode_failure(frame.body);
      broken_ = decode_failure(frame.body);
      return {};
    default:
      return failure(Code::internal, "the rendezvous sent a frame of the wrong kind");
  }
}

Status RendezvousBootstrap::ask(Round& round) {
  if (round.server_lost) return failure(Code::remote_error, "%s", kServerEnded);
  round.asked = true;
  return send_all(encode_frame(FrameKind::ask, {}), Deadline::after_ms(kAnswerGraceMs));
}

Status RendezvousBootstrap::send_all(const std::string& bytes, Deadline until) {
  for (std::size_t offset = 0; offset < bytes.size();) {
    const ssize_t sent = fd_.send(std::string_view(bytes).substr(offset));
    if (sent >= 0) {
      offset += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      SETO_TRY(wait_for(fd_.get(), POLLOUT, until));
    } else {
      return failure(Code::remote_error, "%s", kServerEnded);
    }
  }
  while (!fd_.flush()) {
    if (errno != EAGAIN) return failure(Code::remote_error, "%s", kServerEnded);
    SETO_TRY(wait_for(fd_.get(), POLLOUT, until));
  }
  return {};
}

Result<bool> RendezvousBootstrap::read_some() {
  std::array<char, 65'536> bytes;
  const ssize_t got = fd_.receive(bytes.data(), bytes.size());
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) return failure(Code::remote_error, "%s", kServerEnded);
  reader_.append({bytes.data(), static_cast<std::size_t>(got)});
  return true;
}

Status RendezvousBootstrap::no_answer_in_time() const {
  return failure(
      Code::timeout,
      "rank %d: the rendezvous did not answer before the deadline of the init (SETO_INIT_TIMEOUT_MS); its process may be stopped",
      request_.rank);
}

}  // namespace seto
