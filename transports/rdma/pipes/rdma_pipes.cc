#include "transports/rdma/pipes/rdma_pipes.h"

#include <strings.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/net/token.h"
#include "transports/rdma/verbs/librdmacm.h"
#include "transports/rdma/verbs/process_verbs.h"
#include "transports/rdma/verbs/verbs_advice.h"

namespace seto::rdma {
namespace {

constexpr std::uint64_t kProbeMs = 3'000;

std::uint32_t random_number() {
  std::uint32_t number = 0;
  fill_random(&number, sizeof number);
  return number;
}

bool is_up(const NamedPort& port) { return port.facts.state == PortState::active; }

// Null where the settings want none, or it cannot be opened, which is said once. Opened once in a process, and never closed.
ConnectionManager* manager_of_process(const Config& config) {
  if (config.rdma_setup == RdmaSetUp::control) return nullptr;
  static ConnectionManager* const only = [] {
    Result<std::unique_ptr<ConnectionManager>> opened = Librdmacm::open();
    if (opened.ok()) return std::move(opened).value().release();
    SETO_LOG(warn, "SETO_RDMA_SETUP=cm is not possible, and paths of RDMA are chosen without the connection manager: %s",
             std::string(opened.status().text()).c_str());
    return static_cast<ConnectionManager*>(nullptr);
  }();
  return only;
}

std::string end_text(const PortEnd& end) {
  return end.gid.empty() || !end.gid_index.has_value() ? "LID " + std::to_string(end.lid) : to_text(end.gid);
}

// One line of a job is enough: other peers, and other rails, use ports of the same devices.
void say_once(const std::string& text) {
  static std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed))
    SETO_LOG(debug, "%s", text.c_str());
  else
    SETO_LOG(info, "%s (said for the first peer only)", text.c_str());
}

void say_not_managed(const std::string& peer) {
  static std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;
  SETO_LOG(warn,
           "SETO_RDMA_SETUP=cm: %s has another setting, or no connection manager, and the path to it is chosen without one: set "
           "it on all ranks, and install librdmacm there (said for the first peer only)",
           peer.c_str());
}

class RingPipeSetUp final : public PipeSetUp {
 public:
  // `ports_changed` is set if the ports were looked at during the set-up: that look did not find its pipe.
  RingPipeSetUp(ChannelSetUp::Setup setup, std::unique_ptr<RailSeats::Seat> seat, OpenPipes& all, NamedRegistrations& memory,
                const std::uint64_t& changes, bool& ports_changed)
      : peer_(setup.peer),
        selects_(setup.role == ChannelSetUp::Role::selects),
        wants_manager_(setup.manager != nullptr),
        seat_(std::move(seat)),
        set_up_(std::move(setup)),
        all_(all),
        memory_(memory),
        changes_(changes),
        changes_before_(changes),
        ports_changed_(ports_changed) {}

  Status hear(std::string_view message) override { return set_up_.hear(message); }
  std::optional<std::string> next_message() override { return set_up_.next_message(); }
  // It takes completions of all channels of its device: poll() finds none of them any more.
  bool advance() override {
    const bool ended = set_up_.advance();
    for (RingPipe* const pipe : all_) pipe->polled();
    return ended;
  }
  [[nodiscard]] Status why() const override { return set_up_.why(); }

  std::unique_ptr<BytePipe> take() override {
    std::unique_ptr<RingChannel> channel = set_up_.take();
    if (channel == nullptr) return nullptr;
    if (changes_ != changes_before_) ports_changed_ = true;
    const PortEnd& own = set_up_.own_end();
    PortEnd peer = set_up_.peer_end();
    peer.gid_index = own.gid_index;  // both ends have a global route, or none
    for (const std::string& failed : set_up_.failed()) SETO_LOG(info, "RDMA to %s: %s", peer_.c_str(), failed.c_str());
    const std::string port = own.device + " port " + std::to_string(own.port);
    say_once(
        "data goes to " + peer_ + " over RDMA: " +
        (selects_ ? to_text(set_up_.candidate()) : port + ", MTU " + std::to_string(set_up_.mtu()) + ", chosen by the peer") +
        (set_up_.by_manager() ? "; path of the connection manager" : "") + "; memory of the host");
    if (wants_manager_ && !set_up_.by_manager()) say_not_managed(peer_);
    std::string way = "RDMA " + port + ", " + end_text(own) + " -> " + end_text(peer);
    return std::make_unique<RingPipe>(std::move(channel), PortPair{{own.device, own.port}, {peer.device, peer.port}},
                                      std::move(way), all_, memory_.on(own.device), std::move(seat_));
  }

