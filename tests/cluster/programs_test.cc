#include "tests/cluster/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/cluster/thread_ranks.h"

// Runs the programs from a shell, as users do.
namespace seto::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Command, HelpDescribesTheProgramOrACommand) {
  for (const char* arguments : {"", "help", "--help"}) {
    const Ended all = seto(arguments);
    EXPECT_EQ(all.status, 0) << all.text;
    EXPECT_THAT(all.text, AllOf(HasSubstr("info"), HasSubstr("explain"), HasSubstr("--version"))) << arguments;
  }
  const Ended one = seto("help explain");
  EXPECT_EQ(one.status, 0) << one.text;
  EXPECT_THAT(one.text, AllOf(HasSubstr("seto explain"), HasSubstr("--ranks")));
  EXPECT_EQ(seto("help weather").status, 2);
  EXPECT_THAT(seto("help plan simulate").text, HasSubstr("--algorithm"));
  const Ended unknown = seto("help plan weather");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.text, "seto: plan has no command 'weather'; seto help plan describes it\n");
}

TEST(Command, VersionIsPrintedWithAnySettings) {
  const Ended version = seto("--version", "SETO_TYPO=1");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.text, "seto 0.1.0\n");
}

TEST(Command, WrongVariablesDoNotHideTheList) {
  const Ended listed = seto("info --config", "SETO_TYPO=1 SETO_LOG=INFO SETO_SPIN=many");
  EXPECT_EQ(listed.status, 2);
  EXPECT_THAT(listed.text, HasSubstr("SETO_OPERATION_TIMEOUT_MS"));
  EXPECT_THAT(listed.text, HasSubstr("info  (environment)"));
  EXPECT_THAT(listed.text, HasSubstr("left out: SETO_TYPO is not a variable of Seto"));
  EXPECT_THAT(listed.text, HasSubstr("left out: SETO_SPIN=many is not allowed"));
  const Ended right = seto("info --config", "SETO_LOG=info");
  EXPECT_EQ(right.status, 0);
  EXPECT_THAT(right.text, Not(HasSubstr("left out")));
  EXPECT_THAT(right.text, HasSubstr("naming the missing ranks; milliseconds from 1 to"));
}

TEST(Command, UsageErrorsExitWithTwoAndNameTheAllowedValues) {
  const Ended none = seto("explain all_reduce 1K --ranks 0");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.text, HasSubstr("'0' is not one of 1 to 65536"));
  for (const char* wrong :
       {"weather", "explain", "explain all_reduce", "explain all_reduce 1X", "explain all_reduce 1K --ranks two",
        "explain all_redcue 1K", "explain all_reduce 1K --bogus", "info weather", "--bogus"}) {
    const Ended ended = seto(wrong);
    EXPECT_EQ(ended.status, 2) << wrong << ": " << ended.text;
  }
  EXPECT_EQ(seto("explain barrier --ranks 4").status, 0);
  EXPECT_THAT(seto("explain all_reduce").text, HasSubstr("write it after the collective: seto explain all_reduce 64M"));
}

TEST(Command, SuggestsTheNearestCommand) {
  const Ended misspelt = seto("explian all_reduce 8");
  EXPECT_EQ(misspelt.status, 2);
  EXPECT_EQ(misspelt.text, "seto: 'explian' is not a command; did you mean explain; seto help lists the commands\n");
  EXPECT_EQ(seto("agnt").text, "seto: 'agnt' is not a command; seto help lists the commands\n");
}

TEST(Command, SuggestsTheNearestOption) {
  const Ended misspelt = seto("explain all_reduce 1K --rank 8");
  EXPECT_EQ(misspelt.status, 2);
  EXPECT_THAT(misspelt.text, StartsWith("seto: not expected: "));
  EXPECT_THAT(misspelt.text, HasSubstr("did you mean --ranks\n"));
  EXPECT_THAT(seto("explain all_reduce 1K --ranks 0").text, StartsWith("seto: --ranks: "));
}

TEST(Command, HelpOfRunShowsTheProgramAndTheVariablesThatTravel) {
  const std::string help = seto("run --help").text;
  EXPECT_THAT(help, HasSubstr("run [OPTIONS] -- program [argument ...]\n"));
  EXPECT_THAT(help, HasSubstr("Every rank gets the SETO_* variables of seto run"));
}

