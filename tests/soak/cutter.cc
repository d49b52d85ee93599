#include "tests/soak/cutter.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/fd.h"

namespace seto::soak {
namespace {

constexpr std::uint64_t kMinuteNs = 60'000'000'000;
constexpr std::uint64_t kSoonNs = 2'000'000'000;
constexpr std::uint64_t kLookMs = 10;
// The classes of connections, as DSCP: they tell which connections are the library's.
constexpr int kControlMark = 20, kDataMark = 10;
constexpr const char* kSockets = "4";  // of a pair of ranks

struct Connections {
  std::vector<Fd> data, control;
};

int option_of(const Fd& fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd.get(), level, name, &value, &size) == 0 ? value : -1;
}

bool is_connected_tcp(const Fd& fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return option_of(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP &&
         getpeername(fd.get(), reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

int mark_of(const Fd& fd) {
  const int ipv6 = option_of(fd, IPPROTO_IPV6, IPV6_TCLASS);
  return (ipv6 >= 0 ? ipv6 : option_of(fd, IPPROTO_IP, IP_TOS)) >> 2;
}

// Second descriptors of the connections of this process.
Connections connections() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  Connections found;
  while (const dirent* const entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    Fd fd(fcntl(std::atoi(entry->d_name), F_DUPFD_CLOEXEC, 0));
    if (!fd.valid() || !is_connected_tcp(fd)) continue;
    const int mark = mark_of(fd);
    if (mark == kDataMark) found.data.push_back(std::move(fd));
    if (mark == kControlMark) found.control.push_back(std::move(fd));
  }
  return found;
}

void reset(const Fd& fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  (void)connect(fd.get(), &nowhere, sizeof nowhere);
}

// Five of ten cuts concern some sockets of data, so that the others carry what those had taken.
Cut drawn_cut(Random& random) {
  constexpr std::array<Cut, 10> kDraw = {Cut::one,  Cut::one,  Cut::one,     Cut::several,    Cut::several,
                                         Cut::data, Cut::data, Cut::control, Cut::everything, Cut::everything};
  return kDraw[random.below(kDraw.size())];
}

// The number of connections that were reset.
std::size_t make(Cut cut, const Connections& found, Random& random) {
  std::size_t many = 0;
  const auto reset_some = [&](const std::vector<Fd>& sockets, const auto& wanted) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (!wanted(i)) continue;
      reset(sockets[i]);
      ++many;
    }
  };
  const auto all = [](std::size_t) { return true; };
  if (cut == Cut::one && !found.data.empty()) {
    const std::size_t one = random.below(found.data.size());
    reset_some(found.data, [one](std::size_t i) { return i == one; });
  }
  if (cut == Cut::several) reset_some(found.data, [&random](std::size_t) { return random.one_in(2); });
  if (cut == Cut::data || cut == Cut::everything) reset_some(found.data, all);
  if (cut == Cut::control || cut == Cut::everything) reset_some(found.control, all);
  return many;
}

}  // namespace

Cutter::Cutter(const Shape& shape, Board& board, int process)
    : board_(board),
      ranks_(shape.ranks),
      mean_ns_(shape.cuts == 0 ? 0 : kMinuteNs * static_cast<std::uint64_t>(shape.processes) / shape.cuts),
      random_(mixed(shape.seed, 100 + static_cast<std::uint64_t>(process))) {
  if (mean_ns_ == 0) return;
  next_ns_ = now_ns() + pause_ns();
  thread_ = std::thread([this] { run(); });
}

Cutter::~Cutter() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Cutter::pause_ns() { return random_.below(2 * mean_ns_); }

void Cutter::permit() {
  const std::lock_guard lock(mutex_);
  permitted_ = mean_ns_ != 0;
}

void Cutter::forbid() {
  const std::lock_guard lock(mutex_);
  if (may_cut() && next_ns_ < now_ns() + kSoonNs) cut();
  permitted_ = false;
}

void Cutter::compute(std::uint64_t ms) {
  ++computing_;
  (void)poll(nullptr, 0, static_cast<int>(ms));
  --computing_;
}

bool Cutter::may_cut() const { return permitted_ && board_.made == ranks_ && !board_.given_up; }

// The schedule does not depend on when cuts were permitted, so their number is that of the options.
void Cutter::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    const std::uint64_t now = now_ns();
    if (next_ns_ <= now && may_cut()) cut();
    const std::uint64_t wait_ns = next_ns_ > now ? next_ns_ - now : kLookMs * 1'000'000;
    (void)wakes_.wait_for(lock, std::chrono::nanoseconds(static_cast<std::int64_t>(wait_ns)), [this] { return over_; });
  }
}

void Cutter::cut() {
  const Cut what = drawn_cut(random_);
  const std::size_t many = make(what, connections(), random_);
  if (many == 0) return;  // all are being opened again
  next_ns_ += pause_ns();
  ++board_.tally.cuts[static_cast<std::size_t>(what)];
  board_.tally.cut_connections += many;
  if (computing_ > 0) ++board_.tally.cuts_while_computing;
}

const char* name_of(Cut cut) {
  static constexpr std::array<const char*, kCuts> kNames = {"one data socket", "several", "all of data", "control", "everything"};
  return kNames[static_cast<std::size_t>(cut)];
}

void set_environment_of_cuts(const std::string& log) {
  setenv("SETO_RESUME", "on", 0);
  setenv("SETO_TLS", "always", 0);
  setenv("SETO_CONNECT", "all", 0);  // links that open on first use would do so while connections are cut
  setenv("SETO_TCP_STREAMS", kSockets, 0);
  setenv("SETO_DSCP_DATA", std::to_string(kDataMark).c_str(), 1);
  setenv("SETO_DSCP_CONTROL", std::to_string(kControlMark).c_str(), 1);
  setenv("SETO_LOG", "info", 0);
  setenv("SETO_LOG_FILE", log.c_str(), 0);
}

std::string resumptions_in(const std::string& log) {
  std::uint64_t broke = 0, opened = 0, control_broke = 0, control_opened = 0, frames = 0;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    const auto has = [&line](const char* words) { return line.find(words) != std::string::npos; };
    if (has("a data socket was opened, ")) ++opened;
    if (has("the control connection to a process of site ")) ++(has(" goes on") ? control_opened : control_broke);
    if (!has("a data socket broke, ")) continue;
    ++broke;
    constexpr const char* kBefore = " are left, at most ";
    if (const std::size_t at = line.find(kBefore); at != std::string::npos)
      frames += std::strtoull(line.c_str() + at + std::string(kBefore).size(), nullptr, 10);
  }
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  return "ends of data sockets: " + text(broke) + " broke, " + text(opened) + " were opened again, " + text(frames) +
         " frames at most were sent again; of control connections: " + text(control_broke) + " broke, " + text(control_opened) +
         " went on";
}

}  // namespace seto::soak
