// multimem instructions: each against the host, and their places in the memory model.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <set>

#include "tests/software_gpu/float_formats.h"
#include "tests/software_gpu/kernel_test.h"

namespace seto::software_gpu {
namespace {

using ::testing::HasSubstr;
using U64 = std::uint64_t;
using U32 = std::uint32_t;

constexpr U64 kMultimem = U64{1} << 46;  // no memory of the process lies there
constexpr U32 kGpus = 3;

class Places final : public MulticastTargets {
 public:
  explicit Places(std::vector<U64> begins) : begins_(std::move(begins)) {}
  std::vector<U64> at(U64 offset, U32 /*bytes*/) override {
    std::vector<U64> places;
    for (const U64 begin : begins_) places.push_back(begin + offset);
    return places;
  }

 private:
  std::vector<U64> begins_;
};

// GPUs with an array each, all of them behind one address.
struct Team {
  explicit Team(const MachineSettings& settings = {.gpus = kGpus, .multiprocessors = 1}) : machine(settings) {
    std::vector<U64> begins;
    for (U32 gpu = 0; gpu < settings.gpus; ++gpu) {
      arrays.emplace_back(machine, gpu, 64, "memory");
      begins.push_back(arrays.back().address());
    }
    machine.addresses().add({.address = kMultimem,
                             .bytes = 512,
                             .accessible = ~U64{0},
                             .name = "multimem",
                             .multicast = std::make_shared<Places>(std::move(begins))});
  }
  void launch(U32 gpu, const std::string& code) {
    const std::string text = ptx_module(
        ".visible .entry k(.param .u64 pm, .param .u64 pown)\n{\n.reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 "
        "%d<8>; .reg .f32 %f<8>; .reg .f64 %e<2>; .reg .b64 %m; .reg .b64 %own;\n"
        "ld.param.u64 %m, [pm]; ld.param.u64 %own, [pown];\n" +
            code + "\nret;\n}\n",
        "sm_90");
    machine.launch({.program = &machine.load(gpu, text),
                    .kernel = "k",
                    .gpu = gpu,
                    .block = {1},
                    .arguments = arguments_of(kMultimem, arrays[gpu].address())});
  }
  void run(const std::string& code) {
    launch(0, code);
    machine.run();
  }