SETO_TEST_ALONE(Command, MostRanksAreThoseOfTheLibrary) {
  setoQuestion_t question = SETO_QUESTION_INITIALIZER;
  question.collective = "all_reduce";
  question.ranks = 65'537;
  EXPECT_TRUE(failed(setoExplain(&question, setoFormatText, nullptr, 0, nullptr), setoInvalidArgument, "1 to 65536"));
}

TEST(Command, ExplainSaysThatAPinIsIgnored) {
  const Ended ended = seto("explain all_reduce 1K --ranks 4", "SETO_ALGORITHM=TREE");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, StartsWith("all_reduce, 1K, 4 ranks"));
  EXPECT_THAT(ended.text, HasSubstr("tree is pinned, but all_reduce has no such algorithm; the pin is ignored"));
}

TEST(Benchmark, RejectsArgumentsThatWouldFailLater) {
  if (!is_there(built("bench/all_reduce_perf"))) GTEST_SKIP() << "skipped: built without SETO_BENCH";
  const auto refusal = [](const std::string& arguments) {
    const Ended ended = run_program("bench/all_reduce_perf", "-b 8 -e 8 --ranks 2 " + arguments);
    EXPECT_EQ(ended.status, 2) << ended.text;
    EXPECT_THAT(ended.text, Not(HasSubstr("out-of-place"))) << "it measured before it failed";
    return ended.text;
  };
  EXPECT_THAT(refusal("--algorithm tree"), HasSubstr("all_reduce has no tree; it has "));
  EXPECT_THAT(refusal("-J /nowhere/x.json"), HasSubstr("-J: cannot write /nowhere/x.json"));
  EXPECT_THAT(refusal("--plot x.svg --plot-add /nowhere/x.json"), HasSubstr("--plot-add: cannot read /nowhere/x.json"));
  EXPECT_EQ(run_program("bench/all_reduce_perf", "-b 8 -e 8 --ranks 2 --algorithm ring").status, 0);
}

TEST(Command, ListsCodecsAndTriesThemOnNumbers) {
  const Ended list = seto("codec");
  EXPECT_EQ(list.status, 0) << list.text;
  EXPECT_THAT(list.text, AllOf(HasSubstr("fp16"), HasSubstr("int4"), HasSubstr("relative"), HasSubstr("infinity")));
  EXPECT_THAT(seto("codec --json").text, HasSubstr("\"encode_bytes_per_second\":"));
  const std::string path = ::testing::TempDir() + "seto_numbers_" + std::to_string(getpid()) + ".npy";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
  const float values[] = {1, -0.3F, 0, 1000};
  {
    std::ofstream file(path, std::ios::binary);
    file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size()) << '\0' << header;
    file.write(reinterpret_cast<const char*>(values), sizeof values);
  }
  const Ended checked = seto("codec check " + path);
  EXPECT_EQ(checked.status, 0) << checked.text;
  EXPECT_THAT(checked.text,
              AllOf(HasSubstr("4 numbers of float, 16 bytes"), HasSubstr("SNR"), HasSubstr("###"), HasSubstr("int8")));
  EXPECT_THAT(seto("codec check --json " + path).text, HasSubstr("\"signal_to_noise_db\":"));
  std::ofstream(path) << "my diary";
  const Ended none = seto("codec check " + path);
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.text, HasSubstr("not a .npy file"));
  EXPECT_EQ(seto("codec check /nowhere.npy").status, 1);
  unlink(path.c_str());
}

