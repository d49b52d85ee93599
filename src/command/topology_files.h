#pragma once

#include <string>
#include <vector>

#include "include/seto/seto.h"

namespace seto::command {

// Topology files as commands name them: "SITE=FILE" or "FILE"; "-" is standard input, and a model (topology_models.h) goes by
// its name.
class TopologyFiles final {
 public:
  // Reads them all. A file that cannot be read is named on standard error, and the result is false.
  bool read(const std::vector<std::string>& arguments, int copies, bool this_machine);

  // Adds a topology that no file holds, under a name for messages.
  void add(std::string name, std::string text);

  // For the C API; valid as long as this object.
  [[nodiscard]] std::vector<setoTopologyText_t> texts() const;

 private:
  struct File {
    std::string site;
    std::string path;
    std::string text;
  };
  std::vector<File> files_;
  int copies_ = 1;
  bool this_machine_ = false;
};

}  // namespace seto::command
