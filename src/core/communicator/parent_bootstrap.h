#pragma once

#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"
#include "src/core/communicator/communicator.h"

namespace seto {

// Bootstraps the parts of a split over the parent communicator. Every all_gather of a part is a collective of the parent, so all
// ranks of the parent take part in all rounds, each for its own part, until all have left. One thread, like every call of the
// parent.
class ParentBootstrap final : public Bootstrap {
 public:
  // `members`: the part of this rank, as ranks of the parent in the order of the new ranks. Empty: this rank only helps the
  // others.
  ParentBootstrap(Communicator& parent, std::vector<Rank> members);
  // Blocks until every rank of the parent has left.
  ~ParentBootstrap() override;
  ParentBootstrap(const ParentBootstrap&) = delete;
  ParentBootstrap& operator=(const ParentBootstrap&) = delete;

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(members_.size()); }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;
  [[nodiscard]] const Secret* secret() const override { return parent_.secret(); }
  [[nodiscard]] bool has_user_secret() const override { return parent_.secret() != nullptr; }

 private:
  struct Round {
    std::vector<std::string> messages;  // by rank of the parent
    std::vector<bool> left;
  };
  struct Contribution {
    const std::string* message;  // null: this rank has left
  };
  Result<Round> round(Contribution mine, Deadline until);

  Communicator& parent_;
  std::vector<Rank> members_;
  Rank rank_ = 0;
  Status broken_;
};

// Gathers one value of the same size from each rank of a communicator, in rank order.
Result<std::string> gather_bytes(Communicator& communicator, std::string_view mine, Deadline until);

}  // namespace seto
