#pragma once

namespace seto::api {

// Groups that this thread has started and not ended.
int group_depth();
void set_group_depth(int depth);

}  // namespace seto::api
