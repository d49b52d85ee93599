#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "src/base/types.h"

namespace seto {

// Versions of what choice knows, as one rank sees them: which version each operation uses (decision 19). Pure; its caller locks.
class VersionSwitch final {
 public:
  // A rank that has been asked about a new version binds so many operations more before it knows the answer.
  static constexpr std::uint64_t kAhead = 64;
  static constexpr std::uint64_t kAlways = std::numeric_limits<std::uint64_t>::max();

  explicit VersionSwitch(std::uint64_t first) : agreed_{{first, 0}} {}

  // A new version is proposed. Returns the number that this rank answers: operations up to kAhead beyond it will use what was
  // agreed before. `issued`: this rank's last operation. The same answer until the commit.
  std::uint64_t promise(std::uint64_t issued);
  // Operations beyond `after` use the version. False: nothing was promised, or `after` breaks the promise.
  [[nodiscard]] bool commit(std::uint64_t version, std::uint64_t after);

  // The version of an operation; absent: it waits for a commit. Operations before the last one that was entered do not count.
  [[nodiscard]] std::optional<std::uint64_t> version_of(std::uint64_t operation) const;
  // The last operation that certainly uses the same version as this one, whose version is known.
  [[nodiscard]] std::uint64_t last_like(std::uint64_t operation) const;
  // Operations are bound in order: no operation before this one will be asked about again.
  void enter(std::uint64_t operation);

  // The last agreed version, and the last operation before it.
  [[nodiscard]] std::uint64_t newest() const { return agreed_.back().number; }
  [[nodiscard]] std::uint64_t newest_after() const { return agreed_.back().after; }

 private:
  struct Version {
    std::uint64_t number = 0;
    std::uint64_t after = 0;
  };

  std::vector<Version> agreed_;  // in order; the first is in force
  std::optional<std::uint64_t> answered_;
};

// The answers to one proposal, on the rank that made it.
class VersionVote final {
 public:
  // No operation has a larger number, so a rank that states one is wrong.
  static constexpr std::uint64_t kLastOperation = std::uint64_t{1} << 40;

  explicit VersionVote(int ranks) : answers_(static_cast<std::size_t>(ranks)) {}

  void begin(std::uint64_t version);
  [[nodiscard]] bool is_open() const { return version_.has_value(); }
  // True: all ranks have answered, and the vote is over. Answers to other proposals, second and impossible ones do not count.
  [[nodiscard]] bool answer(Rank rank, std::uint64_t version, std::uint64_t issued);
  // After the vote: the last operation before the new version.
  [[nodiscard]] std::uint64_t after() const { return after_; }

 private:
  std::optional<std::uint64_t> version_;
  std::vector<bool> answers_;
  std::size_t missing_ = 0;
  std::uint64_t after_ = 0;
};

}  // namespace seto
