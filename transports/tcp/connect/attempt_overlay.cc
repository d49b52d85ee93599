#include "transports/tcp/connect/attempt_overlay.h"

#include <atomic>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/base/thread.h"

namespace seto::tcp {
namespace {

std::uint32_t number_of(std::unordered_map<std::string_view, std::uint32_t>& known, std::string_view name) {
  return known.try_emplace(name, static_cast<std::uint32_t>(known.size())).first->second;
}

}  // namespace

Result<AttemptOverlay> AttemptOverlay::join(const Setup& setup, const Attempt& attempt, std::vector<std::string> addresses) {
  AttemptOverlay result(setup, attempt, std::move(addresses));
  SETO_ASSIGN(result.overlay_, result.join_processes());
  return result;
}

AttemptOverlay::AttemptOverlay(const Setup& setup, const Attempt& attempt, std::vector<std::string> addresses)
    : setup_(setup), attempt_(&attempt), addresses_(std::move(addresses)) {
  std::unordered_map<std::string_view, std::uint32_t> processes;
  for (std::uint32_t member = 0; member < attempt.members.size(); ++member) {
    process_of_.push_back(number_of(processes, attempt.members[member].place->process));
    if (process_of_.back() == first_.size()) first_.push_back(member);
  }
}

Result<std::shared_ptr<ControlOverlay>> AttemptOverlay::join_processes() {
  ControlOverlaySetup overlay;
  overlay.attempt = attempt_->id;
  overlay.key = attempt_->key;
  overlay.own = process_of_[attempt_->own];
  std::unordered_map<std::string_view, std::uint32_t> hosts;
  std::unordered_map<std::string_view, std::uint32_t> sites;
  for (const std::uint32_t member : first_) {
    const AttemptMember& one = attempt_->members[member];
    Result<ListenAddress> address = decode_listen_address(addresses_[member]);
    if (!address.ok()) return named(one, address.status());
    overlay.members.push_back({address.value().process, {number_of(hosts, one.place->host), number_of(sites, one.site)}});
  }
  return setup_.channels->join_overlay(overlay);
}

// In the order of members, as all connections of an attempt.
Status AttemptOverlay::connect(Deadline until) {
  const std::vector<OverlayMember>& peers = overlay_->peers();
  if (first_[process_of_[attempt_->own]] != attempt_->own) return {};
  return side_by_side(peers.size(), setup_.at_once, [&](std::size_t index, const std::atomic<bool>& hopeless) -> Status {
    const Status connected = connect_to(peers[index], until.unless(&hopeless));
    return connected.ok() ? Status() : named(attempt_->members[first_[peers[index]]], connected);
  });
}

Status AttemptOverlay::connect_to(OverlayMember peer, Deadline until) {
  const AttemptMember& member = attempt_->members[first_[peer]];
  const ConnectRequest request{
      addresses_[first_[peer]], kPurposeControl, setup_.context, member.place->context, attempt_->id, 0, attempt_->key, until};
  SETO_ASSIGN(std::shared_ptr<ControlChannel> channel, setup_.channels->connect(request));
  if (member.site != attempt_->members[attempt_->own].site) channel->at_site(member.site, setup_.patience_ms);
  overlay_->attach(peer, std::move(channel));
  return {};
}

std::shared_ptr<ControlChannel> AttemptOverlay::channel_to(std::uint32_t member) const {
  return overlay_->channel_to(process_of_[member]);
}

}  // namespace seto::tcp
