#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "src/core/connection.h"
#include "transports/slots/slot_circle.h"

namespace seto {

// Wakes the contexts of the ranks that share memory, by their places in the circle; the own one is null.
class Bells final : public slots::Doorbell {
 public:
  explicit Bells(std::vector<std::shared_ptr<Connection>> connections) : connections_(std::move(connections)) {}
  void ring(std::uint32_t member) override { connections_[member]->ring(); }

 private:
  std::vector<std::shared_ptr<Connection>> connections_;
};

}  // namespace seto
