#include "src/plan/local_program.h"

#include <algorithm>

namespace seto {
namespace {

using Direction = LocalTransfer::Direction;

// A port, which numbers the messages of a pair of ranks, has 16 bits.
constexpr std::size_t kMostMessages = 65'536;

class Assembly {
 public:
  Assembly(Rank rank, int ranks)
      : rank_(rank), ranks_(ranks), sends_(static_cast<std::size_t>(ranks)), receives_(static_cast<std::size_t>(ranks)) {
    local_.program.rank = rank;
  }

  Status sort(std::span<const LocalTransfer> transfers) {
    for (std::uint32_t i = 0; i < transfers.size(); ++i) {
      const LocalTransfer& transfer = transfers[i];
      if (transfer.peer < 0 || transfer.peer >= ranks_)
        return failure(Code::invalid_argument, "peer: %d is not one of the ranks 0 to %d", transfer.peer, ranks_ - 1);
      auto& list = (transfer.direction == Direction::send ? sends_ : receives_)[static_cast<std::size_t>(transfer.peer)];
      list.push_back(i);
      most_ = std::max(most_, list.size());
    }
    if (most_ > kMostMessages)
      return failure(Code::invalid_usage, "%zu messages to one rank in one group: the limit is %zu", most_, kMostMessages);
    const auto self = static_cast<std::size_t>(rank_);
    if (sends_[self].size() != receives_[self].size())
      return failure(Code::invalid_argument, "rank %d sends %zu messages to itself in this group and receives %zu", rank_,
                     sends_[self].size(), receives_[self].size());
    return {};
  }

  // Nearest peers first, so that ranks with many peers do not all begin with the same one.
  LocalProgram take(std::uint32_t pieces) {
    pieces_ = pieces > 0 ? pieces : static_cast<std::uint32_t>(std::max<std::size_t>(1, most_));
    add_copies();
    for (Rank distance = 1; distance < ranks_; ++distance) {
      add_lane(Direction::send, (rank_ + distance) % ranks_);
      add_lane(Direction::receive, (rank_ - distance + ranks_) % ranks_);
    }
    return std::move(local_);
  }

 private:
  void add_copies() {
    const auto self = static_cast<std::size_t>(rank_);
    if (sends_[self].empty()) return;
    begin_lane();
    for (std::uint32_t k = 0; k < sends_[self].size(); ++k) {
      const std::uint32_t place = static_cast<std::uint32_t>(rank_) * pieces_ + k;
      add_step({Verb::copy, rank_, rank_, k}, {Space::input, false, place}, {Space::output, false, place});
      local_.moved.push_back({sends_[self][k], receives_[self][k]});
    }
  }

  void add_lane(Direction direction, Rank peer) {
    const bool sending = direction == Direction::send;
    const auto& list = (sending ? sends_ : receives_)[static_cast<std::size_t>(peer)];
    if (list.empty()) return;
    begin_lane();
    ++local_.program.fan;
    for (std::uint32_t k = 0; k < list.size(); ++k) {
      const Operand channel{Space::channel, false, add_channel(sending ? rank_ : peer, sending ? peer : rank_, k)};
      const Operand place{sending ? Space::input : Space::output, false, static_cast<std::uint32_t>(peer) * pieces_ + k};
      if (sending) {
        add_step({Verb::send, rank_, peer, k}, place, channel);
        local_.moved.push_back({list[k], LocalProgram::kNone});
      } else {
        add_step({Verb::receive, peer, rank_, k}, channel, place);
        local_.moved.push_back({LocalProgram::kNone, list[k]});
      }
    }
  }

  struct Message {
    Verb verb;
    Rank from;
    Rank to;
    std::uint32_t number;
  };

  [[nodiscard]] std::uint32_t chunk_of(Rank from, Rank to, std::uint32_t number) const {
    return static_cast<std::uint32_t>(from * ranks_ + to) * pieces_ + number;
  }

  void begin_lane() { local_.program.lanes.push_back({static_cast<std::uint32_t>(local_.program.steps.size()), 0}); }

  void add_step(const Message& message, const Operand& source, const Operand& target) {
    Program& program = local_.program;
    Step step;
    step.verb = message.verb;
    step.stage = message.verb == Verb::receive ? 1 : 0;
    step.order = static_cast<std::uint32_t>(program.steps.size());
    step.chunk = chunk_of(message.from, message.to, message.number);
    step.first_operand = static_cast<std::uint32_t>(program.operands.size());
    step.source_count = step.target_count = 1;
    step.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    program.operands.push_back(source);
    program.operands.push_back(target);
    program.steps.push_back(step);
    ++program.lanes.back().step_count;
  }

  std::uint32_t add_channel(Rank from, Rank to, std::uint32_t number) {
    Program& program = local_.program;
    Channel channel;
    channel.sender = from;
    channel.first_receiver = static_cast<std::uint32_t>(program.receivers.size());
    channel.port = static_cast<std::uint16_t>(number);
    channel.chunk = chunk_of(from, to, number);
    program.receivers.push_back(to);
    program.channels.push_back(channel);
    return static_cast<std::uint32_t>(program.channels.size()) - 1;
  }

  Rank rank_;
  int ranks_;
  std::uint32_t pieces_ = 1;
  std::size_t most_ = 0;
  std::vector<std::vector<std::uint32_t>> sends_;  // by peer: indices in the caller's list
  std::vector<std::vector<std::uint32_t>> receives_;
  LocalProgram local_;
};

}  // namespace

Result<LocalProgram> local_program(Rank rank, int ranks, std::span<const LocalTransfer> transfers, std::uint32_t pieces) {
  Assembly assembly(rank, ranks);
  SETO_TRY(assembly.sort(transfers));
  return assembly.take(pieces);
}

}  // namespace seto
