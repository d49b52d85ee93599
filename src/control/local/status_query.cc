#include "src/control/local/status_query.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "src/base/text.h"
#include "src/control/local/status_socket.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr std::string_view kPrefix = kStatusSocketPrefix;
// More than any process sends; what comes after it is not read.
constexpr std::size_t kMostBytes = 4 * kLongestStatus;
// How often a full queue of a socket is tried again.
constexpr int kRetryMs = 50;

// One process that is being asked.
struct Question {
  std::string name;
  StatusAnswer answer;
  PrivateFd socket;
  bool over = false;
  bool leave_out = false;
};

// The kernel accepts at once unless the queue of the socket is full.
void connect_to(Question& question) {
  Result<PrivateFd> made = connect_local(question.name, SocketKind::stream, Deadline::after_ms(0));
  if (!made.ok()) {
    question.over = made.status().code() != Code::timeout;
    question.leave_out = made.status().code() == Code::remote_error;  // it has ended meanwhile
    question.answer.failure = made.status();
    return;
  }
  question.socket = std::move(made).value();
  question.answer.failure = {};
  if (!check_same_user(question.socket.get()).ok()) question.over = question.leave_out = true;
}

void read_some(Question& question) {
  std::array<char, 16'384> bytes;
  for (;;) {
    const ssize_t got = recv(question.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) question.answer.text.append(bytes.data(), static_cast<std::size_t>(got));
    if (got > 0 && question.answer.text.size() < kMostBytes) continue;
    question.over = true;
    // A process that ends closes its sockets without an answer.
    question.leave_out = question.answer.text.empty();
    return;
  }
}

void wait_for_answers(std::vector<Question>& questions, Deadline until) {
  for (;;) {
    std::vector<pollfd> sockets;
    std::vector<Question*> asked;
    bool retry = false;
    for (Question& one : questions) {
      if (!one.over && !one.socket.valid()) connect_to(one);
      if (one.over) continue;
      retry = retry || !one.socket.valid();
      if (!one.socket.valid()) continue;
      sockets.push_back({one.socket.get(), POLLIN, 0});
      asked.push_back(&one);
    }
    if ((sockets.empty() && !retry) || until.passed()) return;
    const int wait = retry ? std::min(kRetryMs, until.wait_ms()) : until.wait_ms();
    (void)poll(sockets.data(), sockets.size(), wait);
    for (std::size_t i = 0; i < sockets.size(); ++i)
      if (sockets[i].revents != 0) read_some(*asked[i]);
  }
}

}  // namespace

int pid_in_socket_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  const std::optional<std::uint64_t> pid = parse_uint(name.substr(0, name.find('.')));
  return pid && *pid <= 0x7fff'ffffU ? static_cast<int>(*pid) : 0;
}

std::vector<std::string> status_sockets_in(std::string_view table) {
  constexpr const char* kListens = "00010000";
  std::vector<std::string> names;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string address;
    std::string references;
    std::string protocol;
    std::string flags;
    std::string type;
    std::string state;
    std::string inode;
    std::string name;
    if (!(words >> address >> references >> protocol >> flags >> type >> state >> inode >> name)) continue;
    if (flags == kListens && name.starts_with('@') && pid_in_socket_name(name.substr(1)) > 0) names.push_back(name.substr(1));
  }
  return names;
}

Result<std::vector<StatusAnswer>> ask_for_status(int pid, Deadline until) {
  std::ifstream file("/proc/net/unix");
  if (!file) return failure(Code::unavailable, "cannot read /proc/net/unix, which lists the sockets of this host");
  const std::string table((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<Question> questions;
  for (std::string& name : status_sockets_in(table)) {
    Question question;
    question.answer.pid = pid_in_socket_name(name);
    question.name = std::move(name);
    if (pid <= 0 || question.answer.pid == pid) questions.push_back(std::move(question));
  }
  wait_for_answers(questions, until);
  std::vector<StatusAnswer> answers;
  for (Question& one : questions) {
    if (one.leave_out) continue;
    if (!one.over) {
      one.answer.text.clear();
      one.answer.failure = failure(Code::timeout, "it does not answer: it is stopped, or does not come to run");
    }
    answers.push_back(std::move(one.answer));
  }
  std::sort(answers.begin(), answers.end(),
            [](const StatusAnswer& left, const StatusAnswer& right) { return left.pid < right.pid; });
  return answers;
}

}  // namespace seto
