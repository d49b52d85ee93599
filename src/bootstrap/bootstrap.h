#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/base/types.h"
#include "src/net/secret.h"

namespace seto {

// What a message of one rank and the answer to all of them may have; more is an error on every rank.
inline constexpr std::size_t kGatherMessageLimit = std::size_t{1} << 20;
inline constexpr std::size_t kGatherTotalLimit = std::size_t{1} << 30;
inline constexpr int kBootstrapRankLimit = 65'536;

// How the ranks of a new communicator first hear of each other. One thread at a time per object.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  // Blocks until every rank has called it, and returns the messages in rank order. May be called again, by all in the same
  // order. After a failure every later call fails with the same reason; the ranks that came hear the same text, which at a
  // deadline names those who did not. The earliest deadline of the ranks ends a round for all.
  [[nodiscard]] virtual Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) = 0;

  // What only the ranks that meet here know, the same on all of them. Null: there is none, but the messages travel on a channel
  // that can be trusted with one.
  [[nodiscard]] virtual const Secret* secret() const { return nullptr; }
};

// "rank 2", "ranks 2, 5 and 7", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more".
[[nodiscard]] std::string rank_list(const std::vector<Rank>& ranks);

// The text of a deadline, the same for every bootstrap.
[[nodiscard]] Status missing_ranks(const std::vector<Rank>& missing, int size);

}  // namespace seto
