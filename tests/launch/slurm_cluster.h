#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/launch/program.h"

namespace seto::testing {

// A real Slurm of one node, this machine: munged, slurmctld and slurmd with a configuration, a key and ports of their own, all of
// it gone with the object.
class SlurmCluster final {
 public:
  // Empty: it can run here. Else what is missing: "root", or packages.
  static std::string missing();

  // Blocks until the node takes jobs. `up` says whether it does; `log` why not.
  SlurmCluster();
  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] std::string log() const;

  // srun with these arguments.
  [[nodiscard]] Ended srun(const std::vector<std::string>& arguments, const std::vector<std::string>& variables = {}) const;

 private:
  void write_configuration();

  Scratch scratch_;
  std::vector<std::string> variables_;
  std::unique_ptr<Program> munge_;  // ended last
  std::unique_ptr<Program> controller_;
  std::unique_ptr<Program> node_;
  bool up_ = false;
};

}  // namespace seto::testing
