#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/byte_pipe.h"
#include "transports/rdma/connect/channel_set_up.h"
#include "transports/rdma/link/ring_channel.h"

namespace seto::rdma {

class RingPipe;

// The pipes of a context that are open.
using OpenPipes = std::vector<RingPipe*>;

// Bytes over a channel: a record holds whatever was to be sent, at most a piece.
class RingPipe final : public BytePipe {
 public:
  // `all`: outlives the pipe, which is in it from the beginning to the end.
  RingPipe(std::unique_ptr<RingChannel> channel, PortPair ports, std::string way, OpenPipes& all);
  RingPipe(const RingPipe&) = delete;
  RingPipe& operator=(const RingPipe&) = delete;
  ~RingPipe() override;

  ssize_t receive(std::span<const iovec> parts) override;
  ssize_t send(std::span<const iovec> parts) override;
  [[nodiscard]] bool delivered() override;
  void close() override;
  [[nodiscard]] std::string why() const override { return std::string(channel_->why().text()); }
  [[nodiscard]] const std::string& way() const override { return way_; }

  [[nodiscard]] const PortPair& ports() const { return ports_; }
  [[nodiscard]] std::uint32_t queue_pair() const { return channel_->queue_pair(); }
  // The completions were polled.
  void polled() { channel_->flush(); }
  void break_with(const Status& reason) { channel_->break_with(reason); }

 private:
  const std::unique_ptr<RingChannel> channel_;
  const PortPair ports_;
  const std::string way_;
  OpenPipes& all_;
  const std::size_t piece_;  // bytes of a record at most
  std::size_t read_ = 0;     // bytes of the oldest record
};

}  // namespace seto::rdma
