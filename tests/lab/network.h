#pragma once

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

// A packet, or a part of one, on its way.
struct Delivery {
  Nanoseconds due = 0;
  Fragment fragment;
  std::shared_ptr<const std::vector<std::byte>> packet;
};

struct Lateness {
  std::uint64_t count = 0;
  Nanoseconds sum = 0;
  Nanoseconds most = 0;

  [[nodiscard]] double average_us() const;
  void add(Nanoseconds late);
};

// One ordered pair of sites.
struct Link {
  LinkModel model;
  std::deque<Delivery> on_its_way;
  Lateness lateness;
};

// All sites and the links between them. Does no I/O: packets come in by enter(), what is due goes out through a Sink.
class Network final {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void deliver(std::size_t site, const Delivery& delivery) = 0;
  };

  Network(std::size_t sites, const LinkSettings& links, std::uint64_t seed);

  [[nodiscard]] std::size_t sites() const { return sites_; }
  [[nodiscard]] const Link& link(std::size_t from, std::size_t to) const { return links_[from * sites_ + to]; }
  [[nodiscard]] Link& link(std::size_t from, std::size_t to) { return links_[from * sites_ + to]; }

  // A packet for nobody here is forgotten.
  void enter(Nanoseconds now, std::size_t from, const OffloadHeader& offload, Packet packet);
  // Hands out what is due, a bounded number for each link; answers how many.
  std::size_t deliver(Nanoseconds now, Sink& sink);
  // When the next delivery is due; far away if nothing is on its way.
  [[nodiscard]] Nanoseconds next_due() const;

  // "PAIRS OPTION...": all of it or, with an error, nothing.
  Status change(Nanoseconds now, std::string_view line);

  // JSON of one line, without the closing brace: the links that were used.
  [[nodiscard]] std::string statistics() const;

 private:
  std::size_t sites_;
  std::vector<Link> links_;
  std::vector<Piece> pieces_;
};

inline constexpr Nanoseconds kFarAway = INT64_MAX;

}  // namespace seto::lab
