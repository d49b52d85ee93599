// Wrong kernels, and what is said about them.
#include <gmock/gmock.h>

#include "tests/software_gpu/kernel_test.h"

namespace seto::software_gpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string kernel(const std::string& code) {
  return ptx_module(
      ".shared .align 4 .b8 words[512];\n.visible .entry k(.param .u64 pout)\n{\n"
      ".reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %d<8>;\nld.param.u64 %d0, [pout]; mov.u32 %r0, %tid.x;\n" +
      code + "\nret;\n}\n");
}

std::pair<FaultKind, std::string> fault_in(const std::string& code, std::uint32_t threads = 64,
                                           const MachineSettings& settings = {}, std::uint32_t blocks = 1) {
  return fault_of([&] {
    Machine machine(settings);
    const DeviceArray<std::uint32_t> out(machine, 0, 64, "out");
    run_kernel(machine, machine.load(0, kernel(code)), "k", {blocks}, {threads}, out.address());
  });
}

TEST(Errors, AnUnknownInstructionNamesItsTextAndLine) {
  const auto [kind, text] = fault_in("frob.b32 %r1, %r0;");
  EXPECT_EQ(kind, FaultKind::unknown_instruction);
  EXPECT_THAT(text, AllOf(HasSubstr("ptx line 9"), HasSubstr("frob.b32 %r1, %r0;")));
  EXPECT_EQ(fault_in("add.funny.s32 %r1, %r0, %r0;").first, FaultKind::unknown_instruction) << "a modifier is never ignored";
}

// The text of one kernel is not looked at for the sake of another.
TEST(Errors, AreThoseOfTheKernelThatIsLaunched) {
  const std::string entry = ".visible .entry ";
  const std::string module =
      ptx_module(entry + "wrong()\n{\n// }\nfrob.b32 %r1, %r0; /* } */\nret;\n}\n" + entry + "right()\n{\nret;\n}\n");
  Machine machine({});
  const Program& program = machine.load(0, module);
  EXPECT_NO_THROW(run_kernel(machine, program, "right", {1}, {32}));
  for (int again = 0; again < 2; ++again) {
    const auto [kind, text] = fault_of([&] { run_kernel(machine, program, "wrong", {1}, {32}); });
    EXPECT_EQ(kind, FaultKind::unknown_instruction);
    EXPECT_THAT(text, HasSubstr("ptx line 7: "));
  }
  EXPECT_NO_THROW(run_kernel(machine, program, "right", {1}, {32}));
  EXPECT_THAT(fault_of([&] { static_cast<void>(machine.load(0, ptx_module(entry + "open()\n{\nret;\n"))); }).second,
              AllOf(HasSubstr("ptx line 5"), HasSubstr("no '}' closes")));
}

// The host asks for the shared memory of a kernel before it launches one.
TEST(Errors, SharedMemoryIsKnownBeforeAKernelIsDecoded) {
  Machine machine({});
  const auto bytes = [&](const std::string& body) {
    const Program& program = machine.load(0, ptx_module(".visible .entry k()\n{\n" + body + "\nret;\n}\n"));
    return program.entry("k")->shared_bytes;
  };
  EXPECT_EQ(bytes(".reg .b32 %r<2>;"), 0U);
  EXPECT_EQ(bytes(".reg .b32 %r<2>; .shared .align 8 .b8 words[88];"), 88U);
  EXPECT_EQ(bytes(".reg .b32 %r<2>; mov.u32 %r0, 1; .shared .align 8 .b8 words[88]; st.shared.u32 [words], %r0;"), 88U);
}

