#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
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

// A CLI11 check for counts (ranks, nodes, sites): the reason why the text is not a count; empty if it is one.
std::string refuse_count(const std::string& text) {
  if (text == "p") return "-np is -n here: write -n N";
  const std::optional<std::uint64_t> count = seto::parse_uint(text);
  if (count && *count >= 1 && *count <= kMostRanks) return {};
  return "'" + text + "' is not one of 1 to " + std::to_string(kMostRanks);
}

CLI::App* add_info(CLI::App& app, seto::command::InfoOptions& info) {
  CLI::App* const command = app.add_subcommand("info", "version, build, machine and settings of this library");
  command->add_option("topic", info.topic,
                      "version, build, machine, gpus, rdma, config, constants, calibration, transports, algorithms, codecs or "
                      "status; all if left out");
  command->add_flag("--json", info.json, "as JSON");
  command->add_flag_callback(
      "--config", [&info] { info.topic = "config"; }, "the effective settings and where each comes from: topic config");
  return command;
}

CLI::App* add_explain(CLI::App& app, seto::command::ExplainOptions& explain) {
  CLI::App* const command = app.add_subcommand(
      "explain", "shows which algorithm a call would use, and why not the others; in a job for its communicator");
  command->add_option("collective", explain.collective, "all_reduce, all_gather, reduce_scatter, ...")->required();
  command->add_option(
      "size,--size", explain.size,
      "bytes, as in the size column of the benchmarks: 8, 64K, 64M; 8..1G for a table of the choices; needed by all "
      "but a barrier");
  CLI::Option* const nodes =
      command->add_option("--nodes", explain.nodes, "number of nodes of the ranks (1)")->check(refuse_count);
  CLI::Option* const sites =
      command->add_option("--sites", explain.sites, "number of sites of the nodes (1)")->check(refuse_count);
  command->add_option("--ranks", explain.ranks, "ranks (2; of a topology file: one for each GPU, or for each host without one)")
      ->check(refuse_count);
  CLI::Option* const files =
      command
          ->add_option(
              "--topo,--from", explain.topology_files,
              "FILE or SITE=FILE: take hosts, sites and links from this topology file (seto topo --xml writes one); once for "
              "each file, which are joined; - is standard input")
          ->allow_extra_args(false)
          ->excludes(nodes)
          ->excludes(sites);
  command->add_option("--copies", explain.copies, "hosts like each host of a file (1)")->check(refuse_count)->needs(files);
  command->add_flag("--json", explain.json, "as JSON");
  return command;
}

// CLI11 knows only options, so the program is added to the usage line.
class RunFormatter final : public CLI::Formatter {
  [[nodiscard]] std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    return usage.insert(usage.find_last_not_of('\n') + 1, " -- program [argument ...]");
  }
};

// Everything after the options is the program and its arguments; the program's own options are not parsed.
CLI::App* add_run(CLI::App& app, seto::command::RunOptions& run) {
  CLI::App* const command =
      app.add_subcommand("run", "starts the ranks of a job, here or on other hosts: seto run -n 4 -- program ...");
  command->add_option("-n,--ranks", run.ranks, "ranks; left out: as many as the hosts have slots")->check(refuse_count);
  CLI::Option* const hosts =
      command->add_option("--hosts", run.hosts, "hosts, with slots or without: a:2,b:2; left out: this machine");
  command->add_option("--hostfile", run.host_file, "the same from a file, a line for each host: a:2 or a slots=2")
      ->excludes(hosts);
  command->add_option("--env", run.variables, "NAME=VALUE, or NAME with its value here: a variable of every rank")
      ->allow_extra_args(false);
  command->add_option("--timeout", run.timeout_s, "seconds after which the job is ended, with status 124")
      ->check(CLI::Range(0.001, 1e9));
  command->add_option("--grace", run.grace_s, "seconds between SIGTERM and SIGKILL when ranks are ended (5)")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--ssh", run.remote_shell,
                      "the command that reaches a host (ssh); the host's name and the agent's command line are appended");
  command->add_option("--remote-seto", run.remote_seto,
                      "path of seto on the other hosts, as a shell there reads it; left out: its path here");
  CLI::Option* const prefix =
      command->add_flag("--prefix-output", run.prefix, "print each line with its rank, even for a single rank");
  command->add_flag("--no-prefix", run.no_prefix, "print lines as the ranks write them")->excludes(prefix);
  command->prefix_command();
  command->formatter(std::make_shared<RunFormatter>());
  command->footer(
      "Every rank gets the SETO_* variables of seto run, on other hosts too, and SETO_ROOT, SETO_RANK and SETO_RANKS.");
  return command;
}

