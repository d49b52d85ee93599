#include "tests/software_gpu/nvcc.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace seto::software_gpu {
namespace {

// The nvcc of a virtual environment of Python, whose packages have a place of their own for it. Empty: there is none.
std::string installed_nvcc() {
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator("build-nvcc/lib", ignored)) {
    const std::filesystem::path nvcc = python.path() / "site-packages/nvidia/cu13/bin/nvcc";
    if (std::filesystem::exists(nvcc, ignored)) return std::filesystem::absolute(nvcc).string();
  }
  return {};
}

}  // namespace

CommandOutput run_command(const std::string& command) {
  CommandOutput output;
  if (FILE* pipe = ::popen(command.c_str(), "r"); pipe != nullptr) {
    char part[512];
    while (std::fgets(part, sizeof(part), pipe) != nullptr) output.text += part;
    output.status = ::pclose(pipe);
  }
  return output;
}

std::optional<std::string> find_nvcc() {
  const char* named = std::getenv("CUDACXX");
  std::string nvcc = named != nullptr ? named : installed_nvcc();
  if (nvcc.empty()) nvcc = "nvcc";
  const std::string version = run_command("'" + nvcc + "' --version 2>/dev/null").text;
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