TEST(Errors, InstructionsWithoutAModelAreRefused) {
  for (const char* code :
       {"mbarrier.init.shared.b64 [words], 1;", "cp.async.bulk.commit_group;", "barrier.cluster.arrive;", "griddepcontrol.wait;",
        "wgmma.fence.sync.aligned;", "fence.acq_rel.cluster;", "cp.async.ca.shared.global [words], [%d0], 4;"}) {
    const auto [kind, text] = fault_in(code);
    EXPECT_EQ(kind, FaultKind::refused) << code;
    EXPECT_THAT(text, AllOf(HasSubstr("ptx line 9"), HasSubstr("not modelled")));
  }
}

TEST(Errors, AnAccessOutOfBoundsNamesBlockThreadAndLine) {
  const auto [kind, text] = fault_in("mul.wide.u32 %d1, %r0, 8; add.u64 %d1, %d1, %d0;\nld.global.u32 %r1, [%d1];");
  EXPECT_EQ(kind, FaultKind::out_of_bounds);
  EXPECT_THAT(text, AllOf(HasSubstr("out (256 bytes)"), HasSubstr("block (0,0,0)"), HasSubstr("thread (32,0,0)"),
                          HasSubstr("ptx line 10: 'ld.global.u32 %r1, [%d1];'")));
  EXPECT_EQ(fault_in("st.shared.u32 [words+512], %r0;").first, FaultKind::out_of_bounds);
}

TEST(Errors, ABranchPastTheLastInstruction) {
  std::string text = kernel("setp.lt.u32 %p1, %r0, 40; @!%p1 bra END;");
  text.insert(text.rfind('}'), "END:\n");
  const auto [kind, reason] = fault_of([&] {
    Machine machine(MachineSettings{});
    const DeviceArray<std::uint32_t> out(machine, 0, 64, "out");
    run_kernel(machine, machine.load(0, text), "k", {1}, {64}, out.address());
  });
  EXPECT_EQ(kind, FaultKind::misuse);
  EXPECT_THAT(reason, AllOf(HasSubstr("past the last instruction"), HasSubstr("thread (40,0,0)")));
}

TEST(Errors, AMisalignedAccess) {
  EXPECT_EQ(fault_in("ld.global.u32 %r1, [%d0+2];").first, FaultKind::misaligned);
  EXPECT_EQ(fault_in("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+8];").first, FaultKind::misaligned);
}

TEST(Errors, AMissingBarrierIsARace) {
  const std::string code =
      "shl.b32 %r1, %r0, 2; mov.u32 %r2, words; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;\n%BARRIER%\n"
      "xor.b32 %r3, %r0, %OTHER%; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r2;\nld.shared.u32 %r4, [%r3];";
  const auto with = [&](const std::string& barrier, const std::string& other) {
    std::string text = code;
    text.replace(text.find("%BARRIER%"), 9, barrier);
    return text.replace(text.find("%OTHER%"), 7, other);
  };
  const auto runs = [&](const std::string& text) {
    Machine machine({.weak = true});
    const DeviceArray<std::uint32_t> out(machine, 0, 64);
    run_kernel(machine, machine.load(0, kernel(text)), "k", {1}, {64}, out.address());
  };
  const auto [kind, text] = fault_of([&] { runs(with("", "32")); });
  EXPECT_EQ(kind, FaultKind::race);
  EXPECT_THAT(text, AllOf(HasSubstr("race in shared memory"), HasSubstr("nothing orders them")));
  EXPECT_EQ(fault_of([&] { runs(with("bar.warp.sync -1;", "32")); }).first, FaultKind::race) << "a warp is not the block";
  EXPECT_EQ(fault_of([&] { runs(with("shfl.sync.idx.b32 %r5, %r0, 0, 31, -1;", "1")); }).first, FaultKind::race);
  EXPECT_NO_THROW(runs(with("bar.warp.sync -1;", "1")));
  EXPECT_NO_THROW(runs(with("bar.sync 0;", "32")));
}

