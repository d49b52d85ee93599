#include "src/bootstrap/providers/environment.h"

#include <array>
#include <optional>
#include <span>
#include <utility>

#include "src/base/text.h"
#include "src/bootstrap/bootstrap.h"

namespace seto {
namespace {

constexpr std::uint64_t kHighestPort = 65'535;
constexpr std::uint16_t kFirstStepPort = 20'000;
constexpr std::uint64_t kStepPorts = 12'000;

class Variables final {
 public:
  explicit Variables(const char* const* environment) : environment_(environment) {}

  // Empty if the variable is unset.
  [[nodiscard]] std::string_view text(std::string_view name) const {
    for (const char* const* entry = environment_; *entry != nullptr; ++entry) {
      const std::string_view variable(*entry);
      if (variable.size() > name.size() && variable.starts_with(name) && variable[name.size()] == '=')
        return variable.substr(name.size() + 1);
    }
    return {};
  }
  [[nodiscard]] bool has(std::string_view name) const { return !text(name).empty(); }

  [[nodiscard]] Result<std::uint64_t> number(std::string_view name, std::uint64_t most) const {
    const std::optional<std::uint64_t> value = parse_uint(text(name));
    if (value && *value <= most) return *value;
    return failure(Code::invalid_argument, "%s=%s is not a number from 0 to %llu", std::string(name).c_str(),
                   std::string(text(name).substr(0, 80)).c_str(), static_cast<unsigned long long>(most));
  }
  // For optional variables: an unreadable value counts as unset.
  [[nodiscard]] int hint(std::string_view name, int absent) const {
    const std::optional<std::uint64_t> value = parse_uint(text(name));
    return value && *value <= kBootstrapRankLimit ? static_cast<int>(*value) : absent;
  }