std::vector<std::string> shells() { return {std::begin(seto::command::kShells), std::end(seto::command::kShells)}; }

CLI::App* add_completion(CLI::App& app, std::string& shell) {
  CLI::App* const command = app.add_subcommand("completion", "a script with which bash, zsh or fish completes seto commands");
  command->add_option("shell", shell, "bash, zsh or fish")->required()->check(CLI::IsMember(shells()));
  return command;
}

std::vector<std::string> words_after(const std::string& command) {
  if (command == "info")
    return {"version",   "build",       "machine",    "gpus",       "rdma",   "config",
            "constants", "calibration", "transports", "algorithms", "codecs", "status"};
  if (command == "explain")
    return {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "gather", "scatter", "barrier"};
  if (command == "completion") return shells();
  if (command == "codec") return {"check"};
  if (command == "plan") return {"simulate"};
  if (command == "help") return {"info", "explain", "run", "report", "status", "doctor", "codec", "topo", "plan", "completion"};
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

// Prints the probable command if the first word is neither a command nor an option.
bool told_of_misspelling(const CLI::App& app, int words, char** argv) {
  if (words < 2 || argv[1][0] == '-') return false;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return false;
  std::vector<std::string_view> candidates(names.begin(), names.end());
  std::erase(candidates, "agent");  // internal command
  const std::string guess(seto::nearest(argv[1], candidates));
  std::fprintf(stderr, "seto: '%.64s' is not a command%s%s; seto help lists the commands\n", argv[1],
               guess.empty() ? "" : "; did you mean ", guess.c_str());
  return true;
}

// The text of a refusal by CLI11. An option that is unknown may be a misspelling of one of the parsed command.
std::string refusal(const CLI::App* app, const CLI::Error& error) {
  std::string text = "seto: ";
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError))
    return text + error.what() + "\nRun with --help for more information.\n";
  const CLI::App* command = app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> options;
  for (const CLI::Option* option : command->get_options())
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  const std::vector<std::string_view> candidates(options.begin(), options.end());
  std::string guess;
  std::string unexpected;
  for (const std::string& word : app->remaining(true)) {
    unexpected += (unexpected.empty() ? "'" : ", '") + word + "'";
    if (guess.empty() && word.starts_with("--")) guess = seto::nearest(word, candidates);
  }
  text += "not expected: " + unexpected;
  if (!guess.empty()) text += "; did you mean " + guess;
  return text + "\nRun with --help for more information.\n";
}

CLI::App* add_codec(CLI::App& app, seto::command::CodecOptions& codec) {
  CLI::App* const command = app.add_subcommand("codec", "the codecs; codec check FILE.npy: their effect on your numbers");
  command->add_flag("--json", codec.json, "as JSON");
  CLI::App* const check = command->add_subcommand("check", "encode and decode the numbers of a file with each codec");
  check->add_option("file", codec.file, "an array of fp32 or fp64 as numpy.save writes it; - is standard input")->required();
  check->add_flag("--json", codec.json, "as JSON");
  command->require_subcommand(0, 1);
  return command;
}

CLI::App* add_report(CLI::App& app, seto::command::ReportOptions& report) {
  CLI::App* const command = app.add_subcommand("report", "finds the rank that keeps others waiting, from dumps of several ranks");
  command->add_option("dumps", report.files, "files of SETO_DUMP_FILE or setoCommDump as JSON; - is standard input")->required();
  command->add_flag("--json", report.json, "as JSON");
  return command;
}

