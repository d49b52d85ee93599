#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/kernel_test.h"

namespace seto::software_gpu {

// The code of up to four threads. %x, %y and %y+128 are the addresses of three variables in different lines, %r0 and %r1 are zero
// at the begin, and afterwards they are the results.
struct Litmus {
  std::vector<std::string> threads;
  // Where the threads are: the GPU and the block of each. Threads of one block are in different warps.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;
};

using Outcome = std::vector<std::uint32_t>;  // %r0 and %r1 of each thread, then x and y

inline std::string kernel_of(const Litmus& litmus) {
  std::string text =
      ".visible .entry k(.param .u64 px, .param .u64 py, .param .u64 presults, .param .u64 pplaces)\n{\n"
      ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %x; .reg .b64 %y; .reg .b64 %d<8>;\n"
      "ld.param.u64 %x, [px]; ld.param.u64 %y, [py]; ld.param.u64 %d0, [presults]; ld.param.u64 %d1, [pplaces];\n"
      "mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r10, %ctaid.x; mov.u32 %r11, %tid.x; shr.u32 %r12, %r11, 5;\n"
      "and.b32 %r13, %r11, 31; setp.ne.u32 %p0, %r13, 0; @%p0 exit;\n"
      // The host numbers the threads: places[block * 4 + warp].
      "shl.b32 %r14, %r10, 2; add.u32 %r14, %r14, %r12; mul.wide.u32 %d2, %r14, 4; add.u64 %d2, %d2, %d1;\n"
      "ld.global.u32 %r15, [%d2];\n";
  for (std::size_t i = 0; i < litmus.threads.size(); ++i)
    text += "setp.eq.u32 %p1, %r15, " + std::to_string(i) + "; @%p1 bra T" + std::to_string(i) + ";\n";
  text += "exit;\n";
  for (std::size_t i = 0; i < litmus.threads.size(); ++i)
    text += "T" + std::to_string(i) + ":\n" + litmus.threads[i] + "\nbra END;\n";
  // A thread that has ended holds no store back, so each does something else for a while.
  return text +
         "END:\nmov.u32 %r16, 64;\nBUSY:\nsub.u32 %r16, %r16, 1; setp.ne.u32 %p2, %r16, 0; @%p2 bra BUSY;\nmul.wide.u32 %d3, "
         "%r15, 8; add.u64 %d3, %d3, %d0;\nst.global.u32 [%d3], %r0; st.global.u32 [%d3+4], "
         "%r1;\nret;\n}\n";
}

inline Outcome run_once(const Litmus& litmus, std::uint64_t seed, bool detect_races) {
  Machine machine({.gpus = 2,
                   .multiprocessors = 2,
                   .weak = true,
                   .seed = seed,
                   .detect_races = detect_races,
                   .detect_global_races = detect_races});
  const std::string text = ptx_module(kernel_of(litmus));
  const DeviceArray<std::uint32_t> x(machine, 0, 4, "x"), y(machine, 0, 64, "y"), results(machine, 0, 8, "results");
  std::vector<DeviceArray<std::uint32_t>> numbers;
  for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
    std::uint32_t blocks = 0;
    std::array<std::uint32_t, 4> used{};
    numbers.emplace_back(machine, gpu, 16, "places").fill(99);
    for (std::uint32_t i = 0; i < litmus.places.size(); ++i) {
      const auto [on, block] = litmus.places[i];
      if (on == gpu) {
        numbers[gpu][block * 4 + used[block]++] = i;
        blocks = std::max(blocks, block + 1);
      }
    }
    if (blocks > 0) {
      machine.launch({.program = &machine.load(gpu, text),
                      .kernel = "k",
                      .gpu = gpu,
                      .grid = {blocks},
                      .block = {32 * *std::max_element(used.begin(), used.end())},
                      .arguments = arguments_of(x.address(), y.address(), results.address(), numbers[gpu].address())});
    }
  }
  machine.run();
  Outcome outcome(results.data(), results.data() + 2 * litmus.threads.size());
  outcome.push_back(x[0]);
  outcome.push_back(y[0]);
  return outcome;
}

// The instructions of a litmus test, as PTX.
inline std::string store(const std::string& how, const std::string& where, int value) {
  return "st." + how + ".global.u32 [%" + where + "], " + std::to_string(value) + ";";
}
inline std::string load(const std::string& how, const std::string& into, const std::string& where) {
  return "ld." + how + ".global.u32 %" + into + ", [%" + where + "];";
}

inline const std::vector<std::pair<std::uint32_t, std::uint32_t>> kSameBlock{{0, 0}, {0, 0}};
inline const std::vector<std::pair<std::uint32_t, std::uint32_t>> kSameGpu{{0, 0}, {0, 1}};
inline const std::vector<std::pair<std::uint32_t, std::uint32_t>> kTwoGpus{{0, 0}, {1, 0}};

}  // namespace seto::software_gpu
