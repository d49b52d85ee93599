#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/control/overlay/overlay_routes.h"
#include "src/control/overlay/relayed_stream.h"

namespace seto {

// The frames that two peers of an overlay send to each other.
enum class OverlayFrameKind : std::uint8_t {
  relayed,    // from one member to another, over those of its path
  edge_lost,  // `from` has given up its peer `to`; the bytes say why
  left,       // `from` says and takes no more, but passes on
};
struct OverlayFrame {
  OverlayFrameKind kind{};
  OverlayMember from = 0;
  OverlayMember to = 0;
  std::string_view bytes{};
};

// A message of one member to another, as the control plane knows it.
struct RelayedLetter {
  std::uint16_t kind = 0;  // not 0
  std::uint64_t key = 0;
  std::uint32_t to = 0;  // handlers
  std::uint32_t from = 0;
  std::string_view bytes{};
};

// The bytes that precede a letter in its frame.
inline constexpr std::size_t kRelayHeadSize = 64;

// One member of an overlay: passes messages on, numbers and keeps its own, and tells all others which edges are lost. A message
// is delivered once, in order, as long as its two ends live and some path of living members joins them. Pure: no socket, clock or
// lock. Frames between two peers arrive in order, or the edge is lost.
class OverlayNode final {
 public:
  class Output {
   public:
    virtual ~Output() = default;
    // To a peer that is attached. It may turn out later to be lost.
    virtual void send(OverlayMember peer, const OverlayFrame& frame) = 0;
  };
  // The effects of a call.
  struct Events {
    struct Delivery {
      OverlayMember from = 0;
      RelayedLetter letter;  // its bytes are those of the frame that was given
    };
    struct Loss {
      OverlayMember member = 0;
      std::string why;
    };
    std::vector<Delivery> deliveries;
    std::vector<Loss> losses;  // each member once
  };

  // `output` outlives the object.
  OverlayNode(OverlayGraph graph, OverlayMember own, Output& output);

  [[nodiscard]] const OverlayRoutes& routes() const { return routes_; }

  // The edge to a peer begins: both ends are members of the overlay now.
  void attach(OverlayMember peer);
  // This member gives up the peer, or never attached it: nothing arrives from it any more.
  void lose(OverlayMember peer, const std::string& why, Events& events);
  // This member alone takes that one for lost, whatever others know of it.
  void give_up(OverlayMember member, const std::string& why, Events& events);
  // Returns false, and sends nothing, if more than `limit` bytes would wait for acknowledgement. Letters to members that are lost
  // or have left are dropped.
  bool send(OverlayMember to, const RelayedLetter& letter, std::size_t limit);
  // A failure means that the peer itself sends nonsense. What is wrong in a message of two others ends that message, or what the
  // two say to each other if this member is one of them.
  [[nodiscard]] Status receive(OverlayMember peer, const OverlayFrame& frame, Events& events);

  // This member will send no more letters of its own: it asks for acknowledgements.
  void prepare_to_leave();
  // All letters are acknowledged that can still arrive.
  [[nodiscard]] bool settled() const;
  // Tells all others. From then on this member only passes on.
  void leave();
  [[nodiscard]] bool has_left() const { return routes_.left().count(routes_.own()) > 0; }
  // Another member still takes part, and may be reached over this one.
  [[nodiscard]] bool is_needed() const;

 private:
  struct Head;

  void tell_all(const OverlayFrame& frame, OverlayMember but);
  void transmit(OverlayMember to, RelayedStream& stream, const RelayedStream::Kept& kept);
  void transmit_head(OverlayMember to, RelayedStream& stream, bool wants_answer);
  void send_along(OverlayMember to, const OverlayPath& path, Head& head, std::string_view bytes);
  // After the knowledge of the overlay has changed.
  void adapt(Events& events);
  void look_for_losses(Events& events);
  void take_path(OverlayMember to, RelayedStream& stream);
  [[nodiscard]] Status receive_relayed(OverlayMember peer, const OverlayFrame& frame, Events& events);
  [[nodiscard]] Status receive_letter(OverlayMember peer, const OverlayFrame& frame, const Head& head, Events& events);
  [[nodiscard]] Status pass_on(OverlayMember peer, const OverlayFrame& frame, Head& head);

  OverlayRoutes routes_;
  Output& output_;
  std::set<OverlayMember> attached_;
  std::map<OverlayMember, RelayedStream> streams_;
  std::map<OverlayMember, std::string> why_;  // the first text about a member that was given up
  std::vector<bool> lost_;
  std::uint64_t changes_seen_ = 0;  // of OverlayRoutes::changes_of_lost()
  bool leaving_ = false;
};

}  // namespace seto
