#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/core/choice/cost_model.h"

namespace seto {

// The things on which the constants of a node depend besides the job: `name value` on each line.
struct MeasuredMachine {
  std::string processor;
  std::string kernel;
  int cores = 1;            // that a rank may use
  double ranks_a_core = 1;  // ranks that share cores need a scheduler for each hop
  std::string build;        // of this library: sanitizers make it slower

  static MeasuredMachine here(int cores, double ranks_a_core);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string file_name() const;
};

// The constants of a node that earlier jobs measured on a machine.
struct KeptConstants {
  TierCost node;
  int jobs = 0;  // that measured them

  // Other programs make a measurement slower and never faster, so the best of several jobs is believed.
  static constexpr int kEnough = 4;
  [[nodiscard]] bool suffices() const { return jobs >= kEnough; }
  void take(const TierCost& measured);
};

// One file for each machine, in a folder of the user's. Constants that cannot be read or written are measured by each process, as
// without a folder.
class KeptFiles final {
 public:
  // seto/ in $XDG_CACHE_HOME, else in $HOME/.cache; none where neither is an absolute path.
  static KeptFiles of_user();
  explicit KeptFiles(std::string folder) : folder_(std::move(folder)) {}

  [[nodiscard]] const std::string& folder() const { return folder_; }  // empty: none
  [[nodiscard]] std::string path_of(const MeasuredMachine& machine) const;

  // None: there is no file, or it is not one of this machine or is broken; the latter is logged once in a process.
  [[nodiscard]] std::optional<KeptConstants> read(const MeasuredMachine& machine) const;
  // Replaces the file at once, so that a reader finds the old one or the new one.
  [[nodiscard]] Status write(const MeasuredMachine& machine, const KeptConstants& constants) const;

  struct Listed {
    std::string file;  // its name in the folder
    MeasuredMachine machine;
    Result<KeptConstants> constants;  // or why there are none
  };
  // All files of the folder by name, also those of other machines.
  [[nodiscard]] std::vector<Listed> all() const;

 private:
  std::string folder_;
};

// The constants that this process has measured, where no file can be written: a process that makes many contexts measures for the
// first few only.
std::optional<KeptConstants> remembered_constants(const MeasuredMachine& machine);
void remember_constants(const MeasuredMachine& machine, const KeptConstants& constants);

// The content of a file. An error says why the text is not one of that machine.
std::string kept_text(const MeasuredMachine& machine, const KeptConstants& constants);
Result<KeptConstants> parse_kept(std::string_view text, const MeasuredMachine& machine);

}  // namespace seto
