#pragma once

#include <string>

namespace seto {

// Round trips up to this are near: what is lost there was dropped by a full queue, and comes again at once.
inline constexpr unsigned kNearUs = 1'000;

// Chooses who decides how much a connected TCP socket may have on its way. A near one gets a control that does not pace: timers
// that spread what it sends cost more than they bring (bbr over loopback: 19 Gbit/s both ways, cubic 32, reno 34). A far one
// keeps the system's. The name of what it has then; empty: unknown.
std::string choose_congestion_control(int fd);

}  // namespace seto
