#include "bench/common/types.h"

#include <array>

namespace seto::bench {
namespace {

struct TypeRow {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeRow, setoNumTypes> kTypes = {{{"int8", 1},
                                                       {"uint8", 1},
                                                       {"int32", 4},
                                                       {"uint32", 4},
                                                       {"int64", 8},
                                                       {"uint64", 8},
                                                       {"half", 2},
                                                       {"float", 4},
                                                       {"double", 8},
                                                       {"bfloat16", 2},
                                                       {"f8e4m3", 1},
                                                       {"f8e5m2", 1}}};

struct Alias {
  std::string_view name;
  setoDataType_t type;
};
constexpr Alias kAliases[] = {
    {"char", setoInt8},          {"int", setoInt32},       {"uint", setoUint32},
    {"float16", setoFloat16},    {"fp16", setoFloat16},    {"f16", setoFloat16},
    {"float32", setoFloat32},    {"fp32", setoFloat32},    {"f32", setoFloat32},
    {"float64", setoFloat64},    {"fp64", setoFloat64},    {"f64", setoFloat64},
    {"bf16", setoBfloat16},      {"e4m3", setoFloat8e4m3}, {"float8e4m3", setoFloat8e4m3},
    {"fp8e4m3", setoFloat8e4m3}, {"e5m2", setoFloat8e5m2}, {"float8e5m2", setoFloat8e5m2},
    {"fp8e5m2", setoFloat8e5m2},
};

constexpr setoDataType_t kAllTypes[] = {setoInt8,    setoUint8,   setoInt32,   setoUint32,   setoInt64,      setoUint64,
                                        setoFloat16, setoFloat32, setoFloat64, setoBfloat16, setoFloat8e4m3, setoFloat8e5m2};
constexpr Op kAllOps[] = {Op::sum, Op::prod, Op::max, Op::min, Op::avg, Op::mul_sum};
constexpr std::string_view kOpNames[] = {"sum", "prod", "max", "min", "avg", "mulsum"};

}  // namespace

std::span<const setoDataType_t> all_types() { return kAllTypes; }
std::span<const Op> all_ops() { return kAllOps; }

std::string_view name_of(setoDataType_t type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::string_view name_of(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }
std::size_t size_of(setoDataType_t type) { return kTypes[static_cast<std::size_t>(type)].size; }

std::optional<setoDataType_t> parse_type(std::string_view name) {
  for (setoDataType_t type : kAllTypes) {
    if (name_of(type) == name) return type;
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.type;
  }
  return std::nullopt;
}

std::optional<Op> parse_op(std::string_view name) {
  for (Op op : kAllOps) {
    if (name_of(op) == name) return op;
  }
  if (name == "premulsum") return Op::mul_sum;
  return std::nullopt;
}

}  // namespace seto::bench