TEST(Errors, AFlagInSharedMemoryOrdersByReleaseAndAcquire) {
  const auto pass = [](const std::string& store, const std::string& load) {
    return "setp.ne.u32 %p0, %r0, 0; @%p0 bra WAIT;\nst.shared.u32 [words+4], %r0; mov.u32 %r1, 1;\n" + store +
           ".shared.u32 [words], %r1; bra DONE;\nWAIT: setp.ne.u32 %p0, %r0, 32; @%p0 bra DONE;\nPOLL: " + load +
           ".shared.u32 %r1, [words]; setp.ne.u32 %p1, %r1, 1; @%p1 bra POLL;\nld.shared.u32 %r2, [words+4];\nDONE:";
  };
  Machine machine({});
  const DeviceArray<std::uint32_t> out(machine, 0, 64);
  EXPECT_NO_THROW(
      run_kernel(machine, machine.load(0, kernel(pass("st.release.cta", "ld.acquire.cta"))), "k", {1}, {64}, out.address()));
  EXPECT_EQ(fault_in(pass("st.relaxed.cta", "ld.acquire.cta")).first, FaultKind::race);
}

TEST(Errors, MemberMasksAndBarriers) {
  EXPECT_EQ(fault_in("shfl.sync.idx.b32 %r1, %r0, 0, 31, 1;").first, FaultKind::misuse) << "the lane is not in its mask";
  EXPECT_EQ(fault_in("setp.lt.u32 %p0, %r0, 16; @%p0 bra A; bar.sync 0; bra B;\nA: bar.sync 0;\nB:").first, FaultKind::misuse);
  EXPECT_EQ(fault_in("trap;").first, FaultKind::trap);
}

TEST(Errors, AHangSaysWhereAndWhy) {
  const auto [kind, text] = fault_in("setp.lt.u32 %p0, %r0, 32; @%p0 bra DONE; bar.sync 1, 64;\nDONE:");
  EXPECT_EQ(kind, FaultKind::hang);
  EXPECT_THAT(text, AllOf(HasSubstr("no thread can run"), HasSubstr("warp 1"), HasSubstr("waits at barrier 1")));
}

// Blocks that wait for a block without a slot wait for ever, on this GPU as on a real one.
TEST(Errors, AGridThatDoesNotFitHangsIfItsBlocksMeet) {
  const std::string code =
      "setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE; atom.relaxed.gpu.global.add.u32 %r1, [%d0], 1;\n"
      "POLL: ld.relaxed.gpu.global.u32 %r1, [%d0]; setp.lt.u32 %p1, %r1, 2; @%p1 bra POLL;\nDONE:";
  for (const bool weak : {false, true}) {
    const MachineSettings narrow{.multiprocessors = 1, .limits = {.blocks = 1}, .weak = weak, .step_budget = 100'000};
    const auto [kind, text] = fault_in(code, 32, narrow, 2);
    EXPECT_EQ(kind, FaultKind::hang);
    EXPECT_THAT(text, AllOf(HasSubstr("1 wait for a slot"), HasSubstr("ld.relaxed.gpu")));
  }
  Machine machine({.multiprocessors = 1, .limits = {.blocks = 2}, .weak = true});
  const DeviceArray<std::uint32_t> out(machine, 0, 64);
  EXPECT_NO_THROW(run_kernel(machine, machine.load(0, kernel(code)), "k", {2}, {32}, out.address()));
}

TEST(Errors, APeerWithoutAccess) {
  Machine machine({.gpus = 2});
  const DeviceArray<std::uint32_t> out(machine, 1, 64, "memory of the peer");
  machine.addresses().set_accessible(out.address(), 0b10);
  const auto [kind, text] =
      fault_of([&] { run_kernel(machine, machine.load(0, kernel("ld.global.u32 %r1, [%d0];")), "k", {1}, {32}, out.address()); });
  EXPECT_EQ(kind, FaultKind::out_of_bounds);
  EXPECT_THAT(text, HasSubstr("GPU 0 has no access to memory of the peer of GPU 1"));
}

}  // namespace
}  // namespace seto::software_gpu
