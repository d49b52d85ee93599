#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fork.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/tree/result_tree_node.h"
#include "src/bootstrap/unique_id.h"
#include "src/net/peer_listener.h"

namespace seto {

// One rank at a rendezvous. It reaches the server by a local socket or by TCP. Its destructor reports to the other ranks that it
// has left.
class RendezvousBootstrap final : public Bootstrap {
 public:
  struct Request {
    RendezvousAddress server;
    Secret key;
    std::uint64_t number = 0;  // counts the inits of this rank by this id
    Rank rank = 0;
    int size = 1;
    NetworkChoice network;  // for the sockets of a rank that forwards results
    // The start of the text where no server is reached, after the rank: "no process answers for this unique id: ...". The
    // addresses that were tried follow.
    std::string unreachable_text;
    // Where the server is, for the line that an init logs when it has tried for long: "rank 0 at SETO_ROOT=...". Empty: none.
    std::string goal;
    std::uint64_t tell_after_ms = 10'000;
    std::optional<Secret> job_secret;
  };
  // Why an attempt did not reach a server of this job.
  enum class ConnectFailure : std::uint8_t {
    none,           // the server gave a reason, which is final
    not_listening,  // no process listens there, or there is no route
    silent,         // the connection was accepted, but nothing came
    closed,         // the other end closed the connection
    other_job,      // the other end belongs to another job
  };
  // Decides, some time after a failed attempt, whether to try again. It may change the request.
  using Retry = std::function<bool(Request&, ConnectFailure)>;
  // Blocks until all `size` ranks have joined. An error of one rank fails the call on every rank that joined.
  static Result<RendezvousBootstrap> join(Request request, Deadline until, const Retry& retry = {});
  // Joins by the bytes of an id. An id of setoGetJobId may be used again: the n-th join of a rank matches the n-th joins of the
  // others.
  static Result<RendezvousBootstrap> join(const UniqueIdBytes& id, Rank rank, int size, Deadline until,
                                          const NetworkChoice& network = {});
  // The request for an id. The caller fills in its rank, size and number.
  static Request request_for(const UniqueId& id);

  [[nodiscard]] Rank rank() const override { return request_.rank; }
  [[nodiscard]] int size() const override { return request_.size; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;
  [[nodiscard]] const Secret* secret() const override { return request_.job_secret ? &*request_.job_secret : nullptr; }

 private:
  // The state of one round.
  struct Round {
    bool complete = false;  // all messages have arrived at the server; the result comes through the tree
    bool asked = false;     // the server was asked for the result
    bool sent_to_children = false;
    bool server_lost = false;  // does not undo a round that was complete
    std::optional<std::string> result;
  };

  explicit RendezvousBootstrap(Request request);

  [[nodiscard]] Status reach(Deadline until, const Retry& retry);
  [[nodiscard]] Status connect(Deadline until, ConnectFailure& failed_by);
  // Logs once that no server was reached so far, and why.
  void tell_patience(std::uint64_t begun_ns, ConnectFailure failed_by);
  [[nodiscard]] Status send_hello(Deadline until);
  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& mine, Deadline until);
  [[nodiscard]] Result<std::string> wait_for_result(Deadline until);
  [[nodiscard]] Status read_server(Round& round);
  [[nodiscard]] Status handle(Round& round, Frame& frame);
  [[nodiscard]] Status ask(Round& round);
  [[nodiscard]] Status send_all(const std::string& bytes, Deadline until);
  // Reads what the server has sent. Returns false if nothing more is there now.
  [[nodiscard]] Result<bool> read_some();
  [[nodiscard]] Status no_answer_in_time() const;

  Request request_;
  std::string latest_failure_;  // of an attempt to reach the server, without any advice
  bool told_patience_ = false;
  SecureStream fd_;
  std::uint32_t generation_ = fork_generation();
  FrameReader reader_;
  ResultTreeNode tree_node_;
  Status broken_;
};

}  // namespace seto
