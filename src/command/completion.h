#pragma once

#include <string>
#include <vector>

namespace seto::command {

struct OptionDescription {
  std::vector<std::string> names;  // "-n", "--ranks"
  std::string help;
  bool takes_value = false;
};

struct CommandDescription {
  std::string name;
  std::string help;
  std::vector<OptionDescription> options;
  std::vector<std::string> words;  // words that may follow the command
};

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

// A script that makes the shell complete the arguments of `seto`: `seto completion bash >
// ~/.local/share/bash-completion/completions/seto`. Empty for an unknown shell.
std::string completion(const std::vector<CommandDescription>& commands, const std::string& shell);

}  // namespace seto::command
