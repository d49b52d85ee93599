#include "tests/lab/relay.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "src/base/clock.h"
#include "tests/lab/settings.h"

namespace seto::lab {
namespace {

constexpr std::size_t kLargestRead = 65'536 + sizeof(OffloadHeader);
constexpr std::size_t kLongestLine = 4096;
// Limit of packets from one device in one pass, so that due packets of the others leave in between.
constexpr std::size_t kReadsPerPass = 32;
constexpr int kRealtimePriority = 10;

Nanoseconds now_ns() { return static_cast<Nanoseconds>(monotonic_ns()); }

// Runs above ordinary processes, so that they do not make packets late. Not allowed everywhere; the statistics report it.
bool become_realtime() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  const sched_param parameters{.sched_priority = kRealtimePriority};
  return sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
}

// SIGTERM and SIGINT as a descriptor for poll.
Result<Fd> open_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  Fd fd(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return Status(Code::unavailable, std::string("signalfd: ") + std::strerror(errno));
  return fd;
}

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

double seconds(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; }

}  // namespace

Relay::Relay(const RelayOptions& options, std::vector<TunDevice> devices)
    : network_(options.namespaces.size(), options.links, options.seed),
      devices_(std::move(devices)),
      buffer_(kLargestRead),
      started_(now_ns()) {}

Result<Relay> Relay::create(const RelayOptions& options) {
  std::vector<TunDevice> devices;
  for (const std::string& name : options.namespaces) {
    SETO_ASSIGN(TunDevice device, TunDevice::open(name, options.device));
    devices.push_back(std::move(device));
  }
  return Relay(options, std::move(devices));
}

std::size_t Relay::take_in() {
  std::size_t taken = 0;
  for (std::size_t site = 0; site < devices_.size(); ++site) {
    for (std::size_t turn = 0; turn < kReadsPerPass; ++turn, ++taken) {
      const std::size_t size = devices_[site].read(buffer_);
      if (size <= sizeof(OffloadHeader)) break;
      OffloadHeader offload;
      std::memcpy(&offload, buffer_.data(), sizeof offload);
      // A packet that was read after a pause must not count as older: its delay would be too short.
      network_.enter(now_ns(), site, offload, Packet(buffer_).subspan(sizeof offload, size - sizeof offload));
    }
  }
  return taken;
}

Status Relay::run(int control) {
  SETO_ASSIGN(const Fd signals, open_signals());
  realtime_ = become_realtime();
  std::vector<pollfd> polled;
  for (const TunDevice& device : devices_) polled.push_back({device.fd(), POLLIN, 0});
  polled.push_back({control, POLLIN, 0});
  polled.push_back({signals.get(), POLLIN, 0});
  const pollfd& heard = polled[devices_.size()];
  const pollfd& signalled = polled[devices_.size() + 1];

  say("ready");
  std::size_t busy_passes = 0;
  while (true) {
    const std::size_t moved = take_in() + network_.deliver(now_ns(), *this);
    // Commands are read at intervals even under load.
    if (moved > 0 && ++busy_passes % 64 != 0) continue;
    const Nanoseconds wait = moved > 0 ? 0 : std::clamp<Nanoseconds>(network_.next_due() - now_ns(), 0, 1'000'000'000);
    const timespec timeout{.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
    if (ppoll(polled.data(), polled.size(), &timeout, nullptr) <= 0) continue;
    if (signalled.revents != 0) return {};
    if (heard.revents != 0 && !hear(control)) return {};
  }
}

bool Relay::hear(int control) {
  std::array<char, 1024> bytes{};
  const ssize_t size = read(control, bytes.data(), bytes.size());
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (size > 0) unfinished_line_.append(bytes.data(), static_cast<std::size_t>(size));
  for (std::size_t end = unfinished_line_.find('\n'); end != std::string::npos; end = unfinished_line_.find('\n')) {
    say(answer(std::string_view(unfinished_line_).substr(0, end)));
    unfinished_line_.erase(0, end + 1);
  }
  return unfinished_line_.size() <= kLongestLine;
}

std::string Relay::answer(std::string_view line) {
  if (line == "statistics") return statistics();
  const auto words = words_of(line, ' ');
  const bool of_site = words.size() == 3 && words[0] == "site";
  const Status outcome = of_site ? set_carrier(words[1], words[2]) : network_.change(now_ns(), line);
  return outcome.ok() ? "ok" : "error: " + std::string(outcome.text());
}

Status Relay::set_carrier(std::string_view site, std::string_view option) {
  SETO_ASSIGN(const std::size_t index, parse_site(site, devices_.size()));
  if (option == "carrier=on") return devices_[index].set_carrier(true);
  if (option == "carrier=off") return devices_[index].set_carrier(false);
  return {Code::invalid_argument, quoted(option) + ": wanted carrier=on or carrier=off"};
}

std::string Relay::statistics() const {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), R"(, "realtime": %s, "seconds": %.2f, "cpu_seconds": %.2f, "memory_kib": %ld})",
                realtime_ ? "true" : "false", static_cast<double>(now_ns() - started_) / 1e9,
                seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss);
  return network_.statistics() + text.data();
}

}  // namespace seto::lab
