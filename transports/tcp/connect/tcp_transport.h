#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "src/base/work_threads.h"
#include "src/control/channel/control_channels.h"
#include "transports/tcp/connect/attempt_overlay.h"
#include "transports/tcp/connect/link_opener.h"
#include "transports/tcp/link/domain.h"
#include "transports/tcp/link/tcp_connection.h"
#include "transports/transport.h"

namespace seto::tcp {

// TCP between contexts of any hosts. Its connections also carry a control channel, over which the processes tell each other that
// they live and what their communicators do.
class TcpTransport final : public Transport, private Endpoint {
 public:
  // Makes what rails of its links consist of, when the endpoint is opened. Null: there are none.
  using OpenPipes = std::function<Result<std::unique_ptr<PipeMaker>>()>;
  explicit TcpTransport(const TransportSetup& setup, OpenPipes open_pipes = {})
      : setup_(setup), open_pipes_(std::move(open_pipes)) {}
  // Waits for what Domain::close() waits for.
  ~TcpTransport() override;

  [[nodiscard]] const char* name() const override { return "TCP"; }
  [[nodiscard]] bool reaches(const Place&, const Place&) const override { return true; }
  [[nodiscard]] Result<Endpoint*> open(OnOutput on_output) override;
  void communicator_ended(bool failed) override;

  [[nodiscard]] int event_fd() const override { return domain_->descriptor(); }
  Moved progress() override { return domain_->pump(); }
  [[nodiscard]] bool unsent() const override { return domain_->unsent(); }
  [[nodiscard]] bool sends_now() const override { return domain_->sends_now(); }
  void arm() override { domain_->prepare_to_sleep(); }

 private:
  [[nodiscard]] std::string address(const Config& config) const override;
  [[nodiscard]] std::shared_ptr<void> admit(const Secret& key) override;
  [[nodiscard]] Status connect(const Attempt& attempt, Deadline until, Connections& made) override;
  [[nodiscard]] std::uint32_t measure_round_trip(const Attempt& attempt, std::uint32_t member, std::uint32_t near_us,
                                                 Deadline until) override;
  void decline(const Attempt& attempt, const Status& reason) override;
  [[nodiscard]] Result<std::unique_ptr<PeerGroupSeat>> reserve_seat(const GroupSize& size) override;

  [[nodiscard]] Result<AttemptOverlay> join_overlay(const Attempt& attempt, std::size_t at_once);
  // `channel`: null where each pair of processes has a control channel of its own.
  [[nodiscard]] Result<std::shared_ptr<TcpConnection>> connect_to(const AttemptMember& member, const Attempt& attempt,
                                                                  std::shared_ptr<ControlChannel> channel,
                                                                  const std::shared_ptr<AttemptRails>& rails, Deadline until);
  // Connects the control channel at most: the link opens on first use.
  [[nodiscard]] Result<std::shared_ptr<TcpConnection>> connect_on_use(const AttemptMember& member, const Attempt& attempt,
                                                                      std::shared_ptr<ControlChannel> channel, OnUseLinks& links,
                                                                      const std::shared_ptr<AttemptRails>& rails, Deadline until);

  // That both ends can have; 0 where their data is encrypted.
  [[nodiscard]] std::uint32_t rails_with(const AttemptMember& own, const AttemptMember& peer) const;

  const TransportSetup setup_;
  const OpenPipes open_pipes_;
  std::unique_ptr<PipeMaker> pipes_;  // null: there are none; outlives domain_
  TcpConnector* connector_ = nullptr;
  ControlChannels* channels_ = nullptr;
  std::shared_ptr<Domain> domain_;  // threads that open links hold it for moments
  std::shared_ptr<WorkThreads> openings_;
  std::mutex overlay_mutex_;
  std::shared_ptr<ControlOverlay> last_overlay_;
  std::shared_ptr<WorkThreads> redials_;
};

}  // namespace seto::tcp
