#include "src/core/connect/mixed_streams.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace seto {
namespace {

// A multicast to receivers in several peer groups. The message is produced once, in memory of the last stream, and copied to the
// others.
class MulticastSender final : public SendStream {
 public:
  explicit MulticastSender(std::vector<std::unique_ptr<SendStream>> streams) : streams_(std::move(streams)) {}

  std::byte* acquire(Mark mark) override {
    std::byte* buffer = nullptr;
    for (const auto& stream : streams_)
      if (buffer = stream->acquire(mark); buffer == nullptr) return nullptr;
    return buffer;
  }
  void commit(Mark mark, std::size_t size) override {
    const std::byte* const message = streams_.back()->acquire(mark);
    for (const auto& stream : streams_) {
      if (stream != streams_.back()) std::memcpy(stream->acquire(mark), message, size);
      stream->commit(mark, size);
    }
  }
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t operation) const override {
    return least([operation](const SendStream& stream) { return stream.handed_over(operation); });
  }
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t operation) const override {
    return least([operation](const SendStream& stream) { return stream.acknowledged(operation); });
  }
  [[nodiscard]] std::uint64_t released(std::uint64_t operation) const override {
    return least([operation](const SendStream& stream) { return stream.released(operation); });
  }

 private:
  template <class Position>
  [[nodiscard]] std::uint64_t least(const Position& position) const {
    std::uint64_t slices = position(*streams_.front());
    for (const auto& stream : streams_) slices = std::min(slices, position(*stream));
    return slices;
  }

  std::vector<std::unique_ptr<SendStream>> streams_;
};

Status no_such_rank(std::uint32_t rank, std::uint32_t ranks) {
  return failure(Code::invalid_usage, "rank %u is not in a communicator of %u ranks", rank, ranks);
}

}  // namespace

MixedStreams::MixedStreams(std::vector<Part> parts, const std::vector<std::uint32_t>& part_of)
    : parts_(std::move(parts)), routes_(part_of.size()) {
  for (std::uint32_t rank = 0; rank < members(); ++rank) {
    const Part& part = parts_[part_of[rank]];
    const auto member = std::lower_bound(part.ranks.begin(), part.ranks.end(), rank) - part.ranks.begin();
    routes_[rank] = {part.peer_group.get(), static_cast<std::uint32_t>(member)};
  }
}

Result<std::unique_ptr<SendStream>> MixedStreams::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                            const StreamGeometry& geometry) {
  std::vector<std::unique_ptr<SendStream>> streams;
  for (const Part& part : parts_) {
    std::vector<std::uint32_t> reached;
    for (const std::uint32_t receiver : receivers) {
      const Route* const route = route_to(receiver);
      if (route == nullptr) return no_such_rank(receiver, members());
      if (route->peer_group == part.peer_group.get()) reached.push_back(route->member);
    }
    if (reached.empty()) continue;
    StreamAddress own = address;
    own.sender =
        static_cast<std::uint32_t>(std::lower_bound(part.ranks.begin(), part.ranks.end(), address.sender) - part.ranks.begin());
    SETO_ASSIGN(auto stream, part.peer_group->open_send(own, reached, geometry));
    streams.push_back(std::move(stream));
  }
  if (streams.empty()) return seto::failure(Code::invalid_usage, "a stream without receivers");
  if (streams.size() == 1) return std::move(streams.front());
  return std::unique_ptr<SendStream>(new MulticastSender(std::move(streams)));
}

Result<std::unique_ptr<ReceiveStream>> MixedStreams::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  const Route* const route = route_to(address.sender);
  if (route == nullptr) return no_such_rank(address.sender, members());
  address.sender = route->member;
  return route->peer_group->open_receive(address, geometry);
}

Result<std::unique_ptr<PairSender>> MixedStreams::open_pair_send(std::uint32_t receiver) {
  const Route* const route = route_to(receiver);
  return route == nullptr ? no_such_rank(receiver, members()) : route->peer_group->open_pair_send(route->member);
}

Result<std::unique_ptr<PairReceiver>> MixedStreams::open_pair_receive(std::uint32_t sender) {
  const Route* const route = route_to(sender);
  return route == nullptr ? no_such_rank(sender, members()) : route->peer_group->open_pair_receive(route->member);
}

void MixedStreams::disregard(std::uint64_t operation) {
  for (const Part& part : parts_) part.peer_group->disregard(operation);
}

void MixedStreams::complete(std::uint64_t operation) {
  for (const Part& part : parts_) part.peer_group->complete(operation);
}

void MixedStreams::depart() {
  for (const Part& part : parts_) part.peer_group->depart();
}

Status MixedStreams::failure() const {
  for (const Part& part : parts_)
    if (Status one = part.peer_group->failure(); !one.ok()) return one;
  return {};
}

bool MixedStreams::suspects() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.peer_group->suspects(); });
}

// ---- status ----

void MixedStreams::begin(const Note& note) {
  for (const Part& part : parts_) part.peer_group->status().begin(note);
}

void MixedStreams::leave(Fate fate) {
  for (const Part& part : parts_) part.peer_group->status().leave(fate);
}

std::uint64_t MixedStreams::departures() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.peer_group->status().departures();
  return sum;
}

void MixedStreams::explain(std::string_view why) {
  for (const Part& part : parts_) part.peer_group->status().explain(why);
}

bool MixedStreams::note_of(std::uint32_t rank, std::uint64_t operation, Note& note) const {
  return status_of(rank).note_of(routes_[rank].member, operation, note);
}

std::uint64_t MixedStreams::completed_by(std::uint32_t rank) const { return status_of(rank).completed_by(routes_[rank].member); }

Fate MixedStreams::fate_of(std::uint32_t rank) const { return status_of(rank).fate_of(routes_[rank].member); }

std::string MixedStreams::explanation_of(std::uint32_t rank) const {
  return status_of(rank).explanation_of(routes_[rank].member);
}

bool MixedStreams::departed(std::uint32_t rank) const { return status_of(rank).departed(routes_[rank].member); }

bool MixedStreams::silent(std::uint32_t rank) const { return status_of(rank).silent(routes_[rank].member); }

}  // namespace seto
