#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transports/connection.h"

namespace seto {

// A connection may also tell where its data goes now, and whether it flows. Its sockets are opened again over other addresses, or
// over another path, while Connection::way() tells those of the beginning. Any thread; some microseconds for each socket.
class MovingWay {
 public:
  virtual ~MovingWay() = default;

  // As Connection::way(), of the sockets that carry data now, the best path first. Empty: none is open.
  [[nodiscard]] virtual std::string way_now() const = 0;
  // All of these since the connection was made, in their order: "TCP 10.0.0.1 -> 10.0.0.2". The first ones where there are many.
  [[nodiscard]] virtual std::vector<std::string> ways_taken() const = 0;

  // Signs of life on the sockets that carry data now. The control connection may lie on a path that is broken.
  struct Signs {
    std::uint32_t silent_ms = ~std::uint32_t{0};  // since bytes came last on any of them
    std::uint32_t unheard_ms = 0;  // where bytes wait: since the peer's kernel last acknowledged some; 0: none wait
  };
  [[nodiscard]] virtual Signs signs_of_data() const = 0;
};

[[nodiscard]] inline std::string present_way(const Connection& connection) {
  const auto* const moving = dynamic_cast<const MovingWay*>(&connection);
  const std::string now = moving == nullptr ? std::string() : moving->way_now();
  return now.empty() ? connection.way() : now;
}

}  // namespace seto
