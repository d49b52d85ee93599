// Which routes the frames of a link take, and which socket of them.

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "src/base/log.h"
#include "transports/tcp/flow/rail_news.h"
#include "transports/tcp/link/link.h"
#include "transports/tcp/link/tcp_connection.h"

namespace seto::tcp {

void Link::add_flows() {
  if (sockets_.empty()) return;
  for (const auto& socket : sockets_) {
    flows_.resize(std::max(flows_.size(), socket->route + 1));
    ++flow_of(*socket).sockets;
  }
  // Rails are opened later: until then, data goes over the sockets.
  const std::size_t first = rails() > 0 ? 1 : 0;
  used_routes_.store(1U << first, std::memory_order_relaxed);
  for (std::size_t route = 0; route < flows_.size(); ++route) {
    RouteFlow& flow = flows_[route];
    flow.used = uses_several_routes() || route == first;
    if (flow.used) used_routes_.fetch_or(1U << route, std::memory_order_relaxed);
    flow.round_trip_us = route == 0 ? round_trip_us_ : round_trip_of(route);
    if (far()) flow.sampler = std::make_unique<RateSampler>(flow.sockets, flow.round_trip_us);
    if (sockets_.size() > 1 && round_trip_us_ >= FlightLimit::kLeastRoundTripUs)
      flow.flight = std::make_unique<FlightLimit>(flow.round_trip_us);
  }
  note_ways();
}

// Only when sockets are opened or data takes another route: two system calls for each socket.
void Link::note_ways() {
  for (const auto& socket : sockets_)
    if (socket->live() && flow_of(*socket).used) ways_.add(socket->pipe.way());
}

std::size_t Link::best_route() const {
  const std::size_t none = flows_.size();
  std::size_t whole = none;
  std::size_t live = none;
  for (const auto& socket : sockets_) {
    if (!socket->live()) continue;
    live = std::min(live, socket->route);
    if (!socket->stalled) whole = std::min(whole, socket->route);
  }
  return whole < none ? whole : (live < none ? live : route());
}

// The least busy socket of a route. One that the path slows down has more on its way than others: with a limit, that decides.
Link::Socket* Link::next_socket() {
  const bool presses = has_pressing();
  const bool known = uses_several_routes() && std::any_of(flows_.begin(), flows_.end(),
                                                          [](const RouteFlow& flow) { return flow.used && flow.rate() > 0; });
  std::array<Socket*, kMostRoutes> least{};
  std::array<bool, kMostRoutes> whole{};  // a socket may have broken since the flush began
  for (const auto& socket : sockets_) {
    if (!carries(*socket) || socket->stalled || stands_by(*socket)) continue;
    whole[socket->route] = true;
    if (socket->full || !flow_of(*socket).is_open(presses, known)) continue;
    const auto busy = flow_of(*socket).is_limited() ? &Socket::in_flight : &Socket::unsent;
    Socket*& found = least[socket->route];
    if (found == nullptr || socket.get()->*busy < found->*busy) found = socket.get();
  }
  if (flows_.size() == 1) return least[0];
  if (rails() > 0) return least[presses ? route() : route_of(waiting_.front())];
  std::array<RouteOffer, kMostRoutes> offers{};
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const RouteFlow& flow = flows_[i];
    const std::uint32_t round_trip_us = flow.flight == nullptr ? flow.round_trip_us : flow.flight->base_us();
    offers[i] = {whole[i], least[i] != nullptr, flow.rate(), flow.busy_s(), static_cast<double>(round_trip_us)};
  }
  // Frames that press do not wait for a route that is busy.
  const double waiting = presses ? std::numeric_limits<double>::infinity() : static_cast<double>(waiting_bytes_);
  const auto route = route_for_next({offers.data(), flows_.size()}, kStripe, waiting);
  return route ? least[*route] : nullptr;
}

std::uint32_t Link::round_trip_of(std::size_t route) const {
  const auto first = std::find_if(sockets_.begin(), sockets_.end(),
                                  [route](const auto& socket) { return socket->live() && socket->route == route; });
  const std::optional<TcpDelivery> seen = first == sockets_.end() ? std::nullopt : (*first)->pipe.delivery();
  return seen && seen->round_trip_us != 0 ? seen->round_trip_us : round_trip_us_;
}

std::size_t Link::place_on_route(std::size_t socket) const {
  const std::size_t route = sockets_[socket]->route;
  return static_cast<std::size_t>(std::count_if(sockets_.begin(), sockets_.begin() + static_cast<std::ptrdiff_t>(socket),
                                                [route](const auto& one) { return one->route == route; }));
}

