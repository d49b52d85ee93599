#pragma once

#include "include/seto/seto.h"
#include "src/api/support/handles.h"
#include "src/core/call/collective_call.h"

namespace seto::api {

// The one way of every collective. The call is copied where it outlives this function; its arrays too.
setoResult_t issue(setoComm_t comm, const Call& call, setoStream_t stream, const setoCallConfig_t* config) noexcept;

// What is wrong with the type or the operation goes into the call: the other ranks hear of it under its number.
void set_type(Call& call, setoDataType_t type);
void set_op(Call& call, setoRedOp_t op, setoComm_t comm);

// The call with what the struct says, which may be null.
Call with_config(const Call& call, const setoCallConfig_t* config);
// What a type and a struct mean for what only moves: a codec or a state of error feedback is refused.
Call for_transfer(setoDataType_t type, const setoCallConfig_t* config);

}  // namespace seto::api
