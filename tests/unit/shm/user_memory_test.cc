#include "transports/shm/user_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "tests/support/child_process.h"
#include "tests/support/sanitizers.h"
#include "transports/shm/lending_link.h"
#include "transports/shm/local_notice.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::byte* bytes_of(UserMemory& memory, std::size_t size) {
  const Result<void*> made = memory.allocate(size);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? static_cast<std::byte*>(made.value()) : nullptr;
}

bool frees(UserMemory& memory, void* part) {
  const std::optional<Status> freed = memory.free(part);
  return freed && freed->ok();
}

TEST(UserMemory, PartsAreSeenInTheFileAtTheirOffset) {
  UserMemory memory(64 * kMiB);
  std::byte* const small = bytes_of(memory, 100);
  std::byte* const large = bytes_of(memory, 5 * kMiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % (2 * kMiB), 0U) << "no place for huge pages";
  std::memset(small, 1, 100);
  std::memset(large, 2, 5 * kMiB);
  Result<Segment> peers = Segment::map(memory.descriptor(), 64 * kMiB, Segment::Access::read);
  ASSERT_TRUE(peers.ok()) << peers.status().text();
  EXPECT_EQ(std::memcmp(peers->data() + (small - memory.data()), small, 100), 0);
  EXPECT_EQ(std::memcmp(peers->data() + (large - memory.data()), large, 5 * kMiB), 0);
  EXPECT_TRUE(frees(memory, small));
  EXPECT_TRUE(frees(memory, large));
}

// Kibibytes of the mapping of this address that are in huge pages, as the kernel says.
std::uint64_t huge_kib_at(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0, kib = 0;
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) is_there = begin <= wanted && wanted < end;
    if (is_there && std::sscanf(line.c_str(), "ShmemPmdMapped: %llu kB", &kib) == 1) return kib;
  }
  return 0;
}

