#include "src/api/group_depth.h"

namespace seto::api {
namespace {

thread_local int depth_of_thread = 0;

}  // namespace

int group_depth() { return depth_of_thread; }
void set_group_depth(int depth) { depth_of_thread = depth; }

}  // namespace seto::api
