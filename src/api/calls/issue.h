#pragma once

#include "include/seto/seto.h"
#include "src/api/support/handles.h"
#include "src/core/call/collective_call.h"

namespace seto::api {

// The common path of all collectives. The call and its arrays are copied if they must outlive this function.
setoResult_t issue(setoComm_t comm, const Call& call, setoStream_t stream, const setoCallConfig_t* config) noexcept;

// Stores the type; an invalid type or operation becomes Call::wrong, so that the other ranks are told under the call's number.
void set_type(Call& call, setoDataType_t type);
void set_op(Call& call, setoRedOp_t op, setoComm_t comm);

// The call with the values of the config struct, which may be null.
Call with_config(const Call& call, const setoCallConfig_t* config);
// The type and config of a call that only moves data: a codec or an error feedback state is refused.
Call for_transfer(setoDataType_t type, const setoCallConfig_t* config);

}  // namespace seto::api
