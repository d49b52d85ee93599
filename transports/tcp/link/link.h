#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/far_link.h"
#include "src/base/result.h"
#include "src/net/secret.h"
#include "src/net/tcp_delivery.h"
#include "transports/resume/acknowledgement_policy.h"
#include "transports/resume/arrivals.h"
#include "transports/resume/retention.h"
#include "transports/tcp/flow/route_flow.h"
#include "transports/tcp/flow/socket_count.h"
#include "transports/tcp/flow/way_choice.h"
#include "transports/tcp/frames/frame.h"
#include "transports/tcp/frames/places.h"
#include "transports/tcp/link/fifo.h"
#include "transports/tcp/link/limits.h"
#include "transports/tcp/link/link_socket.h"
#include "transports/tcp/link/link_users.h"
#include "transports/tcp/link/receive_buffers.h"
#include "transports/tcp/link/routes.h"
#include "transports/tcp/link/seen_traffic.h"

namespace seto::tcp {

[[nodiscard]] Status connection_failure(const std::string& error);
[[nodiscard]] Status closed_by_peer();

// A reliable connection to one context over one or several sockets, shared by all communicators of the two contexts. Frames wait
// in one queue, and the socket with the fewest unsent bytes takes the next one (of a far link: the fewest on their way), so that
// a slow socket delays only the frames that it has taken. A link may begin without sockets: then frames wait until they are open.
//
// In a link that continues (decision 24) each socket is a path that may break without the link: frames are kept until the peer
// has them, and what a broken path has taken is sent again over the others, or over the next one. Another link breaks with the
// first of its sockets, and keeps nothing. All calls hold the lock of the domain, except where noted.
class Link final {
 public:
  using Setup = LinkSetup;
  explicit Link(Setup setup);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  // Frames of that communicator go to the sink from now on; the peer is member `member`, this end member `own`. Queues an `open`
  // frame for each socket, because a frame of the communicator must never arrive before one.
  void enter(std::uint64_t peer_group, Sink& sink, std::uint32_t member, std::uint32_t own);
  // Drops all further input of that communicator, also the rest of a partly read frame. Queued frames are still sent.
  void leave(std::uint64_t peer_group);

  [[nodiscard]] bool open() const { return !sockets_.empty(); }  // the sockets have been opened
  [[nodiscard]] bool was_open() const { return lasting_sockets_.load(std::memory_order_acquire) > 0; }  // any thread: the same
  // This end has queued data, or the sockets were open from the beginning. Without that, a departure needs no frame.
  [[nodiscard]] bool needed() const { return needed_; }
  // The same of the peer, as it says on the control channel before any status record that is later than its first data.
  void peer_needs() { peer_needs_ = true; }
  [[nodiscard]] bool needed_by_peer() const { return peer_needs_; }
  void set_dialer(std::shared_ptr<PathDialer> dialer);
  // Likewise: so many places for rails.
  void set_rails(std::size_t rails, std::shared_ptr<RailOpener> opener) {
    rails_.store(rails, std::memory_order_relaxed);
    rail_opener_ = std::move(opener);
  }
  void set_routes(std::size_t routes) { routes_.store(routes, std::memory_order_relaxed); }
  void set_adapts(bool adapts) { adapts_ = adapts; }
  // As ConnectRequest::path.
  [[nodiscard]] std::uint8_t path_to_request(std::size_t socket) const {
    return tcp::path_to_request(socket, sockets_.size(), routes());
  }
  // The sockets that its opener has opened. Not after the connection broke.
  void take_sockets(std::vector<SecureStream> sockets);

  // Adds a frame to the queue; flush() writes it. A broken connection ignores it. Urgent frames are short and overtake frames
  // that no socket has taken; they do not cause sockets to be opened.
  void queue(Outgoing outgoing);
  void queue_urgent(const Frame& frame, const std::byte* payload = nullptr, std::shared_ptr<resume::Lender> lender = nullptr);
  // Stops reading from a buffer whose frames count there. Frames that are not begun lose their payload, so that their messages
  // never become complete; the rest of a partly written frame is copied, and so are frames that are kept. Without memory for
  // that the link breaks: a call must end. False: a rail reads that memory, or it comes from a GPU: call again after a pump.
  [[nodiscard]] bool recall(const Unwritten* unwritten, const resume::Lender& lender);
  // No frame waits for that memory in a queue any more. Copies what is kept of it, so that its owner may write there. False: as
  // for recall(), or there is no memory for a copy.
  [[nodiscard]] bool give_back(const resume::Lender& lender) { return kept_ == nullptr || kept_->give_back(lender); }

