#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/rendezvous/incoming_handshake.h"
#include "src/bootstrap/rendezvous/listeners.h"
#include "src/bootstrap/rendezvous/outgoing_connection.h"

namespace seto {

// A rank's node in the tree that distributes results (result_tree.h): a connection to its parent, made when it is first needed,
// and the connections of its children, all authenticated. No function blocks, and no wait lasts longer than kParentTimeoutMs: a
// child that gets no result asks the server. The thread that runs the round drives the node. Without a tree a node does nothing.
class ResultTreeNode final {
 public:
  static constexpr std::uint64_t kParentTimeoutMs = 5'000;
  // How long a connection may take to name the key, as at the server.
  static constexpr std::uint64_t kHandshakeMs = 2'000;

  struct Place {
    Rank rank = 0;
    int size = 1;
    std::uint64_t number = 0;  // number of the init
    Secret key;
  };
  // Without descriptors for listeners, the children get their results from the server.
  static ResultTreeNode create(Place place, const NetworkChoice& network, Listeners::Reach reach);

  [[nodiscard]] const RendezvousAddress& address() const { return listeners_.address(); }
  void set_parent(RendezvousAddress parent) { parent_address_ = std::move(parent); }

  // Called when the round is complete; the result will come from the parent.
  void expect();
  // Returns the body of the result's frame once.
  [[nodiscard]] std::optional<std::string> take_result();
  // The parent delivers nothing any more: it cannot be reached, has closed the connection, or has sent nothing for too long since
  // expect().
  [[nodiscard]] bool parent_lost() const { return parent_lost_; }

  void send_to_children(const std::string& body);
  // Every child has the result of send_to_children(), or will get it from the server.
  [[nodiscard]] bool children_served() const;
  // The server delivers to this child from now on.
  void orphaned(Rank child);

  void prepare(std::vector<pollfd>& entries) const;
  [[nodiscard]] int wait_ms() const;
  void advance();

 private:
  struct Child {
    SecureStream fd;
    std::size_t offset = 0;  // bytes of the result already sent
    bool served = true;
    bool lost = false;
  };

  struct PendingChild {
    IncomingHandshake answer;
    Deadline until;
  };

  void advance_parent();
  void lose_parent();
  [[nodiscard]] bool accepts_children() const;
  void accept_children();
  void read_pending();
  void serve(Child& child);

  Place place_{};
  TlsChoice tls_;
  Listeners listeners_;
  std::vector<PendingChild> pending_;
  SeenHellos seen_;
  Deadline pause_until_ = Deadline::after_ms(0);  // no accept until then, because descriptors have run out
  std::map<Rank, Child> children_;
  std::shared_ptr<const std::string> frame_;
  Deadline serve_until_ = Deadline::never();

  RendezvousAddress parent_address_;
  std::optional<OutgoingConnection> call_;
  SecureStream parent_;
  FrameReader from_parent_{0};
  std::optional<std::string> result_;
  bool expecting_ = false;
  bool parent_lost_ = false;
  Deadline parent_until_ = Deadline::never();
};

}  // namespace seto
