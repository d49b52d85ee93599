#pragma once

#include <string>

#include "src/base/config.h"

namespace seto {

// The shortest round trip that the kernel has measured on a connected TCP socket, in microseconds; 0: unknown.
unsigned round_trip_us(int fd);

// For sockets of this process that are made from now on. Any thread.
void set_congestion(Congestion wish);

// Chooses the congestion control of a connected TCP socket and returns its name (empty: unknown). A near socket (see
// src/base/far_link.h) gets a control without pacing, because pacing timers cost more than they gain (bbr over loopback: 19
// Gbit/s both ways, cubic 32, reno 34). A far socket gets bbr where the kernel grants it, unless `system` is wished: at 60 ms
// cubic falls to a few Mbit/s when one segment in 1,000 is lost. That the kernel refuses is logged once.
std::string choose_congestion_control(int fd);

}  // namespace seto