 private:
  const std::string peer_;
  const bool selects_;
  const bool wants_manager_;
  std::unique_ptr<RailSeats::Seat> seat_;
  ChannelSetUp set_up_;
  OpenPipes& all_;
  NamedRegistrations& memory_;
  const std::uint64_t& changes_;
  const std::uint64_t changes_before_;
  bool& ports_changed_;
};

// The peer wants more rails than this end has by now: it has not heard of that yet.
class RefusedSetUp final : public PipeSetUp {
 public:
  explicit RefusedSetUp(Status why) : why_(std::move(why)) {}
  Status hear(std::string_view /*message*/) override { return {}; }
  std::optional<std::string> next_message() override { return std::nullopt; }
  bool advance() override { return true; }
  std::unique_ptr<BytePipe> take() override { return nullptr; }
  [[nodiscard]] Status why() const override { return why_; }

 private:
  const Status why_;
};

}  // namespace

Result<std::unique_ptr<PipeMaker>> RdmaPipes::open(const Config& config) {
  std::string setting = config.rdma;
  for (const char* const word : {"auto", "off", "always"})
    if (strcasecmp(setting.c_str(), word) == 0) setting = word;
  const bool named = without_always(setting) != "auto";
  if (setting == "off") return std::unique_ptr<PipeMaker>();
  if (!has_devices()) {
    SETO_TRY(ports_in(setting).status());
    if (named) SETO_LOG(warn, "SETO_RDMA=%s: this host has no RDMA device, and TCP is used", config.rdma.c_str());
    return std::unique_ptr<PipeMaker>();
  }
  const Result<Verbs*> verbs = verbs_of_process();
  if (!verbs.ok()) {
    SETO_LOG(info, "RDMA is not used: %s", std::string(verbs.status().text()).c_str());
    return std::unique_ptr<PipeMaker>();
  }
  return open(*verbs.value(), setting,
              {path_in(config), half_of_locked_memory(), manager_of_process(config), most_mtu_in(config)});
}

Result<std::unique_ptr<PipeMaker>> RdmaPipes::open(Verbs& verbs, std::string_view setting, const PipeTerms& terms) {
  if (setting == "off") return std::unique_ptr<PipeMaker>();
  SETO_ASSIGN(std::vector<PortName> only, ports_in(setting));
  const bool named = !only.empty();
  Result<std::unique_ptr<Devices>> opened = Devices::open(verbs, std::move(only));
  if (!opened.ok()) {
    SETO_LOG(info, "RDMA is not used: %s", std::string(opened.status().text()).c_str());
    return std::unique_ptr<PipeMaker>();
  }
  std::unique_ptr<Devices> devices = std::move(opened).value();
  const std::vector<NamedPort> ports = devices->ports();
  for (const std::string& trouble : devices->troubles()) {
    if (named)
      SETO_LOG(warn, "SETO_RDMA: %s", trouble.c_str());
    else
      SETO_LOG(info, "an RDMA device is not used: %s", trouble.c_str());
  }
  if (ports.empty()) return std::unique_ptr<PipeMaker>();
  // A link with places for rails keeps what it sends until it is acknowledged: a host whose ports have no cable pays nothing for
  // them, unless its user has named them.
  if (std::none_of(ports.begin(), ports.end(), is_up)) {
    SETO_LOG(info, "RDMA is not used%s: no port is up (ibv_devinfo shows their states)", named ? " yet" : "");
    if (!named) return std::unique_ptr<PipeMaker>();
  }
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return system_failure(Code::unavailable, "no descriptor to wait for RDMA on (ulimit -n)");
  const auto rails = static_cast<std::uint32_t>(std::min<std::size_t>(kMostRails, ports.size()));
  const bool takes_all = without_always(setting) != setting;
  return std::unique_ptr<PipeMaker>(new RdmaPipes(std::move(devices), rails, takes_all, std::move(epoll), terms));
}

RdmaPipes::RdmaPipes(std::unique_ptr<Devices> devices, std::uint32_t rails, bool takes_all, Fd epoll, const PipeTerms& terms)
    : devices_(std::move(devices)),
      memory_(*devices_, terms.registered),
      seats_(terms.most_queue_pairs),
      share_(seats_.share()),
      rails_(rails),
      takes_all_(takes_all),
      path_(terms.path),
      most_mtu_(terms.most_mtu),
      manager_(terms.manager),
      epoll_(std::move(epoll)) {
  look_at_ports();
  for (const auto& [name, device] : devices_->all())
    if (!watch(device.verbs->event_descriptor())) SETO_LOG(info, "events of the RDMA device %s are noticed late", name.c_str());
}

RdmaPipes::~RdmaPipes() = default;

