#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/text.h"
#include "src/command/commands.h"
#include "src/command/completion.h"
#include "src/command/run/agent.h"
#include "src/command/run/run.h"

namespace {

using seto::command::kMostRanks;

// For what counts ranks, and so nodes and sites. Why it is none, as CLI11 takes it: empty if it is one.
std::string refuse_count(const std::string& text) {
  if (text == "p") return "-np is -n here: write -n N";
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
  command->add_option("size", explain.size,
                      "bytes, as in the size column of the benchmarks: 8, 64K, 64M; needed by all but a barrier");
  command->add_option("--ranks", explain.ranks, "ranks (2)")->check(refuse_count);
  command->add_option("--nodes", explain.nodes, "nodes that they are spread over (1)")->check(refuse_count);
  command->add_option("--sites", explain.sites, "sites that the nodes are spread over (1)")->check(refuse_count);
  command->add_flag("--json", explain.json, "as JSON");
  return command;
}

// What follows the options, program and all, is left over: the program's own options are none of ours.
CLI::App* add_run(CLI::App& app, seto::command::RunOptions& run) {
  CLI::App* const command =
      app.add_subcommand("run", "start the ranks of a job, here or on other hosts: seto run -n 4 -- program ...");
  command->add_option("-n,--ranks", run.ranks, "ranks; left out: as many as the hosts have slots")->check(refuse_count);
  CLI::Option* const hosts =
      command->add_option("--hosts", run.hosts, "hosts, with slots or without: a:2,b:2; left out: this machine");
  command->add_option("--hostfile", run.host_file, "the same from a file, a line for each host: a:2 or a slots=2")
      ->excludes(hosts);
  command->add_option("--env", run.variables, "NAME=VALUE, or NAME with its value here: a variable of every rank")
      ->allow_extra_args(false);
  command->add_option("--timeout", run.timeout_s, "seconds after which the job is ended, with status 124")
      ->check(CLI::Range(0.001, 1e9));
  command->add_option("--grace", run.grace_s, "seconds between SIGTERM and SIGKILL for ranks to be ended (5)")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--ssh", run.remote_shell, "the command that reaches a host (ssh); its name and the agent's are added");
  command->add_option("--remote-seto", run.remote_seto,
                      "this command on the other hosts, as a shell there reads it; left out: where it lies here");
  CLI::Option* const prefix =
      command->add_flag("--prefix-output", run.prefix, "each line with its rank, even if there is one only");
  command->add_flag("--no-prefix", run.no_prefix, "lines as the ranks write them")->excludes(prefix);
  command->prefix_command();
  return command;
}

std::vector<std::string> shells() { return {std::begin(seto::command::kShells), std::end(seto::command::kShells)}; }

CLI::App* add_completion(CLI::App& app, std::string& shell) {
  CLI::App* const command = app.add_subcommand("completion", "a script that makes bash, zsh or fish complete all this");
  command->add_option("shell", shell, "bash, zsh or fish")->required()->check(CLI::IsMember(shells()));
  return command;
}

std::vector<std::string> words_after(const std::string& command) {
  if (command == "info")
    return {"version", "build", "machine", "config", "constants", "transports", "algorithms", "codecs", "status"};
  if (command == "explain")
    return {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "gather", "scatter", "barrier"};
  if (command == "completion") return shells();
  if (command == "codec") return {"check"};
  if (command == "help") return {"info", "explain", "run", "report", "doctor", "codec", "completion"};
  return {};
}

std::vector<seto::command::CommandDescription> describe(const CLI::App& app) {
  std::vector<seto::command::CommandDescription> all;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    seto::command::CommandDescription one{command->get_name(), command->get_description(), {}, words_after(command->get_name())};
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) continue;
      seto::command::OptionDescription described{{}, option->get_description(), option->get_items_expected_max() > 0};
      for (const std::string& name : option->get_snames()) described.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) described.names.push_back("--" + name);
      one.options.push_back(std::move(described));
    }
    all.push_back(std::move(one));
  }
  return all;
}

