#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "tests/lab/link_model.h"
#include "tests/lab/packets.h"

namespace seto::lab {

// A packet at the time when it entered.
struct CarriedPacket {
  OffloadHeader offload;
  PacketShape shape;
  std::vector<std::byte> bytes;
};

// A packet, or a part of one, in flight.
struct Delivery {
  Nanoseconds due = 0;
  std::size_t from = 0;
  Piece piece;
  std::shared_ptr<const CarriedPacket> packet;
};

struct Lateness {
  std::uint64_t count = 0;
  Nanoseconds sum = 0;
  Nanoseconds most = 0;

  [[nodiscard]] double average_us() const;
  void add(Nanoseconds late);
};

// Traffic of one code point that was offered to a link.
struct MarkedTraffic {
  std::uint64_t segments = 0;
  std::uint64_t bytes = 0;  // of IP
};

// One ordered pair of sites.
struct Link {
  LinkModel model;
  std::deque<Delivery> on_its_way;
  Lateness lateness;
  std::array<MarkedTraffic, 64> by_dscp{};
};

// The uplink or downlink that all links from or to a site share. Without a rate they pass everything at once.
struct Access {
  LinkModel uplink;
  LinkModel downlink;
  std::deque<Delivery> arrived;  // through the downlink; `due` is when the last of their bytes has passed it
};

// All sites and the links between them: a packet passes the uplink of its site, the link of the pair and the other site's
// downlink. Does no I/O: packets enter by enter(), and due packets leave through a Sink.
class Network final {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void deliver(std::size_t site, const Fragment& fragment, Packet packet) = 0;
  };

  Network(std::size_t sites, const LinkSettings& links, std::uint64_t seed);

  [[nodiscard]] std::size_t sites() const { return access_.size(); }
  [[nodiscard]] const Link& link(std::size_t from, std::size_t to) const { return links_[from * sites() + to]; }
  [[nodiscard]] Link& link(std::size_t from, std::size_t to) { return links_[from * sites() + to]; }
  [[nodiscard]] const Access& access(std::size_t site) const { return access_[site]; }

  // A packet for no site of this network is dropped.
  void enter(Nanoseconds now, std::size_t from, const OffloadHeader& offload, Packet packet);
  // Delivers due packets, a limited number for each site. Returns their number.
  std::size_t deliver(Nanoseconds now, Sink& sink);
  // The time of the next delivery; far in the future if no packet is in flight.
  [[nodiscard]] Nanoseconds next_due() const;

  // "PAIRS OPTION...", "uplink SITES OPTION..." or "downlink SITES OPTION...". An error changes nothing.
  Status change(Nanoseconds now, std::string_view line);

  // JSON of one line, without the closing brace: the links, uplinks and downlinks that were used.
  [[nodiscard]] std::string statistics() const;

 private:
  Status change_links(Nanoseconds now, const std::vector<std::string_view>& words);
  Status change_access(Nanoseconds now, const std::vector<std::string_view>& words);
  void size_queues(Nanoseconds now);
  // The link whose first delivery reaches the site earliest; null if no packet to the site is in flight.
  [[nodiscard]] Link* earliest_link_to(std::size_t site);
  void pass_downlink(Nanoseconds now, std::size_t site);
  std::size_t hand_out(Nanoseconds now, std::size_t site, Sink& sink);
  [[nodiscard]] Lateness lateness_of_all() const;
  [[nodiscard]] Nanoseconds shortest_round_trip() const;

  std::vector<Access> access_;
  std::vector<Link> links_;
  std::vector<Piece> pieces_, passed_;
};

inline constexpr Nanoseconds kFarAway = INT64_MAX;

}  // namespace seto::lab
