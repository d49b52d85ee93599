// An authenticated member of the job sends any headers and any bytes over a connection. The receiver must not crash, nor read or
// write outside its buffers: the connection fails, or the peer group reports the error.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "src/net/secret.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace {

using namespace seto;       // NOLINT
using namespace seto::tcp;  // NOLINT

constexpr std::uint64_t kPeerGroup = 77;
constexpr std::uint32_t kDigest = 7;
constexpr std::uint32_t kSlice = 256;

class NoHerald final : public StatusExchange {
 public:
  void ask(std::uint32_t) override {}
  void announce() override {}
};

// Reads every byte that may be read, so that the sanitizer detects one outside.
volatile unsigned read_to_the_end = 0;

unsigned sum_of(const std::byte* bytes, std::size_t size, unsigned sum) {
  for (std::size_t i = 0; i < size; ++i) sum += static_cast<unsigned>(bytes[i]);
  return sum;
}

// The opening as link.cc makes it, so that the following bytes are read.
std::string opening(const Secret& session) {
  const std::uint64_t peer_group = kPeerGroup;
  const std::uint32_t member = 1;
  std::string context(reinterpret_cast<const char*>(&peer_group), sizeof peer_group);
  context.append(reinterpret_cast<const char*>(&member), sizeof member);
  const Secret proof = session.derive("open communicator", context);
  Frame frame;
  frame.set_kind(FrameKind::open);
  frame.peer_group = kPeerGroup;
  frame.digest = member;
  frame.sequence = 1;
  frame.length = Secret::kSize;
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame).append(proof.bytes());
}

// The first byte of the input selects how much of each header is made valid, such as consecutive numbers, so that fuzzing reaches
// the code behind the checks.
std::string frames_of(const std::uint8_t* data, std::size_t size) {
  std::string bytes;
  std::uint64_t sequence = 1;
  while (size >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, data, sizeof frame);
    data += sizeof frame;
    size -= sizeof frame;
    const std::uint8_t wish = static_cast<std::uint8_t>(frame.magic >> 24);
    if (wish % 8 != 0) {
      frame.set_kind(static_cast<FrameKind>(2 + frame.magic % (kLastFrameKind - 1)));
      frame.peer_group = kPeerGroup;
      frame.sequence = ++sequence;
      frame.acknowledged %= 2;  // the opening is sent, and perhaps nothing else
      frame.mark %= std::uint64_t{8} << kSliceBits;
      frame.length %= 300;
      if (wish % 16 == 1) {  // a part of the wanted message
        frame.size = kSlice;
        frame.digest = kDigest;
        frame.offset %= kSlice;
        frame.length = std::min(frame.length, kSlice - frame.offset);
      } else if (wish % 4 != 0) {
        frame.size = frame.length + frame.size % 1000;
        frame.offset %= frame.size - frame.length + 1;
      }
    }
    bytes.append(reinterpret_cast<const char*>(&frame), sizeof frame);
    const std::size_t payload = std::min<std::size_t>(size, frame.length);
    bytes.append(reinterpret_cast<const char*>(data), payload);
    data += payload;
    size -= payload;
  }
  return bytes.append(reinterpret_cast<const char*>(data), size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 16'384) return 0;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  const Fd peer(ends[1]);
  auto domain = Domain::create();
  if (!domain.ok()) return 0;
  domain.value()->buffers().set_limit(std::size_t{64} << 20);
  Link::Setup setup;
  setup.sockets.push_back(PrivateFd(Fd(ends[0])));
  const Secret session = Secret::of_text("fuzz");
  setup.session = session;
  setup.round_trip_us = data[0] % 2 == 0 ? 0 : 60'000;  // far: a window is granted
  auto link = domain.value()->add(std::move(setup));
  if (!link.ok()) return 0;
  NoHerald exchange;
  PeerGroupSetup peer_group_setup;
  peer_group_setup.number = kPeerGroup;
  peer_group_setup.links = {nullptr, link.value()};
  peer_group_setup.domain = domain.value().get();
  peer_group_setup.exchange = &exchange;
  auto peer_group = TcpPeerGroup::create(std::move(peer_group_setup));
  if (!peer_group.ok()) return 0;
  auto stream = peer_group.value()->open_receive({1, 0, 0}, {kSlice, 2, 4, kDigest, 0});
  // Messages of operation 1 are placed in the caller's memory; the input decides when it is withdrawn.
  auto wanted = std::make_unique<std::byte[]>(std::size_t{3} * kSlice);
  stream.value()->placing()->place({1, wanted.get(), kSlice, std::size_t{3} * kSlice, 3});
  std::size_t kept_for = data[size - 1] % 8;
  auto pair = peer_group.value()->open_pair_receive(1);
  const std::string bytes = opening(session) + frames_of(data, size);
  std::size_t sent = 0;
  unsigned sum = 0;
  std::uint64_t next = 0;  // slice
  while (sent < bytes.size() && !link.value()->broken()) {
    // In pieces of any length, so that messages are incomplete when something happens to them.
    const std::size_t some = std::min<std::size_t>(bytes.size() - sent, 1 + data[sent % size] % 200 * 8);
    const ssize_t wrote = write(peer.get(), bytes.data() + sent, some);
    if (wrote > 0) sent += static_cast<std::size_t>(wrote);
    (void)domain.value()->pump();
    if (kept_for-- == 0 && wanted != nullptr) {
      stream.value()->placing()->displace(1);
      wanted.reset();
    }
    while (const std::byte* const message = next < 3 ? stream.value()->front(mark_of(1, next)) : nullptr) {
      if (stream.value()->sized()->has_size(mark_of(1, next), kSlice)) sum = sum_of(message, kSlice, sum);
      stream.value()->release(mark_of(1, next++));
    }
    // All slices were read: the operation has succeeded, and the caller frees its memory.
    if (next == 3) {
      peer_group.value()->complete(1);
      wanted.reset();
    }
    if (const PairPiece piece = pair.value()->front({100, 5, 0}); piece.state == PairPiece::State::ready) {
      sum = sum_of(piece.data, piece.size, sum);
      (void)pair.value()->release();
    }
    char drained[4096];
    while (read(peer.get(), drained, sizeof drained) > 0) {
    }
  }
  read_to_the_end = sum;
  stream.value()->placing()->displace(1);
  peer_group.value()->complete(1);
  (void)domain.value()->pump();
  (void)peer_group.value()->failure();
  link.value()->break_with(failure(Code::aborted, "the end of this run"));
  return 0;
}