std::uint64_t Link::round_trip_ns() const {
  std::uint64_t longest_us = round_trip_us_;
  for (const RouteFlow& flow : flows_)
    if (flow.used) longest_us = std::max<std::uint64_t>(longest_us, flow.round_trip_us);
  return 1'000 * longest_us;
}

// Rate and round trip are those of the route, so they are measured anew where one carries frames again.
void Link::follow_routes() {
  if (flows_.empty()) return;  // the sockets are not open yet
  const std::size_t best = best_route();
  const bool chooses = rails() > 0 && choice_ != nullptr;
  if (chooses) {
    const auto carrying =
        std::count_if(sockets_.begin(), sockets_.end(), [](const auto& one) { return one->live() && one->route == 0; });
    choice_->look(static_cast<std::size_t>(carrying), is_whole(1), monotonic_ns());
  }
  const std::size_t before = route();
  bool changed = false;
  std::uint32_t used = 0;
  for (std::size_t route = 0; route < flows_.size(); ++route) {
    RouteFlow& flow = flows_[route];
    const bool beside = uses_several_routes() || (chooses && choice_->uses_sockets());
    const bool uses = route == best || (beside && is_whole(route));
    if (uses) used |= 1U << route;
    if (uses == flow.used) continue;
    changed = true;
    flow.used = uses;
    if (uses) flow.begin(round_trip_of(route));
    if (uses_several_routes())
      SETO_LOG(warn, "path %zu of SETO_PATHS %s", route + 1,
               uses ? "carries data again" : "stands still or is broken: others carry data");
  }
  if (rails() > 0 && best != before) {
    const char* const text = best == 0 ? "data goes over rails" : "no rail works: data goes over TCP";
    if (rail_news().goes_over(best == 0))
      SETO_LOG(info, "%s (said for the first peer only)", text);
    else
      SETO_LOG(debug, "%s", text);
  }
  if (!uses_several_routes() && rails() == 0 && best != before)
    SETO_LOG(warn, "data goes over path %zu of SETO_PATHS, no more over path %zu%s", best + 1, before + 1,
             best > before ? ", which stands still or is broken" : "");
  used_routes_.store(used, std::memory_order_relaxed);
  if (!changed) return;
  pace_sockets();
  note_ways();
}

// Frames of both ways have numbers and places, so the peer needs no order between them (resume::Arrivals).
// Bytes in memory of a GPU would have to be copied first.
std::size_t Link::route_of(const Outgoing& outgoing) const {
  const bool beside = choice_ != nullptr && !outgoing.is_of_gpu() && outgoing.frame.length >= BytePipe::kLongPart &&
                      choice_->next() == WayChoice::Way::sockets;
  return beside && flows_[1].used ? 1 : route();
}

void Link::say_choice() const {
  SETO_LOG(info, "payloads of %zu KiB and more go over %s: %.1f MB/s over rails, %.1f MB/s over TCP", BytePipe::kLongPart >> 10,
           choice_->chosen() == WayChoice::Way::rails ? "rails" : "TCP", choice_->rate(WayChoice::Way::rails) * 1e-6,
           choice_->rate(WayChoice::Way::sockets) * 1e-6);
}

// ---- rails ----

// They lie on a route of their own, which is better than that of the sockets. Places without a rail are like broken paths.
void Link::add_rails() {
  for (std::size_t rail = 0; rail < rails(); ++rail) {
    sockets_.push_back(std::make_unique_for_overwrite<Socket>());
    sockets_.back()->index = static_cast<std::uint32_t>(sockets_.size() - 1);
    sockets_.back()->broken = true;
  }
}

bool Link::is_used() const { return heard() > 0 || (kept_ != nullptr && (acknowledged_ > 0 || !kept_->all_acknowledged())); }

const BytePipe* Link::rail(std::size_t path) const { return sockets_[path]->live() ? sockets_[path]->pipe.rail() : nullptr; }

bool Link::has_live_rail() const {
  return std::any_of(sockets_.end() - static_cast<std::ptrdiff_t>(open() ? rails() : 0), sockets_.end(),
                     [](const auto& socket) { return socket->live(); });
}

bool Link::rails_read(const std::byte* memory, std::size_t size) const {
  if (broken() || !continues() || kept_ == nullptr || !has_live_rail() || route() != 0) return false;
  if (choice_ != nullptr && choice_->chosen() == WayChoice::Way::sockets) return false;
  return std::all_of(sockets_.end() - static_cast<std::ptrdiff_t>(rails()), sockets_.end(),
                     [&](const auto& socket) { return !socket->live() || socket->pipe.reads(memory, size); });
}

void Link::advance_rails(Domain& domain) {
  if (rail_opener_ != nullptr && kept_ != nullptr && !partly_ended_) rail_opener_->advance(domain, *this);
}

