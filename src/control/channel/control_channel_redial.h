#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "src/base/clock.h"
#include "src/base/work_threads.h"
#include "src/control/channel/tcp_control_channel.h"
#include "src/control/network/tcp_connector.h"

namespace seto {

// Makes the broken connection of one channel again (decision 32): the end that had called calls again, and the other one asks
// meanwhile whether the process of the caller still runs. One attempt at a time, between which other channels have their turn.
class ControlChannelRedial final : public std::enable_shared_from_this<ControlChannelRedial> {
 public:
  // `connector` and `threads` outlive the work.
  ControlChannelRedial(std::weak_ptr<TcpControlChannel> channel, std::shared_ptr<const ControlChannelRoute> route,
                       std::uint32_t attempts, TcpConnector& connector, WorkThreads& threads)
      : channel_(std::move(channel)), route_(std::move(route)), attempts_(attempts), connector_(connector), threads_(threads) {}

  // Begins; fails if no thread can be started.
  [[nodiscard]] Status start();

 private:
  void step();
  [[nodiscard]] bool needed() const;
  void pause();
  void judge(const TcpConnector::Reached& reached);

  const std::weak_ptr<TcpControlChannel> channel_;
  const std::shared_ptr<const ControlChannelRoute> route_;
  std::uint32_t attempts_;
  TcpConnector& connector_;
  WorkThreads& threads_;
  int pause_ms_ = 0;
  std::optional<Deadline> lost_at_;  // set while no process of the job listens at its address
};

}  // namespace seto
