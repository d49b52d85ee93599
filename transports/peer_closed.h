#pragma once

namespace seto {

// These words stand in a failure to connect if the peer has closed the connection. Such a peer has failed itself, so among the
// failures of several ranks another one is nearer to the cause.
inline constexpr const char* kPeerClosed = "its process closed a new connection";

}  // namespace seto
