// Each instruction that the software GPU knows has a test that compares it with a reference.
#include "tests/software_gpu/operation_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace seto::software_gpu {
namespace {

const std::map<std::string, std::vector<std::string>> kReferences{
    {"instructions_test.cc",
     {"add", "addc", "and", "abs", "bfe", "bfi",  "bfind", "brev", "clz",  "cvt",  "div", "fma", "lop3", "mad",  "madc", "max",
      "min", "mov",  "mul", "neg", "not", "popc", "prmt",  "rem",  "selp", "setp", "shf", "shl", "shr",  "sqrt", "sub",  "subc"}},
    {"references_test.cc",
     {"atom",    "brkpt",    "brx", "cnot", "copysign", "cos", "cvta", "ex2", "isspacep", "ldu",  "lg2",   "nanosleep", "or",
      "pmevent", "prefetch", "rcp", "red",  "rsqrt",    "sad", "set",  "sin", "slct",     "tanh", "testp", "xor"}},
    {"warp_test.cc", {"activemask", "bar", "barrier", "bra", "call", "elect", "exit", "match", "redux", "ret", "shfl", "vote"}},
    {"litmus_test.cc", {"fence", "ld", "membar", "st"}},
    {"multimem_test.cc", {"multimem"}},
    {"errors_test.cc", {"trap"}},
};

TEST(OperationTable, EachNameHasAReference) {
  std::set<std::string> known, referenced, without;
  for (const auto group : operation_groups())
    for (const OperationRow& row : group) known.emplace(row.name);
  for (const auto& [file, names] : kReferences)
    for (const std::string& name : names) {
      EXPECT_TRUE(referenced.insert(name).second) << name << " is listed twice";
      EXPECT_TRUE(known.contains(name)) << file << " has " << name << ", which is no instruction of the table";
    }
  for (const std::string& name : known)
    if (!referenced.contains(name)) without.insert(name);
  EXPECT_THAT(without, ::testing::IsEmpty()) << "write a test against a reference, and list its file here";
}

}  // namespace
}  // namespace seto::software_gpu
