#pragma once

#include <string>
#include <vector>

#include "src/base/fork.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/frames.h"
#include "src/bootstrap/unique_id.h"

namespace seto {

// Ranks of one machine that share a unique id. Destroying it tells the others that this rank has left.
class LocalBootstrap final : public Bootstrap {
 public:
  // Blocks until all `size` ranks have joined. Whatever is wrong with one of them fails it on every rank that came.
  static Result<LocalBootstrap> join(const UniqueIdBytes& id, Rank rank, int size, Deadline until);

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;

 private:
  LocalBootstrap(PrivateFd fd, Rank rank, int size);

  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& mine, Deadline until);
  [[nodiscard]] Result<Frame> exchange(const std::string& bytes, FrameKind answer, Deadline until);
  [[nodiscard]] Status send_all(const std::string& bytes, Deadline until);
  [[nodiscard]] Result<Frame> receive(Deadline until);

  PrivateFd fd_;
  std::uint32_t generation_ = fork_generation();
  Rank rank_;
  int size_;
  FrameReader reader_;
  Status broken_;
};

}  // namespace seto