  // Stops writing to that memory: the rest of a payload that is being read into it is dropped.
  void turn_away(const std::byte* memory, std::size_t size);
  // Lets the rails of the peer write payloads of that stream where they belong. True: a frame that says so waits.
  bool tell_place(const Frame& stream, const Placement& wanted);
  // The caller has taken that slice of the stream.
  void end_place(const Frame& stream, Mark released);

  // Read and write as far as the sockets allow. True: bytes moved.
  bool receive();
  bool flush();
  // Something is to be written as soon as the sockets have room.
  [[nodiscard]] bool has_output() const;
  // The same, or the peer has not acknowledged everything, or an acknowledgement waits for its time: a thread has to pump.
  [[nodiscard]] bool unsent() const { return has_output() || (open() && is_continuing()); }
  // Then: only because of what the peer or this end has not acknowledged yet, and the link is near.
  [[nodiscard]] bool only_waits() const;
  // Its frames have numbers that the peer acknowledges: it has several sockets, or continues.
  [[nodiscard]] bool numbered() const { return arrivals_ != nullptr; }
  // Its frames are kept until they are acknowledged, and its sockets may break.
  [[nodiscard]] bool continues() const { return numbered() && continues_; }
  // When flush() or look_after() has something to do although no event comes, in nanoseconds; kNever: not so.
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t next_look_ns() const;
  // The link is about to close: what was heard is told at once.
  void tell_heard_now();
  // TLS has read input that no event of a socket announces. Only before the first receive(), which leaves none.
  [[nodiscard]] bool pending() const;
  // Frames wait until fewer bytes are on their way: no event of a socket tells when, so the domain looks again soon.
  [[nodiscard]] bool held_back() const { return held_back_ && !waiting_.empty(); }
  // The peer, or at least its kernel over whole paths, has acknowledged everything. False while sockets open that this end needs.
  [[nodiscard]] bool delivered() const;

