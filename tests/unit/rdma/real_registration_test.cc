#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <span>
#include <string>

#include "tests/unit/rdma/real_devices.h"
#include "transports/rdma/link/registration_cache.h"

// Registered memory of users over real devices (tests/rdma_lab has some).
namespace seto::rdma {
namespace {

// A user with this capability may lock any amount of memory.
bool drop_ipc_lock() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  for (auto* const set : {&sets[0].effective, &sets[0].permitted, &sets[0].inheritable}) *set &= ~(1U << CAP_IPC_LOCK);
  return syscall(SYS_capset, &header, sets) == 0;
}

// The pinned memory of this process in KiB; 0: /proc has no such line.
long pinned_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmPin:", 0) == 0) return std::stol(line.substr(6));
  return 0;
}

TEST_F(RealDevices, AChannelPinsAtMostAMebibyte) {
  const long before = pinned_kib();
  open();
  const long of_one = (pinned_kib() - before) / 2;
  std::printf("pinned memory of one end: %ld KiB\n", of_one);
  EXPECT_GE(of_one, 512) << "two rings of 256 KiB";
  EXPECT_LE(of_one, 1'024);
}

// A header that is copied, and a payload that the device reads where it lies; and the other way round.
TEST_F(RealDevices, ARecordIsGatheredFromMemoryOfAUser) {
  open();
  constexpr std::size_t kBytes = 40'000;
  std::string memory(kBytes, '\0'), head = "header";
  for (std::size_t i = 0; i < kBytes; ++i) memory[i] = static_cast<char>(i * 7 + i / 256);
  RegistrationCache cache(RegistrationCache::Setup{.device = ends[0].device.get()});
  cache.name(reinterpret_cast<std::byte*>(memory.data()), kBytes);
  std::optional<RegistrationCache::Use> use(cache.use(reinterpret_cast<std::byte*>(memory.data()), kBytes).value());
  const RingChannel::Part copied{std::as_bytes(std::span(head)), {}};
  const RingChannel::Part lent{std::as_bytes(std::span(memory)), use->local_key()};
  for (const bool first : {false, true}) {
    const auto ticket = first ? ends[0].channel->send(lent, copied) : ends[0].channel->send(copied, lent);
    ASSERT_TRUE(ticket.has_value());
    const Deadline until = Deadline::after_ms(kPatienceMs);
    while (ends[1].channel->front().empty() || !ends[0].channel->written(*ticket)) {
      ASSERT_FALSE(until.passed());
      ASSERT_NO_FATAL_FAILURE(poll());
    }
    const auto record = ends[1].channel->front();
    const std::string got(reinterpret_cast<const char*>(record.data()), record.size());
    EXPECT_TRUE(got == (first ? memory + head : head + memory)) << first;
    ends[1].channel->release();
  }
  ASSERT_TRUE(ends[0].channel->send(copied, lent).has_value());
  ends[0].channel->flush();
  ends[0].channel->stop(failure(Code::aborted, "the end"));
  use.reset();  // the registration ends after the queue pair that has used it
  EXPECT_EQ(ends[0].channel->queue_pair(), 0U);
}

// The memory stays the parent's for the device, whatever the child does with its copy.
TEST_F(RealDevices, AForkTakesNoRegisteredMemoryFromTheParent) {
  open();
  constexpr std::size_t kBytes = 64 << 10;
  std::vector<std::byte> memory[2];
  std::unique_ptr<RegistrationCache> caches[2];
  std::optional<RegistrationCache::Use> uses[2];
  for (std::size_t i = 0; i < 2; ++i) {
    memory[i].assign(kBytes, std::byte{1});
    caches[i] = std::make_unique<RegistrationCache>(RegistrationCache::Setup{.device = ends[i].device.get()});
    caches[i]->name(memory[i].data(), kBytes);
    uses[i] = caches[i]->use(memory[i].data(), kBytes).value();
  }
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char end = 0;
    (void)!read(pipe_ends[0], &end, 1);
    const bool right = std::all_of(memory[1].begin(), memory[1].end(), [](std::byte each) { return each == std::byte{1}; });
    _exit(right ? 0 : 1);
  }
  std::fill(memory[0].begin(), memory[0].end(), std::byte{2});
  const RemotePlace place{reinterpret_cast<std::uint64_t>(memory[1].data()), uses[1]->remote_key()};
  const auto ticket = ends[0].channel->write(memory[0], uses[0]->local_key(), place);
  ASSERT_TRUE(ticket.has_value());
  ASSERT_TRUE(ends[0].channel->send(std::as_bytes(std::span("it is there")), {}));
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (ends[1].channel->front().empty() || !ends[0].channel->written(*ticket)) {
    ASSERT_FALSE(until.passed());
    ASSERT_NO_FATAL_FAILURE(poll());
  }
  EXPECT_EQ(memory[1], memory[0]);
  EXPECT_EQ(memory[1].back(), std::byte{2});
  ASSERT_EQ(write(pipe_ends[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child reads what was there when it began";
  for (const int each : pipe_ends) close(each);
  for (auto& each : uses) each.reset();
}

TEST_F(RealDevices, ALimitOfLockedMemoryIsNamedWithItsRemedy) {
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<std::byte> memory(kBytes);
  // In a child, because the capability does not come back.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{64 << 10, 64 << 10};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || !drop_ipc_lock()) _exit(2);
    const auto device = verbs->open_device(candidate.own.device);
    if (!device.ok()) _exit(3);
    RegistrationCache of_child({.device = device.value().get()});
    of_child.name(memory.data(), kBytes);
    const auto used = of_child.use(memory.data(), kBytes);
    if (used.ok()) _exit(4);
    _exit(std::string(used.status().text()).find("ulimit -l unlimited") != std::string::npos ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace seto::rdma
