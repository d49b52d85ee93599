#include <CLI/CLI.hpp>

#include "src/command/commands.h"

// seto: what a user asks the library from a shell. Over the C API alone.
int main(int argc, char** argv) {
  CLI::App app{"seto: collective communication between islands of ranks", "seto"};
  app.require_subcommand(0, 1);
  app.set_help_all_flag("--help-all", "the same for every command");

  seto::command::InfoOptions info;
  CLI::App* const info_command = app.add_subcommand("info", "what this library is and how it is configured");
  info_command->add_option("topic", info.topic,
                           "version, build, machine, config, transports, algorithms, codecs or status; all if left out");
  info_command->add_flag("--json", info.json, "as JSON");
  info_command->add_flag_callback(
      "--config", [&info] { info.topic = "config"; }, "the effective settings and where each comes from: topic config");

  seto::command::ExplainOptions explain;
  CLI::App* const explain_command = app.add_subcommand("explain", "which algorithm a call would get, and why the others lost");
  explain_command->add_option("collective", explain.collective, "all_reduce, all_gather, reduce_scatter, ...")->required();
  explain_command->add_option("size", explain.size, "bytes, as in the size column of the benchmarks: 8, 64K, 64M")->required();
  explain_command->add_option("--ranks", explain.ranks, "ranks (2)")->check(CLI::PositiveNumber);
  explain_command->add_option("--nodes", explain.nodes, "nodes that they are spread over (1)")->check(CLI::PositiveNumber);
  explain_command->add_option("--sites", explain.sites, "sites that the nodes are spread over (1)")->check(CLI::PositiveNumber);
  explain_command->add_flag("--json", explain.json, "as JSON");

  app.add_subcommand("help", "this text");

  CLI11_PARSE(app, argc, argv);
  if (info_command->parsed()) return seto::command::run(info);
  if (explain_command->parsed()) return seto::command::run(explain);
  std::fputs(app.help().c_str(), stdout);
  return 0;
}
