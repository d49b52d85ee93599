#include "src/base/types.h"

#include <array>

namespace seto {
namespace {

struct TypeFacts {
  std::string_view name;
  std::uint8_t size;
  bool integer;
  bool accumulates_in_itself;
};

constexpr std::array<TypeFacts, kDataTypeCount> kTypes = {{
    {"int8", 1, true, true},
    {"uint8", 1, true, true},
    {"int32", 4, true, true},
    {"uint32", 4, true, true},
    {"int64", 8, true, true},
    {"uint64", 8, true, true},
    {"half", 2, false, false},
    {"float", 4, false, true},
    {"double", 8, false, true},
    {"bfloat16", 2, false, false},
    {"fp8_e4m3", 1, false, false},
    {"fp8_e5m2", 1, false, false},
}};

constexpr std::array<std::string_view, kReduceOpCount> kOps = {"sum",       "prod",   "max",   "min",   "avg",
                                                               "premulsum", "bitand", "bitor", "bitxor"};

constexpr std::array<std::string_view, kCollectiveCount> kCollectives = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "gather", "scatter", "barrier"};

const TypeFacts& facts(DataType type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

std::size_t size_of(DataType type) { return facts(type).size; }
bool is_integer(DataType type) { return facts(type).integer; }
bool accumulates_in_itself(DataType type) { return facts(type).accumulates_in_itself; }
std::string_view name_of(DataType type) { return facts(type).name; }
std::string_view name_of(ReduceOp op) { return kOps[static_cast<std::size_t>(op)]; }
std::string_view name_of(Collective collective) { return kCollectives[static_cast<std::size_t>(collective)]; }

}  // namespace seto
