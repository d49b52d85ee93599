// Divergence, barriers, instructions at which lanes meet.
#include "tests/software_gpu/kernel_test.h"

namespace seto::software_gpu {
namespace {

using U32 = std::uint32_t;

// A kernel with one array; %r0 is the thread, %d1 the address of its element.
std::string kernel(const std::string& code) {
  return ptx_module(
      ".shared .align 4 .b8 words[512];\n.visible .entry k(.param .u64 pout)\n{\n"
      ".reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %d<8>;\n"
      "ld.param.u64 %d0, [pout]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d1, %d0;\n" +
      code + "\nst.global.u32 [%d1], %r1;\nret;\n}\n");
}

std::vector<U32> results_of(const std::string& code, U32 threads, std::uint64_t seed, bool weak = true) {
  Machine machine({.multiprocessors = 1, .weak = weak, .seed = seed, .step_budget = 5'000'000});
  const DeviceArray<U32> out(machine, 0, threads);
  run_kernel(machine, machine.load(0, kernel(code)), "k", {}, {threads}, out.address());
  return out.values();
}

TEST(Warp, LanesThatSpinLetLanesOfTheirWarpReachABarrier) {
  const std::string code =
      "setp.ge.u32 %p0, %r0, 16; @%p0 bra STORE;\n"
      "SPIN: ld.volatile.shared.u32 %r1, [words]; setp.ne.u32 %p1, %r1, 42; @%p1 bra SPIN; bra.uni MEET;\n"
      "STORE: mov.u32 %r1, 42; st.volatile.shared.u32 [words], %r1;\n"
      "MEET: bar.sync 0;";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(results_of(code, 64, seed), std::vector<U32>(64, 42));
  EXPECT_EQ(results_of(code, 64, 1, false), std::vector<U32>(64, 42));
}

TEST(Warp, DivergentLanesComeTogetherAtAShuffle) {
  const std::string code =
      "mov.u32 %r1, %r0; and.b32 %r2, %r0, 1; setp.eq.u32 %p0, %r2, 0; @%p0 bra EVEN;\n"
      "mul.lo.u32 %r1, %r1, 3; bra.uni MEET;\nEVEN: add.u32 %r1, %r1, 100;\n"
      "MEET: shfl.sync.bfly.b32 %r3|%p1, %r1, 1, 31, 0xffffffff; shfl.sync.down.b32 %r4, %r1, 8, 31, -1; add.u32 %r1, %r3, %r4;";
  const auto value = [](U32 lane) { return lane % 2 == 1 ? lane * 3 : lane + 100; };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto results = results_of(code, 32, seed);
    for (U32 lane = 0; lane < 32; ++lane) EXPECT_EQ(results[lane], value(lane ^ 1) + value(lane + 8 < 32 ? lane + 8 : lane));
  }
}

TEST(Warp, ShufflesStayInTheirSegment) {
  const auto up = results_of("shfl.sync.up.b32 %r1, %r0, 3, 0x1800, -1;", 32, 1);    // segments of 8
  const auto idx = results_of("shfl.sync.idx.b32 %r1, %r0, 5, 0x181f, -1;", 32, 1);  // likewise
  for (U32 lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(up[lane], lane % 8 >= 3 ? lane - 3 : lane);
    EXPECT_EQ(idx[lane], lane / 8 * 8 + 5);
  }
}

TEST(Warp, VotesReductionsAndMatches) {
  const auto half = results_of("setp.lt.u32 %p0, %r0, 16; vote.sync.ballot.b32 %r1, %p0, -1;", 32, 1);
  EXPECT_EQ(half, std::vector<U32>(32, 0xFFFF));
  EXPECT_EQ(results_of("redux.sync.add.u32 %r1, %r0, -1;", 32, 1), std::vector<U32>(32, 496));
  EXPECT_EQ(results_of("redux.sync.min.s32 %r1, %r0, -1;", 32, 1), std::vector<U32>(32, 0));
  const auto match = results_of("and.b32 %r2, %r0, 3; match.any.sync.b32 %r1, %r2, -1;", 32, 1);
  EXPECT_EQ(match[2], 0x44444444U);
  EXPECT_EQ(results_of("setp.lt.u32 %p0, %r0, 99; vote.sync.all.pred %p1, %p0, -1; selp.u32 %r1, 1, 0, %p1;", 32, 1),
            std::vector<U32>(32, 1));
}

TEST(Warp, ALaneIsElectedAndLanesKnowWhoIsActive) {
  const auto elected = results_of("elect.sync %r1|%p1, -1; @%p1 add.u32 %r1, %r1, 100;", 64, 1);
  const auto others =
      results_of("setp.lt.u32 %p0, %r0, 5; mov.u32 %r1, 9; @%p0 bra DONE; elect.sync %r1|%p1, 0xffffffe0;\nDONE:", 32, 1);
  for (U32 i = 0; i < 64; ++i) EXPECT_EQ(elected[i], i % 32 == 0 ? 100 : 0);
  for (U32 i = 0; i < 32; ++i) EXPECT_EQ(others[i], i < 5 ? 9 : 5);
  // Lanes that have just met are active together, unless the weakness of a seed separates them.
  const std::string meet_and_ask = "bar.warp.sync -1; activemask.b32 %r1;";
  EXPECT_EQ(results_of(meet_and_ask, 32, 1, false), std::vector<U32>(32, ~0U));
  bool have_differed = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto active = results_of(meet_and_ask, 32, seed);
    for (U32 lane = 0; lane < 32; ++lane) EXPECT_EQ((active[lane] >> lane) & 1, 1U);
    have_differed = have_differed || active != std::vector<U32>(32, ~0U);
  }
  EXPECT_TRUE(have_differed);
}