bool RdmaPipes::watch(int descriptor) const {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

std::unique_ptr<PipeSetUp> RdmaPipes::begin(const Wanted& wanted) {
  auto seat = std::make_unique<RailSeats::Seat>(seats_, wanted.link);
  keep_to_share();
  if (!fits(wanted))
    return std::make_unique<RefusedSetUp>(failure(
        Code::unavailable, "%zu peers share the RDMA connections of its process, and this one has its part", seats_.links()));
  ChannelSetUp::Setup setup;
  setup.role = wanted.role == Role::selects ? ChannelSetUp::Role::selects : ChannelSetUp::Role::follows;
  setup.devices = devices_.get();
  setup.peer = wanted.peer;
  setup.interface = wanted.interface;
  setup.random = random_number;
  setup.probe_ms = kProbeMs;
  setup.path = path_;
  setup.most_mtu = most_mtu_;
  setup.manager = manager_;
  // A child of this process may keep the descriptor open: it must be taken out before it is closed.
  setup.watch = [this](int descriptor, bool begins) {
    return begins ? watch(descriptor) : epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr) == 0;
  };
  for (const BytePipe* const one : wanted.beside) setup.beside.push_back(static_cast<const RingPipe*>(one)->ports());
  return std::make_unique<RingPipeSetUp>(std::move(setup), std::move(seat), pipes_, memory_, changes_, ports_changed_);
}

// Broken pipes that their links have not closed yet go first, and then the newest of a link. A pipe is closed, not only broken:
// its queue pair is gone before the next one is made. Its link sees that with its next read, and sends over the others what was
// not acknowledged.
void RdmaPipes::keep_to_share() {
  if (seats_.share() == share_) return;
  if (seats_.share() < std::min(share_, near_) && !std::exchange(said_share_, true))
    SETO_LOG(
        info,
        "%zu peers of this process have RDMA connections, %u each from now on, and fewer with more peers: %u in all (said once)",
        seats_.links(), seats_.share(), seats_.most());
  share_ = seats_.share();
  ++changes_;
  const Status reason = failure(Code::unavailable, "%zu peers share the RDMA connections of this process", seats_.links());
  bool any = false;
  for (RingPipe* const pipe : pipes_)
    if (pipe->is_broken()) pipe->close();
  for (std::size_t at = pipes_.size(); at-- > 0;) {
    RingPipe& pipe = *pipes_[at];
    if (pipe.seat() == nullptr || seats_.of(pipe.seat()->link()) <= share_) continue;
    pipe.break_with(reason);
    pipe.close();
    any = true;
  }
  if (any)
    for (RingPipe* const pipe : pipes_) pipe->polled();
}

// The wanted one has its seat. Pipes that its link does not use any more, and has not closed yet, go first. A link that has no
// other one always fits: else its peer would be reached over TCP only.
bool RdmaPipes::fits(const Wanted& wanted) {
  const auto is_used = [&](const RingPipe* pipe) {
    return std::find(wanted.beside.begin(), wanted.beside.end(), pipe) != wanted.beside.end();
  };
  for (RingPipe* const pipe : pipes_) {
    if (seats_.of(wanted.link) <= share_) return true;
    if (pipe->seat() != nullptr && pipe->seat()->link() == wanted.link && !is_used(pipe)) pipe->close();
  }
  return seats_.of(wanted.link) <= share_;
}

bool RdmaPipes::poll() {
  bool any = false;
  for (auto& [name, device] : devices_->all()) {
    if (device.completions == nullptr || device.failed) continue;
    const Result<bool> polled = device.completions->poll();
    if (!polled.ok()) device_failed(name, polled.status());
    any = any || !polled.ok() || polled.value();
  }
  if (any)
    for (RingPipe* const pipe : pipes_) pipe->polled();
  if (++polls_ % kPollsALook == 0 || ports_changed_) look_at_events();
  return any;
}

// Events are taken here, or their descriptor would end each sleep at once.
void RdmaPipes::arm() {
  look_at_events();
  for (auto& [name, device] : devices_->all()) {
    if (device.completions == nullptr || device.failed) continue;
    const int descriptor = device.completions->descriptor();
    if (std::find(watched_.begin(), watched_.end(), descriptor) == watched_.end()) {
      if (!watch(descriptor)) {
        device_failed(name, system_failure(Code::unavailable, "epoll refuses the completion queue of an RDMA device"));
        continue;
      }
      watched_.push_back(descriptor);
    }
    if (const Status armed = device.completions->arm(); !armed.ok()) device_failed(name, armed);
  }
}

void RdmaPipes::look_at_events() {
  for (auto& [name, device] : devices_->all())
    while (const auto event = device.verbs->next_event()) take_event(name, *event);
  if (seats_.raise()) keep_to_share();
  if (ports_changed_) look_at_ports();
}