// Whether this kernel gives a file in memory a huge page on request, and has one left.
bool kernel_gives_huge_pages() {
  constexpr int kPopulateWrite = 23, kCollapse = 25;
  const Fd file(memfd_create("probe", MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.get(), 4 * kMiB) != 0) return false;
  void* const mapped = mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  // Within a file a huge page also needs an offset that is a multiple of its size, so the file is mapped anew at such an address.
  const std::uintptr_t aligned = (address + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
  void* const again =
      mmap(reinterpret_cast<void*>(aligned), 2 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0);
  const bool gives = again != MAP_FAILED && madvise(again, 2 * kMiB, kPopulateWrite) == 0 &&
                     madvise(again, 2 * kMiB, kCollapse) == 0 && huge_kib_at(static_cast<std::byte*>(again)) == 2048;
  munmap(mapped, 4 * kMiB);
  return gives;
}

TEST(UserMemory, IsInHugePagesWhereTheKernelGivesThem) {
  constexpr int kTries = 20;  // the kernel may have no huge page at one moment
  int given = 0;
  for (int i = 0; i < kTries; ++i) {
    UserMemory memory(64 * kMiB);
    if (huge_kib_at(bytes_of(memory, 4 * kMiB)) == 4096) return;
    given += kernel_gives_huge_pages() ? 1 : 0;
  }
  if (given < kTries / 2)
    GTEST_SKIP()
        << "skipped: needs a kernel that makes huge pages on request (Linux 6.1 or later, with free ones): this one made "
           "them in "
        << given << " of " << kTries << " attempts";
  FAIL() << "no part was in huge pages, but the kernel made them in " << given << " of " << kTries << " attempts";
}

// The pages go back although a peer has mapped them, and the peer still reads: zeros.
TEST(UserMemory, FreedPartsReturnTheirPagesAndStayMappedAtPeers) {
  UserMemory memory(64 * kMiB);
  std::byte* const part = bytes_of(memory, 4 * kMiB);
  Result<Segment> peers = Segment::map(memory.descriptor(), 64 * kMiB, Segment::Access::read);
  ASSERT_TRUE(peers.ok());
  const std::byte* const there = peers->data() + (part - memory.data());
  part[5] = std::byte{9};
  EXPECT_EQ(there[5], std::byte{9});
  EXPECT_GE(memory.populated(), 4 * kMiB);
  ASSERT_TRUE(frees(memory, part));
  EXPECT_EQ(memory.populated(), 0U);
  EXPECT_EQ(there[5], std::byte{0});
  EXPECT_FALSE(memory.free(part).has_value()) << "freed twice";
}

TEST(UserMemory, AnAccessAfterTheEndOfAPartEndsTheProcess) {
  UserMemory memory(64 * kMiB);
  std::byte* const part = bytes_of(memory, kSegmentPage);
  ASSERT_TRUE(frees(memory, part));
  ChildProcess child([part] {
    struct rlimit none {
      0, 0
    };
    setrlimit(RLIMIT_CORE, &none);
    return *static_cast<volatile std::byte*>(part) == std::byte{0};  // must not return
  });
  EXPECT_FALSE(child.wait());
}

TEST(UserMemory, OtherAddressesAreNotItsOwn) {
  UserMemory memory(64 * kMiB);
  int elsewhere = 0;
  EXPECT_FALSE(memory.free(&elsewhere).has_value());
  std::byte* const part = bytes_of(memory, 2 * kSegmentPage);
  EXPECT_FALSE(memory.free(part + 1).has_value());
  EXPECT_FALSE(memory.free(part + kSegmentPage).has_value());
  EXPECT_TRUE(frees(memory, part));
}

TEST(UserMemory, WhatDoesNotFitIsRefused) {
  UserMemory memory(4 * kMiB);
  EXPECT_FALSE(memory.allocate(5 * kMiB).ok());
  EXPECT_FALSE(memory.allocate(~std::size_t{0} / 2).ok());
  std::byte* const part = bytes_of(memory, 3 * kMiB);  // rounded up to all of it
  const Result<void*> more = memory.allocate(1);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.status().code(), Code::unavailable);
  ASSERT_TRUE(frees(memory, part));
  EXPECT_TRUE(memory.allocate(1).ok());
}