// A first word that is neither a command nor an option, and the command that was probably meant.
bool told_of_misspelling(const CLI::App& app, int words, char** argv) {
  if (words < 2 || argv[1][0] == '-') return false;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return false;
  std::vector<std::string_view> candidates(names.begin(), names.end());
  std::erase(candidates, "agent");  // not for people
  const std::string guess(seto::nearest(argv[1], candidates));
  std::fprintf(stderr, "seto: there is no command '%.64s'%s%s; seto help lists them\n", argv[1],
               guess.empty() ? "" : "; did you mean ", guess.c_str());
  return true;
}

CLI::App* add_codec(CLI::App& app, seto::command::CodecOptions& codec) {
  CLI::App* const command =
      app.add_subcommand("codec", "what codecs there are; codec check FILE.npy: what each does to your numbers");
  command->add_flag("--json", codec.json, "as JSON");
  CLI::App* const check = command->add_subcommand("check", "what each codec would make of the numbers in a file");
  check->add_option("file", codec.file, "an array of fp32 or fp64 as numpy.save writes it; - is standard input")->required();
  check->add_flag("--json", codec.json, "as JSON");
  command->require_subcommand(0, 1);
  return command;
}

CLI::App* add_report(CLI::App& app, seto::command::ReportOptions& report) {
  CLI::App* const command = app.add_subcommand("report", "who keeps whom waiting, from dumps of several ranks");
  command->add_option("dumps", report.files, "files of SETO_DUMP_FILE or setoCommDump as JSON; - is standard input")->required();
  command->add_flag("--json", report.json, "as JSON");
  return command;
}

CLI::App* add_doctor(CLI::App& app, seto::command::DoctorOptions& doctor) {
  CLI::App* const command =
      app.add_subcommand("doctor", "checks this host, and under a launcher the job: what is wrong and how to mend it");
  command->add_option("--ranks", doctor.ranks, "ranks that this host is to run (one for each usable core)")->check(refuse_count);
  command->add_flag("--json", doctor.json, "as JSON");
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
  seto::command::RunOptions run;
  const CLI::App* const run_command = add_run(app, run);
  const CLI::App* const agent_command = app.add_subcommand("agent", "the end of seto run on another host")->group("");
  std::string shell;
  const CLI::App* const completion_command = add_completion(app, shell);
  seto::command::ReportOptions report;
  const CLI::App* const report_command = add_report(app, report);
  seto::command::DoctorOptions doctor;
  const CLI::App* const doctor_command = add_doctor(app, doctor);
  seto::command::CodecOptions codec;
  const CLI::App* const codec_command = add_codec(app, codec);
  std::string topic;
  app.add_subcommand("help", "this text, or that of a command")
      ->add_option("command", topic, "info, explain, run, report, doctor, codec, completion or help")
      ->check(CLI::IsMember({"info", "explain", "run", "report", "doctor", "codec", "completion", "help"}));
  const std::string help = app.help();  // once a command is parsed, it would be that command's

  // After "--" stands the program of seto run, which CLI11 would take for arguments of ours.
  char** const end = argv + argc;
  char** const program = argc > 1 && std::string(argv[1]) == "run" ? std::find(argv, end, std::string("--")) : end;
  if (told_of_misspelling(app, argc, argv)) return seto::command::kMisused;
  try {
    app.parse(static_cast<int>(program - argv), argv);
  } catch (const CLI::ParseError& error) {  // help and version too, which end well
    return app.exit(error) == 0 ? 0 : seto::command::kMisused;
  }
  if (info_command->parsed()) return seto::command::run(info);
  if (explain_command->parsed()) return seto::command::run(explain);
  if (agent_command->parsed()) return seto::command::run_agent();
  if (run_command->parsed()) {
    run.program = run_command->remaining();
    if (!run.program.empty() && run.program.front().starts_with('-')) {
      std::fprintf(stderr, "seto run: no option '%s'; there are those that seto run --help lists, and -- before the program\n",
                   run.program.front().c_str());
      return seto::command::kMisused;
    }
    if (program != end) run.program.insert(run.program.end(), program + 1, end);
    return seto::command::run(run);
  }
  if (completion_command->parsed()) return std::fputs(seto::command::completion(describe(app), shell).c_str(), stdout) < 0;
  if (report_command->parsed()) return seto::command::run(report);
  if (doctor_command->parsed()) return seto::command::run(doctor);
  if (codec_command->parsed()) return seto::command::run(codec);
  std::fputs(topic.empty() ? help.c_str() : app.get_subcommand(topic)->help("seto").c_str(), stdout);
  return 0;
}
