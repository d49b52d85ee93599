#pragma once

#include <memory>
#include <string>

#include "src/control/network/tcp_connector.h"
#include "tests/support/tls_ends.h"

namespace seto::testing {

inline Deadline later() { return Deadline::after_ms(30'000); }

inline Secret key_of_test() { return Secret::of_text("the key of the test"); }

template <class T>
std::string failure_text(const Result<T>& result) {
  return result.ok() ? "it succeeded" : std::string(result.status().text());
}

// The TcpConnector of a process, on loopback. It ends with the test.
struct TestConnector {
  TestConnector() : TestConnector({"lo", "", tls_of_test()}) {}
  explicit TestConnector(const NetworkSettings& settings)
      : control(ControlThread::create().value()), connector(TcpConnector::create(*control, settings).value()) {}
  std::unique_ptr<ControlThread> control;
  std::unique_ptr<TcpConnector> connector;
};

struct Pairing {
  ContextId mine = 0;
  ContextId theirs = 0;
  AttemptId attempt = 0;
  std::uint32_t index = 0;
};

inline ConnectRequest request_to(const TestConnector& remote, const Pairing& pairing, Deadline until = later()) {
  return {remote.connector->address(),
          kPurposeData,
          pairing.mine,
          pairing.theirs,
          pairing.attempt,
          pairing.index,
          key_of_test(),
          until};
}

inline Result<SecureStream> connect_to(const TestConnector& own, const TestConnector& remote, const Pairing& pairing,
                                       Deadline until = later()) {
  return own.connector->connect(request_to(remote, pairing, until));
}

}  // namespace seto::testing