 private:
  const char* const* environment_;
};

// The variables in which a launcher gives the number of ranks and this process's rank.
struct Names {
  Launcher launcher;
  std::string_view rank;
  std::string_view ranks;
  std::string_view local_rank;
  std::string_view local_ranks;
};
constexpr Names kTorchrun = {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {Launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kPmi = {Launcher::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
// An old Slurm does not set the number of tasks of the step. Then the number of tasks of the job is used, which may differ.
constexpr Names kSlurmStep = {Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""};
constexpr Names kSlurmJob = {Launcher::slurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""};

std::string printable(std::string_view name) { return std::string(name); }

Result<Launch> place(const Names& names, std::uint64_t rank, std::uint64_t ranks) {
  if (ranks < 1 || ranks > kBootstrapRankLimit)
    return failure(Code::invalid_argument, "%s=%llu: a job has 1 to %d ranks", printable(names.ranks).c_str(),
                   static_cast<unsigned long long>(ranks), kBootstrapRankLimit);
  if (rank >= ranks)
    return failure(Code::invalid_argument, "%s=%llu is not below %s=%llu", printable(names.rank).c_str(),
                   static_cast<unsigned long long>(rank), printable(names.ranks).c_str(), static_cast<unsigned long long>(ranks));
  Launch launch;
  launch.launcher = names.launcher;
  launch.rank = static_cast<Rank>(rank);
  launch.ranks = static_cast<int>(ranks);
  return launch;
}

Result<Launch> place(const Names& names, const Variables& variables) {
  SETO_ASSIGN(const std::uint64_t rank, variables.number(names.rank, kBootstrapRankLimit));
  SETO_ASSIGN(const std::uint64_t ranks, variables.number(names.ranks, kBootstrapRankLimit));
  SETO_ASSIGN(Launch launch, place(names, rank, ranks));
  launch.local_rank = variables.hint(names.local_rank, -1);
  launch.local_ranks = variables.hint(names.local_ranks, 0);
  return launch;
}

// Both variables or neither: an incomplete set means that the job was started wrongly, not that there is one rank.
Result<bool> whole(const Names& names, const Variables& variables) {
  const bool rank = variables.has(names.rank);
  const bool ranks = variables.has(names.ranks);
  if (rank == ranks) return rank;
  return failure(Code::invalid_argument, "%s is set, but %s is not", printable(rank ? names.rank : names.ranks).c_str(),
                 printable(rank ? names.ranks : names.rank).c_str());
}

// Scripts of a Slurm job often export some of torchrun's variables without starting ranks, so these count only if no other
// launcher's variables are set.
bool is_torchrun(const Variables& variables) { return variables.has(kTorchrun.rank) && variables.has(kTorchrun.ranks); }

Status refuse_half_of_torchrun(const Variables& variables) {
  static constexpr std::array<std::string_view, 4> kAll = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  std::string set;
  std::string missing;
  for (const std::string_view name : kAll) {
    std::string& list = variables.has(name) ? set : missing;
    list.append(list.empty() ? "" : ", ").append(name);
  }
  if (set.empty()) return {};
  return failure(
      Code::invalid_argument,
      "of the variables of torchrun %s %s set, but not %s: set all of them or none, or SETO_ROOT, SETO_RANK and SETO_RANKS",
      set.c_str(), set.find(',') == std::string::npos ? "is" : "are", missing.c_str());
}

void meet_locally(Launch& launch, std::string identity) {
  launch.way = RendezvousKind::local;
  launch.where = std::string(name_of(launch.launcher)) + " " + std::move(identity);
}

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

std::string with_port(std::string_view host, std::uint64_t port) {
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && !host.starts_with("[");
  std::string text = bare_ipv6 ? "[" : "";
  text.append(host).append(bare_ipv6 ? "]:" : ":").append(std::to_string(port));
  return text;
}

// torch's own store listens on MASTER_PORT, so the ranks use the port after it. Ranks of one machine join by name, which needs
// neither a port nor a secret.
Status find_torchrun(Launch& launch, const Variables& variables) {
  if (!variables.has("MASTER_ADDR") || !variables.has("MASTER_PORT")) return refuse_half_of_torchrun(variables);
  SETO_ASSIGN(const std::uint64_t port, variables.number("MASTER_PORT", kHighestPort));
  const std::string_view host = variables.text("MASTER_ADDR");
  if (launch.local_ranks == launch.ranks || is_loopback(host)) {
    meet_locally(launch, with_port(host, port) + " " + std::string(variables.text("TORCHELASTIC_RUN_ID")) + " " +
                             std::string(variables.text("TORCHELASTIC_RESTART_COUNT")));
    return {};
  }
  if (port == kHighestPort)
    return failure(Code::invalid_argument,
                   "MASTER_PORT=%llu: the ranks join at the port after it, which does not exist; set SETO_ROOT",
                   static_cast<unsigned long long>(port));
  launch.way = RendezvousKind::root;
  launch.where = with_port(host, port + 1);
  return {};
}

Status find_open_mpi(Launch& launch, const Variables& variables) {
  if (launch.local_ranks != launch.ranks) {
    return failure(Code::invalid_usage,
                   "Open MPI started %d ranks on several nodes and gives them no address at which they could join: make the "
                   "communicator with setoCommInitMPI of seto/mpi.h, or set SETO_ROOT",
                   launch.ranks);
  }
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (!variables.has(name)) continue;
    meet_locally(launch, std::string(variables.text(name)));
    return {};
  }
  return failure(Code::invalid_usage,
                 "Open MPI set neither PMIX_NAMESPACE nor OMPI_MCA_ess_base_jobid, so its ranks cannot find each other: make "
                 "the communicator with setoCommInitMPI of seto/mpi.h, or set SETO_ROOT");
}

Status find_slurm(Launch& launch, const Variables& variables) {
  SETO_ASSIGN(const std::uint64_t job, variables.number("SLURM_JOB_ID", ~std::uint64_t{0}));
  SETO_ASSIGN(const std::uint64_t step, variables.number("SLURM_STEP_ID", ~std::uint64_t{0}));
  const bool one_node = variables.hint("SLURM_STEP_NUM_NODES", variables.hint("SLURM_NNODES", 0)) == 1;
  if (one_node) {
    launch.local_ranks = launch.ranks;
    meet_locally(launch,
                 std::string(variables.text("SLURM_CLUSTER_NAME")) + " " + std::to_string(job) + "." + std::to_string(step));
    return {};
  }
  const std::string_view name = variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
  const std::string host = first_host(variables.text(name));
  if (host.empty())
    return failure(Code::invalid_argument, "%s='%.80s' names no node at which the ranks could join: set SETO_ROOT",
                   printable(name).c_str(), printable(variables.text(name)).c_str());
  launch.way = RendezvousKind::root;
  launch.where = with_port(host, port_of_step(job, step));
  return {};
}

std::string job_of(Launcher launcher, const Variables& variables) {
  std::string job(name_of(launcher));
  const auto add = [&](std::string_view name) { job.append(" ").append(variables.text(name)); };
  if (launcher == Launcher::slurm) {
    add("SLURM_JOB_ID");
    add("SLURM_STEP_ID");
  } else if (launcher == Launcher::torchrun) {
    add("TORCHELASTIC_RUN_ID");
    add("TORCHELASTIC_RESTART_COUNT");
  }
  return job;
}

// Finds the first launcher whose variables are complete and reads the rank from them. How the ranks join is decided later.
Result<Launch> find_rank(const Variables& variables) {
  if (is_torchrun(variables)) return place(kTorchrun, variables);
  for (const Names* names : {&kOpenMpi, &kPmi}) {
    SETO_ASSIGN(const bool found, whole(*names, variables));
    if (found) return place(*names, variables);
  }
  // A batch script and a shell of salloc have some of a step's variables, but they run once and outside a step.
  if (variables.has("SLURM_STEP_ID") && variables.has(kSlurmStep.rank)) {
    const Names& names = variables.has(kSlurmStep.ranks) ? kSlurmStep : kSlurmJob;
    SETO_ASSIGN(const bool found, whole(names, variables));
    if (found) return place(names, variables);
  }
  SETO_TRY(refuse_half_of_torchrun(variables));
  return Launch();
}

Result<Launch> find_place(const Variables& variables) {
  SETO_ASSIGN(Launch launch, find_rank(variables));
  if (launch.launcher != Launcher::none) launch.job = job_of(launch.launcher, variables);
  return launch;
}

Status find_way(Launch& launch, const Variables& variables) {
  if (launch.ranks == 1) return {};
  switch (launch.launcher) {
    case Launcher::torchrun:
      return find_torchrun(launch, variables);
    case Launcher::open_mpi:
      return find_open_mpi(launch, variables);
    case Launcher::pmi: {
      if (!variables.has("PMI_FD"))
        return failure(Code::invalid_usage,
                       "PMI_RANK is set, but PMI_FD is not: this launcher does not use version 1 of PMI; make the communicator "
                       "with setoCommInitMPI of seto/mpi.h, or set SETO_ROOT");
      SETO_ASSIGN(const std::uint64_t fd, variables.number("PMI_FD", 1 << 20));
      launch.pmi_fd = static_cast<int>(fd);
      launch.way = RendezvousKind::pmi;
      return {};
    }
    case Launcher::slurm:
      return find_slurm(launch, variables);
    case Launcher::root:
    case Launcher::none:
      break;
  }
  return {};
}

// The case of SETO_ROOT: the rank comes from SETO_RANK, else from the launcher.
Result<Launch> rooted(const Config& config, const Variables& variables) {
  Launch launch;
  if (config.rank != kAutomatic) {
    SETO_ASSIGN(launch, place({Launcher::root, "SETO_RANK", "SETO_RANKS", {}, {}}, config.rank, config.ranks));
    launch.local_rank = variables.hint(kTorchrun.local_rank, -1);
    launch.local_ranks = variables.hint(kTorchrun.local_ranks, 0);
  } else {
    SETO_ASSIGN(launch, find_place(variables));
    if (launch.launcher == Launcher::none)
      return failure(
          Code::invalid_argument,
          "SETO_ROOT is set, but neither SETO_RANK and SETO_RANKS nor the variables of a launcher give the rank of this process");
    launch.launcher = Launcher::root;
  }
  launch.way = RendezvousKind::root;
  launch.where = config.root;
  return launch;
}

}  // namespace

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::root:
      return "SETO_ROOT";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::open_mpi:
      return "Open MPI";
    case Launcher::pmi:
      return "PMI";
    case Launcher::slurm:
      return "Slurm";
    case Launcher::none:
      return "none";
  }
  return "unknown";
}

Result<Launch> launch_of(const Config& config, const char* const* environment) {
  const Variables variables(environment);
  if ((config.rank == kAutomatic) != (config.ranks == kAutomatic)) {
    const bool rank = config.rank != kAutomatic;
    return failure(Code::invalid_argument, "%s is set, but %s is not", rank ? "SETO_RANK" : "SETO_RANKS",
                   rank ? "SETO_RANKS" : "SETO_RANK");
  }
  if (!config.root.empty()) return rooted(config, variables);
  if (config.rank != kAutomatic)
    return failure(Code::invalid_argument,
                   "SETO_RANK and SETO_RANKS are set, but SETO_ROOT is not: set it to host:port of rank 0, or file:PATH");
  SETO_ASSIGN(Launch launch, find_place(variables));
  SETO_TRY(find_way(launch, variables));
  return launch;
}

std::string first_host(std::string_view list) {
  std::string host;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      host += list[at];
      continue;
    }
    const std::size_t end = list.find(']', at);
    if (end == std::string_view::npos) return {};
    const std::string_view inside = list.substr(at + 1, end - at - 1);
    const std::string_view first = inside.substr(0, inside.find_first_of(",-"));
    if (!parse_uint(first)) return {};
    host += first;
    at = end;
  }
  return host.find_first_of(" ]/") == std::string::npos ? host : std::string();
}

std::uint16_t port_of_step(std::uint64_t job, std::uint64_t step) {
  // The mixing sends the steps of a job, and jobs with adjacent numbers, to ports that lie far apart.
  const std::uint64_t mixed = (job * 0x9e3779b97f4a7c15U) ^ (step * 0xc2b2ae3d27d4eb4fU);
  return static_cast<std::uint16_t>(kFirstStepPort + (mixed >> 32) % kStepPorts);
}

}  // namespace seto