// Parts never overlap, have their content until they are freed, and begin with zeros.
TEST(UserMemory, RandomPartsOfSeveralThreads) {
  UserMemory memory(256 * kMiB);
  std::vector<std::thread> threads;
  for (std::uint64_t number = 1; number <= 3; ++number)
    threads.emplace_back([&memory, number] {
      std::mt19937_64 random(number);
      std::map<std::byte*, std::size_t> parts;
      for (std::uint64_t round = support::repetitions(400, 60); round > 0; --round) {
        if (parts.size() > 6 || (random() % 2 == 0 && !parts.empty())) {
          const auto [part, size] = *std::next(parts.begin(), static_cast<std::ptrdiff_t>(random() % parts.size()));
          EXPECT_TRUE(std::all_of(part, part + size, [&](std::byte one) { return one == std::byte(number); }));
          EXPECT_TRUE(frees(memory, part));
          parts.erase(part);
          continue;
        }
        const std::size_t size = 1 + random() % (random() % 4 == 0 ? 3 * kMiB : 3 * kSegmentPage);
        std::byte* const part = bytes_of(memory, size);
        ASSERT_NE(part, nullptr);
        EXPECT_TRUE(std::all_of(part, part + size, [](std::byte one) { return one == std::byte{0}; }));
        std::memset(part, static_cast<int>(number), size);
        parts[part] = size;
      }
      for (const auto& [part, size] : parts) EXPECT_TRUE(frees(memory, part));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.populated(), 0U);
  std::byte* const all = bytes_of(memory, 256 * kMiB);  // no gap was lost
  EXPECT_TRUE(all != nullptr && frees(memory, all));
}

// The parent's parts are the child's, too; neither can free those of the other.
TEST(UserMemory, AForkedChildHasAFileOfItsOwn) {
  UserMemory& parents = UserMemory::of_process();
  std::byte* const part = bytes_of(parents, kSegmentPage);
  *part = std::byte{7};
  ASSERT_EQ(UserMemory::lendable().data(), parents.data());
  ChildProcess child([&] {
    UserMemory& own = UserMemory::of_process();
    EXPECT_NE(&own, &parents);
    EXPECT_EQ(UserMemory::lendable().data(), own.data());
    EXPECT_EQ(*part, std::byte{7});
    EXPECT_TRUE(frees(own, part)) << "accepted, without effect";
    EXPECT_EQ(*part, std::byte{7});
    std::byte* const mine = bytes_of(own, kSegmentPage);
    EXPECT_TRUE(frees(own, mine));
    return true;
  });
  EXPECT_TRUE(child.wait());
  EXPECT_EQ(*part, std::byte{7});
  EXPECT_TRUE(frees(parents, part));
}

// Without addresses for the file there are no parts, and the reason is logged once.
TEST(UserMemory, WithoutAddressesNothingIsAllocated) {
  ChildProcess child([] {
    struct rlimit few {
      std::uint64_t{1} << 30, std::uint64_t{1} << 30
    };
    EXPECT_EQ(setrlimit(RLIMIT_AS, &few), 0);
    set_log_level(LogLevel::info);
    const LogCapture log;
    UserMemory memory(std::uint64_t{16} << 30);
    const Result<void*> made = memory.allocate(1);
    EXPECT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::unavailable);
    EXPECT_EQ(memory.descriptor(), -1);
    int elsewhere = 0;
    EXPECT_FALSE(memory.free(&elsewhere).has_value());
    EXPECT_TRUE(log.contains("memory of setoMemAlloc is not shared"));
    EXPECT_EQ(log.lines().size(), 1U);
    return true;
  });
#ifdef SETO_SANITIZED
  (void)child.wait();  // sanitizers need more addresses
#else
  EXPECT_TRUE(child.wait());
#endif
}

// ---- the exchange between processes ----

struct SocketPair {
  SocketPair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    one = PrivateFd(Fd(ends[0]));
    other = PrivateFd(Fd(ends[1]));
  }
  PrivateFd one;
  PrivateFd other;
};

