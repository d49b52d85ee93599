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
#include "src/bootstrap/rendezvous/listeners.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/rendezvous/incoming_handshake.h"
#include "src/bootstrap/rendezvous/outgoing_connection.h"

namespace seto {

// A rank's place in the tree by which results travel (tree.h): a link from its parent, made when it is first needed, and links to
// its children. Links prove membership. Nothing here blocks, and nothing here is waited for beyond kPatienceMs: a child that
// gets nothing asks the server. Driven by the thread that gathers. Without a tree it does nothing.
class TreeSeat final {
 public:
  static constexpr std::uint64_t kPatienceMs = 5'000;
  // How long a connection may take to name the key, as at the rendezvous itself.
  static constexpr std::uint64_t kUnknownMs = 2'000;

  struct Place {
    Rank rank = 0;
    int size = 1;
    std::uint64_t number = 0;  // of the init
    Secret key;
  };
  // Without descriptors for it the children are left to the server.
  static TreeSeat take(Place place, const NetworkChoice& network, Doors::Reach reach);

  [[nodiscard]] const Contact& contact() const { return doors_.contact(); }
  void set_parent(Contact parent) { parent_contact_ = std::move(parent); }

  // The round is complete, and its result comes from the parent.
  void expect();
  // The body of the result's frame, once.
  [[nodiscard]] std::optional<std::string> take_result();
  // It will not come: the parent cannot be reached, has hung up, or was silent for too long since expect(). For good.
  [[nodiscard]] bool parent_lost() const { return parent_lost_; }

  void hand_down(const std::string& body);
  // Every child has the result of hand_down(), or will not get it from here.
  [[nodiscard]] bool handed_down() const;
  // The child gets its results elsewhere from now on.
  void orphaned(Rank child);

  void prepare(std::vector<pollfd>& entries) const;
  [[nodiscard]] int wait_ms() const;
  void advance();

 private:
  struct Child {
    PrivateFd fd;
    std::size_t offset = 0;  // in the result
    bool served = true;
    bool lost = false;
  };

  struct Unknown {
    MemberAnswer answer;
    Deadline until;
  };

  void advance_parent();
  void lose_parent();
  [[nodiscard]] bool welcomes() const;
  void welcome_children();
  void hear_unknown();
  void serve(Child& child);

  Place place_{};
  Doors doors_;
  std::vector<Unknown> unknown_;
  Deadline pause_until_ = Deadline::after_ms(0);  // descriptors have run out
  std::map<Rank, Child> children_;
  std::shared_ptr<const std::string> frame_;
  Deadline serve_until_ = Deadline::never();

  Contact parent_contact_;
  std::optional<MemberCall> call_;
  PrivateFd parent_;
  FrameReader from_parent_{0};
  std::optional<std::string> result_;
  bool expecting_ = false;
  bool parent_lost_ = false;
  Deadline parent_until_ = Deadline::never();
};

}  // namespace seto
