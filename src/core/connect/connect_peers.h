#pragma once

#include <cstddef>

#include "src/base/clock.h"
#include "src/core/connect/announced_ranks.h"

namespace seto {

// Connects one rank to all others. Keeps the connections open while it lives, also after a failure: peers that already have a
// connection then receive the reason of the failure before the connection closes.
class PeerConnections final {
 public:
  // `announced` outlives the object.
  explicit PeerConnections(const AnnouncedRanks& announced) : announced_(announced) {}

  [[nodiscard]] Status open(Deadline until);
  // By rank; null: this rank.
  [[nodiscard]] const Connections& connections() const { return connections_; }

 private:
  Status open_over(std::size_t transport, Deadline until);

  const AnnouncedRanks& announced_;
  Connections connections_;
};

// The attempt as the endpoint of that transport sees it. No member is marked as wanted.
[[nodiscard]] Attempt attempt_over(const AnnouncedRanks& announced, std::size_t transport);

}  // namespace seto
