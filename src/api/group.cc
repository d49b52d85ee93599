#include "src/api/making.h"
#include "src/api/group_depth.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

extern "C" {

setoResult_t setoGroupStart(void) {
  return enter([]() -> Status {
    set_group_depth(group_depth() + 1);
    return {};
  });
}

setoResult_t setoGroupEnd(void) {
  return enter([]() -> Status {
    if (group_depth() == 0) return failure(Code::invalid_usage, "setoGroupEnd: this thread has started no group");
    set_group_depth(group_depth() - 1);
    return group_depth() == 0 ? run_collected() : Status();
  });
}

}  // extern "C"
