// The race check by small programs: each right one is never reported, each wrong one is, with what is missing. The values are
// right in most of these runs.
#include <gmock/gmock.h>

#include "tests/software_gpu/litmus.h"

namespace seto::software_gpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeeds = 200;
using Places = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// The text of the first report, "" if no seed has one.
std::string race_in(const Litmus& litmus) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    try {
      run_once(litmus, seed, true);
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.kind(), FaultKind::race) << fault.what();
      return "seed " + std::to_string(seed) + ": " + fault.what();
    }
  }
  return "";
}

// Does something once a flag has been seen; the flag is in `into` then.
std::string then(const std::string& into, const std::string& what) {
  static int label = 0;
  const std::string skip = "SKIP" + std::to_string(++label);
  return "setp.eq.u32 %p3, %" + into + ", 0; @%p3 bra " + skip + ";" + what + "\n" + skip + ":\n";
}

Litmus message(const std::string& writes_flag, const std::string& reads_flag, const Places& places) {
  return {{store("weak", "x", 1) + store(writes_flag, "y", 1), load(reads_flag, "r0", "y") + then("r0", load("weak", "r1", "x"))},
          places};
}

// The reader gives the buffer x back by a flag, and the writer overwrites it.
Litmus credit(const std::string& writes_flag, const std::string& reads_flag, const Places& places) {
  return {{load("weak", "r1", "x") + store(writes_flag, "y", 1), load(reads_flag, "r0", "y") + then("r0", store("weak", "x", 1))},
          places};
}

TEST(Race, AReleaseAndAnAcquireOfSufficientScopeOrder) {
  for (const auto& program : {message, credit}) {
    EXPECT_EQ(race_in(program("release.sys", "acquire.sys", kTwoGpus)), "");
    EXPECT_EQ(race_in(program("release.gpu", "acquire.gpu", kSameGpu)), "");
    EXPECT_EQ(race_in(program("release.sys", "acquire.gpu", kSameGpu)), "");
    EXPECT_EQ(race_in(program("release.cta", "acquire.cta", kSameBlock)), "");
  }
}

TEST(Race, AFlagThatIsWeakerIsReported) {
  for (const auto& program : {message, credit}) {
    EXPECT_NE(race_in(program("relaxed.sys", "acquire.sys", kTwoGpus)), "");
    EXPECT_NE(race_in(program("volatile", "acquire.sys", kTwoGpus)), "");
    EXPECT_NE(race_in(program("release.sys", "relaxed.sys", kTwoGpus)), "");
    EXPECT_NE(race_in(program("release.gpu", "acquire.sys", kTwoGpus)), "");
    EXPECT_NE(race_in(program("release.sys", "acquire.gpu", kTwoGpus)), "");
    EXPECT_NE(race_in(program("release.cta", "acquire.gpu", kSameGpu)), "");
    EXPECT_NE(race_in(program("release.gpu", "acquire.cta", kSameGpu)), "");
    EXPECT_NE(race_in(program("weak", "acquire.sys", kTwoGpus)), "");
    EXPECT_NE(race_in(program("release.sys", "weak", kTwoGpus)), "");
    EXPECT_NE(race_in(program("weak", "weak", kSameBlock)), "");
  }
}

TEST(Race, TheReportNamesBothAccessesAndTheRemedy) {
  EXPECT_THAT(race_in(credit("relaxed.sys", "acquire.sys", kTwoGpus)),
              AllOf(HasSubstr("race in global memory"), HasSubstr("a weak write of 4 bytes"), HasSubstr("a weak read of 4 bytes"),
                    HasSubstr("GPU 0, kernel k, block (0,0,0), thread (0,0,0), ptx line"), HasSubstr("GPU 1, kernel k"),
                    HasSubstr("'ld.weak.global.u32 %r1, [%x];"), HasSubstr("no release/acquire of scope .sys is between them")));
  EXPECT_THAT(race_in(credit("release.sys", "relaxed.sys", kTwoGpus)), HasSubstr("without an acquire of scope .sys"));
  EXPECT_THAT(race_in(message("weak", "weak", kSameBlock)), HasSubstr("no barrier and no release/acquire of scope .cta"));
  const Litmus narrow{{store("relaxed.gpu", "x", 1), load("relaxed.sys", "r0", "x")}, kTwoGpus};
  EXPECT_THAT(race_in(narrow), HasSubstr("the scope .gpu of one does not include the other, which takes .sys"));
  const Litmus halves{{store("relaxed.sys", "x", 1), "ld.relaxed.sys.global.u16 %h0, [%x]; cvt.u32.u16 %r0, %h0;"}, kTwoGpus};
  Litmus declared = halves;
  declared.threads[1] = "{.reg .b16 %h<2>;" + halves.threads[1] + "}";
  EXPECT_THAT(race_in(declared), HasSubstr("strong accesses of different bytes"));
}