bool Link::receive_rails() {
  if (rails() == 0 || !open() || broken() || kept_ == nullptr) return false;
  bool moved = false;
  for (std::size_t path = sockets_.size() - rails(); path < sockets_.size() && !broken(); ++path) {
    moved = unpin_payloads(*sockets_[path]) || moved;
    if (sockets_[path]->live()) moved = receive(*sockets_[path]) || moved;
  }
  rails_end_ = false;
  return moved;
}

// The device of the peer had acknowledged what this end sent, but its program may never have read that. So the device of this
// end reports no failure before it sends again, and it would never send if both programs wait for each other.
void Link::peer_lost_rail(std::size_t path, std::uint32_t attempt) {
  if (broken() || kept_ == nullptr || path >= sockets_.size()) return;
  Socket& socket = *sockets_[path];
  const bool any = attempt == kAnyAttempt;
  if (socket.offered.valid() && (any || socket.attempt == attempt)) {
    socket.offered.close();
    --offers_;
    if (any) rail_opener_->broke(path - (sockets_.size() - rails()), socket.attempt);  // the peer may use it
  }
  if (socket.live() && socket.pipe.rail() != nullptr && (any || socket.of_attempt == attempt)) {
    path_broke(socket, failure(Code::unavailable, "it broke at the peer"));
  }
}

// ---- payloads that a device reads ----

// `sent`: bytes that the rail has accepted just now, not yet counted by wrote().
void Link::pin_payloads(Socket& socket, std::size_t sent) {
  if (socket.pipe.rail() == nullptr) return;
  const std::uint64_t accepted = socket.pipe.accepted();
  const std::uint64_t released = socket.pipe.released();
  if (released == accepted) return;
  const std::uint64_t now = monotonic_ns();
  std::uint64_t end = accepted - sent - socket.written;  // of the frames so far
  for (std::size_t i = 0; i < socket.taken && end < accepted; ++i) {
    const Frame& frame = socket.batch[i].frame;
    end += sizeof(Frame) + frame.length;
    const std::uint64_t upto = std::min(end, accepted);
    const bool some = upto > accepted - sent && upto > end - frame.length;
    const bool reads = frame.length >= BytePipe::kLongPart || kept_->is_of_gpu(frame.sequence);
    if (some && upto > released && reads && kept_->keeps(frame.sequence)) socket.pinned.pin(*kept_, frame.sequence, upto, now);
  }
}

// True: some may be written again. A device reports each send, or fails, within two seconds.
bool Link::unpin_payloads(Socket& socket) {
  if (socket.pinned.empty()) return false;
  if (socket.pinned.released(*kept_, socket.pipe.released())) return true;
  if (!socket.live() || monotonic_ns() - socket.pinned.since_ns() < kLongestReadNs) return false;
  path_broke(socket, failure(Code::unavailable, "its device has not reported a send for %llu s",
                             static_cast<unsigned long long>(kLongestReadNs / 1'000'000'000)));
  return true;
}

// The medium reads nothing any more before its payloads may be written, or are sent from there over another path.
void Link::drop_pins(Socket& socket) {
  if (socket.pinned.empty()) return;
  socket.pipe.shut_down();
  socket.pinned.clear(*kept_);
}

// The sockets tell that the peer has closed the link, for no rail does. What it had sent over rails before has been polled since
// that was read.
void Link::end_rails() {
  if (rails() == 0) return;
  for (const auto& socket : sockets_)
    if (socket->live() && socket->pipe.rail() == nullptr) return;
  for (const auto& socket : sockets_) {
    for (bool more = true; more && socket->live() && !broken();) {
      const Dry dry = read(*socket);
      if (!dry.failure.ok()) return lose(dry.failure, socket.get());
      more = dry.bytes > 0 && dry.error == 0;
    }
    if (!socket->live() || broken()) continue;
    socket->ended = true;
    socket->pipe.shut_down();
    empty_path(*socket);
  }
  if (!broken()) look_for_paths(closed_by_peer());
}

// One is set up or was ended, or the sockets have ended and the rails have not.
bool Link::needs_pumps_for_rails() const {
  return (rail_opener_ != nullptr && rail_opener_->busy()) || (partly_ended_ && rails() > 0) || rails_end_;
}

// Only with the lock of the domain, which a link need not outlive.
void Link::close_rails() {
  if (rail_opener_ != nullptr) rail_opener_->give_up();
  if (!open()) return;
  const std::lock_guard lock(descriptors_mutex_);
  for (std::size_t path = sockets_.size() - rails(); path < sockets_.size(); ++path) {
    sockets_[path]->broken = true;
    sockets_[path]->pipe.close();
  }
}

}  // namespace seto::tcp
