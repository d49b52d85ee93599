// Registers that share slots hold the values of registers that do not.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/software_gpu/kernel_test.h"
#include "tests/software_gpu/program.h"

namespace seto::software_gpu {
namespace {

using U32 = std::uint32_t;

constexpr U32 kRegisters = 12;
constexpr U32 kResults = 2;         // the first registers; others are not read at the end, so their slots are free before it
constexpr U32 kFresh = 0xA5A5A5A5;  // registers that were not written hold it
constexpr U32 kMostBranches = 40;   // with a condition, that a run executes

enum class Kind { add, exclusive_or, through_fresh_register, move_if_less };
struct Operation {
  Kind kind;
  U32 to, a, b;
};
// Goes on to the next block, or, with a condition, to `less` if the value of register `a` is below that of `b`, else to `other`.
struct Block {
  std::vector<Operation> operations;
  bool has_condition;
  U32 a, b, less, other;
};

struct RandomProgram {
  std::vector<Block> blocks;
  std::vector<U32> layout;  // the order of the blocks in the text

  explicit RandomProgram(std::uint64_t seed) : random_(seed) {
    blocks.resize(2 + below(7));
    for (U32 i = 0; i < blocks.size(); ++i) {
      Block& block = blocks[i];
      const auto count = static_cast<U32>(blocks.size());
      block = {{}, i + 1 == count || below(2) == 0, below(kRegisters), below(kRegisters), below(count), below(count)};
      for (U32 left = below(4); left > 0; --left)
        block.operations.push_back({static_cast<Kind>(below(4)), below(kRegisters), below(kRegisters), below(kRegisters)});
      layout.push_back(i);
    }
    std::shuffle(layout.begin(), layout.end(), random_);
  }

  // The results.
  [[nodiscard]] std::vector<U32> executed() const {
    std::vector<U32> r(kRegisters, kFresh);
    r[0] = 1;
    U32 at = 0;
    for (U32 branches = 0;;) {
      const Block& block = blocks[at];
      for (const Operation& one : block.operations) {
        if (one.kind == Kind::add) r[one.to] = r[one.a] + r[one.b];
        if (one.kind == Kind::exclusive_or) r[one.to] = r[one.a] ^ r[one.b];
        if (one.kind == Kind::through_fresh_register) r[one.to] = r[one.a] + 7;
        if (one.kind == Kind::move_if_less && r[one.a] < r[one.b]) r[one.to] = r[one.a];
      }
      if (block.has_condition && ++branches > kMostBranches) break;
      at = !block.has_condition ? at + 1 : r[block.a] < r[block.b] ? block.less : block.other;
    }
    return {r.begin(), r.begin() + kResults};
  }

  [[nodiscard]] std::string text() const {
    const auto reg = [](U32 number) { return "%r" + std::to_string(number); };
    std::string code = ".visible .entry k(.param .u64 pout)\n{\n.reg .pred %p<9>; .reg .b32 %r<" + std::to_string(kRegisters) +
                       ">; .reg .b32 %n; .reg .b32 %t<100>; .reg .b64 %d<2>;\n"
                       "mov.u32 %r0, 1; mov.u32 %n, 0; bra B0;\n";
    U32 fresh = 0;
    for (const U32 number : layout) {
      const Block& block = blocks[number];
      code += "B" + std::to_string(number) + ":\n";
      for (const Operation& one : block.operations) {
        const std::string operands = reg(one.to) + ", " + reg(one.a) + ", " + reg(one.b) + ";\n";
        if (one.kind == Kind::add) code += "add.u32 " + operands;
        if (one.kind == Kind::exclusive_or) code += "xor.b32 " + operands;
        if (one.kind == Kind::through_fresh_register) {
          const std::string name = "%t" + std::to_string(fresh++);
          code += "add.u32 " + name + ", " + reg(one.a) + ", 7; mov.u32 " + reg(one.to) + ", " + name + ";\n";
        }
        if (one.kind == Kind::move_if_less)
          code +=
              "setp.lt.u32 %p1, " + reg(one.a) + ", " + reg(one.b) + "; @%p1 mov.u32 " + reg(one.to) + ", " + reg(one.a) + ";\n";
      }
      if (block.has_condition)
        code += "add.u32 %n, %n, 1; setp.gt.u32 %p0, %n, " + std::to_string(kMostBranches) +
                "; @%p0 bra END;\nsetp.lt.u32 %p2, " + reg(block.a) + ", " + reg(block.b) + "; @%p2 bra B" +
                std::to_string(block.less) + ";\n";
      code += "bra B" + std::to_string(block.has_condition ? block.other : number + 1) + ";\n";
    }
    code += "END: ld.param.u64 %d0, [pout];\n";
    for (U32 i = 0; i < kResults; ++i) code += "st.global.u32 [%d0+" + std::to_string(4 * i) + "], " + reg(i) + ";\n";
    return ptx_module(code + "ret;\n}\n");
  }

 private:
  U32 below(U32 limit) { return static_cast<U32>(random_() % limit); }

  std::mt19937_64 random_;
};

TEST(RegisterSlots, RandomProgramsComputeTheSame) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const RandomProgram program(seed);
    Machine machine({.multiprocessors = 1, .weak = false, .seed = seed});
    const DeviceArray<U32> out(machine, 0, kResults);
    run_kernel(machine, machine.load(0, program.text()), "k", {}, {1}, out.address());
    ASSERT_EQ(out.values(), program.executed()) << "seed " << seed << "\n" << program.text();
  }
}

U32 slots_of(const std::string& registers, const std::string& code) {
  Machine machine({.multiprocessors = 1});
  const Program& program = machine.load(0, ptx_module(".visible .entry k()\n{\n" + registers + code + "ret;\n}\n"));
  return program.decoded_entry("k")->register_slots;
}

TEST(RegisterSlots, AreFewWhereEachResultHasARegisterOfItsOwn) {
  std::string code = "mov.u32 %r0, 1;\n";
  for (int i = 1; i < 1000; ++i) code += "add.u32 %r" + std::to_string(i) + ", %r" + std::to_string(i - 1) + ", 1;\n";
  EXPECT_EQ(slots_of(".reg .b32 %r<1000>;\n", code), 4U) << "a source, a destination, and two for results that are dropped";
}

TEST(RegisterSlots, OfWideRegistersAreTwo) {
  const std::string code =
      "mov.b64 %d0, 1; mov.b128 %q0, {%d0, %d0}; mov.b128 %q1, {%d0, %d0};\n"
      "mov.b128 {%d1, %d2}, %q0; mov.b128 {%d3, %d4}, %q1;\n";
  EXPECT_EQ(slots_of(".reg .b64 %d<5>; .reg .b128 %q<2>;\n", code), 2U + 2 * 2 + 2);
}

}  // namespace
}  // namespace seto::software_gpu
