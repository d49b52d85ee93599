#include "src/engine/transfer_launch.h"

#include <utility>

namespace seto {

TransferLaunch::TransferLaunch(std::shared_ptr<const LocalProgram> local, std::vector<BoundTransfer> transfers)
    : local_(std::move(local)), transfers_(std::move(transfers)), lanes_(local_->program.lanes.size()) {}

bool TransferLaunch::advance(std::uint32_t pieces) {
  const std::vector<Lane>& lanes = local_->program.lanes;
  for (bool moved = true; moved;) {
    moved = false;
    bool all = true;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      if (lanes_[i].step == lanes[i].step_count) continue;
      if (pieces > 0 && advance_lane(lanes[i], lanes_[i])) {
        moved = true;
        ++moved_;
        --pieces;
      }
      all = all && lanes_[i].step == lanes[i].step_count;
    }
    if (all) return true;
  }
  return false;
}

bool TransferLaunch::advance_lane(const Lane& lane, LaneState& state) {
  const std::uint32_t index = lane.first_step + state.step;
  const LocalProgram::Moved& moved = local_->moved[index];
  switch (local_->program.steps[index].verb) {
    case Verb::send:
      return send(moved.source, state);
    case Verb::receive:
      return receive(moved.target, state);
    default: {
      const BoundTransfer& from = transfers_[moved.source];
      const ReduceTarget target{transfers_[moved.target].target, results_};
      if (target.data != from.source) copy_bytes(from.source, &target, 1, static_cast<std::size_t>(from.header.size));
      step_done(state);
      return true;
    }
  }
}

void TransferLaunch::step_done(LaneState& state) {
  ++state.step;
  state.done = 0;
}

bool TransferLaunch::send(std::uint32_t index, LaneState& state) {
  const BoundTransfer& transfer = transfers_[index];
  if (transfer.sender->current() != transfer.message) return false;  // an earlier group still sends
  reached_ = true;
  const PairPiece piece = transfer.sender->acquire(transfer.header);
  if (piece.state == PairPiece::State::waiting) return false;
  if (piece.state == PairPiece::State::refused) {
    refused_.push_back({index, transfer.sender->other_end()});
    step_done(state);
    return true;
  }
  const ReduceTarget target{piece.data, slots_};
  copy_bytes(transfer.source + state.done, &target, 1, piece.size);
  state.done += piece.size;
  if (transfer.sender->commit()) step_done(state);
  return true;
}

bool TransferLaunch::receive(std::uint32_t index, LaneState& state) {
  const BoundTransfer& transfer = transfers_[index];
  if (transfer.receiver->current() != transfer.message) return false;
  reached_ = true;
  const PairPiece piece = transfer.receiver->front(transfer.header);
  if (piece.state == PairPiece::State::waiting) return false;
  if (piece.state == PairPiece::State::refused) {
    refused_.push_back({index, transfer.receiver->other_end()});
    step_done(state);
    return true;
  }
  const ReduceTarget target{transfer.target + state.done, results_};
  copy_bytes(piece.data, &target, 1, piece.size);
  state.done += piece.size;
  if (transfer.receiver->release()) step_done(state);
  return true;
}

std::vector<std::uint32_t> TransferLaunch::waiting() const {
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = local_->program.lanes[i];
    if (lanes_[i].step == lane.step_count) continue;
    const LocalProgram::Moved& moved = local_->moved[lane.first_step + lanes_[i].step];
    result.push_back(moved.source != LocalProgram::kNone ? moved.source : moved.target);
  }
  return result;
}

}  // namespace seto
