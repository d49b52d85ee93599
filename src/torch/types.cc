#include "src/torch/types.h"

#include "src/torch/arguments.h"

namespace seto::torch_backend {
namespace {

using c10::ScalarType;
using Op = c10d::ReduceOp;

std::optional<setoDataType_t> own_type(ScalarType type) {
  switch (type) {
    case ScalarType::Char:
      return setoInt8;
    case ScalarType::Byte:
    case ScalarType::Bool:
      return setoUint8;
    case ScalarType::Int:
      return setoInt32;
    case ScalarType::UInt32:
      return setoUint32;
    case ScalarType::Long:
      return setoInt64;
    case ScalarType::UInt64:
      return setoUint64;
    case ScalarType::Half:
      return setoFloat16;
    case ScalarType::Float:
      return setoFloat32;
    case ScalarType::Double:
      return setoFloat64;
    case ScalarType::BFloat16:
      return setoBfloat16;
    case ScalarType::Float8_e4m3fn:
      return setoFloat8e4m3;
    case ScalarType::Float8_e5m2:
      return setoFloat8e5m2;
    default:
      return {};
  }
}

const char* name_of(Op::RedOpType op) {
  constexpr const char* kNames[] = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum"};
  return op < Op::UNUSED ? kNames[op] : "an unknown operation";
}

// A bool is 0 or 1, so its sum saturates: for torch, sum and maximum mean "any", and the product means "all".
std::optional<setoRedOp_t> op_of_truths(Op::RedOpType op) {
  switch (op) {
    case Op::SUM:
    case Op::MAX:
    case Op::BOR:
      return setoMax;
    case Op::PRODUCT:
    case Op::MIN:
    case Op::BAND:
      return setoMin;
    case Op::BXOR:
      return setoBitXor;
    default:
      return {};
  }
}

std::optional<setoRedOp_t> own_op(Op::RedOpType op) {
  switch (op) {
    case Op::SUM:
      return setoSum;
    case Op::AVG:
      return setoAvg;
    case Op::PRODUCT:
      return setoProd;
    case Op::MIN:
      return setoMin;
    case Op::MAX:
      return setoMax;
    case Op::BAND:
      return setoBitAnd;
    case Op::BOR:
      return setoBitOr;
    case Op::BXOR:
      return setoBitXor;
    default:
      return {};
  }
}

bool is_bitwise(Op::RedOpType op) { return op == Op::BAND || op == Op::BOR || op == Op::BXOR; }

[[noreturn]] void refuse(ScalarType type, Op::RedOpType op) {
  Arguments("reduction").refuse(c10::str(name_of(op), " of ", c10::toString(type), " is not supported"));
}

}  // namespace

Moved moved_as(ScalarType type) {
  if (const auto own = own_type(type)) return {*own, 1};
  return {setoUint8, c10::elementSize(type)};
}

Reduced reduced_as(ScalarType type, const Op& reduction) {
  const Op::RedOpType op = reduction.op_;
  Reduced as;
  if (type == ScalarType::Bool) {
    as.type = setoUint8;
    as.op = op_of_truths(op);
    if (!as.op) refuse(type, op);
    return as;
  }
  if (c10::isComplexType(type)) {
    if (op != Op::SUM && op != Op::AVG && op != Op::PREMUL_SUM) refuse(type, op);
    type = c10::toRealValueType(type);
    as.elements = 2;
  } else if (type == ScalarType::Short || (op == Op::AVG && (type == ScalarType::Char || type == ScalarType::Byte))) {
    as.widened_to = type = ScalarType::Int;
  } else if (type == ScalarType::UInt16) {
    as.widened_to = type = ScalarType::UInt32;
  }
  const auto own = own_type(type);
  if (!own || (is_bitwise(op) && !c10::isIntegralType(type, false))) refuse(type, op);
  as.type = *own;
  if (op == Op::PREMUL_SUM) return as;
  as.op = own_op(op);
  if (!as.op) refuse(type, op);
  return as;
}

}  // namespace seto::torch_backend
