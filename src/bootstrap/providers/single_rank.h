#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/bootstrap/bootstrap.h"

namespace seto {

// The bootstrap of a communicator of one rank.
class SingleRankBootstrap final : public Bootstrap {
 public:
  [[nodiscard]] Rank rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;
};

}  // namespace seto
