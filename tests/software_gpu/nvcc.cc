#include "tests/software_gpu/nvcc.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace seto::software_gpu {
namespace {

std::string output_of(const std::string& command) {
  std::string output;
  if (FILE* pipe = ::popen(command.c_str(), "r"); pipe != nullptr) {
    char part[512];
    while (std::fgets(part, sizeof(part), pipe) != nullptr) output += part;
    ::pclose(pipe);
  }
  return output;
}

}  // namespace

std::optional<std::string> find_nvcc() {
  const char* named = std::getenv("SETO_NVCC");
  const std::string nvcc = named != nullptr ? named : "nvcc";
  const std::string version = output_of("'" + nvcc + "' --version 2>/dev/null");
  const std::size_t release = version.find("release ");
  if (release == std::string::npos || std::atoi(version.c_str() + release + 8) < 13) return std::nullopt;
  return nvcc;
}

std::string compile_to_ptx(const std::string& nvcc, const std::string& file, const std::string& architecture) {
  const std::filesystem::path result =
      std::filesystem::temp_directory_path() / ("seto_" + std::to_string(::getpid()) + "_" + architecture + ".ptx");
  const std::string command = "'" + nvcc + "' -ptx -std=c++17 -O3 -fmad=false -arch=" + architecture + " -o '" + result.string() +
                              "' tests/software_gpu/kernels/" + file;
  const bool compiled = std::system(command.c_str()) == 0;
  std::ifstream stream(result);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::filesystem::remove(result);
  return compiled ? text : std::string{};
}

}  // namespace seto::software_gpu
