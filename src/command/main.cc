#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "src/base/text.h"
#include "src/command/commands.h"

namespace {

using seto::command::kMostRanks;

// For what counts ranks, and so nodes and sites. Why it is none, as CLI11 takes it: empty if it is one.
std::string refuse_count(const std::string& text) {
  const std::optional<std::uint64_t> count = seto::parse_uint(text);
  if (count && *count >= 1 && *count <= kMostRanks) return {};
  return "'" + text + "' is not one of 1 to " + std::to_string(kMostRanks);
}

CLI::App* add_info(CLI::App& app, seto::command::InfoOptions& info) {
  CLI::App* const command = app.add_subcommand("info", "what this library is and how it is configured");
  command->add_option("topic", info.topic,
                      "version, build, machine, config, constants, transports, algorithms, codecs or status; all if left out");
  command->add_flag("--json", info.json, "as JSON");
  command->add_flag_callback(
      "--config", [&info] { info.topic = "config"; }, "the effective settings and where each comes from: topic config");
  return command;
}

CLI::App* add_explain(CLI::App& app, seto::command::ExplainOptions& explain) {
  CLI::App* const command = app.add_subcommand("explain", "which algorithm a call would get, and why the others lost");
  command->add_option("collective", explain.collective, "all_reduce, all_gather, reduce_scatter, ...")->required();
  command->add_option("size", explain.size, "bytes, as in the size column of the benchmarks: 8, 64K, 64M; a barrier has none");
  command->add_option("--ranks", explain.ranks, "ranks (2)")->check(refuse_count);
  command->add_option("--nodes", explain.nodes, "nodes that they are spread over (1)")->check(refuse_count);
  command->add_option("--sites", explain.sites, "sites that the nodes are spread over (1)")->check(refuse_count);
  command->add_flag("--json", explain.json, "as JSON");
  return command;
}

CLI::App* add_report(CLI::App& app, seto::command::ReportOptions& report) {
  CLI::App* const command = app.add_subcommand("report", "who keeps whom waiting, from dumps of several ranks");
  command->add_option("dumps", report.files, "files of SETO_DUMP_FILE or setoCommDump as JSON; - is standard input")->required();
  command->add_flag("--json", report.json, "as JSON");
  return command;
}

}  // namespace

// seto: what a user asks the library from a shell. Over the C API alone.
int main(int argc, char** argv) {
  CLI::App app{"seto: collective communication between islands of ranks", "seto"};
  app.require_subcommand(0, 1);
  app.set_help_all_flag("--help-all", "the same for every command");
  app.set_version_flag("--version", "seto " + seto::command::version_text(), "the version");
  seto::command::InfoOptions info;
  const CLI::App* const info_command = add_info(app, info);
  seto::command::ExplainOptions explain;
  const CLI::App* const explain_command = add_explain(app, explain);
  seto::command::ReportOptions report;
  const CLI::App* const report_command = add_report(app, report);
  std::string topic;
  app.add_subcommand("help", "this text, or that of a command")
      ->add_option("command", topic, "info, explain, report or help")
      ->check(CLI::IsMember({"info", "explain", "report", "help"}));
  const std::string help = app.help();  // once a command is parsed, it would be that command's

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // help and version too, which end well
    return app.exit(error) == 0 ? 0 : seto::command::kMisused;
  }
  if (info_command->parsed()) return seto::command::run(info);
  if (explain_command->parsed()) return seto::command::run(explain);
  if (report_command->parsed()) return seto::command::run(report);
  std::fputs(topic.empty() ? help.c_str() : app.get_subcommand(topic)->help("seto").c_str(), stdout);
  return 0;
}