TEST(Race, FencesOrderInBothDirections) {
  const auto fenced = [](const std::string& before, const std::string& after, const Places& places) {
    return Litmus{{load("weak", "r1", "x") + before + store("relaxed.sys", "y", 1),
                   load("relaxed.sys", "r0", "y") + after + then("r0", store("weak", "x", 1))},
                  places};
  };
  EXPECT_EQ(race_in(fenced("fence.acq_rel.sys;", "fence.acq_rel.sys;", kTwoGpus)), "");
  EXPECT_EQ(race_in(fenced("membar.sys;", "fence.acq_rel.sys;", kTwoGpus)), "");
  EXPECT_EQ(race_in(fenced("fence.acq_rel.gpu;", "fence.sc.gpu;", kSameGpu)), "");
  EXPECT_NE(race_in(fenced("", "fence.acq_rel.sys;", kTwoGpus)), "");
  EXPECT_NE(race_in(fenced("fence.acq_rel.sys;", "", kTwoGpus)), "");
  EXPECT_NE(race_in(fenced("fence.acq_rel.gpu;", "fence.acq_rel.sys;", kTwoGpus)), "");
  EXPECT_NE(race_in(fenced("fence.acq_rel.sys;", "fence.acq_rel.gpu;", kTwoGpus)), "");
  EXPECT_NE(race_in(fenced("fence.acq_rel.cta;", "fence.acq_rel.gpu;", kSameGpu)), "");
}

// The release of one thread reaches another through an atomic of a third, but not through a store that replaces its value.
TEST(Race, AnAtomicKeepsTheReleaseOfTheValueThatItReplaces) {
  const auto relay = [](const std::string& middle) {
    return Litmus{
        {store("weak", "x", 1) + store("release.sys", "y", 1), load("relaxed.sys", "r0", "y") + then("r0", middle),
         load("acquire.sys", "r0", "y") + "setp.ne.u32 %p2, %r0, 2; @%p2 mov.u32 %r0, 0;" + then("r0", load("weak", "r1", "x"))},
        {{0, 0}, {0, 1}, {1, 0}}};
  };
  EXPECT_EQ(race_in(relay("red.relaxed.sys.global.add.u32 [%y], 1;")), "");
  EXPECT_EQ(race_in(relay("atom.relaxed.sys.global.cas.b32 %r1, [%y], 1, 2;")), "");
  EXPECT_NE(race_in(relay("atom.relaxed.gpu.global.add.u32 %r1, [%y], 1;")), "") << "not morally strong with the acquire";
  EXPECT_NE(race_in(relay(store("relaxed.sys", "y", 2))), "");
}

// A thread that has read the value of a strong store passes the store on, though not what was before it.
TEST(Race, AnObservedStoreIsPassedOn) {
  const auto observed = [](const std::string& first, const std::string& last) {
    return Litmus{
        {first + store("relaxed.sys", "y", 1), load("relaxed.sys", "r0", "y") + then("r0", store("release.sys", "y+128", 1)),
         load("acquire.sys", "r0", "y+128") + then("r0", last)},
        {{0, 0}, {0, 1}, {1, 0}}};
  };
  EXPECT_EQ(race_in(observed("", load("weak", "r1", "y"))), "");
  EXPECT_EQ(race_in(observed("", store("weak", "y", 2))), "");
  EXPECT_NE(race_in(observed(store("weak", "x", 1), load("weak", "r1", "x"))), "");
}

TEST(Race, BarriersOrderTheirBlockAndWhatItHasLearnt) {
  const auto over = [](const std::string& before, const std::string& after) {
    return Litmus{{store("weak", "x", 1) + before, after + store("release.sys", "y", 1),
                   load("acquire.sys", "r0", "y") + then("r0", load("weak", "r1", "x"))},
                  {{0, 0}, {0, 0}, {1, 0}}};
  };
  EXPECT_EQ(race_in(over("barrier.sync 0;", "barrier.sync 0;")), "");
  EXPECT_NE(race_in(over("", "")), "");
}

