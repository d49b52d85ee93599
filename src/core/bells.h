#pragma once

#include <memory>
#include <vector>

#include "src/core/connection.h"
#include "transports/slots/slot_circle.h"

namespace seto {

// Wakes the contexts of a communicator's other ranks.
class Bells final : public slots::Doorbell {
 public:
  explicit Bells(const std::vector<std::shared_ptr<Connection>>& connections) : connections_(connections) {}
  void ring(std::uint32_t member) override { connections_[member]->ring(); }

 private:
  const std::vector<std::shared_ptr<Connection>>& connections_;
};

}  // namespace seto
