#include "src/core/remote_ranks.h"

namespace seto {
namespace {

// A waiter looks around thousands of times a second; a reply takes some 100 us on a fast network.
constexpr std::uint64_t kBetweenQuestionsNs = 500'000;
// Until the answer has come; it may have been dropped where many ask.
constexpr std::uint64_t kUnansweredNs = 20'000'000;

}  // namespace

Result<std::unique_ptr<RemoteRanks>> RemoteRanks::create(Setup setup, Wires& wires) {
  std::unique_ptr<RemoteRanks> ranks(new RemoteRanks(std::move(setup)));
  tcp::CircleSetup circle;
  circle.own = ranks->setup_.own;
  circle.number = ranks->setup_.attempt;
  circle.domain = ranks->setup_.domain;
  circle.herald = ranks.get();
  circle.called = "rank";
  for (const auto& connection : ranks->setup_.connections)
    circle.links.push_back(connection == nullptr ? nullptr : connection->link());
  SETO_ASSIGN(ranks->circle_, tcp::TcpCircle::create(std::move(circle)));
  RemoteRanks* const self = ranks.get();
  ranks->mailbox_ =
      wires.mailboxes().add({self->setup_.attempt, self->setup_.own},
                            {[self] { return self->circle_->bulletin(); },
                             [self](std::uint32_t member, std::string_view bulletin) { self->hear(member, bulletin); }});
  return ranks;
}

RemoteRanks::~RemoteRanks() { mailbox_.remove(); }

// What cannot be read is not believed; the streams find out what is wrong with that peer.
void RemoteRanks::hear(std::uint32_t member, std::string_view bulletin) {
  if (member < answered_.size()) answered_[member].store(true, std::memory_order_relaxed);
  if (bulletin.empty())
    circle_->lose(member);
  else
    (void)circle_->renew(member, bulletin);
  setup_.wake();
}

void RemoteRanks::ask(std::uint32_t member) {
  const auto& connection = setup_.connections[member];
  if (connection == nullptr || connection->wire() == nullptr) return;
  const std::uint64_t now = monotonic_ns();
  std::uint64_t before = asked_[member].load(std::memory_order_relaxed);
  const bool answered = answered_[member].load(std::memory_order_relaxed);
  if (now - before < (answered ? kBetweenQuestionsNs : kUnansweredNs) ||
      !asked_[member].compare_exchange_strong(before, now, std::memory_order_relaxed))
    return;
  answered_[member].store(false, std::memory_order_relaxed);
  connection->wire()->ask(setup_.attempt, member, setup_.own);
}

void RemoteRanks::announce() {
  const std::string bulletin = circle_->bulletin();
  for (std::uint32_t member = 0; member < setup_.connections.size(); ++member) {
    const auto& connection = setup_.connections[member];
    if (connection != nullptr && connection->wire() != nullptr)
      connection->wire()->news(setup_.attempt, member, setup_.own, bulletin);
  }
}

}  // namespace seto
