#include "bench/common/algorithms.h"

#include <nlohmann/json.hpp>

namespace seto::bench {

std::string check_algorithm(const Program& program, const std::string& name, const std::string& algorithms_json) {
  if (program.collective == nullptr) return std::string("--algorithm: ") + program.name + " has no algorithms to choose from";
  const nlohmann::json json = nlohmann::json::parse(algorithms_json, nullptr, /*allow_exceptions=*/false);
  const auto path = nlohmann::json::json_pointer(std::string("/algorithms/") + program.collective + "/value");
  if (!json.is_object() || !json.contains(path) || !json[path].is_string()) return {};  // a library with another format
  const std::string known = json[path].get<std::string>();
  if ((", " + known + ",").find(", " + name + ",") != std::string::npos) return {};
  return "--algorithm: " + std::string(program.collective) + " has no " + name + "; it has " + known;
}

}  // namespace seto::bench
