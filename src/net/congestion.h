#pragma once

#include <string>

namespace seto {

// The shortest round trip that the kernel has measured on a connected TCP socket, in microseconds; 0: unknown.
unsigned round_trip_us(int fd);

// Chooses the congestion control of a connected TCP socket and returns its name (empty: unknown). A near socket (see
// src/base/far_link.h) gets a control without pacing, because pacing timers cost more than they gain (bbr over loopback: 19
// Gbit/s both ways, cubic 32, reno 34). A far socket keeps the system's default.
std::string choose_congestion_control(int fd);

}  // namespace seto
