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

// One rank at a rendezvous, whose server it reaches by a local socket or TCP. Destroying it tells the others that it has left.
class RendezvousBootstrap final : public Bootstrap {
 public:
  struct Request {
    Contact server;
    Secret key;
    std::uint64_t number = 0;  // which init of this rank by this id
    Rank rank = 0;
    int size = 1;
    NetworkChoice network;  // for the sockets of a rank that hands results on
    // Said where nobody is reached, after the rank: "nobody answers for this unique id: ...". What was tried follows.
    std::string nobody;
    std::optional<Secret> job_secret;
  };
  // Why an attempt reached no rendezvous.
  enum class Miss : std::uint8_t {
    none,      // a member said why: that is the answer
    nobody,    // nobody listens there, or there is no way
    slow,      // somebody took the call and was silent
    hung_up,   // somebody hung up
    stranger,  // somebody does not know this job
  };
  // It is asked, after a while, whether to try again, and may change the request.
  using Again = std::function<bool(Request&, Miss)>;
  // Blocks until all `size` ranks have joined. Whatever is wrong with one of them fails it on every rank that came.
  static Result<RendezvousBootstrap> join(Request request, Deadline until, const Again& again = {});
  // By the bytes of an id. One of setoGetJobId may serve often: the n-th join of a rank meets the n-th of the others.
  static Result<RendezvousBootstrap> join(const UniqueIdBytes& id, Rank rank, int size, Deadline until,
                                          const NetworkChoice& network = {});
  // What an id says; who asks is still to be filled in.
  static Request request_by(const UniqueId& id);

  [[nodiscard]] Rank rank() const override { return request_.rank; }
  [[nodiscard]] int size() const override { return request_.size; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;
  [[nodiscard]] const Secret* secret() const override { return request_.job_secret ? &*request_.job_secret : nullptr; }

 private:
  // What a round has brought so far.
  struct Round {
    bool complete = false;  // its result comes by the tree
    bool asked = false;     // or from the server after all
    bool handing_down = false;
    bool server_gone = false;  // which does not undo a round that was complete
    std::optional<std::string> result;
  };

  explicit RendezvousBootstrap(Request request);

  [[nodiscard]] Status reach(Deadline until, const Again& again);
  [[nodiscard]] Status connect(Deadline until, Miss& miss);
  [[nodiscard]] Status enter(Deadline until);
  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& mine, Deadline until);
  [[nodiscard]] Result<std::string> wait_for_result(Deadline until);
  [[nodiscard]] Status hear_server(Round& round);
  [[nodiscard]] Status hear(Round& round, Frame& frame);
  [[nodiscard]] Status ask(Round& round);
  [[nodiscard]] Status send_all(const std::string& bytes, Deadline until);
  // Takes what the server has sent; false: it sent nothing more for now.
  [[nodiscard]] Result<bool> read_some();
  [[nodiscard]] Status no_word() const;

  Request request_;
  PrivateFd fd_;
  std::uint32_t generation_ = fork_generation();
  FrameReader reader_;
  TreeSeat seat_;
  Status broken_;
};

}  // namespace seto
