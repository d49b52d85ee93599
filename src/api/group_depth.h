#pragma once

namespace seto::api {

// Groups that this thread has started and not ended.
int group_depth();

}  // namespace seto::api
