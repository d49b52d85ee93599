#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/core/remote_ranks.h"
#include "transports/slots/slot_circle.h"
#include "transports/transport.h"

namespace seto {

// One circle out of two: ranks of this node share memory, all others are reached over TCP. Members are ranks; who reaches whom
// is decided here alone, so plans and engines know of one circle only.
class JoinedCircle final : public Circle {
 public:
  struct Setup {
    std::vector<std::uint32_t> node;          // ranks of this node, ascending
    std::unique_ptr<slots::SlotCircle> near;  // of those; null: this rank is alone on its node
    std::unique_ptr<RemoteRanks> far;         // the others
  };
  explicit JoinedCircle(Setup setup);

  [[nodiscard]] std::uint32_t members() const override { return static_cast<std::uint32_t>(place_.size()); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  [[nodiscard]] Mapping direct(std::uint32_t member) const override;
  void begin(const Note& note) override;
  void disregard(std::uint64_t operation) override { far().disregard(operation); }
  void complete(std::uint64_t operation) override;
  [[nodiscard]] std::uint64_t window() const override { return far().window(); }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override;
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override;
  void leave(Fate fate) override;
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override;
  [[nodiscard]] bool silent(std::uint32_t member) const override { return is_near(member) || far().silent(member); }
  void explain(std::string_view why) override;
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override;
  void depart() override;
  [[nodiscard]] bool departed(std::uint32_t member) const override;
  [[nodiscard]] Status failure() const override;
  [[nodiscard]] bool suspects() const override { return far().suspects(); }

 private:
  static constexpr std::uint32_t kFar = ~std::uint32_t{0};

  [[nodiscard]] bool is_near(std::uint32_t member) const { return setup_.near != nullptr && place_[member] != kFar; }
  [[nodiscard]] Circle& far() const { return setup_.far->circle(); }
  [[nodiscard]] StreamAddress near_address(StreamAddress address) const;

  Setup setup_;
  std::vector<std::uint32_t> place_;  // in the near circle, by rank
};

}  // namespace seto