// A set-up that failed before may succeed with ports that are up now, or have other addresses. Ports that are farther from the
// memory than others are spares: they carry something while no nearer one can.
void RdmaPipes::look_at_ports() {
  ports_changed_ = false;
  ++changes_;
  std::vector<NamedPort> ports = devices_->ports();
  std::erase_if(ports, [](const NamedPort& one) { return !one.is_usable(); });
  const auto has_address = [](const NamedPort& one) { return one.has_address(); };
  if (std::any_of(ports.begin(), ports.end(), has_address))
    std::erase_if(ports, [&](const NamedPort& one) { return !has_address(one); });
  near_ = 0;
  if (ports.empty()) return;
  const auto nearer = [](const NamedPort& one, const NamedPort& other) { return one.distance < other.distance; };
  const std::uint8_t least = std::min_element(ports.begin(), ports.end(), nearer)->distance;
  for (const NamedPort& port : ports) {
    check_mtu(port);
    if (port.distance == least) {
      near_ = std::min(near_ + 1, rails_);
      continue;
    }
    for (RingPipe* const pipe : pipes_)
      if (pipe->ports().own == PortName{port.device, port.facts.number})
        pipe->break_with(failure(Code::unavailable, "a port that is nearer to the memory than that of RDMA device %s is up",
                                 port.device.c_str()));
  }
}

// A port with less uses what it has. One line is enough: ports of a host are mostly set up alike.
void RdmaPipes::check_mtu(const NamedPort& port) {
  if (most_mtu_ == kNoMtuLimit || port.facts.mtu >= most_mtu_ || std::exchange(said_mtu_, true)) return;
  SETO_LOG(warn,
           "SETO_RDMA_MTU=%u: the active MTU of port %u of %s is %u, which is used: raise that of its interface (ip link set dev "
           "NAME mtu %u; on InfiniBand the subnet manager sets it) and of the switches, or set SETO_RDMA_MTU=%u",
           most_mtu_, port.facts.number, port.device.c_str(), port.facts.mtu, most_mtu_ + 104, port.facts.mtu);
}

// The peer is not told: its device finds out when it sends, and the pipe of a path that broke here is not read any more.
void RdmaPipes::take_event(const std::string& device, const AsyncEvent& event) {
  const Status reason = failure(Code::unavailable, "RDMA device %s: %s", device.c_str(), to_text(event).c_str());
  switch (event.kind) {
    case AsyncEventKind::port_error:
      port_failed({device, event.port}, reason);
      break;
    case AsyncEventKind::port_active:
    case AsyncEventKind::lid_change:
    case AsyncEventKind::pkey_change:
    case AsyncEventKind::gid_change:
      SETO_LOG(debug, "%s", std::string(reason.text()).c_str());
      ports_changed_ = true;
      break;
    case AsyncEventKind::queue_pair_fatal:
    case AsyncEventKind::queue_pair_request_error:
    case AsyncEventKind::queue_pair_access_error:
      for (RingPipe* const pipe : pipes_)
        if (pipe->ports().own.device == device && pipe->queue_pair() == event.queue_pair) pipe->break_with(reason);
      break;
    case AsyncEventKind::completion_queue_error:
    case AsyncEventKind::device_fatal:
      return device_failed(device, reason);
    default:
      SETO_LOG(debug, "%s", std::string(reason.text()).c_str());
  }
}

// A user would see only that calls are slower. A port that comes and goes is said once a minute.
void RdmaPipes::port_failed(const PortName& port, const Status& reason) {
  ports_changed_ = true;
  std::size_t lost = 0;
  for (RingPipe* const pipe : pipes_) {
    if (pipe->ports().own != port || pipe->is_broken()) continue;
    pipe->break_with(reason);
    ++lost;
  }
  if (lost == 0) return;
  constexpr std::uint64_t kQuietNs = 60'000'000'000;
  std::uint64_t& next_ns = says_again_ns_[{port.device, port.port}];
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns < next_ns) return;
  next_ns = now_ns + kQuietNs;
  SETO_LOG(warn, "%s: %zu connections go over other ports or TCP until it is up again", std::string(reason.text()).c_str(), lost);
}

// It is not used again: a device that comes back needs to be opened again.
void RdmaPipes::device_failed(const std::string& device, const Status& reason) {
  if (std::exchange(devices_->all().at(device).failed, true)) return;
  SETO_LOG(warn, "an RDMA device is given up: %s", std::string(reason.text()).c_str());
  for (RingPipe* const pipe : pipes_)
    if (pipe->ports().own.device == device) pipe->break_with(reason);
  ports_changed_ = true;
}

}  // namespace seto::rdma
