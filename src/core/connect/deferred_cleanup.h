#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/core/connection.h"
#include "src/core/connect/context.h"
#include "src/core/launch/point_to_point.h"
#include "transports/transport.h"

namespace seto {

// A range of the context's pool that a communicator writes and its peers read.
struct Board {
  std::size_t offset = 0;
  std::size_t size = 0;  // 0: none
};

// What slower peers may still look at when a rank's end of a communicator is gone, in a context that others go on using: the
// lines and slots of its last operations, until they are past these; its board, until they have departed too, for how it left is
// there.
class Remains final : public Context::Retired {
 public:
  struct Parts {
    std::vector<std::shared_ptr<Connection>> connections;  // by rank; null: this rank
    std::unique_ptr<Circle> circle;
    std::unique_ptr<Transfers> transfers;
    std::uint64_t issued = 0;
    slots::Pool* pool = nullptr;
    Board board;
  };

  explicit Remains(Parts parts) : parts_(std::move(parts)) {}

  bool over() override;

 private:
  [[nodiscard]] bool past(std::uint32_t peer) const;

  Parts parts_;
};

}  // namespace seto
