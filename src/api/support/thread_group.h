#pragma once

namespace seto::api {

// Groups that this thread has started and not ended: a copy of what CallGroup knows, which every call can afford to look at. In a
// shared library a thread's variable costs a call unless its place is fixed when the library is loaded.
inline constinit thread_local int open_groups [[gnu::tls_model("initial-exec")]] = 0;

inline int group_depth() { return open_groups; }
// After every start and end.
void note_group_depth();

}  // namespace seto::api
