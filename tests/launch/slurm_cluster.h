#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/launch/program.h"

namespace seto::testing {

// A real Slurm with one node, this machine: munged, slurmctld and slurmd with their own configuration, key and ports, all removed
// with the object.
class SlurmCluster final {
 public:
  // Empty if it can run here; otherwise what is missing: "root", or packages.
  static std::string missing();

  // Blocks until the node accepts jobs. `up` is the result, `log` the reason of a failure.
  SlurmCluster();
  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] std::string log() const;

  // Runs srun with these arguments.
  [[nodiscard]] Ended srun(const std::vector<std::string>& arguments, const std::vector<std::string>& variables = {}) const;

 private:
  void write_configuration();

  Scratch scratch_;
  std::vector<std::string> variables_;
  std::unique_ptr<Program> munge_;  // must be ended last
  std::unique_ptr<Program> controller_;
  std::unique_ptr<Program> node_;
  bool up_ = false;
};

}  // namespace seto::testing
