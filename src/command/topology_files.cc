#include "src/command/topology_files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "src/command/files.h"
#include "src/command/topology_models.h"

namespace seto::command {

bool TopologyFiles::read(const std::vector<std::string>& arguments, int copies, bool this_machine) {
  copies_ = copies;
  this_machine_ = this_machine;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    // A site has no slash, so that ./a=b is a file.
    const bool has_site = equals != std::string::npos && argument.find('/') >= equals;
    File& file = files_.emplace_back();
    if (has_site) file.site = argument.substr(0, equals);
    file.path = has_site ? argument.substr(equals + 1) : argument;
    errno = 0;
    if (read_file(file.path, file.text)) continue;
    if (std::optional<std::string> model = topology_model(file.path)) {  // a file of that name comes first
      file.text = std::move(*model);
      continue;
    }
    std::fprintf(stderr, "seto: cannot read %s: %s\n", file.path.c_str(), std::strerror(errno));
    return false;
  }
  return true;
}

void TopologyFiles::add(std::string name, std::string text) { files_.push_back({{}, std::move(name), std::move(text)}); }

std::vector<setoTopologyText_t> TopologyFiles::texts() const {
  std::vector<setoTopologyText_t> texts;
  for (const File& file : files_)
    texts.push_back({file.path.c_str(), file.site.empty() ? nullptr : file.site.c_str(), file.text.data(), file.text.size(),
                     copies_, this_machine_ ? 1 : 0});
  return texts;
}

}  // namespace seto::command
