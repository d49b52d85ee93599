#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/local_bootstrap.h"
#include "src/bootstrap/rendezvous_server.h"

namespace seto {

// Ranks of one machine and one user that share nothing but the name of their job. Whoever comes first holds the rendezvous, so
// that nobody waits for a certain rank to listen. The name is public: others are kept out by their user, on both sides.
class NamedBootstrap final : public Bootstrap {
 public:
  // Blocks until all `size` ranks have joined. `job`: any text, of this job only.
  static Result<std::unique_ptr<NamedBootstrap>> join(std::string_view job, Rank rank, int size, Deadline until);

  [[nodiscard]] Rank rank() const override { return joined_->rank(); }
  [[nodiscard]] int size() const override { return joined_->size(); }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override {
    return joined_->all_gather(std::move(mine), until);
  }

 private:
  NamedBootstrap() = default;

  std::unique_ptr<RendezvousServer> server_;  // null: another rank has it. It outlives our own connection
  std::optional<LocalBootstrap> joined_;
};

}  // namespace seto