  Machine machine;
  std::vector<DeviceArray<U64>> arrays;
};

// ---- each instruction against the host

using Fold = U64 (*)(U64 one, U64 other);

template <class T, class F>
U64 by(U64 one, U64 other, const F& fold) {
  T a, b;
  std::memcpy(&a, &one, sizeof a);
  std::memcpy(&b, &other, sizeof b);
  const T result = fold(a, b);
  U64 bits = 0;
  std::memcpy(&bits, &result, sizeof result);
  return bits;
}
template <class T>
U64 sum(U64 one, U64 other) {
  return by<T>(one, other, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T>
U64 least(U64 one, U64 other) {
  return by<T>(one, other, [](T a, T b) { return a < b ? a : b; });
}
template <class T>
U64 most(U64 one, U64 other) {
  return by<T>(one, other, [](T a, T b) { return a > b ? a : b; });
}
U64 all_bits(U64 one, U64 other) { return one & other; }
U64 any_bits(U64 one, U64 other) { return one | other; }
U64 odd_bits(U64 one, U64 other) { return one ^ other; }

struct Case {
  const char* suffix;  // of ld_reduce and red: ".add.u32"
  U32 bytes;
  Fold fold;
};
constexpr Case kCases[] = {
    {"add.u32", 4, sum<U32>},
    {"add.s32", 4, sum<U32>},
    {"add.u64", 8, sum<U64>},
    {"min.u32", 4, least<U32>},
    {"min.s32", 4, least<int>},
    {"max.u32", 4, most<U32>},
    {"max.s32", 4, most<int>},
    {"min.u64", 8, least<U64>},
    {"min.s64", 8, least<std::int64_t>},
    {"max.s64", 8, most<std::int64_t>},
    {"max.u64", 8, most<U64>},
    {"and.b32", 4, all_bits},
    {"or.b64", 8, any_bits},
    {"xor.b32", 4, odd_bits},
    {"add.f32", 4, sum<float>},
    {"add.f64", 8, sum<double>},
};

std::string register_of(const Case& one) {
  const std::string text(one.suffix);
  if (text.ends_with("f32")) return "%f0";
  if (text.ends_with("f64")) return "%e0";
  return one.bytes == 8 ? "%d0" : "%r0";
}

// Random numbers; those of floats are of about one size, so that no sum is a NaN and the order matters.
U64 number(Random& random, const Case& one) {
  const std::string text(one.suffix);
  if (text.ends_with("f32")) return std::bit_cast<U32>(static_cast<float>(random.below(1U << 24)) / 7.0F - 1e6F);
  if (text.ends_with("f64")) return std::bit_cast<U64>(static_cast<double>(random.next() >> 8) / 7.0 - 1e9);
  return one.bytes == 8 ? random.next() : random.next() & 0xFFFFFFFFU;
}

// The results of folding the values in all orders.
std::set<U64> results_of(std::vector<U64> values, Fold fold) {
  std::set<U64> results;
  std::sort(values.begin(), values.end());
  do {
    U64 result = values[0];
    for (std::size_t i = 1; i < values.size(); ++i) result = fold(result, values[i]);
    results.insert(result);
  } while (std::next_permutation(values.begin(), values.end()));
  return results;
}

TEST(Multimem, LoadsReduceOverAllPlaces) {
  Random random(3);
  for (const Case& one : kCases) {
    for (const char* const how : {"", "weak.", "relaxed.sys.", "acquire.gpu."}) {
      Team team;
      std::vector<U64> values;
      for (U32 gpu = 0; gpu < kGpus; ++gpu) values.push_back(team.arrays[gpu][1] = number(random, one));
      const std::string type = std::string(one.suffix).substr(std::string(one.suffix).find('.') + 1);
      team.run("multimem.ld_reduce." + std::string(how) + "global." + one.suffix + " " + register_of(one) +
               ", [%m+8];\nst.global." + type + " [%own], " + register_of(one) + ";");
      EXPECT_TRUE(results_of(values, one.fold).contains(team.arrays[0][0])) << how << one.suffix << " gave " << team.arrays[0][0];
    }
  }
}

TEST(Multimem, ReductionsChangeAllPlaces) {
  Random random(5);
  for (const Case& one : kCases) {
    for (const char* const how : {"", "relaxed.sys.", "release.gpu."}) {
      Team team;
      const U64 operand = number(random, one);
      team.arrays[0][8] = operand;
      std::vector<U64> expected;
      for (U32 gpu = 0; gpu < kGpus; ++gpu) expected.push_back(one.fold(team.arrays[gpu][1] = number(random, one), operand));
      const std::string type = std::string(one.suffix).substr(std::string(one.suffix).find('.') + 1);
      team.run("ld.global." + type + " " + register_of(one) + ", [%own+64];\nmultimem.red." + std::string(how) + "global." +
               one.suffix + " [%m+8], " + register_of(one) + ";");
      for (U32 gpu = 0; gpu < kGpus; ++gpu) EXPECT_EQ(team.arrays[gpu][1], expected[gpu]) << how << one.suffix << " " << gpu;
    }
  }
}

TEST(Multimem, StoresGoToAllPlaces) {
  Team team;
  team.run(
      "mov.u32 %r0, 11; mov.u32 %r1, 12; mov.u32 %r2, 13; mov.u32 %r3, 14; mov.u64 %d0, 15; mov.f32 %f0, 0f3F800000;\n"
      "multimem.st.weak.global.v4.f16x2 [%m], {%r0, %r1, %r2, %r3};\nmultimem.st.release.sys.global.b64 [%m+16], %d0;\n"
      "multimem.st.global.v2.f32 [%m+24], {%f0, %f0};\nmultimem.st.relaxed.gpu.global.u32 [%m+36], %r1;");
  for (const auto& array : team.arrays) {
    EXPECT_EQ(array[0], 11 | U64{12} << 32);
    EXPECT_EQ(array[1], 13 | U64{14} << 32);
    EXPECT_EQ(array[2], 15U);
    EXPECT_EQ(array[3], 0x3F800000 | U64{0x3F800000} << 32);
    EXPECT_EQ(array[4], U64{12} << 32) << "the word before was not written";
  }
}

// ---- halves

U64 words(U32 first, U32 second, U32 third, U32 fourth) {
  return first | U64{second} << 16 | U64{third} << 32 | U64{fourth} << 48;
}

// 2048 + 1 + 1 is 2050 in f32, and 2048 in halves if the large number comes first: so the precision shows.
TEST(Multimem, HalvesAreAccumulatedAsTheInstructionSays) {
  const auto half = [](double value) { return encoded(value, kHalf, Rounding::nearest, false); };
  const auto results = [&](const std::string& code, U32 place) {
    std::set<U64> seen;
    for (U64 seed = 1; seed <= 30; ++seed) {
      Team team({.gpus = kGpus, .multiprocessors = 1, .seed = seed});
      for (U32 gpu = 0; gpu < kGpus; ++gpu) {
        const U32 one = half(gpu == 0 ? 2048 : 1);
        for (U32 word = 0; word < 4; ++word) team.arrays[gpu][word] = words(one, half(gpu), half(-3), half(0.5 * gpu));
      }
      team.run(code);
      seen.insert(team.arrays[0][8 + place]);
    }
    return seen;
  };
  const U64 exact = words(half(2050), half(3), half(-9), half(1.5)), rounded = words(half(2048), half(3), half(-9), half(1.5));
  const std::string keep = "st.global.v4.u32 [%own+64], {%r0, %r1, %r2, %r3};";
  for (U32 place : {0, 1}) {
    EXPECT_EQ(results("multimem.ld_reduce.weak.global.add.acc::f32.v4.f16x2 {%r0, %r1, %r2, %r3}, [%m];" + keep, place),
              std::set<U64>{exact});
    EXPECT_EQ(results("multimem.ld_reduce.weak.global.add.v4.f16x2 {%r0, %r1, %r2, %r3}, [%m];" + keep, place),
              (std::set<U64>{exact, rounded}))
        << "the order of the places varies";
    EXPECT_EQ(results("multimem.ld_reduce.weak.global.max.v4.f16x2 {%r0, %r1, %r2, %r3}, [%m];" + keep, place),
              std::set<U64>{words(half(2048), half(2), half(-3), half(1))});
  }
  const std::string keep_halves =
      "st.global.v4.u16 [%own+64], {%h0, %h1, %h2, %h3};st.global.v4.u16 [%own+72], {%h4, %h5, %h6, %h7};";
  EXPECT_EQ(
      results("multimem.ld_reduce.weak.global.add.acc::f32.v8.f16 {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}, [%m];" + keep_halves,
              1),
      std::set<U64>{exact});
}

TEST(Multimem, BfloatsAreAddedAndReduced) {
  const auto bits = [](double value) { return encoded(value, kBfloat, Rounding::nearest, false); };
  Team team;
  for (U32 gpu = 0; gpu < kGpus; ++gpu) team.arrays[gpu][0] = words(bits(256), bits(1), bits(gpu), bits(-1));
  team.run(
      "multimem.ld_reduce.weak.global.add.acc::f32.v2.bf16x2 {%r0, %r1}, [%m];\nst.global.v2.u32 [%own+64], {%r0, %r1};\n"
      "multimem.red.relaxed.sys.global.add.v2.bf16x2 [%m], {%r0, %r1};");
  EXPECT_EQ(team.arrays[0][8], words(bits(768), bits(3), bits(3), bits(-3)));
  for (U32 gpu = 0; gpu < kGpus; ++gpu) EXPECT_EQ(team.arrays[gpu][0], words(bits(1024), bits(4), bits(3 + gpu), bits(-4)));
}

// ---- what is refused

TEST(Multimem, FormsThatTheManualLacksAreUnknown) {
  for (const char* const code :
       {"ld_reduce.global.add.s64 %d0, [%m];", "ld_reduce.global.add.b32 %r0, [%m];", "ld_reduce.global.min.f32 %f0, [%m];",
        "ld_reduce.global.add.v2.f64 {%e0, %e1}, [%m];", "ld_reduce.global.add.v2.u32 {%r0, %r1}, [%m];",
        "ld_reduce.release.sys.global.add.u32 %r0, [%m];", "ld_reduce.relaxed.global.add.u32 %r0, [%m];",
        "ld_reduce.global.and.u32 %r0, [%m];", "ld_reduce.global.add.f16 %h0, [%m];",
        "ld_reduce.global.add.acc::f32.f32 %f0, [%m];", "st.acquire.sys.global.u32 [%m], %r0;",
        "red.acquire.sys.global.add.u32 [%m], %r0;", "red.weak.global.add.u32 [%m], %r0;",
        "red.relaxed.sys.global.max.f16x2 [%m], %r0;", "ld_reduce.shared.add.u32 %r0, [%m];"}) {
    const auto [kind, text] = fault_of([&] { Team().run("multimem." + std::string(code)); });
    EXPECT_EQ(kind, FaultKind::unknown_instruction) << code << ": " << text;
  }
}

TEST(Multimem, OnlyItsInstructionsAccessAMultimemAddress) {
  const auto fault = [](const std::string& code) { return fault_of([&] { Team().run(code); }); };
  EXPECT_THAT(fault("ld.global.u32 %r0, [%m];").second, HasSubstr("only multimem instructions"));
  EXPECT_THAT(fault("st.global.u32 [%m], %r0;").second, HasSubstr("only multimem instructions"));
  EXPECT_THAT(fault("red.global.add.u32 [%m], %r0;").second, HasSubstr("only multimem instructions"));
  EXPECT_THAT(fault("multimem.st.global.u32 [%own], %r0;").second, HasSubstr("no multimem address: memory"));
  EXPECT_EQ(fault("multimem.st.global.v2.f32 [%m+4], {%f0, %f1};").first, FaultKind::misaligned);
  EXPECT_EQ(fault("multimem.ld_reduce.global.add.u32 %r0, [%m+512];").first, FaultKind::out_of_bounds);
}

// ---- the memory model

// GPU 0 stores data at all places and then a flag; GPU 1 and GPU 2 poll their own flags and read their own data. Returns whether
// a reader that saw the flag lacked the data, whether one saw the flag and another not, or the text of a race.
struct Passed {
  bool lost = false;
  bool apart = false;
  std::string race{};
};
Passed passed(const std::string& store_flag, const std::string& load_flag, bool detect_races, bool data_is_multimem = true) {
  Passed passed;
  for (U64 seed = 1; seed <= 400; ++seed) {
    Team team({.gpus = kGpus,
               .multiprocessors = 1,
               .weak = true,
               .seed = seed,
               .detect_races = detect_races,
               .detect_global_races = detect_races});
    team.launch(0,
                "mov.u32 %r0, 1; mov.u64 %d0, 1;\n" +
                    std::string(data_is_multimem ? "multimem.st.weak.global.u32 [%m], %r0;\n" : "st.global.u32 [%own], %r0;\n") +
                    store_flag + "\nmov.u32 %r2, 64;\nBUSY: sub.u32 %r2, %r2, 1; setp.ne.u32 %p0, %r2, 0; @%p0 bra BUSY;");
    const std::string data =
        data_is_multimem ? "ld.global.u32 %r1, [%own];\n" : "multimem.ld_reduce.weak.global.add.u32 %r1, [%m];\n";
    for (const U32 gpu : {1U, 2U})
      team.launch(gpu, load_flag + " %d0, [%own+128];\nsetp.eq.u64 %p0, %d0, 0; @%p0 bra SKIP;\n" + data +
                           "st.global.u32 [%own+256], %r1;\nSKIP: st.global.u64 [%own+264], %d0;");
    try {
      team.machine.run();
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.kind(), FaultKind::race) << fault.what();
      passed.race = fault.what();
      return passed;
    }
    for (const U32 gpu : {1U, 2U}) passed.lost = passed.lost || (team.arrays[gpu][33] == 1 && team.arrays[gpu][32] != 1);
    passed.apart = passed.apart || team.arrays[1][33] != team.arrays[2][33];
  }
  return passed;
}

constexpr const char* kRelease = "multimem.st.release.sys.global.b64 [%m+128], %d0;";
constexpr const char* kRelaxed = "multimem.st.relaxed.sys.global.b64 [%m+128], %d0;";
constexpr const char* kAcquire = "ld.acquire.sys.global.u64";

TEST(Multimem, AReleaseAtAllPlacesPassesAMessage) {
  EXPECT_FALSE(passed(kRelease, kAcquire, false).lost);
  EXPECT_FALSE(passed("multimem.red.release.sys.global.add.u64 [%m+128], %d0;", kAcquire, false).lost);
  EXPECT_FALSE(passed(kRelease, kAcquire, false, false).lost) << "data of one place, which ld_reduce reads";
}

TEST(Multimem, AMessageIsLostWithoutRelease) {
  EXPECT_TRUE(passed(kRelaxed, kAcquire, false).lost);
  EXPECT_TRUE(passed(kRelease, "ld.relaxed.sys.global.u64", false).lost);
  EXPECT_TRUE(passed("multimem.st.release.gpu.global.b64 [%m+128], %d0;", kAcquire, false).lost) << "too small a scope";
  EXPECT_TRUE(passed(kRelaxed, kAcquire, false, false).lost);
}

TEST(Multimem, ThePlacesAreWrittenOneAfterAnother) { EXPECT_TRUE(passed(kRelease, kAcquire, false).apart); }

TEST(Multimem, RacesAreFoundAtEachPlace) {
  EXPECT_EQ(passed(kRelease, kAcquire, true).race, "");
  EXPECT_EQ(passed(kRelease, kAcquire, true, false).race, "");
  EXPECT_NE(passed(kRelaxed, kAcquire, true).race, "");
  EXPECT_NE(passed(kRelaxed, kAcquire, true, false).race, "");
  EXPECT_NE(passed(kRelease, "ld.relaxed.sys.global.u64", true).race, "");
}

}  // namespace
}  // namespace seto::software_gpu
