#include "src/api/support/handles.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Status create(setoRedOp_t* op, const void* scalar, int datatype, int residence, setoComm_t comm) {
  SETO_TRY(check_handle(comm));
  if (op == nullptr) return null_argument("op");
  if (scalar == nullptr) return null_argument("scalar");
  if (datatype < 0 || datatype >= setoNumTypes)
    return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", datatype);
  if (residence == setoScalarDevice)
    return failure(Code::invalid_usage, "residence: scalars in device memory are not in this version");
  if (residence != setoScalarHostImmediate)
    return failure(Code::invalid_argument, "residence: %d is not a setoScalarResidence_t value", residence);
  SETO_ASSIGN(const int made, comm->premul_sums.add(scalar, static_cast<DataType>(datatype)));
  *op = static_cast<setoRedOp_t>(made);
  return {};
}

}  // namespace

extern "C" {

setoResult_t setoRedOpCreatePreMulSum(setoRedOp_t* op, void* scalar, setoDataType_t datatype, setoScalarResidence_t residence,
                                      setoComm_t comm) {
  return enter([&] { return create(op, scalar, number_in(datatype), number_in(residence), comm); });
}

setoResult_t setoRedOpDestroy(setoRedOp_t op, setoComm_t comm) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    return comm->premul_sums.remove(static_cast<int>(op));
  });
}

}  // extern "C"
