#include "tests/soak/exchange.h"

#include <algorithm>
#include <array>

namespace seto::soak {

Exchange::Exchange(const Seat& seat, const Operation& operation)
    : seat_(seat),
      operation_(operation),
      type_(type_of(operation.type)),
      layout_(layout_of(operation, seat.rank, seat.ranks)),
      numbers_(type_, operation.fold, seat.ranks, operation.key) {
  const std::uint64_t key = mixed(operation.key, 77 + static_cast<std::uint64_t>(seat.rank));
  const std::size_t end_of_input = layout_.input_at + layout_.input, end_of_output = layout_.output_at + layout_.output;
  output_ = std::make_unique<Area>(layout_.in_place ? std::max(end_of_input, end_of_output) : layout_.output, type_.size, key);
  if (!layout_.in_place) input_ = std::make_unique<Area>(layout_.input, type_.size, mixed(key));
  Area& source = layout_.in_place ? *output_ : *input_;
  numbers_.store_own(seat.rank, 0, source.expected(layout_.input_at, layout_.input));
  source.fill();
  output_->fill();
  // A buffer that a rank does not use may be null.
  const bool nulls = key % 2 == 0;
  if (layout_.input != 0 || layout_.in_place || !nulls) in_ = source.at(layout_.input_at);
  if (layout_.output != 0 || layout_.in_place || !nulls) out_ = output_->at(layout_.output_at);
  expect_pieces();
}

void Exchange::expect_pieces() {
  for (const Piece& piece : layout_.pieces) {
    const std::span<std::byte> target = output_->expected(layout_.output_at + piece.at, piece.count);
    if (piece.source == kAllRanks)
      numbers_.store_folded(piece.from, target);
    else
      numbers_.store_own(piece.source, piece.from, target);
  }
}

std::string Exchange::difference() const {
  std::string found = output_->difference();
  if (!found.empty()) return "output: " + found;
  if (input_ != nullptr) found = input_->difference();
  return found.empty() ? found : "input: " + found;
}

std::uint64_t Exchange::bytes() const { return (layout_.input + layout_.output) * type_.size; }

setoResult_t Exchange::choose_fold(setoRedOp_t& fold) {
  if (operation_.fold != Fold::scaled_sum) {
    static constexpr std::array<setoRedOp_t, 5> kFoldCodes = {setoSum, setoProd, setoMax, setoMin, setoAvg};
    fold = kFoldCodes[static_cast<std::size_t>(operation_.fold)];
    return setoSuccess;
  }
  std::array<std::byte, 8> scale{};
  store(type_, Numbers::scale_of(seat_.rank), 1, scale.data());
  const setoResult_t result = setoRedOpCreatePreMulSum(&custom_, scale.data(), type_.code, setoScalarHostImmediate, seat_.comm);
  fold = custom_;
  return result;
}

void Exchange::issued() {
  if (custom_ != setoNumOps) setoRedOpDestroy(custom_, seat_.comm);
  custom_ = setoNumOps;
}

setoResult_t Exchange::issue(setoStream_t stream) {
  const std::size_t n = operation_.count;
  setoRedOp_t fold = setoSum;
  if (const setoResult_t chosen = choose_fold(fold); chosen != setoSuccess) return chosen;
  switch (operation_.kind) {
    case Kind::all_reduce:
      return setoAllReduce(in(), out(), n, type_.code, fold, seat_.comm, stream);
    case Kind::reduce:
      return setoReduce(in(), out(), n, type_.code, fold, operation_.root, seat_.comm, stream);
    case Kind::reduce_scatter:
      return setoReduceScatter(in(), out(), n, type_.code, fold, seat_.comm, stream);
    case Kind::reduce_scatterv: {
      const Parts parts = common_parts(operation_, seat_.rank, seat_.ranks);
      return setoReduceScatterv(in(), out(), parts.counts.data(), type_.code, fold, seat_.comm, stream);
    }
    case Kind::all_gather:
      return setoAllGather(in(), out(), n, type_.code, seat_.comm, stream);
    case Kind::all_to_all:
      return setoAlltoAll(in(), out(), n, type_.code, seat_.comm, stream);
    case Kind::barrier:
      return setoBarrier(seat_.comm, stream);
    case Kind::all_to_allv:
    case Kind::all_gatherv:
      return issue_uneven(stream);
    case Kind::shift:
    case Kind::pair:
      return issue_messages(stream);
    default:
      return issue_rooted(stream);
  }
}

setoResult_t Exchange::issue_rooted(setoStream_t stream) {
  const std::size_t n = operation_.count;
  switch (operation_.kind) {
    case Kind::broadcast:
      return setoBroadcast(in(), out(), n, type_.code, operation_.root, seat_.comm, stream);
    case Kind::bcast:
      return setoBcast(out(), n, type_.code, operation_.root, seat_.comm, stream);
    case Kind::gather:
      return setoGather(in(), out(), n, type_.code, operation_.root, seat_.comm, stream);
    default:
      return setoScatter(in(), out(), n, type_.code, operation_.root, seat_.comm, stream);
  }
}

setoResult_t Exchange::issue_uneven(setoStream_t stream) {
  if (operation_.kind == Kind::all_gatherv) {
    const Parts parts = common_parts(operation_, seat_.rank, seat_.ranks);
    return setoAllGatherv(in(), layout_.input, out(), parts.counts.data(), parts.gaps ? parts.at.data() : nullptr, type_.code,
                          seat_.comm, stream);
  }
  const Parts sent = sent_parts(operation_, seat_.rank, seat_.ranks);
  const Parts received = received_parts(operation_, seat_.rank, seat_.ranks);
  return setoAllToAllv(in(), sent.counts.data(), sent.gaps ? sent.at.data() : nullptr, out(), received.counts.data(),
                       received.gaps ? received.at.data() : nullptr, type_.code, seat_.comm, stream);
}

setoResult_t Exchange::issue_messages(setoStream_t stream) {
  const std::size_t n = operation_.count;
  if (operation_.kind == Kind::pair) {
    if (seat_.rank % 2 == 1) return setoRecv(out(), n, type_.code, seat_.rank - 1, seat_.comm, stream);
    if (seat_.rank + 1 == seat_.ranks) return setoSuccess;
    return setoSend(in(), n, type_.code, seat_.rank + 1, seat_.comm, stream);
  }
  const int to = (seat_.rank + operation_.root) % seat_.ranks;
  const int from = (seat_.rank - operation_.root + seat_.ranks) % seat_.ranks;
  setoResult_t result = setoGroupStart();
  if (result != setoSuccess) return result;
  const setoResult_t sent = setoSend(in(), n, type_.code, to, seat_.comm, stream);
  const setoResult_t received = setoRecv(out(), n, type_.code, from, seat_.comm, stream);
  result = setoGroupEnd();
  return sent != setoSuccess ? sent : received != setoSuccess ? received : result;
}

}  // namespace seto::soak
