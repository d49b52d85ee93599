#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "include/seto/seto.h"
#include "src/base/status.h"
#include "src/core/host_stream/call_group.h"

namespace seto::api {

// The calls that one thread collects between setoGroupStart and the outermost setoGroupEnd.
struct ThreadGroup {
  CallGroup calls;
  // The communicators of these calls. The shares keep their memory until the group ends.
  std::vector<std::shared_ptr<setoComm>> communicators;
  // Calls that make or finalize communicators.
  std::vector<std::function<Status()>> setup;
};

ThreadGroup& thread_group();

// A copy of the depth of this thread's group, cheap enough to read in every call. In a shared library a thread-local variable
// costs a function call unless its address is fixed when the library is loaded.
inline constinit thread_local int open_groups [[gnu::tls_model("initial-exec")]] = 0;

inline int group_depth() { return open_groups; }
// Updates the copy. Call after every start and end.
void note_group_depth();

}  // namespace seto::api
