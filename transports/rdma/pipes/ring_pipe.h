#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/byte_pipe.h"
#include "transports/rdma/connect/channel_set_up.h"
#include "transports/rdma/link/registration_cache.h"
#include "transports/rdma/link/ring_channel.h"
#include "transports/rdma/pipes/rail_seats.h"

namespace seto::rdma {

class RingPipe;

// The pipes of a context that are open.
using OpenPipes = std::vector<RingPipe*>;

// Bytes over a channel: a record holds whatever was to be sent, at most a piece. Long parts in named memory are not copied into
// it: the device gathers them.
class RingPipe final : public BytePipe {
 public:
  // `all`: outlives the pipe, which is in it from the beginning to the end. `memory`: on the device of the channel; likewise.
  // `seat`: of its queue pair; not null.
  RingPipe(std::unique_ptr<RingChannel> channel, PortPair ports, std::string way, OpenPipes& all, RegistrationCache& memory,
           std::unique_ptr<RailSeats::Seat> seat);
  RingPipe(const RingPipe&) = delete;
  RingPipe& operator=(const RingPipe&) = delete;
  ~RingPipe() override;

  ssize_t receive(std::span<const iovec> parts) override;
  ssize_t send(std::span<const iovec> parts) override;
  [[nodiscard]] bool reads(const std::byte* memory, std::size_t size) override {
    return !channel_->broken() && memory_.is_of_gpu(memory, size) && memory_.use_if_named(memory, size).has_value();
  }
  [[nodiscard]] std::uint64_t accepted() const override { return accepted_; }
  [[nodiscard]] std::uint64_t released() const override { return lents_ == 0 ? accepted_ : oldest()->begin; }
  [[nodiscard]] std::optional<OpenPlace> open_place(std::byte* memory, std::size_t size) override;
  void close_place(std::uint32_t name) override {
    if (name < open_places_.size()) open_places_[name].reset();
  }
  ssize_t write_in_place(std::span<const std::byte> head, std::span<const std::byte> body, RemotePlace place) override;
  [[nodiscard]] bool delivered() override;
  void close() override;
  [[nodiscard]] std::string why() const override { return std::string(channel_->why().text()); }
  [[nodiscard]] const std::string& way() const override { return way_; }

  [[nodiscard]] const PortPair& ports() const { return ports_; }
  [[nodiscard]] std::uint32_t queue_pair() const { return channel_->queue_pair(); }
  // Null: it is closed, and has no queue pair any more.
  [[nodiscard]] const RailSeats::Seat* seat() const { return seat_.get(); }
  // The completions were polled.
  void polled();
  [[nodiscard]] bool is_broken() const { return channel_->broken(); }
  void break_with(const Status& reason) { channel_->break_with(reason); }

 private:
  // A record that the device gathers from memory of a user.
  struct Lent {
    RegistrationCache::Use use;
    std::uint64_t ticket = 0;
    std::uint64_t begin = 0;  // of accepted_
  };
  // Refuses without a reason: the channel is full, or broken.
  [[nodiscard]] ssize_t refuse() const;
  void lend(RegistrationCache::Use use, std::uint64_t ticket, std::size_t size);
  [[nodiscard]] bool send_record(std::span<const std::byte> head, std::span<const std::byte> body);
  [[nodiscard]] const std::optional<Lent>& oldest() const { return lent_[first_lent_]; }
  void release_oldest();

  const std::unique_ptr<RingChannel> channel_;
  const PortPair ports_;
  const std::string way_;
  OpenPipes& all_;
  RegistrationCache& memory_;
  std::unique_ptr<RailSeats::Seat> seat_;
  const std::size_t piece_;                // bytes of a record at most
  std::uint64_t accepted_ = 0;             // bytes
  std::vector<std::optional<Lent>> lent_;  // a ring, with a place for each request that may be under way
  std::size_t first_lent_ = 0, lents_ = 0;
  std::vector<std::optional<RegistrationCache::Use>> open_places_;  // by name
  std::size_t read_ = 0;                                            // bytes of the oldest record
};

}  // namespace seto::rdma
