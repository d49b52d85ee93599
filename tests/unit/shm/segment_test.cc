#include "transports/shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "src/base/clock.h"
#include "tests/support/child_process.h"
#include "tests/support/leftovers.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;
using testing::shared_memory_files;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Whether this process maps a file of /dev/shm, where other programs have files too.
bool maps_a_file_of_shm() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(" /dev/shm/") != std::string::npos) return true;
  return false;
}

TEST(Segment, ReservesAddressesNotMemory) {
  const auto segment = Segment::create({});
  ASSERT_TRUE(segment.ok()) << segment.status().text();
  EXPECT_EQ(segment.value().size(), kSegmentSize);
  EXPECT_EQ(segment.value().populated(), 0U);
}

// At other addresses the kernel maps no huge page, although it is requested.
TEST(Segment, BeginsAtAMultipleOfAHugePage) {
  for (int round = 0; round < 8; ++round) {
    auto own = Segment::create({.size = 8 * kMiB + kSegmentPage});
    ASSERT_TRUE(own.ok()) << own.status().text();
    auto mapped = Segment::map(own.value().fd(), kSegmentSize);
    ASSERT_TRUE(mapped.ok()) << mapped.status().text();
    for (Segment* const segment : {&own.value(), &mapped.value()}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment->data()) % (2 * kMiB), 0U);
      segment->data()[segment->size() - 1] = std::byte{1};
    }
  }
}

TEST(Segment, PopulateAndRelease) {
  auto segment = Segment::create({.size = 64 * kMiB});
  ASSERT_TRUE(segment.ok());
  ASSERT_TRUE(segment->populate(4 * kMiB, 8 * kMiB).ok());
  EXPECT_EQ(segment->populated(), 8 * kMiB);
  segment->prefault(4 * kMiB, 8 * kMiB);
  std::memset(segment->data() + 4 * kMiB, 0x5a, 8 * kMiB);
  EXPECT_EQ(segment->populated(), 8 * kMiB);
  ASSERT_TRUE(segment->release(8 * kMiB, 4 * kMiB).ok());
  EXPECT_EQ(segment->populated(), 4 * kMiB);
  EXPECT_EQ(segment->data()[8 * kMiB - 1], std::byte{0x5a});
  EXPECT_EQ(segment->data()[8 * kMiB], std::byte{0});
}

TEST(Segment, TheLimitIsAnErrorWithTheRemedy) {
  auto segment = Segment::create({.size = 64 * kMiB, .limit_bytes = 10 * kMiB});
  ASSERT_TRUE(segment.ok());
  ASSERT_TRUE(segment->populate(0, 6 * kMiB).ok());
  const Status full = segment->populate(6 * kMiB, 6 * kMiB);
  EXPECT_EQ(full.code(), Code::unavailable);
  EXPECT_THAT(std::string(full.text()), HasSubstr("no 6M more of shared memory beside the 6M in use: its limit is 10M"));
  EXPECT_EQ(segment->populated(), 6 * kMiB);
  ASSERT_TRUE(segment->populate(6 * kMiB, 4 * kMiB).ok());
  ASSERT_TRUE(segment->release(0, 6 * kMiB).ok());
  EXPECT_TRUE(segment->populate(32 * kMiB, 6 * kMiB).ok()) << "released memory can be used again";
}

TEST(Segment, MoreMemoryThanTheMachineHasIsAnErrorAndNoSignal) {
  // The segment's limit is not the subject; the address space that the thread sanitizer leaves may be too small.
  const auto twice = 2 * static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  auto segment = Segment::create({.size = twice});
  ASSERT_TRUE(segment.ok()) << segment.status().text();
  const Status full = segment->populate(0, twice);
  EXPECT_EQ(full.code(), Code::unavailable);
  EXPECT_THAT(std::string(full.text()), HasSubstr("the machine has"));
  EXPECT_EQ(segment->populated(), 0U);
  EXPECT_EQ(Segment::create({.size = 2 * kSegmentLimit}).status().code(), Code::invalid_argument);
}

TEST(Segment, AddressSpaceLimitIsAnError) {
#ifdef SETO_SANITIZED
  GTEST_SKIP() << "skipped: sanitizers need the address space themselves";
#endif
  ChildProcess child([] {
    const rlimit little{256 * kMiB, 256 * kMiB};
    setrlimit(RLIMIT_AS, &little);
    const auto segment = Segment::create({});
    EXPECT_EQ(segment.status().code(), Code::unavailable);
    EXPECT_THAT(std::string(segment.status().text()), HasSubstr("ulimit -v"));
    return true;
  });
  EXPECT_TRUE(child.wait());
}

TEST(Segment, PeerSeesTheSameBytesAndOutlivesTheMaker) {
  auto mine = Segment::create({.size = kMiB});
  ASSERT_TRUE(mine.ok());
  auto theirs = Segment::map(mine->fd(), kSegmentSize);
  ASSERT_TRUE(theirs.ok()) << theirs.status().text();
  EXPECT_EQ(theirs->size(), kMiB);
  EXPECT_EQ(theirs->fd(), -1);
  ChildProcess child([&] {
    theirs->data()[12'345] = std::byte{7};
    return true;
  });
  ASSERT_TRUE(child.wait());
  EXPECT_EQ(mine->data()[12'345], std::byte{7});
  { const Segment gone = std::move(*mine); }
  EXPECT_EQ(theirs->data()[12'345], std::byte{7});
}

TEST(Segment, PeerCannotTruncate) {
  auto segment = Segment::create({.size = kMiB});
  ASSERT_TRUE(segment.ok());
  EXPECT_NE(ftruncate(segment->fd(), 4'096), 0);
  EXPECT_NE(ftruncate(segment->fd(), 8 * static_cast<off_t>(kMiB)), 0);
}

TEST(Segment, ForeignMemoryIsRejected) {
  const Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kMiB), 0);
  EXPECT_THAT(std::string(Segment::map(unsealed.get(), kMiB).status().text()), HasSubstr("not sealed"));
  ASSERT_EQ(fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(Segment::map(unsealed.get(), kMiB).ok());
  EXPECT_THAT(std::string(Segment::map(unsealed.get(), kMiB / 2).status().text()), HasSubstr("has 1048576 bytes"));
  const Fd empty(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(fcntl(empty.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(Segment::map(empty.get(), kMiB).ok());
  const Fd file(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(Segment::map(file.get(), kMiB).ok());
  EXPECT_FALSE(Segment::map(-1, kMiB).ok());
}

TEST(Segment, NothingIsLeftBehindByAKilledProcess) {
  const auto before = shared_memory_files();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  ChildProcess child([&] {
    auto segment = Segment::create({});
    if (!segment.ok() || !segment->populate(0, kMiB).ok()) return false;
    if (write(ready[1], maps_a_file_of_shm() ? "f" : "m", 1) != 1) return false;
    pause();
    return false;
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'm') << "its memory is a file";
  EXPECT_EQ(shared_memory_files(), before) << "while it lives";
  child.kill_now();
  EXPECT_EQ(shared_memory_files(), before) << "after it was killed";
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace seto
