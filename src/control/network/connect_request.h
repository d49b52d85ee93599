#pragma once

#include <cstdint>
#include <string>

#include "src/base/clock.h"
#include "src/control/handshake.h"
#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

// The purpose of a connection. Part of the wire format: never renumber. Users of connect() may choose other numbers.
inline constexpr std::uint8_t kPurposeData = 1;
inline constexpr std::uint8_t kPurposeControl = 2;
inline constexpr std::uint8_t kPurposeLateData = 3;      // a data connection that is opened on first use
inline constexpr std::uint8_t kPurposeControlAgain = 4;  // replaces a control connection that broke (decision 32)
inline constexpr std::uint8_t kPurposeProbe = 255;       // internal to TcpConnector: asks whether a connection will come

// A request of one context for one connection to a context of another process.
struct ConnectRequest {
  std::string remote_address;  // the peer's TcpConnector::address()
  std::uint8_t purpose = kPurposeData;
  ContextId mine = 0;
  ContextId theirs = 0;
  AttemptId attempt = 0;    // the same on both sides
  std::uint32_t index = 0;  // distinguishes connections for the same purpose
  Secret key;
  Deadline until;
  bool same_site = false;       // data between stated equal sites: plain unless SETO_TLS=always
  std::uint8_t path = 0;        // of SETO_PATHS, from 1, along which the connection should be if it works; 0: any
  bool only_path = false;       // no other path will do
  bool short_segments = false;  // because the path does not pass long packets, or may not
};

// Remedies where a peer cannot be reached.
inline constexpr const char* kReachRemedy =
    "if its network only lets connections out, set SETO_DIAL_ONLY=on there; if it has another address for this one, "
    "SETO_ADVERTISE";
inline constexpr const char* kNeitherAccepts =
    "neither that host nor this one accepts connections from other networks (SETO_DIAL_ONLY=on at both): open the ports of "
    "SETO_PORTS at one of them, and unset it there";

// Identifies an authenticated caller on the answerer's side.
struct ConnectKey {
  KeyId key{};
  Claim claim;
  auto operator<=>(const ConnectKey&) const = default;
};

}  // namespace seto