TEST(Warp, ExitedLanesAreNotWaitedFor) {
  const std::string code = "setp.ge.u32 %p0, %r0, 8; @%p0 exit; bar.sync 0; redux.sync.add.u32 %r1, %r0, -1;";
  for (std::uint64_t seed = 1; seed <= 10; ++seed) EXPECT_EQ(results_of(code, 64, seed)[3], 28U);
}

TEST(Warp, BarriersReduceAndCount) {
  EXPECT_EQ(results_of("setp.lt.u32 %p0, %r0, 40; barrier.cta.red.popc.aligned.u32 %r1, 0, %p0;", 64, 1),
            std::vector<U32>(64, 40));
  // Warp 0 produces, warp 1 consumes.
  const std::string code =
      "setp.ge.u32 %p0, %r0, 32; shl.b32 %r2, %r0, 2; mov.u32 %r3, words; add.u32 %r2, %r2, %r3; @%p0 bra TAKE;\n"
      "st.shared.u32 [%r2], %r0; mov.u32 %r1, 0; bar.arrive 1, 64; bra.uni DONE;\n"
      "TAKE: bar.sync 1, 64; ld.shared.u32 %r1, [%r2-128];\nDONE:";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto results = results_of(code, 64, seed);
    for (U32 i = 32; i < 64; ++i) EXPECT_EQ(results[i], i - 32);
  }
}

TEST(Warp, CallsKeepTheirFramesApart) {
  const std::string text = ptx_module(
      ".func (.param .b32 result) sum(.param .b32 n)\n{\n.reg .pred %p0; .reg .b32 %r<4>;\nld.param.u32 %r0, [n];\n"
      "mov.u32 %r2, 0; setp.eq.u32 %p0, %r0, 0; @%p0 bra DONE;\nsub.u32 %r1, %r0, 1;\n"
      "{.param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), sum, (p); ld.param.b32 %r2, [q];}\n"
      "add.u32 %r2, %r2, %r0;\nDONE: st.param.b32 [result], %r2; ret;\n}\n"
      ".visible .entry k(.param .u64 pout)\n{\n.reg .b32 %r<4>; .reg .b64 %d<4>;\nld.param.u64 %d0, [pout]; mov.u32 %r0, "
      "%tid.x;\n"
      "{.param .b32 p; .param .b32 q; st.param.b32 [p], %r0; call.uni (q), sum, (p); ld.param.b32 %r1, [q];}\n"
      "mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d1, %d0; st.global.u32 [%d1], %r1; ret;\n}\n");
  Machine machine({.weak = true, .seed = 3});
  const DeviceArray<U32> out(machine, 0, 32);
  run_kernel(machine, machine.load(0, text), "k", {}, {32}, out.address());
  for (U32 i = 0; i < 32; ++i) EXPECT_EQ(out[i], i * (i + 1) / 2);
}

}  // namespace
}  // namespace seto::software_gpu
