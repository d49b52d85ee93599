// Litmus tests of the PTX memory model. A forbidden outcome never comes; an allowed weak one comes within the seeds, unless the
// model cannot produce it, which the test then says.
#include "tests/software_gpu/litmus.h"

#include <algorithm>
#include <set>

namespace seto::software_gpu {
namespace {

constexpr std::uint64_t kSeeds = 600;

std::set<Outcome> outcomes_of(const Litmus& litmus) {
  std::set<Outcome> outcomes;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) outcomes.insert(run_once(litmus, seed, false));
  return outcomes;
}

template <class Matches>
bool any_of(const std::set<Outcome>& outcomes, const Matches& matches) {
  return std::any_of(outcomes.begin(), outcomes.end(), matches);
}

// The reader sees the flag y but not the data x.
bool message_lost(const Outcome& outcome) { return outcome[2] == 1 && outcome[3] == 0; }

Litmus message(const std::string& writes_flag, const std::string& reads_flag,
               const std::vector<std::pair<std::uint32_t, std::uint32_t>>& places) {
  return {{store("weak", "x", 1) + store(writes_flag, "y", 1), load(reads_flag, "r0", "y") + load("weak", "r1", "x")}, places};
}

TEST(Litmus, AMessageIsPassedByReleaseAndAcquireOfSufficientScope) {
  EXPECT_FALSE(any_of(outcomes_of(message("release.cta", "acquire.cta", kSameBlock)), message_lost));
  EXPECT_FALSE(any_of(outcomes_of(message("release.gpu", "acquire.gpu", kSameGpu)), message_lost));
  EXPECT_FALSE(any_of(outcomes_of(message("release.sys", "acquire.sys", kSameGpu)), message_lost));
  EXPECT_FALSE(any_of(outcomes_of(message("release.sys", "acquire.sys", kTwoGpus)), message_lost));
}

TEST(Litmus, AMessageIsLostWithoutThem) {
  EXPECT_TRUE(any_of(outcomes_of(message("relaxed.cta", "acquire.cta", kSameBlock)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(message("relaxed.sys", "acquire.sys", kTwoGpus)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(message("release.sys", "relaxed.sys", kTwoGpus)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(message("volatile", "volatile", kTwoGpus)), message_lost));
}

TEST(Litmus, AMessageIsLostWhereTheScopeIsTooSmall) {
  EXPECT_TRUE(any_of(outcomes_of(message("release.cta", "acquire.gpu", kSameGpu)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(message("release.gpu", "acquire.cta", kSameGpu)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(message("release.gpu", "acquire.sys", kTwoGpus)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(message("release.sys", "acquire.gpu", kTwoGpus)), message_lost));
}

TEST(Litmus, FencesPassAMessage) {
  const auto fenced = [](const std::string& fence, const auto& places) {
    return Litmus{{store("weak", "x", 1) + fence + store("relaxed.sys", "y", 1),
                   load("relaxed.sys", "r0", "y") + fence + load("weak", "r1", "x")},
                  places};
  };
  EXPECT_FALSE(any_of(outcomes_of(fenced("fence.acq_rel.sys;", kTwoGpus)), message_lost));
  EXPECT_FALSE(any_of(outcomes_of(fenced("membar.sys;", kTwoGpus)), message_lost));
  EXPECT_FALSE(any_of(outcomes_of(fenced("fence.acq_rel.gpu;", kSameGpu)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(fenced("fence.acq_rel.gpu;", kTwoGpus)), message_lost));
  EXPECT_TRUE(any_of(outcomes_of(fenced("fence.acq_rel.cta;", kSameGpu)), message_lost));
}

TEST(Litmus, AReadOnlyLoadIgnoresAnAcquire) {
  const Litmus litmus{
      {store("weak", "x", 1) + store("release.sys", "y", 1), load("acquire.sys", "r0", "y") + "ld.global.nc.u32 %r1, [%x];"},
      kTwoGpus};
  EXPECT_TRUE(any_of(outcomes_of(litmus), message_lost));
}

TEST(Litmus, StoreBufferingIsForbiddenByFenceScAlone) {
  const auto buffering = [](const std::string& fence, const auto& places) {
    return Litmus{{store("relaxed.sys", "x", 1) + fence + load("relaxed.sys", "r0", "y"),
                   store("relaxed.sys", "y", 1) + fence + load("relaxed.sys", "r0", "x")},
                  places};
  };
  const auto both_miss = [](const Outcome& outcome) { return outcome[0] == 0 && outcome[2] == 0; };
  EXPECT_FALSE(any_of(outcomes_of(buffering("fence.sc.sys;", kTwoGpus)), both_miss));
  EXPECT_FALSE(any_of(outcomes_of(buffering("fence.sc.gpu;", kSameGpu)), both_miss));
  EXPECT_FALSE(any_of(outcomes_of(buffering("fence.sc.cta;", kSameBlock)), both_miss));
  EXPECT_TRUE(any_of(outcomes_of(buffering("fence.sc.gpu;", kTwoGpus)), both_miss));
  EXPECT_TRUE(any_of(outcomes_of(buffering("fence.acq_rel.sys;", kTwoGpus)), both_miss));
  EXPECT_TRUE(any_of(outcomes_of(buffering("", kSameBlock)), both_miss));
}

// x is written by one thread, passed on by a second, read by a third.
TEST(Litmus, CausalityIsTransitive) {
  const auto chain = [](const std::string& release, const std::string& acquire) {
    return Litmus{{store("relaxed.sys", "x", 1), load(acquire, "r0", "x") + store(release, "y", 1),
                   load(acquire, "r0", "y") + load("relaxed.sys", "r1", "x")},
                  {{0, 0}, {0, 1}, {1, 0}}};
  };
  const auto broken = [](const Outcome& outcome) { return outcome[2] == 1 && outcome[4] == 1 && outcome[5] == 0; };
  EXPECT_FALSE(any_of(outcomes_of(chain("release.sys", "acquire.sys")), broken));
  EXPECT_TRUE(any_of(outcomes_of(chain("relaxed.sys", "relaxed.sys")), broken));
}

TEST(Litmus, ABarrierAddsItsBlockToARelease) {
  const auto over_barrier = [](const std::string& barrier) {
    return Litmus{{store("weak", "x", 1) + barrier, barrier + store("release.sys", "y", 1),
                   load("acquire.sys", "r0", "y") + load("weak", "r1", "x")},
                  {{0, 0}, {0, 0}, {1, 0}}};
  };
  const auto broken = [](const Outcome& outcome) { return outcome[4] == 1 && outcome[5] == 0; };
  EXPECT_FALSE(any_of(outcomes_of(over_barrier("barrier.sync 0;")), broken));
  EXPECT_TRUE(any_of(outcomes_of(over_barrier("")), broken));
}

TEST(Litmus, StrongLoadsOfOneLocationNeverGoBack) {
  const auto reads = [](const auto& places, const std::string& again = "relaxed.sys") {
    return Litmus{
        {store("relaxed.sys", "x", 1) + store("relaxed.sys", "x", 2), load("relaxed.sys", "r0", "x") + load(again, "r1", "x")},
        places};
  };
  const auto back = [](const Outcome& outcome) { return outcome[2] > outcome[3]; };
  for (const auto& places : {kSameBlock, kSameGpu, kTwoGpus}) {
    const auto outcomes = outcomes_of(reads(places));
    EXPECT_FALSE(any_of(outcomes, back));
    EXPECT_FALSE(any_of(outcomes_of(reads(places, "weak")), back)) << "nor does a weak load after a strong one";
    EXPECT_FALSE(any_of(outcomes, [](const Outcome& outcome) { return outcome[4] != 2; })) << "the later store must win";
  }
}

TEST(Litmus, AtomicsOfTheirScopeLoseNoUpdate) {
  const auto adds = [](const std::string& scope, const auto& places) {
    const std::string add = "atom.relaxed." + scope + ".global.add.u32 %r0, [%x], 1;";
    return Litmus{{add + add, add + add}, places};
  };
  const auto lost = [](const Outcome& outcome) { return outcome[4] != 4; };
  EXPECT_FALSE(any_of(outcomes_of(adds("sys", kTwoGpus)), lost));
  EXPECT_FALSE(any_of(outcomes_of(adds("gpu", kSameGpu)), lost));
  EXPECT_FALSE(any_of(outcomes_of(adds("cta", kSameBlock)), lost));
  EXPECT_TRUE(any_of(outcomes_of(adds("gpu", kTwoGpus)), lost));
  EXPECT_TRUE(any_of(outcomes_of(adds("cta", kSameGpu)), lost));
}

TEST(Litmus, AVectorTearsAndB128DoesNot) {
  const std::string wide_store = "{.reg .b128 w; mov.b128 w, {%d4, %d5}; st.relaxed.sys.global.b128 [%x], w;}";
  const std::string wide_load = "{.reg .b128 w; ld.relaxed.sys.global.b128 w, [%x]; mov.b128 {%d4, %d5}, w;}";
  const std::string results = "cvt.u32.u64 %r0, %d4; cvt.u32.u64 %r1, %d5;";
  const auto torn = [](const Outcome& outcome) { return outcome[2] != outcome[3]; };
  const std::string ones = "mov.u64 %d4, 1; mov.u64 %d5, 1;";
  const std::string vector_store = "st.volatile.global.v2.u64 [%x], {%d4, %d5};";
  const std::string vector_load = "ld.volatile.global.v2.u64 {%d4, %d5}, [%x];";
  EXPECT_FALSE(any_of(outcomes_of({{ones + wide_store, wide_load + results}, kTwoGpus}), torn));
  EXPECT_TRUE(any_of(outcomes_of({{ones + vector_store, wide_load + results}, kTwoGpus}), torn));
  EXPECT_TRUE(any_of(outcomes_of({{ones + wide_store, vector_load + results}, kTwoGpus}), torn));
}

// PTX allows this, but a load of this model returns a value that was already stored.
TEST(Litmus, LoadBufferingIsBeyondTheModel) {
  const Litmus litmus{{load("relaxed.sys", "r0", "x") + store("relaxed.sys", "y", 1),
                       load("relaxed.sys", "r0", "y") + store("relaxed.sys", "x", 1)},
                      kTwoGpus};
  EXPECT_FALSE(any_of(outcomes_of(litmus), [](const Outcome& outcome) { return outcome[0] == 1 && outcome[2] == 1; }));
}

// Two readers see two stores in different orders.
TEST(Litmus, IndependentReadsOfIndependentWrites) {
  using Places = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const Places on_two_gpus{{0, 0}, {0, 1}, {1, 0}, {1, 1}}, on_one_gpu{{0, 0}, {0, 1}, {0, 2}, {0, 3}};
  const auto reads = [](const std::string& how, const std::string& between, const Places& places) {
    const std::string write = "relaxed" + how.substr(how.find('.'));
    return Litmus{{store(write, "x", 1), store(write, "y", 1), load(how, "r0", "x") + between + load(how, "r1", "y"),
                   load(how, "r0", "y") + between + load(how, "r1", "x")},
                  places};
  };
  const auto disagree = [](const Outcome& outcome) {
    return outcome[4] == 1 && outcome[5] == 0 && outcome[6] == 1 && outcome[7] == 0;
  };
  EXPECT_TRUE(any_of(outcomes_of(reads("relaxed.sys", "", on_two_gpus)), disagree));
  EXPECT_FALSE(any_of(outcomes_of(reads("relaxed.sys", "fence.sc.sys;", on_two_gpus)), disagree));
  EXPECT_TRUE(any_of(outcomes_of(reads("relaxed.gpu", "", on_one_gpu)), disagree));
  EXPECT_FALSE(any_of(outcomes_of(reads("relaxed.gpu", "fence.sc.gpu;", on_one_gpu)), disagree));
  EXPECT_TRUE(any_of(outcomes_of(reads("relaxed.gpu", "fence.sc.gpu;", on_two_gpus)), disagree)) << "the scope is too small";
  // PTX allows the next two, but the levels of the GPU and of the system are multi-copy atomic in this model. A reader that
  // shares the block of a writer sees its store early.
  EXPECT_FALSE(any_of(outcomes_of(reads("acquire.sys", "", on_two_gpus)), disagree));
  EXPECT_FALSE(any_of(outcomes_of(reads("acquire.gpu", "", on_one_gpu)), disagree));
  EXPECT_TRUE(any_of(outcomes_of(reads("acquire.gpu", "", {{0, 0}, {0, 1}, {0, 0}, {0, 1}})), disagree));
}

// Two threads write two variables in opposite orders, and each variable keeps the first store of its thread.
TEST(Litmus, TwoStoresOfTwoThreads) {
  const auto writes = [](const std::string& fence, const auto& places) {
    return Litmus{{store("relaxed.sys", "x", 1) + fence + store("relaxed.sys", "y", 2),
                   store("relaxed.sys", "y", 1) + fence + store("relaxed.sys", "x", 2)},
                  places};
  };
  const auto crossed = [](const Outcome& outcome) { return outcome[4] == 1 && outcome[5] == 1; };
  EXPECT_TRUE(any_of(outcomes_of(writes("", kTwoGpus)), crossed));
  EXPECT_TRUE(any_of(outcomes_of(writes("", kSameGpu)), crossed));
  EXPECT_FALSE(any_of(outcomes_of(writes("fence.sc.sys;", kTwoGpus)), crossed));
  EXPECT_FALSE(any_of(outcomes_of(writes("fence.sc.gpu;", kSameGpu)), crossed));
}

// A write that follows an acquire comes after the stores before the release (S of the literature). It is an atomic, as a store
// would seldom be quick enough to come too early.
TEST(Litmus, AWriteAfterAnAcquireIsTheLater) {
  const auto message_back = [](const std::string& release, const std::string& acquire, const auto& places) {
    return Litmus{{store("relaxed.sys", "x", 2) + store(release, "y", 1),
                   load(acquire, "r0", "y") + "atom.relaxed.sys.global.exch.b32 %r1, [%x], 1;"},
                  places};
  };
  const auto overtaken = [](const Outcome& outcome) { return outcome[2] == 1 && outcome[4] == 2; };
  EXPECT_FALSE(any_of(outcomes_of(message_back("release.sys", "acquire.sys", kTwoGpus)), overtaken));
  EXPECT_FALSE(any_of(outcomes_of(message_back("release.gpu", "acquire.gpu", kSameGpu)), overtaken));
  EXPECT_TRUE(any_of(outcomes_of(message_back("relaxed.sys", "acquire.sys", kTwoGpus)), overtaken));
  EXPECT_TRUE(any_of(outcomes_of(message_back("release.gpu", "acquire.sys", kTwoGpus)), overtaken));
}

// The second thread writes y last and does not see x (R of the literature).
TEST(Litmus, AStoreAndALoadAcrossAStore) {
  const auto across = [](const std::string& fence, const auto& places) {
    return Litmus{{store("relaxed.sys", "x", 1) + fence + store("relaxed.sys", "y", 1),
                   store("relaxed.sys", "y", 2) + fence + load("relaxed.sys", "r0", "x")},
                  places};
  };
  const auto missed = [](const Outcome& outcome) { return outcome[5] == 2 && outcome[2] == 0; };
  const auto first_done = [&](const Outcome& outcome) { return missed(outcome) && outcome[4] == 1; };
  EXPECT_TRUE(any_of(outcomes_of(across("", kTwoGpus)), first_done));
  EXPECT_TRUE(any_of(outcomes_of(across("fence.acq_rel.sys;", kTwoGpus)), missed));
  EXPECT_FALSE(any_of(outcomes_of(across("fence.sc.sys;", kTwoGpus)), missed));
}

TEST(Litmus, LocationsAreCoherentAtTheirScope) {
  const std::vector<std::pair<std::string, std::vector<std::pair<std::uint32_t, std::uint32_t>>>> cases{
      {"relaxed.cta", kSameBlock}, {"relaxed.gpu", kSameGpu}, {"relaxed.sys", kTwoGpus}};
  for (const auto& [how, places] : cases) {
    SCOPED_TRACE(how);
    const Litmus write_read{{store(how, "x", 1) + load(how, "r0", "x"), store(how, "x", 2) + load(how, "r0", "x")}, places};
    EXPECT_FALSE(any_of(outcomes_of(write_read), [](const Outcome& outcome) { return outcome[0] == 0 || outcome[2] == 0; }));
    EXPECT_FALSE(any_of(outcomes_of(write_read), [](const Outcome& outcome) { return outcome[0] == 2 && outcome[2] == 1; }));
    const Litmus read_write{{load(how, "r0", "x") + store(how, "x", 1), store(how, "x", 2)}, places};
    EXPECT_FALSE(any_of(outcomes_of(read_write), [](const Outcome& outcome) { return outcome[0] == 1; }));
    EXPECT_FALSE(any_of(outcomes_of(read_write), [](const Outcome& outcome) { return outcome[0] == 2 && outcome[4] == 2; }));
    const Litmus write_write{{store(how, "x", 1) + store(how, "x", 2), load(how, "r0", "x") + load(how, "r1", "x")}, places};
    EXPECT_FALSE(any_of(outcomes_of(write_write), [](const Outcome& outcome) { return outcome[4] != 2; }));
    EXPECT_FALSE(any_of(outcomes_of(write_write), [](const Outcome& outcome) { return outcome[2] > outcome[3]; }));
  }
}

// A chain of releases, each of the scope that its acquirer needs (ISA2 of the literature).
TEST(Litmus, AChainOfReleasesCrossesScopes) {
  const auto chain = [](const std::string& near, const std::string& far) {
    return Litmus{{store("weak", "x", 1) + store("release." + near, "y", 1),
                   load("acquire." + near, "r0", "y") + store("release." + far, "y+128", 1),
                   load("acquire." + far, "r0", "y+128") + load("weak", "r1", "x")},
                  {{0, 0}, {0, 1}, {1, 0}}};
  };
  const auto broken = [](const Outcome& outcome) { return outcome[2] == 1 && outcome[4] == 1 && outcome[5] == 0; };
  EXPECT_FALSE(any_of(outcomes_of(chain("gpu", "sys")), broken));
  EXPECT_FALSE(any_of(outcomes_of(chain("sys", "sys")), broken));
  EXPECT_TRUE(any_of(outcomes_of(chain("gpu", "gpu")), broken));
}

TEST(Litmus, ABarrierPassesOnWhatAThreadHasAcquired) {
  const auto passed_on = [](const std::string& barrier) {
    return Litmus{{store("weak", "x", 1) + store("release.sys", "y", 1), load("acquire.sys", "r0", "y") + barrier,
                   barrier + load("weak", "r1", "x")},
                  {{1, 0}, {0, 0}, {0, 0}}};
  };
  const auto broken = [](const Outcome& outcome) { return outcome[2] == 1 && outcome[5] == 0; };
  EXPECT_FALSE(any_of(outcomes_of(passed_on("barrier.sync 0;")), broken));
  EXPECT_TRUE(any_of(outcomes_of(passed_on("")), broken));
}

TEST(Litmus, ASeedReplaysExactly) {
  const Litmus litmus = message("relaxed.sys", "relaxed.sys", kTwoGpus);
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    EXPECT_EQ(run_once(litmus, seed, false), run_once(litmus, seed, false)) << "seed " << seed;
}

}  // namespace
}  // namespace seto::software_gpu
