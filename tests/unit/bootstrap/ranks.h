#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"

namespace seto::testing {

using Answer = Result<std::vector<std::string>>;

// Runs the body on one thread for each rank, and returns the answers in rank order.
inline std::vector<Answer> as_threads(int count, const std::function<Answer(Rank)>& body) {
  std::vector<std::optional<Answer>> answers(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] { answers[static_cast<std::size_t>(rank)].emplace(body(rank)); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Answer> all;
  for (auto& answer : answers) all.push_back(std::move(*answer));
  return all;
}

inline std::string text_of(const Answer& answer) { return std::string(answer.status().text()); }

}  // namespace seto::testing
