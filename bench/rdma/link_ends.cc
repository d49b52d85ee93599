#include "bench/rdma/link_ends.h"

#include <poll.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "transports/rdma/verbs/libibverbs.h"

namespace seto::bench_rdma {
namespace {

void exchange(int socket, const std::string& own, std::string& other) {
  other.resize(own.size());
  if (::send(socket, own.data(), own.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(own.size()) ||
      ::recv(socket, other.data(), other.size(), MSG_WAITALL) != static_cast<ssize_t>(other.size()))
    give_up("the other process has ended");
}

}  // namespace

void give_up(const std::string& text) {
  std::fprintf(stderr, "rdma_link: %s\n", text.c_str());
  std::exit(1);
}

void need(const Status& status) {
  if (!status.ok()) give_up(std::string(status.text()));
}

LinkEnd::LinkEnd(const Shape& shape, int socket, const std::string (&devices)[2]) : shape_(shape) {
  verbs_ = need(rdma::Libibverbs::open());
  device_ = need(verbs_->open_device(devices[0]));
  completions_ = need(rdma::Completions::create(*device_));
  const rdma::DeviceFacts own = need(device_->facts());
  const rdma::DeviceFacts peer = need(need(verbs_->open_device(devices[1]))->facts());
  const rdma::SelectionInput input{rdma::ports_of({own}), rdma::ports_of({peer}), 0};
  const rdma::Selection selection = rdma::select(input);
  if (selection.candidates.empty()) give_up(rdma::explain_none(input, selection));
  const rdma::Candidate& best = selection.candidates.front();
  rdma::RingChannel::Setup setup;
  setup.device = device_.get();
  setup.completions = completions_.get();
  setup.peer = devices[1];
  setup.ring_size = shape.ring_size;
  setup.records = shape.records;
  setup.sequence = 4'711;
  setup.path.port = best.own.port;
  setup.path.timeout = kTimeout;
  setup.path.pkey_index = best.own.pkey_index;
  setup.path.gid_index = best.own.gid_index;
  setup.gid = best.own.gid;
  setup.lid = best.own.lid;
  setup.mtu = best.mtu;
  channel_ = need(rdma::RingChannel::create(std::move(setup)));
  std::string of_peer;
  exchange(socket, channel_->address().encoded(), of_peer);
  need(channel_->connect(need(rdma::ChannelAddress::decode(of_peer))));
  // Neither end writes before the other end can be written to.
  exchange(socket, "connected", of_peer);
}

void LinkEnd::advance() {
  const bool any = need(completions_->poll());
  channel_->flush();
  need(channel_->why());
  if (any) {
    silent_since_ns_ = monotonic_ns();
    return;
  }
  const std::uint64_t silent_us = (monotonic_ns() - silent_since_ns_) / 1'000;
  if (silent_us > kSilenceMs * 1'000) give_up("nothing has come for " + std::to_string(kSilenceMs / 1'000) + " s");
  if (shape_.wait == Wait::poll_then_sleep && silent_us > shape_.poll_us) wait_for_event();
}

void LinkEnd::wait_for_event() {
  need(completions_->arm());
  if (need(completions_->poll())) {
    channel_->flush();
    silent_since_ns_ = monotonic_ns();
    return;
  }
  pollfd event{completions_->descriptor(), POLLIN, 0};
  (void)::poll(&event, 1, 1'000);
}

}  // namespace seto::bench_rdma