// One table for each codec: errors are checked against the bound, and the bytes are those on the wire.
TEST(Benchmark, MeasuresSumsInCodecs) {
  if (!is_there(built("bench/all_reduce_perf"))) GTEST_SKIP() << "skipped: built without SETO_BENCH";
  const Ended ended = run_program("bench/all_reduce_perf",
                                  "-b 256K -e 256K -n 2 --ranks 3 -d float,double,bfloat16 -o sum,max,avg --codec none,e4m3,int8",
                                  "SETO_TRANSPORT=tcp SETO_CALIBRATE=off");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("checked against the error bound\n# of their codec"));
  EXPECT_THAT(ended.text, ::testing::ContainsRegex("262144 +65536 +float +sum .* int8 +int8 +66560\n"));
  EXPECT_THAT(ended.text, ::testing::ContainsRegex("262144 +65536 +float +sum .* none +exactly +262144\n"));
  EXPECT_THAT(ended.text, ::testing::ContainsRegex("262144 +65536 +float +max .* none +exactly +262144\n"));
  EXPECT_THAT(ended.text, Not(::testing::ContainsRegex(" max [^\n]* int8 "))) << "only sums are encoded";
  EXPECT_THAT(ended.text, HasSubstr("Out of bounds values : 0 OK"));
  const Ended told = run_program("bench/all_reduce_perf", "-b 8 -e 16 --ranks 2 -o max", "SETO_CODEC=int8 SETO_LOG=info");
  EXPECT_THAT(told.text, HasSubstr("all_reduce of 2 float, max is not encoded: codec int8 accepts only sums of wider floats"));
  EXPECT_THAT(told.text, Not(HasSubstr("all_reduce of 4 float, max is not encoded"))) << "it is logged once";
  EXPECT_THAT(run_program("bench/all_reduce_perf", "-b 256K -e 256K --ranks 2", "SETO_CODEC=world=int8 SETO_LOG=info").text,
              AllOf(HasSubstr("codec 'world=int8' names no tier that these ranks have"), HasSubstr("values : 0 OK")));
  // If the codec was permitted and not used, the output says so and the sums are checked as exact.
  EXPECT_THAT(run_program("bench/all_reduce_perf", "-b 8 -e 8 -n 2 --ranks 2 --codec int4 --deterministic 1").text,
              AllOf(::testing::ContainsRegex(" 8 +2 +float +sum .* int4 +exactly +8\n"), HasSubstr("values : 0 OK")));
  EXPECT_THAT(run_program("bench/all_reduce_perf", "-b 8 -e 8 -n 2 --ranks 2 --codec int4", "SETO_RECORDER=0").text,
              ::testing::ContainsRegex(" int4 +unknown +0\n"));
  // A codec set for the communicator: errors are checked against its bound in the same way.
  const Ended of_all = run_program("bench/all_reduce_perf", "-b 256K -e 256K -n 2 --ranks 3 -d float,int32 -o sum,max",
                                   "SETO_CODEC=int8 SETO_TRANSPORT=tcp SETO_CALIBRATE=off");
  EXPECT_EQ(of_all.status, 0) << of_all.text;
  EXPECT_THAT(of_all.text, ::testing::ContainsRegex("262144 +65536 +float +sum .* int8 +int8 +66560\n"));
  EXPECT_THAT(of_all.text, ::testing::ContainsRegex("262144 +65536 +int32 +sum [^\n]* none +exactly +262144\n"));
  EXPECT_THAT(of_all.text, HasSubstr("Out of bounds values : 0 OK"));
  EXPECT_THAT(run_program("bench/all_reduce_perf", "-b 8 -e 8 --ranks 2 --codec fp15").text,
              AllOf(HasSubstr("the names are none, fp16"), HasSubstr("did you mean fp16")));
  EXPECT_THAT(run_program("bench/all_reduce_perf", "-b 8 -e 8 --ranks 2 -d int32 --codec fp16").text,
              HasSubstr("fp16 does not accept int32"));
  EXPECT_THAT(run_program("bench/all_reduce_perf", "-b 4 -e 4 -n 2 --ranks 2 -d int32,float --codec fp16").text,
              ::testing::ContainsRegex(" int32 +sum [^\n]* none +exactly +4\n"))
      << "other types are measured without a codec";
  EXPECT_THAT(run_program("bench/all_reduce_perf", "-b 256K -e 256K -n 2 --ranks 3",
                          "SETO_CODEC=world=none,node=FP8,site=FP8 SETO_TRANSPORT=tcp SETO_CALIBRATE=off")
                  .text,
              AllOf(::testing::ContainsRegex(" e4m3 +[0-9]+\n"), HasSubstr("values : 0 OK")));
  EXPECT_THAT(run_program("bench/all_gather_perf", "-b 8 -e 8 --ranks 2 --codec fp16").text, HasSubstr("does not reduce"));
}

}  // namespace
}  // namespace seto::testing
