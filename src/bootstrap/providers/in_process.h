#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"

namespace seto {

// The rendezvous of the ranks of one process. One InProcessBootstrap for each rank shares it. Any thread may call it.
class InProcessHub final {
 public:
  explicit InProcessHub(int size);
  InProcessHub(const InProcessHub&) = delete;
  InProcessHub& operator=(const InProcessHub&) = delete;

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(Rank rank, std::string mine, Deadline until);
  // The rank leaves: rounds that need it fail, now and later, with a text that names it.
  void leave(Rank rank);

 private:
  struct Round {
    std::vector<std::string> messages;
    std::vector<bool> arrived;
    int count = 0;
  };

  // The caller of each of these holds the mutex.
  [[nodiscard]] Status contribute(Round& round, Rank rank, std::string mine);
  [[nodiscard]] std::vector<Rank> absent(const Round& round) const;
  Status break_with(Status reason);
  [[nodiscard]] std::shared_ptr<Round> new_round() const;

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Round> current_;  // a waiter keeps its own round, because the next one may begin before it wakes
  std::vector<bool> left_;
  Status broken_;
};

// The bootstrap of ranks that are threads of one process.
class InProcessBootstrap final : public Bootstrap {
 public:
  InProcessBootstrap(std::shared_ptr<InProcessHub> hub, Rank rank);
  InProcessBootstrap(const InProcessBootstrap&) = delete;
  InProcessBootstrap& operator=(const InProcessBootstrap&) = delete;
  ~InProcessBootstrap() override;

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return hub_->size(); }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;

 private:
  std::shared_ptr<InProcessHub> hub_;
  Rank rank_;
};

}  // namespace seto
