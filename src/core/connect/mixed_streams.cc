#include "src/core/connect/mixed_streams.h"

#include <cstring>
#include <utility>

namespace seto {
namespace {

// A multicast of which some receivers share memory and others do not: produced once, in memory of the far stream, and copied to
// the near one.
class BothSender final : public SendStream {
 public:
  BothSender(std::unique_ptr<SendStream> near, std::unique_ptr<SendStream> far, std::size_t slot_size)
      : near_(std::move(near)), far_(std::move(far)), sizes_{slot_size, slot_size} {}

  std::byte* acquire(Mark mark) override { return near_->acquire(mark) == nullptr ? nullptr : far_->acquire(mark); }
  [[nodiscard]] bool asks_size() const override { return true; }
  void tell_size(Mark mark, std::size_t size) override {
    sizes_[operation_of(mark) % 2] = size;
    far_->tell_size(mark, size);
  }
  void commit(Mark mark) override {
    std::memcpy(near_->acquire(mark), far_->acquire(mark), sizes_[operation_of(mark) % 2]);
    near_->commit(mark);
    far_->commit(mark);
  }

 private:
  std::unique_ptr<SendStream> near_;
  std::unique_ptr<SendStream> far_;
  std::size_t sizes_[2];  // of what is committed next, in each of two operations under way
};

}  // namespace

JoinedCircle::JoinedCircle(Setup setup) : setup_(std::move(setup)), place_(setup_.far->circle().members(), kFar) {
  for (std::uint32_t i = 0; i < setup_.node.size(); ++i) place_[setup_.node[i]] = i;
}

StreamAddress JoinedCircle::near_address(StreamAddress address) const {
  address.sender = place_[address.sender];
  return address;
}

Result<std::unique_ptr<SendStream>> JoinedCircle::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                            const StreamGeometry& geometry) {
  std::vector<std::uint32_t> near;
  std::vector<std::uint32_t> far;
  for (const std::uint32_t receiver : receivers) {
    if (receiver < members() && is_near(receiver))
      near.push_back(place_[receiver]);
    else
      far.push_back(receiver);
  }
  if (near.empty()) return this->far().open_send(address, far, geometry);
  SETO_ASSIGN(auto near_stream, setup_.near->open_send(near_address(address), near, geometry));
  if (far.empty()) return near_stream;
  SETO_ASSIGN(auto far_stream, this->far().open_send(address, far, geometry));
  return std::unique_ptr<SendStream>(new BothSender(std::move(near_stream), std::move(far_stream), geometry.slot_size));
}

Result<std::unique_ptr<ReceiveStream>> JoinedCircle::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  if (address.sender < members() && is_near(address.sender)) return setup_.near->open_receive(near_address(address), geometry);
  return far().open_receive(address, geometry);
}

Result<std::unique_ptr<PairSender>> JoinedCircle::open_pair_send(std::uint32_t receiver) {
  if (receiver < members() && is_near(receiver)) return setup_.near->open_pair_send(place_[receiver]);
  return far().open_pair_send(receiver);
}

Result<std::unique_ptr<PairReceiver>> JoinedCircle::open_pair_receive(std::uint32_t sender) {
  if (sender < members() && is_near(sender)) return setup_.near->open_pair_receive(place_[sender]);
  return far().open_pair_receive(sender);
}

Mapping JoinedCircle::direct(std::uint32_t member) const {
  return is_near(member) ? setup_.near->direct(place_[member]) : Mapping{};
}

void JoinedCircle::begin(const Note& note) {
  if (setup_.near != nullptr) setup_.near->begin(note);
  far().begin(note);
}

void JoinedCircle::complete(std::uint64_t operation) {
  if (setup_.near != nullptr) setup_.near->complete(operation);
  far().complete(operation);
}

bool JoinedCircle::note_of(std::uint32_t member, std::uint64_t operation, Note& note) const {
  return is_near(member) ? setup_.near->note_of(place_[member], operation, note) : far().note_of(member, operation, note);
}

std::uint64_t JoinedCircle::completed_by(std::uint32_t member) const {
  return is_near(member) ? setup_.near->completed_by(place_[member]) : far().completed_by(member);
}

void JoinedCircle::leave(Fate fate) {
  if (setup_.near != nullptr) setup_.near->leave(fate);
  far().leave(fate);
}

Fate JoinedCircle::fate_of(std::uint32_t member) const {
  return is_near(member) ? setup_.near->fate_of(place_[member]) : far().fate_of(member);
}

void JoinedCircle::explain(std::string_view why) {
  if (setup_.near != nullptr) setup_.near->explain(why);
  far().explain(why);
}

std::string JoinedCircle::explanation_of(std::uint32_t member) const {
  return is_near(member) ? setup_.near->explanation_of(place_[member]) : far().explanation_of(member);
}

void JoinedCircle::depart() {
  if (setup_.near != nullptr) setup_.near->depart();
}

bool JoinedCircle::departed(std::uint32_t member) const {
  return is_near(member) ? setup_.near->departed(place_[member]) : far().departed(member);
}

Status JoinedCircle::failure() const {
  if (setup_.near != nullptr)
    if (Status near = setup_.near->failure(); !near.ok()) return near;
  return far().failure();
}

}  // namespace seto
