#include "src/bootstrap/tree/result_tree_node.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "src/base/log.h"
#include "src/bootstrap/tree/result_tree.h"

namespace seto {
namespace {

// As many as there are children, and one for each of them that tries several addresses: strangers beyond that wait, and a child
// that they keep out asks the server.
constexpr std::size_t kUnknownLimit = 2 * kTreeFan;
constexpr std::uint64_t kPauseMs = 100;

Claim claim_of(Rank child, std::uint64_t number) {
  Claim claim;
  claim.purpose = static_cast<std::uint8_t>(GatheringPurpose::result_tree);
  claim.caller_context = static_cast<std::uint64_t>(child);
  claim.attempt = number;
  return claim;
}

}  // namespace

TreeSeat TreeSeat::take(Place place, const NetworkChoice& network, Doors::Reach reach) {
  TreeSeat seat;
  seat.place_ = std::move(place);
  seat.from_parent_ = FrameReader(result_limit(seat.place_.size));
  const std::vector<Rank> children = tree_children(seat.place_.rank, seat.place_.size);
  if (children.empty()) return seat;
  auto doors = Doors::open(network, reach);
  if (!doors.ok()) {
    SETO_LOG(info, "rank %d hands no results on: %s", seat.place_.rank, std::string(doors.status().text()).c_str());
    return seat;
  }
  seat.doors_ = std::move(doors).value();
  for (const Rank child : children) seat.children_.try_emplace(child);
  return seat;
}

void TreeSeat::expect() {
  expecting_ = true;
  parent_until_ = Deadline::after_ms(kPatienceMs);
  if (parent_lost_ || parent_.valid() || call_) return;
  if (parent_contact_.empty()) return lose_parent();
  call_.emplace(parent_contact_, place_.key, claim_of(place_.rank, place_.number));
  call_->begin(parent_until_);
}

std::optional<std::string> TreeSeat::take_result() {
  if (result_) expecting_ = false;
  return std::exchange(result_, std::nullopt);
}

void TreeSeat::lose_parent() {
  parent_lost_ = true;
  call_.reset();
  parent_.close();
}

void TreeSeat::hand_down(const std::string& body) {
  expecting_ = false;
  if (children_.empty()) return;
  frame_ = std::make_shared<const std::string>(encode_frame(FrameKind::tree_result, body));
  serve_until_ = Deadline::after_ms(kPatienceMs);
  for (auto& [rank, child] : children_) {
    child.served = false;
    child.offset = 0;
  }
  advance();
}

bool TreeSeat::handed_down() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& entry) { return entry.second.served || entry.second.lost; });
}

void TreeSeat::orphaned(Rank child) {
  const auto found = children_.find(child);
  if (found == children_.end()) return;
  found->second.lost = true;
  found->second.fd.close();
}

void TreeSeat::prepare(std::vector<pollfd>& entries) const {
  if (welcomes()) {
    for (const PrivateFd& door : doors_.sockets()) entries.push_back({door.get(), POLLIN, 0});
  }
  for (const Unknown& one : unknown_) {
    entries.push_back({one.answer.fd(), static_cast<short>(one.answer.wants_to_write() ? POLLOUT : POLLIN), 0});
  }
  for (const auto& [rank, child] : children_) {
    if (child.fd.valid() && !child.served) entries.push_back({child.fd.get(), POLLOUT, 0});
  }
  if (call_) call_->prepare(entries);
  if (parent_.valid() && expecting_) entries.push_back({parent_.get(), POLLIN, 0});
}

int TreeSeat::wait_ms() const {
  int wait = call_ ? call_->wait_ms() : std::numeric_limits<int>::max();
  if (expecting_ && !parent_lost_) wait = std::min(wait, parent_until_.remaining_ms());
  if (!pause_until_.passed()) wait = std::min(wait, pause_until_.remaining_ms());
  for (const Unknown& one : unknown_) wait = std::min(wait, one.until.remaining_ms());
  return handed_down() ? wait : std::min(wait, serve_until_.remaining_ms());
}

void TreeSeat::advance() {
  welcome_children();
  hear_unknown();
  for (auto& [rank, child] : children_) {
    if (!child.served && !child.lost) serve(child);
  }
  advance_parent();
}

// Doors at which nobody is taken are not waited for either: whoever stands there would wake this thread for ever.
bool TreeSeat::welcomes() const { return unknown_.size() < kUnknownLimit && pause_until_.passed(); }

void TreeSeat::welcome_children() {
  for (std::size_t door = 0; door < doors_.sockets().size(); ++door) {
    while (welcomes()) {
      Doors::Caller caller = doors_.accept(door);
      if (caller.fd.valid()) {
        unknown_.push_back({MemberAnswer(std::move(caller.fd)), Deadline::after_ms(kUnknownMs)});
        continue;
      }
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno != EAGAIN) pause_until_ = Deadline::after_ms(kPauseMs);
      break;
    }
  }
}

void TreeSeat::hear_unknown() {
  for (Unknown& one : unknown_) {
    const bool greeted = one.answer.greeted();
    const MemberAnswer::Outcome outcome = one.answer.advance(place_.key);
    if (outcome == MemberAnswer::Outcome::more) {
      // A member may wait for a core of a crowded machine.
      if (one.answer.greeted() && !greeted) one.until = Deadline::after_ms(kPatienceMs);
      if (one.until.passed()) one.answer.take_fd().close();
      continue;
    }
    PrivateFd fd = one.answer.take_fd();  // closed unless it is a child's
    const Claim& claim = one.answer.claim();
    if (outcome == MemberAnswer::Outcome::gone || claim.attempt != place_.number) continue;
    if (claim.purpose != static_cast<std::uint8_t>(GatheringPurpose::result_tree)) continue;
    const auto child = children_.find(static_cast<Rank>(claim.caller_context));
    if (child == children_.end() || child->second.lost || child->second.fd.valid()) continue;
    child->second.fd = std::move(fd);
  }
  std::erase_if(unknown_, [](const Unknown& one) { return one.answer.fd() < 0; });
}

void TreeSeat::serve(Child& child) {
  while (child.fd.valid() && !child.served) {
    const ssize_t sent =
        send(child.fd.get(), frame_->data() + child.offset, frame_->size() - child.offset, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      child.lost = true;
      child.fd.close();
      return;
    }
    child.offset += static_cast<std::size_t>(sent);
    child.served = child.offset == frame_->size();
  }
  if (child.served || !serve_until_.passed()) return;
  child.lost = true;
  child.fd.close();
}

void TreeSeat::advance_parent() {
  if (parent_lost_) return;
  if (call_) {
    call_->advance();
    if (!call_->over()) {
      if (expecting_ && parent_until_.passed()) lose_parent();
      return;
    }
    auto made = call_->take();
    call_.reset();
    if (!made.ok()) return lose_parent();
    parent_ = std::move(made).value();
  }
  std::array<char, 65'536> bytes;
  Frame frame;
  while (parent_.valid() && expecting_ && !result_) {
    const FrameReader::Outcome outcome = from_parent_.next(frame);
    if (outcome == FrameReader::Outcome::frame && frame.kind == FrameKind::tree_result) {
      result_ = std::move(frame.body);
      return;
    }
    if (outcome != FrameReader::Outcome::more) return lose_parent();
    const ssize_t got = recv(parent_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) from_parent_.append({bytes.data(), static_cast<std::size_t>(got)});
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got == 0 || errno != EAGAIN || parent_until_.passed()) return lose_parent();
    return;
  }
}

}  // namespace seto
