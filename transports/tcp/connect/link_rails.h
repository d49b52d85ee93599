#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/config.h"
#include "src/base/fork.h"
#include "src/base/wakeup.h"
#include "src/control/channel/control_channels.h"
#include "transports/byte_pipe.h"
#include "transports/tcp/connect/rail_inbox.h"
#include "transports/tcp/connect/set_up_pause.h"
#include "transports/tcp/link/domain.h"

namespace seto::tcp {

class LinkRails;

// The rails of the links that one attempt makes: takes the messages of their peers. Any thread.
class AttemptRails final : public std::enable_shared_from_this<AttemptRails> {
 public:
  struct Setup {
    AttemptId attempt = 0;
    std::uint32_t own = 0;  // number in the attempt
    ControlChannels* channels = nullptr;
    std::weak_ptr<Domain> domain;
    PipeMaker* maker = nullptr;  // of the domain
    std::shared_ptr<const Wakeup> wakeup;
    Connect begin = Connect::used;  // of the rails of a link that has carried nothing: all at once, or on its first use
  };
  static std::shared_ptr<AttemptRails> create(Setup setup);
  explicit AttemptRails(Setup setup) : setup_(std::move(setup)) {}

  // The end of one link, made before the peer can know the link. `selects`: different at both ends.
  [[nodiscard]] std::shared_ptr<LinkRails> add(std::uint32_t peer, PipeMaker::Role role);
  [[nodiscard]] const Setup& setup() const { return setup_; }

 private:
  // Handlers of ranks, and those of OnUseLinks, have smaller numbers.
  [[nodiscard]] static std::uint32_t handler_of(std::uint32_t number) { return number | 0xc000'0000U; }
  friend class LinkRails;
  void receive(std::uint32_t from, std::string_view message);

  const Setup setup_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::weak_ptr<LinkRails>> all_;  // by number of the peer
  MessageHandlers::Registration handler_;                  // last: its handler uses the other members
};

// Sets up the rails of one link, one after another, and again those that break, after pauses that grow: their rings pin memory,
// so the link must have carried something. The end that selects begins each set-up and numbers it; the other one answers, and
// says how many rails may work at it: a place for more of them stays empty until one end has a port for it. Neither waits: data
// goes over sockets meanwhile. The lock of the domain covers everything.
class LinkRails final : public RailOpener {
 public:
  LinkRails(std::shared_ptr<AttemptRails> all, std::uint32_t peer, PipeMaker::Role role);

  // The channel to the process of the peer, before the link opens.
  void use(std::shared_ptr<ControlChannel> channel) { channel_ = std::move(channel); }
  void advance(Domain& domain, Link& link) override;
  [[nodiscard]] bool busy() const override { return set_up_ != nullptr || !inbox_.empty() || is_new_; }
  void broke(std::size_t rail, std::uint32_t attempt) override;
  void give_up() override;

  // On the control thread.
  void receive(std::string_view message);

 private:
  static constexpr std::uint64_t kSetUpNs = 30'000'000'000;
  static constexpr std::uint32_t kUnknown = ~0U;

  void begin_missing(const Link& link);
  void begin(std::uint8_t rail, const Link& link);
  void take(const RailInbox::Message& message, Link& link);
  void hear_broken(const RailHead& head, Link& link);
  void go_on(Domain& domain, Link& link);
  void lose_all(Link& link);
  void look_at_medium();
  void tell_usable();
  void send(RailWord word, std::string_view bytes) { send({word, rail_, 1, 0, number_}, bytes); }
  void send(RailHead head, std::string_view bytes);
  void send_messages();
  void ended(Domain& domain, Link& link);
  void failed(const Status& reason);

  const std::shared_ptr<AttemptRails> all_;
  const std::uint32_t peer_;
  const PipeMaker::Role role_;
  std::shared_ptr<ControlChannel> channel_;
  bool given_up_ = false;
  bool is_new_;  // no rail has been tried yet, and the first one does not wait for traffic
  RailInbox inbox_;
  std::unique_ptr<PipeSetUp> set_up_;
  std::uint8_t rail_ = 0;
  std::uint32_t number_ = 0;
  std::uint64_t until_ns_ = 0;
  SetUpPause pause_;
  std::uint64_t changes_ = 0;  // of the medium that this end has acted on
  std::uint32_t peer_usable_ = kUnknown;
};

}  // namespace seto::tcp
