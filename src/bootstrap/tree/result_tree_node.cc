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

// Twice the number of children, because a child may try several addresses at once. Further connections wait in the kernel's
// queue; a child that waits there too long asks the server.
constexpr std::size_t kPendingLimit = 2 * kTreeFan;
constexpr std::uint64_t kPauseMs = 100;

Claim claim_of(Rank child, std::uint64_t number) {
  Claim claim;
  claim.purpose = static_cast<std::uint8_t>(RendezvousPurpose::result_tree);
  claim.caller_context = static_cast<std::uint64_t>(child);
  claim.attempt = number;
  return claim;
}

}  // namespace

ResultTreeNode ResultTreeNode::create(Place place, const NetworkChoice& network, Listeners::Reach reach) {
  ResultTreeNode node;
  node.place_ = std::move(place);
  node.tls_ = network.tls;
  node.from_parent_ = FrameReader(result_limit(node.place_.size));
  const std::vector<Rank> children = tree_children(node.place_.rank, node.place_.size);
  if (children.empty()) return node;
  auto listeners = Listeners::open(network, reach);
  if (!listeners.ok()) {
    SETO_LOG(info, "rank %d forwards no results: %s", node.place_.rank, std::string(listeners.status().text()).c_str());
    return node;
  }
  node.listeners_ = std::move(listeners).value();
  for (const Rank child : children) node.children_.try_emplace(child);
  return node;
}

void ResultTreeNode::expect() {
  expecting_ = true;
  parent_until_ = Deadline::after_ms(kParentTimeoutMs);
  if (parent_lost_ || parent_.valid() || call_) return;
  if (parent_address_.empty()) return lose_parent();
  call_.emplace(parent_address_, place_.key, claim_of(place_.rank, place_.number), tls_);
  call_->begin(parent_until_);
}

std::optional<std::string> ResultTreeNode::take_result() {
  if (result_) expecting_ = false;
  return std::exchange(result_, std::nullopt);
}

void ResultTreeNode::lose_parent() {
  parent_lost_ = true;
  call_.reset();
  parent_.close();
}

void ResultTreeNode::send_to_children(const std::string& body) {
  expecting_ = false;
  if (children_.empty()) return;
  frame_ = std::make_shared<const std::string>(encode_frame(FrameKind::tree_result, body));
  serve_until_ = Deadline::after_ms(kParentTimeoutMs);
  for (auto& [rank, child] : children_) {
    child.served = false;
    child.offset = 0;
  }
  advance();
}

bool ResultTreeNode::children_served() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& entry) { return entry.second.served || entry.second.lost; });
}

void ResultTreeNode::orphaned(Rank child) {
  const auto found = children_.find(child);
  if (found == children_.end()) return;
  found->second.lost = true;
  found->second.fd.close();
}

void ResultTreeNode::prepare(std::vector<pollfd>& entries) const {
  if (accepts_children()) {
    for (const PrivateFd& listener : listeners_.sockets()) entries.push_back({listener.get(), POLLIN, 0});
  }
  for (const PendingChild& one : pending_) {
    entries.push_back({one.answer.fd(), static_cast<short>(one.answer.wants_to_write() ? POLLOUT : POLLIN), 0});
  }
  for (const auto& [rank, child] : children_) {
    if (child.fd.valid() && !child.served) entries.push_back({child.fd.get(), POLLOUT, 0});
  }
  if (call_) call_->prepare(entries);
  if (parent_.valid() && expecting_) entries.push_back({parent_.get(), POLLIN, 0});
}

int ResultTreeNode::wait_ms() const {
  int wait = call_ ? call_->wait_ms() : std::numeric_limits<int>::max();
  if (expecting_ && !parent_lost_) wait = std::min(wait, parent_until_.remaining_ms());
  if (!pause_until_.passed()) wait = std::min(wait, pause_until_.remaining_ms());
  for (const PendingChild& one : pending_) wait = std::min(wait, one.until.remaining_ms());
  return children_served() ? wait : std::min(wait, serve_until_.remaining_ms());
}

void ResultTreeNode::advance() {
  accept_children();
  read_pending();
  for (auto& [rank, child] : children_) {
    if (!child.served && !child.lost) serve(child);
  }
  advance_parent();
}

// While no connection can be accepted, the listeners are not polled either, because a connection in their queue would wake this
// thread again and again.
bool ResultTreeNode::accepts_children() const { return pending_.size() < kPendingLimit && pause_until_.passed(); }

void ResultTreeNode::accept_children() {
  for (std::size_t listener = 0; listener < listeners_.sockets().size(); ++listener) {
    while (accepts_children()) {
      Listeners::Caller caller = listeners_.accept(listener);
      if (caller.fd.valid()) {
        pending_.push_back({IncomingHandshake(std::move(caller.fd), tls_), Deadline::after_ms(kHandshakeMs)});
        continue;
      }
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno != EAGAIN) pause_until_ = Deadline::after_ms(kPauseMs);
      break;
    }
  }
}

void ResultTreeNode::read_pending() {
  for (PendingChild& one : pending_) {
    const bool key_known = one.answer.key_known();
    const IncomingHandshake::Outcome outcome = one.answer.advance({place_.key, seen_});
    if (outcome == IncomingHandshake::Outcome::more) {
      // A member may wait for a core of a busy machine, so it gets more time.
      if (one.answer.key_known() && !key_known) one.until = Deadline::after_ms(kParentTimeoutMs);
      if (one.until.passed()) one.answer.take_stream().close();
      continue;
    }
    SecureStream fd = one.answer.take_stream();  // closed unless it is a child's
    const Claim& claim = one.answer.claim();
    if (outcome == IncomingHandshake::Outcome::gone || claim.attempt != place_.number) continue;
    if (claim.purpose != static_cast<std::uint8_t>(RendezvousPurpose::result_tree)) continue;
    const auto child = children_.find(static_cast<Rank>(claim.caller_context));
    if (child == children_.end() || child->second.lost || child->second.fd.valid()) continue;
    child->second.fd = std::move(fd);
  }
  std::erase_if(pending_, [](const PendingChild& one) { return one.answer.fd() < 0; });
}

void ResultTreeNode::serve(Child& child) {
  while (child.fd.valid() && !child.served) {
    const ssize_t sent = child.fd.send(std::string_view(*frame_).substr(child.offset));
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      child.lost = true;
      child.fd.close();
      return;
    }
    child.offset += static_cast<std::size_t>(sent);
    if (child.offset < frame_->size()) continue;
    child.served = child.fd.flush();
    if (!child.served) break;
  }
  if (child.served || !serve_until_.passed()) return;
  child.lost = true;
  child.fd.close();
}

void ResultTreeNode::advance_parent() {
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
    const ssize_t got = parent_.receive(bytes.data(), bytes.size());
    if (got > 0) from_parent_.append({bytes.data(), static_cast<std::size_t>(got)});
    if (got > 0) continue;
    if (got == 0 || errno != EAGAIN || parent_until_.passed()) return lose_parent();
    return;
  }
}

}  // namespace seto