// bar.arrive orders what its thread did before it; the thread itself learns nothing.
TEST(Race, AnArrivalOrdersInOneDirection) {
  const auto runs = [](const std::string& first, const std::string& second) {
    Machine machine({.weak = true});
    const DeviceArray<std::uint32_t> out(machine, 0, 64);
    const std::string text = ptx_module(
        ".visible .entry k(.param .u64 pout)\n{\n.reg .pred %p0; .reg .b32 %r<4>; .reg .b64 %d<4>;\nld.param.u64 %d0, [pout];\n"
        "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %d0;\n"
        "setp.ge.u32 %p0, %r0, 32; @%p0 bra SECOND;\n" +
        first + "\nret;\nSECOND:\n" + second + "\nret;\n}\n");
    run_kernel(machine, machine.load(0, text), "k", {}, {64}, out.address());
  };
  const std::string put = "st.global.u32 [%d1], %r0;";
  const std::string get = "ld.global.u32 %r2, [%d1];";
  EXPECT_NO_THROW(runs(put + "bar.arrive 1, 64;", "bar.sync 1, 64;" + get));
  EXPECT_EQ(fault_of([&] { runs("bar.arrive 1, 64;" + put, "bar.sync 1, 64;" + get); }).first, FaultKind::race);
  EXPECT_EQ(fault_of([&] { runs("bar.arrive 1, 64;" + get, put + "bar.sync 1, 64;"); }).first, FaultKind::race);
  EXPECT_NO_THROW(runs("bar.sync 1, 64;" + get, put + "bar.sync 1, 64;"));
}

TEST(Race, TheEndOfAKernelOrders) {
  const std::string text = ptx_module(
      ".visible .entry k(.param .u64 pout)\n{\n.reg .b32 %r<4>; .reg .b64 %d<4>;\nld.param.u64 %d0, [pout];\n"
      "mov.u32 %r0, %ctaid.x;\nst.global.u32 [%d0], %r0;\nret;\n}\n");
  Machine machine({.gpus = 2, .weak = true});
  const DeviceArray<std::uint32_t> out(machine, 0, 4);
  const auto launch = [&](std::uint32_t gpu) {
    machine.launch(
        {.program = &machine.load(gpu, text), .kernel = "k", .gpu = gpu, .block = {1}, .arguments = arguments_of(out.address())});
  };
  for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
    launch(gpu);
    machine.run();
  }
  launch(0);
  launch(1);
  const auto [kind, report] = fault_of([&] { machine.run(); });
  EXPECT_EQ(kind, FaultKind::race) << "kernels that run at the same time";
  launch(1);
  EXPECT_NO_THROW(machine.run()) << "a fault leaves nothing behind";
}

// A kernel on GPU 0 reads x, says so in y, and goes on. One on GPU 1 sees y and ends, and one that is launched then writes x.
TEST(Race, TheEndOfAKernelPassesOnWhatItHasLearnt) {
  const auto fault_with = [](const std::string& load_of_y) {
    const std::string begin =
        "(.param .u64 pout)\n{\n.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<2>;\nld.param.u64 %d0, [pout];\n";
    const std::string text =
        ptx_module(".visible .entry reads" + begin +
                   "ld.global.u32 %r0, [%d0]; st.release.sys.global.u32 [%d0+128], 1;\n"
                   "AGAIN: ld.relaxed.sys.global.u32 %r1, [%d0+256]; setp.eq.u32 %p0, %r1, 0; @%p0 bra AGAIN;\nret;\n}\n"
                   ".visible .entry waits" +
                   begin + "AGAIN: " + load_of_y +
                   " %r1, [%d0+128]; setp.eq.u32 %p0, %r1, 0; @%p0 bra AGAIN;\nret;\n}\n"
                   ".visible .entry writes" +
                   begin + "st.global.u32 [%d0], 1; st.relaxed.sys.global.u32 [%d0+256], 1;\nret;\n}\n");
    Machine machine({.gpus = 2, .weak = true});
    const DeviceArray<std::uint32_t> out(machine, 0, 96);
    const auto launch = [&](const char* kernel, std::uint32_t gpu) {
      machine.launch({.program = &machine.load(gpu, text),
                      .kernel = kernel,
                      .gpu = gpu,
                      .block = {1},
                      .arguments = arguments_of(out.address())});
    };
    try {
      launch("reads", 0);
      launch("waits", 1);
      while (machine.launches().size() > 1) machine.run_some(1);
      launch("writes", 1);
      machine.run();
    } catch (const Fault& fault) {
      return std::string(fault.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault_with("ld.acquire.sys.global.u32"), "");
  EXPECT_NE(fault_with("ld.relaxed.sys.global.u32"), "");
}

TEST(Race, AReadOnlyLoadSeesOnlyWhatWasThereAtTheLaunch) {
  const Litmus litmus{{store("weak", "x", 1) + store("release.sys", "y", 1),
                       load("acquire.sys", "r0", "y") + then("r0", "ld.global.nc.u32 %r1, [%x];")},
                      kTwoGpus};
  EXPECT_THAT(race_in(litmus), HasSubstr("read-only load"));
}

TEST(Race, ItIsOffByItsSetting) {
  const Litmus wrong = message("relaxed.sys", "acquire.sys", kTwoGpus);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) EXPECT_NO_THROW(run_once(wrong, seed, false)) << "seed " << seed;
}

}  // namespace
}  // namespace seto::software_gpu