TEST(LocalNotices, ArriveAsTheyWereSent) {
  SocketPair pair;
  EXPECT_EQ(receive_notice(pair.other.get()).kind, LocalNotice::Kind::nothing_more);
  UserMemory memory(kMiB);
  ASSERT_TRUE(send_context_ended(pair.one.get(), 0x0102030405060708));
  ASSERT_TRUE(send_memory(pair.one.get(), memory.descriptor()));
  ASSERT_TRUE(send_memory_mapped(pair.one.get()));
  const LocalNotice ended = receive_notice(pair.other.get());
  EXPECT_EQ(ended.kind, LocalNotice::Kind::context_ended);
  EXPECT_EQ(ended.context, 0x0102030405060708U);
  const LocalNotice offered = receive_notice(pair.other.get());
  EXPECT_EQ(offered.kind, LocalNotice::Kind::memory_offered);
  EXPECT_TRUE(offered.memory.valid());
  const LocalNotice mapped = receive_notice(pair.other.get());
  EXPECT_EQ(mapped.kind, LocalNotice::Kind::memory_mapped);
  EXPECT_FALSE(mapped.memory.valid());
  for (const std::size_t size : {3U, 7U, 9U, 4000U}) {
    const std::vector<char> bytes(size);
    ASSERT_EQ(send(pair.one.get(), bytes.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    EXPECT_EQ(receive_notice(pair.other.get()).kind, LocalNotice::Kind::unknown) << size;
  }
  pair.one.close();
  EXPECT_EQ(receive_notice(pair.other.get()).kind, LocalNotice::Kind::process_ended);
}

TEST(LocalNotices, AreDroppedWhereTheQueueIsFull) {
  SocketPair pair;
  int sent = 0;
  while (sent < 100'000 && send_memory_mapped(pair.one.get())) ++sent;
  ASSERT_LT(sent, 100'000);
  EXPECT_FALSE(send_memory(pair.one.get(), 0));
  for (; sent > 0; --sent) ASSERT_EQ(receive_notice(pair.other.get()).kind, LocalNotice::Kind::memory_mapped);
  EXPECT_EQ(receive_notice(pair.other.get()).kind, LocalNotice::Kind::nothing_more);
}

TEST(LendingLinks, MapWhatTheyAreOffered) {
  std::byte* const part = bytes_of(UserMemory::of_process(), kSegmentPage);
  std::memset(part, 5, kSegmentPage);
  SocketPair pair;
  LendingLink owner(pair.one);
  LendingLink reader(pair.other);
  EXPECT_FALSE(owner.reads_ours());
  EXPECT_EQ(reader.theirs().data(), nullptr);
  for (int times = 0; times < 3; ++times) owner.offer();  // only the first one sends
  LocalNotice offered = receive_notice(pair.other.get());
  ASSERT_EQ(offered.kind, LocalNotice::Kind::memory_offered);
  EXPECT_EQ(receive_notice(pair.other.get()).kind, LocalNotice::Kind::nothing_more);
  reader.map(std::move(offered.memory));
  ASSERT_EQ(receive_notice(pair.one.get()).kind, LocalNotice::Kind::memory_mapped);
  owner.be_read();
  EXPECT_TRUE(owner.reads_ours());
  const std::optional<std::uint64_t> offset = UserMemory::lendable().offset_of(part, kSegmentPage);
  ASSERT_TRUE(offset);
  const std::byte* const there = reader.theirs().at(*offset, kSegmentPage);
  ASSERT_NE(there, nullptr);
  EXPECT_NE(there, part);
  EXPECT_EQ(std::memcmp(there, part, kSegmentPage), 0);
  EXPECT_TRUE(frees(UserMemory::of_process(), part));
}

// A file that its owner can cut would end the reader with SIGBUS.
TEST(LendingLinks, RefuseOtherFiles) {
  set_log_level(LogLevel::info);
  const LogCapture log;
  SocketPair pair;
  LendingLink reader(pair.other);
  reader.map(Fd(memfd_create("other", MFD_CLOEXEC)));
  reader.map(Fd());
  EXPECT_EQ(reader.theirs().data(), nullptr);
  EXPECT_EQ(receive_notice(pair.one.get()).kind, LocalNotice::Kind::nothing_more) << "it replied though it has mapped nothing";
  EXPECT_TRUE(log.contains("go through slots"));
}

TEST(LendableMemory, HasOnlyWhatLiesWithin) {
  std::vector<std::byte> bytes(1000);
  slots::LendableMemory memory;
  EXPECT_FALSE(memory.offset_of(bytes.data(), 1));
  EXPECT_EQ(memory.at(0, 1), nullptr);
  memory.set(bytes.data() + 100, 800);
  EXPECT_EQ(memory.offset_of(bytes.data() + 100, 800), 0U);
  EXPECT_EQ(memory.offset_of(bytes.data() + 150, 750), 50U);
  EXPECT_FALSE(memory.offset_of(bytes.data() + 150, 751));
  EXPECT_FALSE(memory.offset_of(bytes.data() + 99, 1));
  EXPECT_FALSE(memory.offset_of(bytes.data() + 900, 1));
  EXPECT_FALSE(memory.offset_of(bytes.data() + 100, ~std::uint64_t{0}));
  EXPECT_EQ(memory.at(800, 0), bytes.data() + 900);
  EXPECT_EQ(memory.at(799, 1), bytes.data() + 899);
  EXPECT_EQ(memory.at(799, 2), nullptr);
  EXPECT_EQ(memory.at(~std::uint64_t{0}, 2), nullptr);
}

}  // namespace
}  // namespace seto