  // All frames of the peer up to this one have arrived completely.
  [[nodiscard]] std::uint64_t heard() const { return numbered() ? arrivals_->received().all_up_to() : heard_; }
  [[nodiscard]] bool is_used() const;  // of a link that continues: a frame of a communicator was sent, or has come
  // Windows of data follow the round trip where it is long.
  [[nodiscard]] bool far() const { return is_far(round_trip_us_); }
  // Its frames may be held back: it is far and has several sockets.
  [[nodiscard]] bool may_be_held_back() const { return !flows_.empty() && flows_.front().flight != nullptr; }
  // Bytes of a window that keeps the link busy. Grows when the peer tells a rate that needs more.
  [[nodiscard]] std::uint64_t pipe() const { return pipe_; }
  // Any thread: what traffic showed. Unknown on every near link.
  [[nodiscard]] Connection::SendingRate sending_rate() const { return seen_.get(); }
  // Any thread: what the sockets took and gave so far.
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes_received() const { return bytes_received_.load(std::memory_order_relaxed); }
  // Any thread: the cipher suite of the sockets, or "none" if one of them is plain.
  [[nodiscard]] const char* cipher() const { return cipher_.load(std::memory_order_relaxed); }
  // Any thread: the peer is at another site, and this is what all such links of the domain may send together, in bytes per
  // second, headers included. The smallest value counts. 0: there is no limit.
  void limit_site_pace(std::uint64_t bytes_per_second);
  [[nodiscard]] std::uint64_t site_pace_limit() const { return site_pace_limit_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool sends();                          // output waits here or in the kernel
  void set_site_pace(std::uint64_t bytes_per_second);  // the share of this link, from the domain
  // The longest payload that the next frame should have: long frames cost less, short ones spread over several sockets.
  [[nodiscard]] std::size_t frame_size() const { return numbered() ? kStripe : kFrameLimit; }

  // The memory for what the peer sends. The domain owns it as long as this link is used.
  [[nodiscard]] ReceiveShare& share() const { return *share_; }

  // The places for sockets and rails; so many had a socket at first, and so many should have one now.
  [[nodiscard]] std::size_t sockets() const { return sockets_.size(); }
  [[nodiscard]] std::size_t first_sockets() const { return places_.first; }
  [[nodiscard]] std::size_t wanted_sockets() const;
  void give_up_place(std::size_t path);
  [[nodiscard]] int descriptor(std::size_t socket) const;
  // Any thread: the sockets that are open, and the ways that those which carry data have taken.
  [[nodiscard]] std::vector<OpenSocket> open_sockets() const;
  [[nodiscard]] std::vector<std::string> ways_taken() const { return ways_.all(); }
  // Any thread: the routes that frames go over (a bit for each), the best of them, and how many there are.
  [[nodiscard]] std::uint32_t used_routes() const { return used_routes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t route() const { return first_route(used_routes()); }
  [[nodiscard]] std::size_t routes() const { return routes_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool wants_to_write(std::size_t socket) const;
  // Nothing will be read from that socket any more.
  [[nodiscard]] bool ended(std::size_t socket) const { return broken() || sockets_[socket]->ended || sockets_[socket]->broken; }

  // The path is broken, whether its descriptor is closed or not.
  [[nodiscard]] bool path_is_broken(std::size_t path) const { return sockets_[path]->broken; }
  [[nodiscard]] std::size_t live_paths() const;
  // Closes the descriptor of a broken path, with a reset: an orderly end would tell the peer that the link is closed.
  void close_path(std::size_t path);
  // ---- rails: paths over another medium than sockets (BytePipe), which data prefers; the last places ----
  // Any thread, once there are sockets.
  [[nodiscard]] std::size_t rails() const { return rails_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool wants_rail(std::size_t path) const { return path_is_broken(path) && !is_offered(path); }
  // Null: it is broken.
  [[nodiscard]] const BytePipe* rail(std::size_t path) const;
  [[nodiscard]] bool has_live_rail() const;
  // Long payloads go over rails, whose devices read that memory of a GPU.
  [[nodiscard]] bool rails_read(const std::byte* memory, std::size_t size) const;
  bool receive_rails();
  // Sockets have brought bytes since the last call. Only of a link with rails.
  [[nodiscard]] bool took_from_sockets() { return std::exchange(took_from_sockets_, false); }
  void peer_lost_rail(std::size_t path, std::uint32_t attempt);  // only in RailOpener::advance
  // Once there are sockets.
  void advance_rails(Domain& domain);
  // A socket of that attempt may continue the path.
  [[nodiscard]] bool takes_path(std::size_t path, std::uint32_t attempt) const {
    return !broken() && kept_ != nullptr && !partly_ended_ && path < sockets_.size() && attempt > sockets_[path]->attempt;
  }
  // It waits until a pump takes it: only the holder of the token may un-place what the old socket brought half.
  void offer_path(std::size_t path, PathPipe pipe, std::uint32_t attempt);
  [[nodiscard]] bool has_offers() const { return offers_ > 0; }
  [[nodiscard]] bool is_offered(std::size_t path) const { return sockets_[path]->offered.valid(); }
  // The path is broken, nothing is offered for it, and it should have a socket.
  [[nodiscard]] bool wants_path(std::size_t path) const;
  void take_path(std::size_t path);
  // The path is broken for this end from now on.
  void drop_path(std::size_t path, const Status& reason);
  // Gives up a socket that works. The next look_after() reads what has come, resets the connection, and has it dialed again.
  void leave_path(std::size_t path);
  // Perhaps its path does not pass long packets.
  [[nodiscard]] bool wants_short_segments(std::size_t path) const { return sockets_[path]->short_segments; }
  [[nodiscard]] bool moves() const;  // some socket is whole and does not stand still
  [[nodiscard]] bool is_live(std::size_t path) const { return sockets_[path]->live() && !sockets_[path]->left; }
  // The frames that have come, for the hello of a path; and those of the peer, from its hello. A failure means malformed input.
  [[nodiscard]] resume::Heard heard_frames() const { return arrivals_->heard(); }
  Status hear(const resume::Heard& heard);
  // Paths broke or came since the last call.
  [[nodiscard]] bool paths_changed() { return std::exchange(paths_changed_, false); }
  // Frees what is kept: the domain ends, and nothing is sent or read any more.
  void retire();
  [[nodiscard]] bool has_ended() const { return broken() || (continues() && kept_ == nullptr); }

  // Any thread: the process at the other end is lost. The next pump reads the remaining input and breaks the connection.
  void give_up() { given_up_.store(true, std::memory_order_release); }
  // Breaks the connection if it was given up, if the peer closed some of its sockets and the others have been silent for long, or
  // if it has had no path for longer than its patience. True: it broke. `clock`: nanoseconds.
  bool look_after(std::uint64_t (*clock)() = monotonic_ns);
  void break_with(const Status& reason);

  // Any thread: the connection carries no frames any more; why() tells the reason.
  [[nodiscard]] bool broken() const { return broken_.load(std::memory_order_acquire); }
  // monotonic_ns of that moment; 0: not broken.
  [[nodiscard]] std::uint64_t broken_since() const { return broken_since_.load(std::memory_order_acquire); }
  [[nodiscard]] Status why() const;

 private:
  static constexpr std::size_t kBatch = LinkSocket::kBatch, kStaging = LinkSocket::kStaging;

  using Socket = LinkSocket;
  using Dry = LinkSocket::Dry;

  void add_sockets(std::vector<SecureStream> sockets);
  void add_spares();
  void add_flows();
  void prepare(Socket& socket);
  void queue_opening(Socket& socket, const Entered& entered);
  void queue_openings(const Entered& entered);
  void forget_left();
  Dry read(Socket& socket);
  Status take_in(Socket& socket, std::size_t to_message, std::size_t bytes);
  bool receive(Socket& socket);
  // Reads the input that the kernel has by now of all sockets but that one, then breaks the connection.
  void lose(const Status& reason, const Socket* malformed = nullptr);
  void socket_failed(Socket& socket, int error);
  void path_broke(Socket& socket, const Status& reason);
  void path_ended(Socket& socket);
  // Nothing more comes or goes over the path: half of a frame is un-placed, and what it took is sent over others.
  void empty_path(Socket& socket);
  void look_for_paths(const Status& reason);
  // Others send what a path took that stands still.
  void look_for_stall(std::uint64_t now_ns);
  [[nodiscard]] std::uint64_t stall_look_ns() const;  // when it looks next
  // No socket of it moves, and there is another route.
  [[nodiscard]] bool route_stands_still(std::size_t route, std::uint64_t now_ns) const;
  void stall_route(std::size_t route);
  void widen(Socket& socket);
  void send_again_from(std::size_t route, std::uint64_t now_ns);
  bool stall_sockets(std::size_t route, const Socket& of_oldest, std::uint64_t now_ns);
  // A path that stands still for long may be dead though the network is not: it is dialed again.
  void leave_dead_paths();
  void reset_left_paths();
  // Whether a socket with wanted(socket) is whole and does not stand still.
  template <typename Wanted>
  [[nodiscard]] bool has_whole(Wanted wanted) const;
  [[nodiscard]] bool is_whole(std::size_t route) const;
  template <typename Wanted>
  [[nodiscard]] bool any_of_route(std::size_t route, Wanted wanted) const;
  [[nodiscard]] bool may_stand_still() const { return kept_ != nullptr && !kept_->all_acknowledged(); }
  // The longest of the routes in use.
  [[nodiscard]] std::uint64_t round_trip_ns() const;
  [[nodiscard]] std::uint64_t stall_ns() const { return std::max(kLeastStallNs, kStallRoundTrips * round_trip_ns()); }

  void measure();
  bool measure(std::size_t route, std::uint64_t now_ns);
  void tell_rate(double rate, std::uint32_t round_trip_us);
  void limit_flight(std::size_t route, std::span<const std::optional<TcpDelivery>> seen, bool held_back, std::uint64_t now_ns);
  void pace_sockets();
  Status hear_rate(const Frame& frame);
  // ---- the number of sockets ----
  void count_sockets(bool held_back, std::uint64_t now_ns);
  void open_more();
  void hear_sockets(const Frame& frame);
  void choose_carriers();
  // It takes no frames from the queue, whether it is open or not.
  [[nodiscard]] bool stands_by(const Socket& socket) const { return socket.index >= places_.carriers; }

  bool flush_one(Socket& socket);
  [[nodiscard]] bool flush_encrypted(Socket& socket);
  bool flush_numbered();
  void look_at_sockets();
  void add_rails();
  void end_rails();
  void close_rails();
  // The device of a rail reads long payloads where they lie: they stay there, unchanged, until it has sent them.
  void pin_payloads(Socket& socket, std::size_t sent);
  bool unpin_payloads(Socket& socket);
  void drop_pins(Socket& socket);
  [[nodiscard]] bool needs_pumps_for_rails() const;
  // ---- payloads that rails write in place (link_places.cc) ----
  [[nodiscard]] RailName name_of(const Socket& rail) const;
  void grant(ToldPlaces::Place& place, Socket& rail, PlaceWords& words);
  [[nodiscard]] Socket* writer_of(const ToldPlaces::Grant& grant);
  void end_writers(const ToldPlaces::Place& place);
  void end_rail(Socket& rail);
  void end_writer_of(const Socket& socket);
  Status take_from_place(Socket& socket);
  Status hear_place(const Socket& socket);
  [[nodiscard]] std::optional<BytePipe::RemotePlace> target_of(const Socket& rail, std::size_t taken) const;
  bool write_to_rail(Socket& rail);
  bool write_in_place(Socket& rail, BytePipe::RemotePlace target);
  // ---- routes ----
  // Frames go over the best route of which a socket is whole and does not stand still, or over all such routes.
  [[nodiscard]] std::size_t best_route() const;
  [[nodiscard]] RouteFlow& flow_of(const Socket& socket) { return flows_[socket.route]; }
  [[nodiscard]] bool carries(const Socket& socket) const { return socket.live() && flows_[socket.route].used; }
  [[nodiscard]] bool has_backup() const { return rails() == 0 && routes() > 1 && !together_; }
  [[nodiscard]] bool uses_several_routes() const { return together_ && rails() == 0 && flows_.size() > 1; }
  // Over which a frame goes that waits: rails, but long payloads of the host may be faster over sockets.
  [[nodiscard]] std::size_t route_of(const Outgoing& outgoing) const;
  void follow_routes();
  void say_choice() const;
  void note_ways();
  [[nodiscard]] std::uint32_t round_trip_of(std::size_t route) const;
  [[nodiscard]] std::size_t place_on_route(std::size_t socket) const;  // which of the sockets of its route it is
  // Its sockets that had taken nothing carry frames again.
  void route_moves(std::size_t route);
  // Bytes that are encrypted and wait for room in a socket.
  [[nodiscard]] bool holds_encrypted() const;
  // The socket that takes the next frame that any may take; null: the frame waits.
  [[nodiscard]] Socket* next_socket();
  // Where there are several sockets, the number of frames that the peer has not acknowledged is limited. Urgent frames have a
  // later limit, because they carry what the peer waits for; what tells the peer that its frames were heard has none.
  [[nodiscard]] bool may_send(std::uint64_t most) const { return !numbered() || sent() - acknowledged_ < most; }
  [[nodiscard]] std::uint64_t sent() const { return continues() ? kept_->sent() : sent_; }
  [[nodiscard]] bool has_urgent() const { return !urgent_.empty() && may_send(kMostBeyond - kKeptFree); }
  [[nodiscard]] bool has_waiting();
  // Frames to be sent again, or an acknowledgement that is due.
  [[nodiscard]] bool has_more_to_keep() const;
  [[nodiscard]] bool is_continuing() const;
  [[nodiscard]] bool has_shared() { return has_pressing() || has_waiting(); }  // a frame that any socket may take
  // The same, and no limit of bytes holds it back.
  [[nodiscard]] bool has_pressing() const { return owes_heard_ || has_urgent() || has_again(); }
  [[nodiscard]] bool has_again() const { return kept_ != nullptr && kept_->has_again(); }
  [[nodiscard]] bool has_next(Socket& socket, bool any);
  // `any`: also frames that wait in the queue. Of several routes only next_socket() says which one takes those.
  void fill(Socket& socket, bool any);
  bool write(Socket& socket);
  bool write_bytes(Socket& socket, std::size_t frames);
  void count_sent(Socket& socket, std::size_t sent);
  void wrote(Socket& socket, std::size_t bytes);
  static void take_back(Outgoing& outgoing, bool begun);
  void keep(Outgoing& outgoing, const Socket& socket);
  [[nodiscard]] Outgoing what_was_heard();
  [[nodiscard]] const std::byte* payload_of(const Outgoing& outgoing) const;
  [[nodiscard]] const std::byte* payload_for(Socket& socket, const Outgoing& outgoing);
  Status digest_staging(Socket& socket);
  Status begin_frame(Socket& socket);
  // Only of several sockets. False: the frame needs no destination, because it has one, or has come whole.
  Result<bool> begin_copy(Socket& socket);
  Status end_frame(Socket& socket);
  // Only of several sockets. False: the frame had come whole before.
  Result<bool> end_copy(Socket& socket);
  Status hear_opening(const Socket& socket);
  Outgoing next_of(Socket& socket);
  [[nodiscard]] Status check_number(std::uint64_t sequence) const;
  [[nodiscard]] Secret proof_of(std::uint64_t peer_group, std::uint32_t member) const;
  [[nodiscard]] EnteredGroup* peer_group_of(std::uint64_t key);

  std::vector<std::unique_ptr<Socket>> sockets_;  // changes once at most: while it is empty; with the spare places
  std::atomic<std::size_t> lasting_sockets_{0};   // of sockets_, once it does not change any more
  mutable std::mutex descriptors_mutex_;          // held while one of sockets_ gets another descriptor, or none
  bool encrypted_ = false;
  std::atomic<const char*> cipher_{"not open"};
  const std::shared_ptr<LinkOpener> opener_;  // null: the sockets were open from the beginning
  bool needed_;
  bool peer_needs_;
  std::vector<Entered> entered_;  // while there are no sockets, and of several sockets as long as one may be opened again
  Secret session_;
  std::uint32_t round_trip_us_;
  const std::uint64_t patience_ms_;
  std::uint64_t pipe_;
  std::vector<RouteFlow> flows_;  // by route, once there are sockets
  SeenTraffic seen_;
  std::unique_ptr<SocketCount> count_;  // null: the number of sockets stays
  std::unique_ptr<WayChoice> choice_;   // as LinkSetup::choice
  SocketPlaces places_;
  double told_rate_ = 0;
  std::atomic<std::uint64_t> site_pace_limit_{0};
  std::uint64_t site_pace_ = 0;              // 0: no limit
  bool sending_ = false;                     // at the last call of sends()
  bool held_back_ = false, brings_ = false;  // the last flush() left frames because of a limit; for bytes that come from a GPU
  std::atomic<std::uint64_t> bytes_sent_{0}, bytes_received_{0};  // written under the lock of the domain only
  ReceiveShare* share_;
  Fifo<Outgoing> waiting_;
  std::size_t waiting_bytes_ = 0;
  Fifo<Outgoing> urgent_;
  std::size_t under_way_ = 0;       // frames that belong to a socket
  std::uint64_t sent_ = 0;          // last sequence number assigned; of a link that continues kept_ has it
  std::uint64_t acknowledged_ = 0;  // all frames up to this one, by the peer
  std::uint64_t heard_ = 0;         // all frames up to this one have arrived; of several sockets arrivals_ has it
  std::uint64_t told_ = 0;          // of heard(), in a frame of its own; of several sockets that do not continue
  bool owes_heard_ = false;         // an acknowledgement is due
  bool continues_;
  std::atomic<std::size_t> routes_{1};
  std::atomic<std::size_t> rails_{0};
  std::shared_ptr<RailOpener> rail_opener_;
  std::atomic<std::uint32_t> used_routes_{1};  // never 0
  TakenWays ways_;
  const bool together_;
  bool adapts_;
  std::unique_ptr<resume::Arrivals> arrivals_;  // null: its frames have no numbers
  // The following are of a link that continues.
  std::shared_ptr<resume::CopyMemory> copies_;
  std::unique_ptr<resume::Retention<Frame>> kept_;  // null: the link has ended, or does not continue
  resume::AcknowledgementPolicy policy_{kToldWindow};
  std::shared_ptr<PathDialer> dialer_;
  std::uint64_t without_path_since_ = 0;  // 0: there are some
  Status last_break_;                     // why the last path broke
  bool paths_changed_ = false, took_from_sockets_ = false, rails_end_ = false;
  std::size_t offers_ = 0;         // sockets that wait for take_path()
  std::size_t leaving_ = 0;        // sockets that leave_path() gave up, and look_after() has not reset yet
  std::uint32_t latest_in_ = 0;    // the path that brought the latest frame
  bool gap_ = false;               // the peer has frames beyond one that it has not
  std::uint64_t progress_ns_ = 0;  // when acknowledged_ grew, or a path was left
  std::uint64_t looked_ns_ = 0;    // when look_for_stall() looked last
  std::array<std::uint64_t, kMostRoutes> works_since_ns_{};  // by route: when it had a socket again that is whole; 0: it has none
  std::unordered_map<std::uint64_t, EnteredGroup> peer_groups_;
  std::unordered_set<std::uint64_t> opened_;  // communicators that the peer opened with a valid proof
  RemotePlaces remote_;
  ToldPlaces told_places_;
  bool partly_ended_ = false;       // the peer closed some of the sockets
  std::uint64_t silent_since_ = 0;  // then: when look_after() first found no input of the others; 0: not yet
  std::atomic<bool> given_up_{false}, broken_{false};
  std::atomic<std::uint64_t> broken_since_{0};
  mutable std::mutex why_mutex_;
  Status why_;
};

}  // namespace seto::tcp
