#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/wakeup.h"
#include "src/control/channel/control_channels.h"
#include "transports/connection.h"
#include "transports/moving_way.h"
#include "transports/tcp/link/domain.h"

namespace seto::tcp {

// A connection to a context of another host: the link that carries frames, and the control channel to its process.
class TcpConnection final : public seto::Connection, public MovingWay {
 public:
  struct Parts {
    std::string way;
    std::uint32_t round_trip_us = 0;
    std::shared_ptr<Link> link;
    std::shared_ptr<ControlChannel> channel;
    std::shared_ptr<const Wakeup> wakeup;  // of the own context
  };
  TcpConnection(const PeerContext& peer, Parts parts);

  [[nodiscard]] bool dead() const override { return ended(); }
  [[nodiscard]] bool ended() const override { return ended_.load(std::memory_order_acquire) || link_lost(); }
  [[nodiscard]] std::string why_dead() const override;
  [[nodiscard]] std::uint32_t round_trip_us() const override { return round_trip_us_; }
  [[nodiscard]] SendingRate sending_rate() const override { return link_->sending_rate(); }
  [[nodiscard]] Traffic traffic() const override { return {link_->bytes_sent(), link_->bytes_received()}; }
  [[nodiscard]] std::optional<Sockets> ask_sockets() const override;
  [[nodiscard]] const char* cipher() const override { return link_->cipher(); }
  [[nodiscard]] std::string way_now() const override;
  [[nodiscard]] std::vector<std::string> ways_taken() const override { return link_->ways_taken(); }
  [[nodiscard]] Signs signs_of_data() const override;
  void limit_pace_to_site(std::uint64_t bytes_per_second) override { link_->limit_site_pace(bytes_per_second); }
  [[nodiscard]] ControlChannel* control() const override { return channel_.get(); }

  [[nodiscard]] const std::shared_ptr<Link>& link() const { return link_; }
  [[nodiscard]] ControlChannel& channel() const { return *channel_; }

 private:
  [[nodiscard]] bool link_lost() const;

  const std::uint32_t round_trip_us_;
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<ControlChannel> channel_;
  std::atomic<bool> ended_{false};
  std::unique_ptr<ControlChannel::OnDeath> on_death_;  // last: destroyed before what its callback uses
};

}  // namespace seto::tcp
