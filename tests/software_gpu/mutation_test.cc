// Small flag protocols, and what becomes of them when one of their fences, scopes, flag accesses or barriers is weakened: each
// mutant must fail within 200 seeds, and the protocols themselves never within 2,000. One protocol gives wrong values then; for
// the other ones it takes the race check.
#include <map>
#include <string>

#include "tests/software_gpu/kernel_test.h"

namespace seto::software_gpu {
namespace {

// The parts of the protocol that mutants replace.
struct Parts {
  std::string store_flag = "st.release.sys.global.u32";
  std::string load_flag = "ld.acquire.sys.global.u32";
  std::string before_flag = "bar.sync 0;";
  std::string after_flag = "bar.sync 0;";
  std::string read_peer = "ld.global.u32";
  std::string flag_is_missing = "setp.lt.u32 %p1, %r6, %r5;";  // wait while this holds
  std::string at_end = "bar.sync 0;";
  std::string store_last = "st.release.sys.global.u32";
  std::string load_last = "ld.acquire.sys.global.u32";
};

// One rank of a pair. Each thread puts twice its input into its buffer; the ranks exchange flags; each thread then adds the word
// of the peer's buffer that another warp wrote. A second exchange allows the buffer to be overwritten, which the kernel does at
// once.
std::string protocol(const Parts& parts) {
  return ptx_module(
      ".visible .entry pair(.param .u64 pown, .param .u64 ppeer, .param .u64 pflag, .param .u64 ppeerflag, .param .u64 pout)\n{\n"
      ".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<16>;\n"
      "ld.param.u64 %d0, [pown]; ld.param.u64 %d1, [ppeer]; ld.param.u64 %d2, [pflag]; ld.param.u64 %d3, [ppeerflag];\n"
      "ld.param.u64 %d4, [pout]; mov.u32 %r0, %tid.x; mul.wide.u32 %d5, %r0, 4; add.u64 %d6, %d0, %d5; add.u64 %d4, %d4, %d5;\n"
      "mov.u32 %r5, 1; setp.ne.u32 %p0, %r0, 0;\n"
      "add.u32 %r1, %r0, 100;\nst.global.u32 [%d6], %r1;\n" +
      parts.before_flag + "\n@%p0 bra PASSED;\n" + parts.store_flag + " [%d3], %r5;\nPOLL:\n" + parts.load_flag +
      " %r6, [%d2];\n" + parts.flag_is_missing + "\n@%p1 bra POLL;\nPASSED:\n" + parts.after_flag +
      "\nxor.b32 %r2, %r0, 32; mul.wide.u32 %d7, %r2, 4; add.u64 %d7, %d7, %d1;\n" + parts.read_peer +
      " %r3, [%d7];\nst.global.u32 [%d4], %r3;\n" + parts.at_end + "\n@%p0 bra ENDED;\n" + parts.store_last +
      " [%d3+128], %r5;\nLAST:\n" + parts.load_last +
      " %r6, [%d2+128];\nsetp.lt.u32 %p1, %r6, %r5;\n@%p1 bra LAST;\nENDED:\nbar.sync 0;\nst.global.u32 [%d6], 7;\nret;\n}\n");
}

bool ends_without_race(Machine& machine) {
  try {
    machine.run();
  } catch (const Fault& fault) {
    if (fault.kind() != FaultKind::race) throw;
    return false;
  }
  return true;
}

// Whether the exchange gave the right words on both ranks.
bool is_right(const std::string& text, std::uint64_t seed, bool detects_races) {
  constexpr std::uint32_t kThreads = 64;
  Machine machine({.gpus = 2,
                   .multiprocessors = 1,
                   .weak = true,
                   .seed = seed,
                   .step_budget = 2'000'000,
                   .detect_global_races = detects_races});
  std::vector<DeviceArray<std::uint32_t>> buffers, flags, outputs;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    buffers.emplace_back(machine, rank, kThreads, "buffer");
    flags.emplace_back(machine, rank, 64, "flags");
    outputs.emplace_back(machine, rank, kThreads, "output");
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t peer = 1 - rank;
    machine.launch({.program = &machine.load(rank, text),
                    .kernel = "pair",
                    .gpu = rank,
                    .block = {kThreads},
                    .arguments = arguments_of(buffers[rank].address(), buffers[peer].address(), flags[rank].address(),
                                              flags[peer].address(), outputs[rank].address())});
  }
  if (!ends_without_race(machine)) return false;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    if (outputs[0][i] != (i ^ 32U) + 100 || outputs[1][i] != (i ^ 32U) + 100) return false;
  return true;
}

// The first seed that fails, or 0.
template <class IsRight>
std::uint64_t first_failure(std::uint64_t seeds, const IsRight& is_right_with) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    if (!is_right_with(seed)) return seed;
  return 0;
}

std::uint64_t first_failure(const Parts& parts, std::uint64_t seeds, bool detects_races) {
  const std::string text = protocol(parts);
  return first_failure(seeds, [&](std::uint64_t seed) { return is_right(text, seed, detects_races); });
}

TEST(Mutation, TheProtocolIsRight) { EXPECT_EQ(first_failure({}, 2000, true), 0U); }

const std::map<std::string, Parts>& mutants() {
  static const std::map<std::string, Parts> all{
      {"relaxed flag store", {.store_flag = "st.relaxed.sys.global.u32"}},
      {"volatile flag store", {.store_flag = "st.volatile.global.u32"}},
      {"flag store at gpu scope", {.store_flag = "st.release.gpu.global.u32"}},
      {"weak flag store", {.store_flag = "st.global.u32"}},
      {"relaxed flag load", {.load_flag = "ld.relaxed.sys.global.u32"}},
      {"flag load at gpu scope", {.load_flag = "ld.acquire.gpu.global.u32"}},
      {"fence of gpu scope in place of the release", {.store_flag = "fence.acq_rel.gpu; st.relaxed.sys.global.u32"}},
      {"no barrier before the flag", {.before_flag = ""}},
      {"no barrier after the flag", {.after_flag = ""}},
      {"warp barrier before the flag", {.before_flag = "bar.warp.sync 0xffffffff;"}},
      {"read-only load of the peer", {.read_peer = "ld.global.nc.u32"}},
      {"no wait for the flag", {.flag_is_missing = "setp.lt.u32 %p1, %r5, %r5;"}},
      {"no barrier at the end", {.at_end = ""}},
  };
  return all;
}

TEST(Mutation, EachMutantGivesWrongValuesWithin200Seeds) {
  for (const auto& [name, parts] : mutants()) EXPECT_NE(first_failure(parts, 200, false), 0U) << name;
}

TEST(Mutation, EachMutantHasARaceWithin200Seeds) {
  for (const auto& [name, parts] : mutants()) EXPECT_NE(first_failure(parts, 200, true), 0U) << name;
  // The values are right with these, as a load never returns what is stored after it.
  const std::map<std::string, Parts> of_the_last_flag{
      {"relaxed last store", {.store_last = "st.relaxed.sys.global.u32"}},
      {"last store at gpu scope", {.store_last = "st.release.gpu.global.u32"}},
      {"weak last store", {.store_last = "st.global.u32"}},
      {"relaxed last load", {.load_last = "ld.relaxed.sys.global.u32"}},
      {"last load at gpu scope", {.load_last = "ld.acquire.gpu.global.u32"}},
      {"weak last load", {.load_last = "ld.global.u32"}},
  };
  for (const auto& [name, parts] : of_the_last_flag) EXPECT_NE(first_failure(parts, 200, true), 0U) << name;
}

}  // namespace
}  // namespace seto::software_gpu
