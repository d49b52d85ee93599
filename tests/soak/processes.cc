#include "tests/soak/processes.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/soak/hang_report.h"

namespace seto::soak {
namespace {

constexpr std::uint64_t kEndMs = 60'000;  // a leak check reads all memory

std::string state_text(int state) {
  if (WIFSIGNALED(state)) return "was ended by signal " + std::to_string(WTERMSIG(state));
  return "ended with exit status " + std::to_string(WEXITSTATUS(state));
}

}  // namespace

Processes::Processes(const Setting& setting) : setting_(setting), processes_(static_cast<std::size_t>(setting.shape.processes)) {
  for (int number = 0; number < setting.shape.processes; ++number) start(number);
}

Processes::~Processes() {
  for (Process& process : processes_) {
    if (process.pid > 0) kill(process.pid, SIGKILL);
    reap(process);
  }
}

void Processes::start(int number) {
  int commands[2], reports[2];
  if (pipe(commands) != 0 || pipe(reports) != 0) std::abort();
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t forked = fork();
  if (forked == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    for (Process& other : processes_) other = Process{};
    close(commands[1]);
    close(reports[0]);
    std::signal(SIGINT, SIG_IGN);  // the parent handles it and ends its children
    std::signal(SIGTERM, SIG_DFL);
    work(setting_, number, commands[0], reports[1]);
  }
  if (forked < 0) std::abort();
  close(commands[0]);
  close(reports[1]);
  processes_[static_cast<std::size_t>(number)] = {forked, Fd(commands[1]), Fd(reports[0])};
}

int Processes::reap(Process& process) {
  int state = 0;
  if (process.pid > 0) waitpid(process.pid, &state, 0);
  process = Process{};
  return state;
}

void Processes::send_order(const Command& command) {
  for (const Process& process : processes_)
    static_cast<void>(
        !write(process.commands.get(), &command, sizeof command));  // a process that has died is detected by its missing report
}

std::vector<Processes::Answer> Processes::listen(std::uint64_t within_ms, int& judged) {
  const std::uint64_t until = now_ns() + within_ms * 1'000'000;
  std::vector<Answer> answers(processes_.size(), Answer::none);
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    pollfd entry{processes_[i].reports.get(), POLLIN, 0};
    int ready = 0;
    do {
      const std::uint64_t now = now_ns();
      ready = poll(&entry, 1, now > until ? 0 : static_cast<int>((until - now) / 1'000'000) + 1);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) continue;
    Report report{};
    const bool whole = read(entry.fd, &report, sizeof report) == sizeof report;
    answers[i] = !whole ? Answer::ended : report.well ? Answer::well : Answer::not_well;
    judged += whole && report.judged ? 1 : 0;
  }
  return answers;
}

bool Processes::play(std::uint64_t generation) {
  const Plan plan = plan_of(setting_.shape, generation);
  setting_.board.clear();
  send_order({Order::play, generation});
  int unused = 0;
  std::vector<Answer> answers = listen(kGenerationMs, unused);
  bool well = true;
  const bool kills = plan.ending == Ending::kill || plan.ending == Ending::kill_while_making;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const int number = static_cast<int>(i);
    const bool victim = kills && setting_.shape.process_of(plan.culprit) == number;
    if (!victim || answers[i] != Answer::ended) {
      well = well && !victim && answers[i] == Answer::well;
      continue;
    }
    const int state = reap(processes_[i]);
    if (!WIFSIGNALED(state) || WTERMSIG(state) != SIGKILL) {
      std::printf("soak: the process that was to be killed %s\n", state_text(state).c_str());
      well = false;
    }
    start(number);
  }
  if (!well) print_failure(plan, generation, answers);
  if (!well) restart_all();
  clear_directory();
  return well;
}

void Processes::print_failure(const Plan& plan, std::uint64_t generation, const std::vector<Answer>& answers) {
  std::printf("soak: FAILED with seed %llu in generation %llu: %s\n", static_cast<unsigned long long>(setting_.shape.seed),
              static_cast<unsigned long long>(generation), plan.text().c_str());
  std::vector<pid_t> hanging;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == Answer::none) hanging.push_back(processes_[i].pid);
    if (answers[i] == Answer::none) std::printf("soak: process %zu has not ended the generation in time\n", i);
    const bool victim = setting_.shape.process_of(plan.culprit) == static_cast<int>(i);
    if (answers[i] == Answer::ended && !(victim && plan.text().find("kill") != std::string::npos))
      std::printf("soak: process %zu %s\n", i, state_text(reap(processes_[i])).c_str());
  }
  std::fflush(stdout);
  print_dumps(setting_.directory, hanging);
}

void Processes::restart_all() {
  for (Process& process : processes_) {
    if (process.pid > 0) kill(process.pid, SIGKILL);
    reap(process);
  }
  for (int number = 0; number < setting_.shape.processes; ++number) start(number);
}

void Processes::clear_directory() const {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(setting_.directory, none))
    std::filesystem::remove_all(entry.path(), none);
}

bool Processes::account(int& judged) {
  send_order({Order::account, 0});
  bool well = true;
  for (const Answer answer : listen(kSettleMs + kGenerationMs, judged)) well = well && answer == Answer::well;
  return well;
}

bool Processes::end() {
  send_order({Order::end, 0});
  int unused = 0;
  const std::vector<Answer> answers = listen(kEndMs, unused);
  bool well = true;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] != Answer::ended) {
      std::printf("soak: process %zu does not end\n", i);
      kill(processes_[i].pid, SIGKILL);
    }
    const int state = reap(processes_[i]);
    if (state != 0) std::printf("soak: process %zu %s\n", i, state_text(state).c_str());
    well = well && state == 0;
  }
  processes_.clear();
  return well;
}

}  // namespace seto::soak