CLI::App* add_status(CLI::App& app, seto::command::StatusOptions& status) {
  CLI::App* const command = app.add_subcommand("status", "shows what running jobs do on this host: each link between sites");
  command->add_option("--pid", status.pid, "only this process")->check(CLI::Range(1, 2'147'483'647));
  command->add_option("--watch", status.watch_s, "repeat after so many seconds, with the bytes per second of each link")
      ->check(CLI::Range(0.1, 86'400.0));
  command->add_flag("--json", status.json, "as JSON");
  return command;
}

CLI::App* add_plan(CLI::App& app, seto::command::SimulateOptions& simulate) {
  CLI::App* const command =
      app.add_subcommand("plan", "plan simulate: predicts the time of a call on a topology, and the load of each link");
  CLI::App* const simulation = command->add_subcommand("simulate", "runs every step of every rank in virtual time");
  simulation
      ->add_option(
          "--topo,--from", simulate.files,
          "FILE or SITE=FILE, as --from of seto topo, once for each host; --xml of seto topo writes such files; oci-h100: a "
          "host of eight H100")
      ->required()
      ->allow_extra_args(false);
  simulation->add_option("--copies", simulate.copies, "hosts like each host of a file (1)")->check(refuse_count);
  simulation->add_option("--collective", simulate.collective, "all_reduce (the default), all_gather, reduce_scatter, ...");
  simulation->add_option("--algorithm", simulate.algorithm,
                         "ring, hierarchical, ...; left out: the one that the library chooses");
  simulation->add_option("--size", simulate.size, "bytes, as in the size column of the benchmarks: 8, 64K, 64M");
  CLI::Option* const memory =
      simulation
          ->add_option(
              "--memory", simulate.memory,
              "host (the default) or device: predicts a call between the GPUs of one node from the programs of their blocks "
              "and published figures; without --size a table from 8 bytes to 1 GiB")
          ->check(CLI::IsMember({"host", "device"}));
  simulation->add_option("--blocks", simulate.blocks, "blocks of each GPU, with --memory device (32)")
      ->check(refuse_count)
      ->needs(memory);
  simulation
      ->add_option(
          "--ranks", simulate.ranks,
          "ranks, spread evenly over the hosts; of GPUs a multiple, on copies of the hosts; left out: one for each GPU, or "
          "host without GPUs")
      ->check(refuse_count);
  CLI::Option* const json = simulation->add_flag("--json", simulate.json, "as JSON");
  simulation->add_option("--svg", simulate.svg, "draw a Gantt chart of the lanes into this file; - is standard output")
      ->excludes(json);
  command->require_subcommand(1);
  return simulation;
}

CLI::App* add_topo(CLI::App& app, seto::command::TopoOptions& topo) {
  CLI::App* const command = app.add_subcommand(
      "topo", "prints sites, hosts, NUMA nodes, PCI switches, GPUs, NICs and links, and where each fact comes from");
  CLI::Option* const from =
      command
          ->add_option(
              "--from", topo.files,
              "FILE or SITE=FILE, once for each host: NCCL's topology XML, AMD's variant or hwloc's XML; - is standard input")
          ->allow_extra_args(false);
  command->add_option("--copies", topo.copies, "hosts like each host of a file (1)")->check(refuse_count);
  CLI::Option* const json = command->add_flag("--json", topo.json, "as JSON");
  CLI::Option* const xml = command->add_flag("--xml", topo.xml, "as a file of NCCL's format, without guesses")->excludes(json);
  CLI::Option* const this_machine = command->add_flag("--this-machine", topo.this_machine,
                                                      "the file is a hint about this machine: complete it by what is found here");
  command
      ->add_flag(
          "--probe", topo.probe,
          "in a job over several sites: measure the rate of each link between sites, for 2 s and 256 MB a direction at most")
      ->excludes(from)
      ->excludes(this_machine);
  command->add_option("--svg", topo.svg, "draw it into this file; - is standard output")->excludes(json)->excludes(xml);
  return command;
}

CLI::App* add_doctor(CLI::App& app, seto::command::DoctorOptions& doctor) {
  CLI::App* const command =
      app.add_subcommand("doctor", "checks this host, and under a launcher the job: problems and how to fix them");
  command->add_option("--ranks", doctor.ranks, "ranks that will run on this host (one for each usable core)")
      ->check(refuse_count);
  command->add_flag("--json", doctor.json, "as JSON");
  return command;
}

// `general` is printed where no command is named.
int print_help(const CLI::App& app, const std::string& general, const std::string& command, const std::string& part) {
  if (command.empty()) return std::fputs(general.c_str(), stdout) < 0;
  const CLI::App* const named = app.get_subcommand(command);
  if (part.empty()) return std::fputs(named->help("seto").c_str(), stdout) < 0;
  for (const CLI::App* each : named->get_subcommands([](const CLI::App*) { return true; }))
    if (each->get_name() == part) return std::fputs(each->help("seto " + command).c_str(), stdout) < 0;
  std::fprintf(stderr, "seto: %s has no command '%.64s'; seto help %s describes it\n", command.c_str(), part.c_str(),
               command.c_str());
  return seto::command::kMisused;
}

}  // namespace

// The `seto` command. It uses the C API only.
int main(int argc, char** argv) {
  CLI::App app{"seto: collective communication across hosts and sites", "seto"};
  app.require_subcommand(0, 1);
  app.failure_message(refusal);
  app.set_help_all_flag("--help-all", "print the help of every command");
  app.set_version_flag("--version", "seto " + seto::command::version_text(), "the version");
  seto::command::InfoOptions info;
  const CLI::App* const info_command = add_info(app, info);
  seto::command::ExplainOptions explain;
  const CLI::App* const explain_command = add_explain(app, explain);
  seto::command::RunOptions run;
  const CLI::App* const run_command = add_run(app, run);
  const CLI::App* const agent_command = app.add_subcommand("agent", "runs the ranks of seto run on another host")->group("");
  std::string shell;
  const CLI::App* const completion_command = add_completion(app, shell);
  seto::command::ReportOptions report;
  const CLI::App* const report_command = add_report(app, report);
  seto::command::StatusOptions status;
  const CLI::App* const status_command = add_status(app, status);
  seto::command::DoctorOptions doctor;
  const CLI::App* const doctor_command = add_doctor(app, doctor);
  seto::command::CodecOptions codec;
  const CLI::App* const codec_command = add_codec(app, codec);
  seto::command::TopoOptions topo;
  const CLI::App* const topo_command = add_topo(app, topo);
  seto::command::SimulateOptions simulate;
  const CLI::App* const simulate_command = add_plan(app, simulate);
  std::string topic;
  std::string part;
  CLI::App* const help_command = app.add_subcommand("help", "prints this text, or the help of a command");
  help_command->add_option("command", topic, "info, explain, run, report, status, doctor, codec, topo, plan, completion or help")
      ->check(
          CLI::IsMember({"info", "explain", "run", "report", "status", "doctor", "codec", "topo", "plan", "completion", "help"}));
  help_command->add_option("part", part, "a command of that command: seto help plan simulate");
  const std::string help = app.help();  // taken before parsing: afterwards it would be the help of the parsed command

  // The words after "--" are the program of seto run; CLI11 would parse them as arguments of seto.
  char** const end = argv + argc;
  char** const program = argc > 1 && std::string(argv[1]) == "run" ? std::find(argv, end, std::string("--")) : end;
  if (told_of_misspelling(app, argc, argv)) return seto::command::kMisused;
  try {
    app.parse(static_cast<int>(program - argv), argv);
  } catch (const CLI::ParseError& error) {  // includes help and version, which are successes
    return app.exit(error) == 0 ? 0 : seto::command::kMisused;
  }
  if (info_command->parsed()) return seto::command::run(info);
  if (explain_command->parsed()) return seto::command::run(explain);
  if (agent_command->parsed()) return seto::command::run_agent();
  if (run_command->parsed()) {
    run.program = run_command->remaining();
    if (!run.program.empty() && run.program.front().starts_with('-')) {
      std::fprintf(stderr, "seto run: '%s' is not an option; see seto run --help, and write -- before the program\n",
                   run.program.front().c_str());
      return seto::command::kMisused;
    }
    if (program != end) run.program.insert(run.program.end(), program + 1, end);
    return seto::command::run(run);
  }
  if (completion_command->parsed()) return std::fputs(seto::command::completion(describe(app), shell).c_str(), stdout) < 0;
  if (report_command->parsed()) return seto::command::run(report);
  if (status_command->parsed()) return seto::command::run(status);
  if (doctor_command->parsed()) return seto::command::run(doctor);
  if (codec_command->parsed()) return seto::command::run(codec);
  if (topo_command->parsed()) return seto::command::run(topo);
  if (simulate_command->parsed()) return seto::command::run(simulate);
  return print_help(app, help, topic, part);
}
