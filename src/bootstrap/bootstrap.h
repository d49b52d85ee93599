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

// Limits in bytes of one rank's message and of all messages of a round, and the limit of ranks. A larger value is an error on
// every rank.
inline constexpr std::size_t kGatherMessageLimit = std::size_t{1} << 20;
inline constexpr std::size_t kGatherTotalLimit = std::size_t{1} << 30;
inline constexpr int kBootstrapRankLimit = 65'536;

// The all_gather with which the ranks of a new communicator exchange addresses before they are connected. One thread at a time
// uses an object.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  // Blocks until every rank has called it, and returns the messages in rank order. The ranks may call it again, all in the same
  // order. After a failure every later call fails with the same reason. All ranks that joined fail with the same text; at a
  // deadline it names the ranks that are missing. The earliest deadline of the ranks ends a round for all of them.
  [[nodiscard]] virtual Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) = 0;

  // A secret that only these ranks know, the same on all of them. Null if there is none; then rank 0 proposes one over the
  // messages.
  [[nodiscard]] virtual const Secret* secret() const { return nullptr; }
  // Processes that are none of these ranks may be able to read the messages, because the user's own function carries them.
  [[nodiscard]] virtual bool readable_by_others() const { return false; }
  // The secret that the user gave (SETO_SECRET_FILE, SETO_SECRET) is part of secret() already.
  [[nodiscard]] virtual bool has_user_secret() const { return false; }
};

// "rank 2", "ranks 2, 5 and 7", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more".
[[nodiscard]] std::string rank_list(const std::vector<Rank>& ranks);

// The failure at a deadline, in the same words for every bootstrap.
[[nodiscard]] Status missing_ranks(const std::vector<Rank>& missing, int size, std::uint64_t waited_ms);

// "check whether it was started, and what it wrote", for as many ranks.
[[nodiscard]] std::string advice_on_missing(std::size_t ranks);

}  // namespace seto
