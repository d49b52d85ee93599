#include "src/bootstrap/providers/pmi.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "src/base/fd.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr std::size_t kLineLimit = 8'192;
constexpr std::string_view kKey = "seto-root";

// Returns a value of a line such as "cmd=maxes kvsname_max=256"; empty if the name is missing.
std::string_view value_in(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') return word.substr(name.size() + 1);
    line.remove_prefix(word.size() == line.size() ? word.size() : word.size() + 1);
  }
  return {};
}

class Conversation final {
 public:
  Conversation(int fd, Deadline until) : fd_(fd), until_(until) {}

  // Fails unless the answer is of the command `expected` and reports no error.
  [[nodiscard]] Result<std::string> ask(const std::string& line, std::string_view expected) {
    SETO_TRY(send_line(line));
    SETO_ASSIGN(std::string answer, read_line());
    const std::string_view outcome = value_in(answer, "rc");
    if (value_in(answer, "cmd") == expected && (outcome.empty() || outcome == "0")) return answer;
    return failure(Code::remote_error, "the launcher (PMI_FD=%d) answered '%.120s' to '%.40s'", fd_, answer.c_str(),
                   line.c_str());
  }

 private:
  [[nodiscard]] Status send_line(const std::string& line) const {
    const std::string bytes = line + "\n";
    for (std::size_t offset = 0; offset < bytes.size();) {
      const ssize_t sent = send(fd_, bytes.data() + offset, bytes.size() - offset, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0) {
        offset += static_cast<std::size_t>(sent);
      } else if (errno == EAGAIN) {
        SETO_TRY(wait(POLLOUT));
      } else if (errno != EINTR) {
        return gone();
      }
    }
    return {};
  }

  [[nodiscard]] Result<std::string> read_line() {
    while (true) {
      if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
        std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        return line;
      }
      if (unread_.size() > kLineLimit)
        return failure(Code::remote_error, "the launcher (PMI_FD=%d) sent a line of over %zu bytes", fd_, kLineLimit);
      SETO_TRY(wait(POLLIN));
      char bytes[1024];
      const ssize_t got = recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got > 0) unread_.append(bytes, static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return gone();
    }
  }

  [[nodiscard]] Status wait(short events) const {
    if (wait_for(fd_, events, until_).ok()) return {};
    return failure(Code::timeout,
                   "the launcher (PMI_FD=%d) did not answer before the deadline of the init: some of its processes have not "
                   "started one",
                   fd_);
  }

  [[nodiscard]] Status gone() const {
    return failure(Code::remote_error, "the launcher (PMI_FD=%d) has closed its connection to this process", fd_);
  }

  int fd_;
  Deadline until_;
  std::string unread_;
};

Status check_descriptor(int fd) {
  struct stat about {};
  if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) return {};
  return failure(
      Code::invalid_argument,
      "PMI_FD=%d is not a socket of this process: the variables belong to another process, or this one was not started by "
      "the launcher itself",
      fd);
}

}  // namespace

Result<std::string> broadcast_over_pmi(int fd, Rank rank, const std::string& text, Deadline until) {
  if (text.size() > kPmiValueLimit || text.find_first_of(" =\n") != std::string::npos)
    return failure(Code::internal, "'%.40s' has characters that PMI cannot carry", text.c_str());
  SETO_TRY(check_descriptor(fd));
  Conversation launcher(fd, until);
  SETO_ASSIGN(const std::string greeting, launcher.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"));
  SETO_ASSIGN(const std::string space, launcher.ask("cmd=get_my_kvsname", "my_kvsname"));
  std::string place = " kvsname=";
  place.append(value_in(space, "kvsname")).append(" key=").append(kKey);
  if (rank == 0) {
    SETO_ASSIGN(const std::string stored, launcher.ask("cmd=put" + place + " value=" + text, "put_result"));
  }
  SETO_ASSIGN(const std::string all_came, launcher.ask("cmd=barrier_in", "barrier_out"));
  SETO_ASSIGN(const std::string found, launcher.ask("cmd=get" + place, "get_result"));
  SETO_ASSIGN(const std::string leave, launcher.ask("cmd=finalize", "finalize_ack"));
  const Fd used_up(fd);
  return std::string(value_in(found, "value"));
}

}  // namespace seto
