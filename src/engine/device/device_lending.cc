#include "src/engine/device/device_lending.h"

#include <algorithm>
#include <optional>

#include "src/engine/lending.h"

namespace seto {

DeviceLending::DeviceLending(std::span<const LendingRank> ranks, const Shape& shape) {
  for (const LendingRank& rank : ranks) {
    std::vector<Variant>& variants = ranks_.emplace_back();
    variants.push_back(variant_of(*rank.apart));
    if (rank.in_place != nullptr) variants.push_back(variant_of(*rank.in_place));
  }
  for (std::vector<Variant>& variants : ranks_)
    for (std::size_t v = 0; v < variants.size(); ++v) find_places(variants[v], shape, v == 0 ? InPlace::no : InPlace::yes);
  agree();
}

DeviceLending::Variant DeviceLending::variant_of(const Program& program) const {
  Variant variant;
  variant.program = &program;
  variant.channels.resize(program.channels.size());
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    for (const Operand& source : program.sources(program.steps[s]))
      if (source.space == Space::channel) variant.received[address_of(program.channels[source.index], program.rank)] = s;
    for (const Operand& target : program.targets(program.steps[s])) {
      if (target.space != Space::channel) continue;
      const Channel& channel = program.channels[target.index];
      for (const Rank receiver : program.receivers_of(channel)) variant.sent[address_of(channel, receiver)] = s;
    }
  }
  return variant;
}

void DeviceLending::find_places(Variant& variant, const Shape& shape, InPlace in_place) const {
  const Program& program = *variant.program;
  Lending lending(program, shape, in_place);
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    const std::optional<Operand> place = lending.place_of(step);
    const std::optional<Lending::Overwritten> overwritten = place ? std::nullopt : lending.overwritten(step);
    if (overwritten && overwritten->writer <= s) continue;
    for (const Operand& target : program.targets(step)) {
      if (target.space != Space::channel || program.channels[target.index].coded) continue;
      if (place)
        variant.channels[target.index] = {true, *place};
      else if (overwritten && waits_for_readers(variant, target.index, overwritten->writer))
        variant.channels[target.index] = {true, overwritten->place};
    }
  }
}

// True if the step that writes over the lent place needs a message that each receiver sends in or after the step in which it has
// read the place. Both are about the same slice and the same part of it, so this wait is all that the place needs.
bool DeviceLending::waits_for_readers(const Variant& variant, std::uint32_t channel, std::uint32_t writer) const {
  const Program& program = *variant.program;
  const Channel& lent = program.channels[channel];
  const std::span<const Operand> sources = program.sources(program.steps[writer]);
  const auto answers = [&](Rank receiver, const Operand& source) {
    if (source.space != Space::channel || program.channels[source.index].sender != receiver) return false;
    const Address answer = address_of(program.channels[source.index], program.rank);
    const std::vector<Variant>& theirs = ranks_[static_cast<std::size_t>(receiver)];
    return std::all_of(theirs.begin(), theirs.end(), [&](const Variant& other) {
      const auto read = other.received.find(address_of(lent, receiver));
      const auto sent = other.sent.find(answer);
      return read != other.received.end() && sent != other.sent.end() && read->second <= sent->second;
    });
  };
  const std::span<const Rank> receivers = program.receivers_of(lent);
  return std::all_of(receivers.begin(), receivers.end(), [&](Rank receiver) {
    return std::any_of(sources.begin(), sources.end(), [&](const Operand& source) { return answers(receiver, source); });
  });
}

// A channel is lent if its sender can lend it in all its variants.
void DeviceLending::agree() {
  std::map<Address, bool> lent;
  for (const std::vector<Variant>& variants : ranks_)
    for (const Variant& variant : variants)
      for (std::size_t c = 0; c < variant.channels.size(); ++c) {
        const Channel& channel = variant.program->channels[c];
        if (channel.sender != variant.program->rank) continue;
        for (const Rank receiver : variant.program->receivers_of(channel)) {
          const auto [known, is_new] = lent.try_emplace(address_of(channel, receiver), variant.channels[c].is_lent);
          if (!is_new) known->second = known->second && variant.channels[c].is_lent;
        }
      }
  for (std::vector<Variant>& variants : ranks_)
    for (Variant& variant : variants)
      for (std::size_t c = 0; c < variant.channels.size(); ++c) {
        const Channel& channel = variant.program->channels[c];
        const bool sends = channel.sender == variant.program->rank;
        const Rank receiver = sends ? variant.program->receivers_of(channel).front() : variant.program->rank;
        const auto found = lent.find(address_of(channel, receiver));
        variant.channels[c].is_lent = found != lent.end() && found->second;
        any_ = any_ || variant.channels[c].is_lent;
      }
}

std::vector<LentChannel> DeviceLending::channels_of(Rank rank, InPlace in_place) const {
  return ranks_[static_cast<std::size_t>(rank)][in_place == InPlace::no ? 0 : 1].channels;
}

}  // namespace seto
