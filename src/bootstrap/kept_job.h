#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/environment.h"

namespace seto {

// The ranks of the job that this process was started in meet once; the channel stays, so that they can make one communicator
// after another (an id, a port or what a launcher carries serves one meeting only). Mutable state of the process: that channel,
// and whose turn it is.

// A place in the order in which this process makes communicators of its job. Taken when the call comes, so that all ranks have
// the same order whatever threads the calls go on in. Ends with the object at the latest, used or not.
class JobTurn final {
 public:
  JobTurn();
  JobTurn(const JobTurn&) = delete;
  JobTurn& operator=(const JobTurn&) = delete;
  ~JobTurn() { end(); }

  // Once the communicator is made, or never will be.
  void end();

 private:
  friend class KeptJob;
  std::uint64_t number_;
  bool ended_ = false;
};

// The channel, for the holder of a turn, which must end after it. After a failure of the channel the next turn meets anew.
class KeptJob final : public Bootstrap {
 public:
  // Waits for the turn, and joins the job if this process has not yet.
  static Result<std::unique_ptr<KeptJob>> enter(const JobTurn& turn, const Launch& launch, const Config& config, Deadline until);
  KeptJob(const KeptJob&) = delete;
  KeptJob& operator=(const KeptJob&) = delete;
  ~KeptJob() override;

  [[nodiscard]] Rank rank() const override { return kept_.rank(); }
  [[nodiscard]] int size() const override { return kept_.size(); }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;

 private:
  explicit KeptJob(Bootstrap& kept) : kept_(kept) {}

  Bootstrap& kept_;
  bool broken_ = false;
};

}  // namespace seto
