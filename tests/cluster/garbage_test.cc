#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/core/connect/context.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"
#include "transports/shm/contexts_of_process.h"
#include "transports/slots/layout.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 3;
// Offsets in the segment of a context's first communicator: after the page of the context, a page of status lines, then the
// board.
constexpr std::size_t kStatusLines = 4096;
constexpr std::size_t kBoard = 2 * kStatusLines;
constexpr std::uint32_t kPorts = 16;  // ports of a board of so few ranks

// A range of its segment that a rank may overwrite.
struct Range {
  std::size_t begin;
  std::size_t end;
};

Range lines_of(const std::string& what) {
  const slots::BoardLayout board(kRanks, kPorts);
  const auto of_board = [](std::size_t begin, std::size_t end) { return Range{kBoard + begin, kBoard + end}; };
  if (what == "Notes") return of_board(0, board.words());
  if (what == "Words") return of_board(board.words(), board.outgoing(0, 0, 0));
  if (what == "Headers") return of_board(board.outgoing(0, 0, 0), board.taken(0, 0, 0, 0));
  if (what == "Credits") return of_board(board.taken(0, 0, 0, 0), board.messages(0));
  if (what == "Messages") return of_board(board.messages(0), board.size());
  if (what == "Progress") return {kStatusLines, kStatusLines + slots::kLineSize};
  if (what == "Fate") return {kStatusLines + slots::kLineSize, kStatusLines + sizeof(slots::StatusLines)};
  return {kStatusLines, kBoard + board.size()};
}

void scribble(std::byte* segment, Range range, std::mt19937_64& random) {
  for (std::size_t at = range.begin; at + 8 <= range.end; at += 8) {
    std::uint64_t word = random();
    if (word % 8 == 0) word = ~std::uint64_t{0};
    if (word % 8 == 1) word &= 0xffff;
    reinterpret_cast<std::atomic<std::uint64_t>*>(segment + at)->store(word, std::memory_order_relaxed);
  }
}

using Parameters = std::tuple<Kind, std::string, std::uint64_t>;
class Garbage : public ::testing::TestWithParam<Parameters> {};

constexpr int kCalls = 300;
constexpr int kManyCalls = 1'000'000;

// Rank 1's board is overwritten again and again while all ranks operate. Results may be wrong or missing, but every call of every
// rank ends, and no process crashes. Garbage in headers is noticed, once the thread that writes it got a processor.
TEST_P(Garbage, CausesAnErrorAndNoCrash) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "skipped: overwriting a board from another thread is an intended data race";
#endif
  const auto& [kind, what, seed] = GetParam();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  run_ranks(kind, kRanks, [&](const Seat& seat) {
    setoConfig_t config = config_of_test();
    config.operationTimeoutMs = 1500;
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat, kLongDeadlineMs);
    seat.meet(1);
    const bool must_notice = what == "Headers" || what == "Everything";
    std::atomic<bool> over{false};
    std::thread vandal;
    if (seat.rank == 1)
      vandal = std::thread([&, &area = what, start = seed] {
        const auto memory = ContextsOfProcess::instance().find(context_of(comm).id());
        std::mt19937_64 random(start);
        while (!over) {
          scribble(memory->segment.data(), lines_of(area), random);
          std::this_thread::yield();
        }
      });
    std::vector<float> in(kRanks * 50'000, 1.0F);
    std::vector<float> out(in.size());
    Answer heard;
    for (int i = 0; i < (must_notice ? kManyCalls : kCalls) && heard.code == setoSuccess; ++i) {
      const std::size_t count = i % 3 == 0 ? 1 : i % 3 == 1 ? 90 : 50'000;
      if (i % 7 == 3)
        heard = answer(setoBroadcast(in.data(), out.data(), count, setoFloat32, i % kRanks, comm, nullptr));
      else if (i % 7 == 5)
        heard = answer(setoAlltoAll(in.data(), out.data(), count, setoFloat32, comm, nullptr));
      else if (i % 7 == 6)
        heard = answer(seat.rank == 2   ? setoRecv(out.data(), count, setoFloat32, 1, comm, nullptr)
                       : seat.rank == 1 ? setoSend(in.data(), count, setoFloat32, 2, comm, nullptr)
                                        : setoSuccess);
      else
        heard = answer(setoAllReduce(in.data(), out.data(), count, setoFloat32, setoSum, comm, nullptr));
    }
    if (must_notice) {
      EXPECT_NE(heard.code, setoSuccess) << "rank " << seat.rank << " noticed nothing";
    }
    EXPECT_NE(heard.code, setoInternalError) << heard;
    EXPECT_FALSE(heard.says("member")) << "texts for users name ranks only: " << heard;
    if (heard.says("its stream is garbage") || heard.says("; expected operation")) {
      EXPECT_TRUE(heard.says("rank ")) << heard;
    }
    over = true;
    if (vandal.joinable()) vandal.join();
    (void)setoCommDestroy(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, Garbage,
                         ::testing::Combine(::testing::Values(Kind::processes),
                                            ::testing::Values("Notes", "Words", "Progress", "Fate", "Headers", "Credits",
                                                              "Messages", "Everything"),
                                            ::testing::Values(std::uint64_t{1}, std::uint64_t{2})),
                         [](const auto& one) { return std::get<1>(one.param) + std::to_string(std::get<2>(one.param)); });

}  // namespace
}  // namespace seto::testing
