// A buffer that is used again and again: a flag says that it is full, and another one, the credit, that it is free. A missing
// release or acquire of the credit gives right values in every run of this memory, so the race check has to find it.
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/software_gpu/kernel_test.h"

namespace seto::software_gpu {
namespace {

constexpr std::uint32_t kThreads = 64;
constexpr std::uint32_t kRounds = 3;

// The parts of the protocol that mutants replace, for threads that a scope includes.
struct Parts {
  std::string store_full{}, load_full{}, store_credit{}, load_credit{};
  std::string after_full{}, after_credit{};  // the poll
  std::string before_full = "bar.sync 0;";
  std::string before_credit = "bar.sync 0;";
  std::string behind_full = "bar.sync 0;";
  std::string behind_credit = "bar.sync 0;";
};

Parts with_scope(const std::string& scope) {
  const std::string store = "st.release." + scope + ".global.u32";
  const std::string load = "ld.acquire." + scope + ".global.u32";
  return {.store_full = store, .load_full = load, .store_credit = store, .load_credit = load};
}

Parts with_fences(const std::string& fence, const std::string& scope) {
  const std::string store = fence + " st.relaxed." + scope + ".global.u32";
  const std::string load = "ld.relaxed." + scope + ".global.u32";
  return {.store_full = store,
          .load_full = load,
          .store_credit = store,
          .load_credit = load,
          .after_full = fence,
          .after_credit = fence};
}

// Role 0 fills the buffer in each round, role 1 adds up the words that another warp has written. Thread 0 of a block polls.
std::string protocol(const Parts& parts) {
  return ptx_module(
      ".visible .entry pass(.param .u64 pslot, .param .u64 pflags, .param .u64 pout, .param .u32 prole)\n{\n"
      ".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<16>;\n"
      "ld.param.u64 %d0, [pslot]; ld.param.u64 %d1, [pflags]; ld.param.u64 %d2, [pout]; ld.param.u32 %r1, [prole];\n"
      "mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4; add.u64 %d2, %d2, %d3; add.u64 %d4, %d0, %d3;\n"
      "xor.b32 %r2, %r0, 32; mul.wide.u32 %d3, %r2, 4; add.u64 %d5, %d0, %d3;\n"
      "mov.u32 %r9, 0; mov.u32 %r8, 0; setp.ne.u32 %p0, %r0, 0; mov.u32 %r10, %ctaid.x; add.u32 %r1, %r1, %r10;\n"
      "setp.ne.u32 %p2, %r1, 0; @%p2 bra TAKE;\n"
      "FILL:\nadd.u32 %r9, %r9, 1;\n@%p0 bra GRANTED;\nWAIT:\n" +
      parts.load_credit + " %r3, [%d1+128];\nadd.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r9; @%p1 bra WAIT;\n" +
      parts.after_credit + "\nGRANTED:\n" + parts.behind_credit +
      "\nmad.lo.u32 %r4, %r9, 1000, %r0;\nst.global.u32 [%d4], %r4;\n" + parts.before_full + "\n@%p0 bra TOLD;\n" +
      parts.store_full + " [%d1], %r9;\nTOLD:\nsetp.lt.u32 %p1, %r9, " + std::to_string(kRounds) +
      "; @%p1 bra FILL;\nret;\n"
      "TAKE:\nadd.u32 %r9, %r9, 1;\n@%p0 bra READY;\nPOLL:\n" +
      parts.load_full + " %r3, [%d1];\nsetp.lt.u32 %p1, %r3, %r9; @%p1 bra POLL;\n" + parts.after_full + "\nREADY:\n" +
      parts.behind_full + "\nld.global.u32 %r4, [%d5];\nadd.u32 %r8, %r8, %r4;\n" + parts.before_credit + "\n@%p0 bra FREED;\n" +
      parts.store_credit + " [%d1+128], %r9;\nFREED:\nsetp.lt.u32 %p1, %r9, " + std::to_string(kRounds) +
      "; @%p1 bra TAKE;\nst.global.u32 [%d2], %r8;\nret;\n}\n");
}

// The blocks of both roles are on two GPUs, or on one. False: wrong sums, or a race.
bool is_right(const std::string& text, std::uint64_t seed, std::uint32_t gpus) {
  Machine machine({.gpus = gpus, .multiprocessors = 2, .weak = true, .seed = seed, .step_budget = 2'000'000});
  const DeviceArray<std::uint32_t> slot(machine, 0, kThreads, "slot"), flags(machine, 0, 64, "flags"), out(machine, 0, kThreads);
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    machine.launch({.program = &machine.load(gpu, text),
                    .kernel = "pass",
                    .gpu = gpu,
                    .grid = {3 - gpus},
                    .block = {kThreads},
                    .arguments = arguments_of(slot.address(), flags.address(), out.address(), gpu)});
  }
  try {
    machine.run();
  } catch (const Fault& fault) {
    if (fault.kind() != FaultKind::race) throw;
    return false;
  }
  for (std::uint32_t i = 0; i < kThreads; ++i)
    if (out[i] != kRounds * (i ^ 32U) + 1000 * kRounds * (kRounds + 1) / 2) return false;
  return true;
}

// Tries 2,000 seeds, or as many as there is time for unless the environment asks for all.
void expect_right(const Parts& parts, std::uint32_t gpus) {
  const bool all = std::getenv("ALL_SEEDS") != nullptr;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const std::string text = protocol(parts);
  for (std::uint64_t seed = 1; seed <= 2000 && (all || seed <= 100 || std::chrono::steady_clock::now() < deadline); ++seed)
    ASSERT_TRUE(is_right(text, seed, gpus)) << "seed " << seed;
}

void expect_killed(const std::map<std::string, Parts>& mutants, std::uint32_t gpus) {
  for (const auto& [name, parts] : mutants) {
    const std::string text = protocol(parts);
    bool is_killed = false;
    for (std::uint64_t seed = 1; seed <= 200 && !is_killed; ++seed) is_killed = !is_right(text, seed, gpus);
    EXPECT_TRUE(is_killed) << name;
  }
}

template <class Change>
Parts changed(Parts parts, const Change& change) {
  change(parts);
  return parts;
}

TEST(CreditMutation, TheProtocolsAreRight) {
  expect_right(with_scope("sys"), 2);
  expect_right(with_scope("gpu"), 1);
  expect_right(with_fences("fence.acq_rel.sys;", "sys"), 2);
  expect_right(with_fences("fence.sc.gpu;", "gpu"), 1);
}

TEST(CreditMutation, WeakerFlagsBetweenGpus) {
  const Parts right = with_scope("sys");
  const auto credit_store = [&](const std::string& how) { return changed(right, [&](Parts& p) { p.store_credit = how; }); };
  const auto credit_load = [&](const std::string& how) { return changed(right, [&](Parts& p) { p.load_credit = how; }); };
  const auto full_store = [&](const std::string& how) { return changed(right, [&](Parts& p) { p.store_full = how; }); };
  const auto full_load = [&](const std::string& how) { return changed(right, [&](Parts& p) { p.load_full = how; }); };
  expect_killed({{"relaxed credit store", credit_store("st.relaxed.sys.global.u32")},
                 {"volatile credit store", credit_store("st.volatile.global.u32")},
                 {"credit store at gpu scope", credit_store("st.release.gpu.global.u32")},
                 {"weak credit store", credit_store("st.global.u32")},
                 {"relaxed credit load", credit_load("ld.relaxed.sys.global.u32")},
                 {"volatile credit load", credit_load("ld.volatile.global.u32")},
                 {"credit load at gpu scope", credit_load("ld.acquire.gpu.global.u32")},
                 {"weak credit load", credit_load("ld.global.u32")},
                 {"relaxed full store", full_store("st.relaxed.sys.global.u32")},
                 {"full store at gpu scope", full_store("st.release.gpu.global.u32")},
                 {"weak full store", full_store("st.global.u32")},
                 {"relaxed full load", full_load("ld.relaxed.sys.global.u32")},
                 {"full load at gpu scope", full_load("ld.acquire.gpu.global.u32")},
                 {"weak full load", full_load("ld.global.u32")},
                 {"no barrier before the credit", changed(right, [](Parts& p) { p.before_credit = ""; })},
                 {"no barrier behind the credit", changed(right, [](Parts& p) { p.behind_credit = ""; })},
                 {"no barrier before the full flag", changed(right, [](Parts& p) { p.before_full = ""; })},
                 {"no barrier behind the full flag", changed(right, [](Parts& p) { p.behind_full = ""; })}},
                2);
}

TEST(CreditMutation, BlockScopeBetweenBlocks) {
  const Parts right = with_scope("gpu");
  expect_killed({{"credit store at cta scope", changed(right, [](Parts& p) { p.store_credit = "st.release.cta.global.u32"; })},
                 {"credit load at cta scope", changed(right, [](Parts& p) { p.load_credit = "ld.acquire.cta.global.u32"; })},
                 {"full store at cta scope", changed(right, [](Parts& p) { p.store_full = "st.release.cta.global.u32"; })},
                 {"full load at cta scope", changed(right, [](Parts& p) { p.load_full = "ld.acquire.cta.global.u32"; })}},
                1);
}

TEST(CreditMutation, MissingAndNarrowFences) {
  const Parts right = with_fences("fence.acq_rel.sys;", "sys");
  const std::string narrow = "fence.acq_rel.gpu;";
  const std::string store = " st.relaxed.sys.global.u32";
  expect_killed({{"no fence before the credit", changed(right, [&](Parts& p) { p.store_credit = store; })},
                 {"no fence after the credit", changed(right, [](Parts& p) { p.after_credit = ""; })},
                 {"no fence before the full flag", changed(right, [&](Parts& p) { p.store_full = store; })},
                 {"no fence after the full flag", changed(right, [](Parts& p) { p.after_full = ""; })},
                 {"narrow fence before the credit", changed(right, [&](Parts& p) { p.store_credit = narrow + store; })},
                 {"narrow fence after the credit", changed(right, [&](Parts& p) { p.after_credit = narrow; })},
                 {"narrow fence after the full flag", changed(right, [&](Parts& p) { p.after_full = narrow; })}},
                2);
}

}  // namespace
}  // namespace seto::software_gpu
