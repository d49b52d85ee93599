#include "src/command/completion.h"

#include <algorithm>

#include "src/command/shell_word.h"

namespace seto::command {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::vector<std::string> names_of(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// Options whose value the shell cannot complete.
std::string with_values(const std::vector<CommandDescription>& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& command : commands)
    for (const OptionDescription& option : command.options)
      if (option.takes_value) names.insert(names.end(), option.names.begin(), option.names.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string pattern;
  for (const std::string& name : names) pattern.append(pattern.empty() ? "" : "|").append(name);
  return pattern;
}

std::string for_bash(const std::vector<CommandDescription>& commands) {
  std::string names;
  std::string cases;
  for (const CommandDescription& command : commands) {
    names.append(names.empty() ? "" : " ").append(command.name);
    cases += "    " + command.name + ") words=" + quoted(joined(names_of(command)) + " " + joined(command.words)) + " ;;\n";
  }
  return "# bash completion for seto\n"
         "_seto() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= at\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    COMPREPLY=($(compgen -W " +
         quoted(names + " --help --version") +
         " -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  if [[ ${COMP_WORDS[1]} == run ]]; then\n"
         "    for ((at = 2; at < COMP_CWORD; ++at)); do\n"
         "      [[ ${COMP_WORDS[at]} == -- ]] || continue\n"
         "      if declare -F _command_offset >/dev/null; then _command_offset $((at + 1)); else COMPREPLY=($(compgen -cf -- "
         "\"$current\")); fi\n"
         "      return\n"
         "    done\n"
         "  fi\n"
         "  case $before in\n"
         "    --hostfile|--from|--svg) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
         "    --ssh|--remote-seto) COMPREPLY=($(compgen -cf -- \"$current\")); return ;;\n"
         "    " +
         with_values(commands) +
         ") return ;;\n"
         "  esac\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  if [[ ${COMP_WORDS[1]} == run && $current != -* ]]; then COMPREPLY+=($(compgen -cf -- \"$current\")); fi\n"
         "}\n"
         "complete -F _seto seto\n";
}

// The form name:help of _describe, where a colon ends the name.
std::string described(const std::string& name, const std::string& help) {
  std::string text = name;
  for (std::size_t at = 0; (at = text.find(':', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return quoted(text + ":" + help);
}

std::string for_zsh(const std::vector<CommandDescription>& commands) {
  std::string list;
  std::string cases;
  for (const CommandDescription& command : commands) {
    list += "    " + described(command.name, command.help) + "\n";
    cases += "    " + command.name + ")\n      options=(\n";
    for (const OptionDescription& option : command.options)
      for (const std::string& name : option.names) cases += "        " + described(name, option.help) + "\n";
    cases += "      )\n      words_here=(" + joined(command.words) + ") ;;\n";
  }
  return "#compdef seto\n"
         "_seto() {\n"
         "  local -a commands options words_here\n"
         "  commands=(\n" +
         list +
         "  )\n"
         "  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
         "  local at=$words[(i)--]\n"
         "  if [[ $words[2] == run ]] && ((at < CURRENT)); then\n"
         "    shift $at words; ((CURRENT -= at)); _normal; return\n"
         "  fi\n"
         "  case $words[2] in\n" +
         cases +
         "  esac\n"
         "  if [[ $words[CURRENT] == -* ]]; then _describe option options; return; fi\n"
         "  (($#words_here)) && compadd -- $words_here\n"
         "  [[ $words[2] == run ]] && _files\n"
         "}\n"
         "compdef _seto seto\n";
}

std::string for_fish(const std::vector<CommandDescription>& commands) {
  std::string script = "# fish completion for seto\ncomplete -c seto -n __fish_use_subcommand -f\n";
  for (const CommandDescription& command : commands) {
    script += "complete -c seto -n __fish_use_subcommand -f -a " + command.name + " -d " + quoted(command.help) + "\n";
    const std::string seen = "complete -c seto -n '__fish_seen_subcommand_from " + command.name + "'";
    if (command.name != "run") script += seen + " -f\n";
    for (const OptionDescription& option : command.options) {
      script += seen;
      for (const std::string& name : option.names)
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      script += std::string(option.takes_value ? " -r" : "") + " -d " + quoted(option.help) + "\n";
    }
    if (!command.words.empty()) script += seen + " -f -a " + quoted(joined(command.words)) + "\n";
  }
  return script;
}

}  // namespace

std::string completion(const std::vector<CommandDescription>& commands, const std::string& shell) {
  if (shell == "bash") return for_bash(commands);
  if (shell == "zsh") return for_zsh(commands);
  if (shell == "fish") return for_fish(commands);
  return {};
}

}  // namespace seto::command
