#include "src/core/launch/point_to_point.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>
#include <vector>

#include "src/core/launch/message_label.h"

namespace seto {
namespace {

using Direction = LocalTransfer::Direction;

// A mark counts pieces with 24 bits, and the smallest slot of a long message has 4 KiB.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 35;

// The limit of messages that ports can number between two ranks.
constexpr std::size_t kMostTransfers = 65'536;

bool sends(const Transfer& transfer) { return transfer.direction == Direction::send; }

// The memory from the first to the last transfer.
struct Span {
  std::uintptr_t begin = ~std::uintptr_t{0};
  std::uintptr_t end = 0;

  [[nodiscard]] bool meets(const Span& other) const { return begin < other.end && other.begin < end; }
  void cover(const Span& other) { *this = {std::min(begin, other.begin), std::max(end, other.end)}; }
};

Span span_of(const Transfer& transfer, std::uint64_t element) {
  const auto begin = reinterpret_cast<std::uintptr_t>(sends(transfer) ? transfer.source : transfer.target);
  if (begin == 0 || transfer.count > kMostBytes / element) return {};  // check() rejects the transfer
  return {begin, begin + transfer.count * element};
}

// Parts read and parts written may lie between one another. Sorting them costs less than comparing each with each.
Status check_overlap(std::span<const Transfer> out, std::span<const Transfer> in, std::uint64_t element) {
  Span read, written;
  for (const Transfer& transfer : out) read.cover(span_of(transfer, element));
  for (const Transfer& transfer : in) written.cover(span_of(transfer, element));
  if (!read.meets(written)) return {};
  std::vector<Span> sorted;
  for (const Transfer& transfer : in) sorted.push_back(span_of(transfer, element));
  std::sort(sorted.begin(), sorted.end(), [](const Span& left, const Span& right) { return left.begin < right.begin; });
  for (std::size_t i = 1; i < sorted.size(); ++i) sorted[i].end = std::max(sorted[i].end, sorted[i - 1].end);  // of all so far
  for (const Transfer& from : out) {
    const Span part = span_of(from, element);
    const auto beyond = std::partition_point(sorted.begin(), sorted.end(), [&](const Span& to) { return to.begin < part.end; });
    if (beyond == sorted.begin() || std::prev(beyond)->end <= part.begin) continue;
    const auto to = std::find_if(in.begin(), in.end(), [&](const Transfer& one) { return part.meets(span_of(one, element)); });
    return failure(Code::invalid_argument, "sendbuff and recvbuff overlap: the part for rank %d and the part of rank %d",
                   from.peer, to->peer);
  }
  return {};
}

bool overlap(const std::byte* a, const std::byte* b, std::uint64_t size) { return a != b && a < b + size && b < a + size; }

}  // namespace

std::string describe(Direction direction, const MessageHeader& header, Rank peer) {
  const std::string way = direction == Direction::send ? " to rank " : " from rank ";
  const std::uint64_t type = header.label & 0xff;
  const bool known = type < kDataTypeCount;
  std::string text = direction == Direction::send ? "send of " : "receive of ";
  text += known ? std::to_string(header.size / size_of(static_cast<DataType>(type))) + " " +
                      std::string(name_of(static_cast<DataType>(type)))
                : std::to_string(header.size) + " bytes of an unknown type";
  text += way + std::to_string(peer);
  const std::uint64_t number = number_of(header.label);
  if (kind_of(header.label) == TransferKind::all_to_all_v)
    text += " in all_to_all_v call " + std::to_string(number);
  else if (number != 0)
    text += ", tag " + std::to_string(number);
  return text;
}

Status check(const Transfer& transfer, int ranks) {
  if (!transfer.wrong.ok()) return transfer.wrong;
  const char* const name = sends(transfer) ? "sendbuff" : "recvbuff";
  const void* const buffer = sends(transfer) ? transfer.source : transfer.target;
  if (transfer.peer < 0 || transfer.peer >= ranks)
    return failure(Code::invalid_argument, "peer: %d is not one of the ranks 0 to %d", transfer.peer, ranks - 1);
  if (static_cast<int>(transfer.type) >= kDataTypeCount)
    return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", static_cast<int>(transfer.type));
  const std::size_t element = size_of(transfer.type);
  if (transfer.count > kMostBytes / element)
    return failure(Code::invalid_argument, "count: %llu elements of %s are more than one message carries (%llu bytes)",
                   static_cast<unsigned long long>(transfer.count), name_of(transfer.type).data(),
                   static_cast<unsigned long long>(kMostBytes));
  if (transfer.count == 0) return {};
  if (buffer == nullptr)
    return failure(Code::invalid_argument, "%s: null, but %llu bytes are needed", name,
                   static_cast<unsigned long long>(transfer.count * element));
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  if (address % element != 0)
    return failure(Code::invalid_argument, "%s: %p is not aligned for %s", name, buffer, name_of(transfer.type).data());
  if (address + transfer.count * element < address)
    return failure(Code::invalid_argument, "%s: runs past the end of memory", name);
  return {};
}

Status refuse_lone_self(const Transfer& transfer, Rank rank) {
  if (transfer.peer != rank) return {};
  return failure(Code::invalid_usage, "peer: %d is this rank itself; put a send to the same rank and its receive into one group",
                 rank);
}

std::vector<Transfer> transfers_of(const ExchangeCall& call, int ranks) {
  std::vector<Transfer> transfers;
  const bool known = static_cast<int>(call.type) < kDataTypeCount;
  const std::uint64_t element = known ? size_of(call.type) : 1;
  const auto add = [&](const PartTable& table, Direction direction) {
    std::uint64_t next = 0;
    for (Rank peer = 0; peer < ranks; ++peer) {
      const auto index = static_cast<std::size_t>(peer);
      const std::uint64_t count = table.counts[index];
      const std::uint64_t offset = table.displacements.empty() ? next : table.displacements[index];
      next += count;
      if (count == 0) continue;
      Transfer transfer{direction, peer, nullptr, nullptr, count, call.type, call.wrong};
      if (direction == Direction::send && call.input != nullptr)
        transfer.source = static_cast<const std::byte*>(call.input) + offset * element;
      if (direction == Direction::receive && call.output != nullptr)
        transfer.target = static_cast<std::byte*>(call.output) + offset * element;
      transfers.push_back(std::move(transfer));
    }
  };
  add(call.sends, Direction::send);
  const std::size_t outgoing = transfers.size();
  add(call.receives, Direction::receive);
  Status wrong = check_overlap(std::span(transfers).first(outgoing), std::span(transfers).subspan(outgoing), element);
  if (!wrong.ok())
    for (Transfer& transfer : transfers)
      if (transfer.wrong.ok()) transfer.wrong = wrong;
  return transfers;
}

PointToPoint::PointToPoint(Rank rank, int ranks, PeerGroup& peer_group, SlotStore slots)
    : rank_(rank), ranks_(ranks), peer_group_(peer_group), pairs_(static_cast<std::size_t>(ranks)), slot_store_(slots) {}

bool PointToPoint::has_pending(Rank peer) const {
  const Pair& pair = pairs_[static_cast<std::size_t>(peer)];
  return pair.receiver != nullptr && pair.receiver->has_pending();
}

std::optional<PreparedTransfers> PointToPoint::take_waiting(const Transfer& receive) {
  Pair& pair = pairs_[static_cast<std::size_t>(receive.peer)];
  if (!has_pending(receive.peer)) return {};
  const std::uint64_t label = pair.receiver->pending_header().label;
  if (kind_of(label) != TransferKind::point_to_point || number_of(label) != receive.tag) return {};
  const std::uint64_t message = pair.receiver->current();
  std::uint64_t before = message - 1;
  if (!pair.received.compare_exchange_strong(before, message, std::memory_order_relaxed))
    return {};  // another receive has taken it
  BoundTransfer bound;
  bound.header = {receive.count * size_of(receive.type), label_of(receive.type, TransferKind::point_to_point, receive.tag), 0};
  bound.target = static_cast<std::byte*>(receive.target);
  bound.receiver = pair.receiver.get();
  bound.message = message;
  PreparedTransfers prepared;
  prepared.transfers.push_back({receive.direction, receive.peer});
  prepared.headers.push_back(bound.header);
  prepared.rejections.emplace_back();
  Result<LocalProgram> program = local_program(rank_, ranks_, prepared.transfers, 0);
  if (program.ok())
    prepared.launch = std::make_unique<TransferLaunch>(std::make_shared<const LocalProgram>(std::move(program).value()),
                                                       std::vector<BoundTransfer>{bound});
  else
    prepared.first_wrong = program.status();
  return prepared;
}

// The calibration has moved messages before its constants were known.
void PointToPoint::use(const StoreSizes& sizes) {
  if (sizes == store_sizes_) return;
  store_sizes_ = sizes;
  stores_.clear();
}

PreparedTransfers PointToPoint::prepare(const TransferCall& call) {
  PreparedTransfers prepared;
  if (call.transfers.size() > kMostTransfers) {  // checked before any transfer has its number
    prepared.first_wrong = failure(Code::invalid_usage, "%zu sends and receives in one group: the limit is %zu",
                                   call.transfers.size(), kMostTransfers);
    return prepared;
  }
  const bool exchanges = call.kind == TransferKind::all_to_all_v;
  if (exchanges) prepared.exchange = ++exchanges_;
  prepared.first_wrong = check_self(call);
  const bool copies = prepared.first_wrong.ok();
  bound_.clear();
  std::uint64_t bytes = 0;
  for (const Transfer& transfer : call.transfers) {
    if (transfer.peer == rank_ && !copies) continue;
    Status status = accept(transfer, label_of(transfer.type, call.kind, exchanges ? exchanges_ : transfer.tag), prepared);
    if (prepared.first_wrong.ok()) prepared.first_wrong = std::move(status);
  }
  if (prepared.transfers.empty()) return prepared;
  Result<std::shared_ptr<const LocalProgram>> program = program_for(prepared.transfers);
  if (!program.ok()) {
    prepared.first_wrong = program.status();
    return prepared;
  }
  for (const BoundTransfer& bound : bound_) {
    prepared.headers.push_back(bound.header);
    bytes = std::max(bytes, bound.header.size);
  }
  if (StoreTuner::matters(bytes))
    prepared.stores =
        &stores_.try_emplace(static_cast<int>(std::bit_width(bytes)), bytes, slot_store_, nullptr, store_sizes_).first->second;
  prepared.launch = std::make_unique<TransferLaunch>(std::move(program).value(), std::exchange(bound_, {}));
  return prepared;
}

// Both ends number a rejected transfer, so that its peer learns of the rejection.
Status PointToPoint::accept(const Transfer& transfer, std::uint64_t label, PreparedTransfers& prepared) {
  Status wrong = check(transfer, ranks_);
  if (!wrong.ok() && (transfer.peer < 0 || transfer.peer >= ranks_ || transfer.peer == rank_)) return wrong;
  BoundTransfer bound;
  bound.header = {wrong.ok() ? transfer.count * size_of(transfer.type) : 0, label, static_cast<std::uint32_t>(wrong.code())};
  bound.source = static_cast<const std::byte*>(transfer.source);
  bound.target = static_cast<std::byte*>(transfer.target);
  if (transfer.peer != rank_) SETO_TRY(bind(transfer, bound));
  bound_.push_back(bound);
  prepared.transfers.push_back({transfer.direction, transfer.peer});
  prepared.rejections.push_back(wrong);
  return wrong;
}

Status PointToPoint::bind(const Transfer& transfer, BoundTransfer& bound) {
  SETO_TRY(open(transfer.peer));
  Pair& pair = pairs_[static_cast<std::size_t>(transfer.peer)];
  if (sends(transfer)) {
    bound.sender = pair.sender.get();
    bound.message = ++pair.sent;
  } else {
    bound.receiver = pair.receiver.get();
    bound.message = pair.received.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return {};
}

// Opens both directions, so that a waiting sender can report what its peer does instead.
Status PointToPoint::open(Rank peer) {
  Pair& pair = pairs_[static_cast<std::size_t>(peer)];
  if (pair.sender != nullptr) return {};
  SETO_ASSIGN(pair.sender, peer_group_.open_pair_send(static_cast<std::uint32_t>(peer)));
  SETO_ASSIGN(pair.receiver, peer_group_.open_pair_receive(static_cast<std::uint32_t>(peer)));
  return {};
}

Result<PointToPoint::Ends> PointToPoint::ends_of(Rank peer) {
  SETO_TRY(open(peer));
  const Pair& pair = pairs_[static_cast<std::size_t>(peer)];
  return Ends{pair.sender.get(), pair.receiver.get()};
}

Status PointToPoint::open_all() {
  for (Rank peer = 0; peer < ranks_ && !all_open_; ++peer)
    if (peer != rank_) SETO_TRY(open(peer));
  all_open_ = true;
  return {};
}

// Checks messages to the same rank: as many receives as sends, and equal headers in each pair.
Status PointToPoint::check_self(const TransferCall& call) const {
  std::vector<const Transfer*> out, in;
  for (const Transfer& transfer : call.transfers)
    if (transfer.peer == rank_) (sends(transfer) ? out : in).push_back(&transfer);
  if (out.size() != in.size())
    return failure(Code::invalid_argument, "rank %d sends %zu messages to itself in this group and receives %zu", rank_,
                   out.size(), in.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    SETO_TRY(check(*out[i], ranks_));
    SETO_TRY(check(*in[i], ranks_));
    if (out[i]->count != in[i]->count || out[i]->type != in[i]->type)
      return failure(Code::invalid_argument, "rank %d sends itself %llu %s and receives %llu %s", rank_,
                     static_cast<unsigned long long>(out[i]->count), name_of(out[i]->type).data(),
                     static_cast<unsigned long long>(in[i]->count), name_of(in[i]->type).data());
    if (out[i]->tag != in[i]->tag)
      return failure(Code::invalid_argument, "rank %d sends itself a message with tag %u and receives one with tag %u", rank_,
                     out[i]->tag, in[i]->tag);
    if (overlap(static_cast<const std::byte*>(out[i]->source), static_cast<const std::byte*>(in[i]->target),
                out[i]->count * size_of(out[i]->type)))
      return failure(Code::invalid_argument, "rank %d sends itself a message whose sendbuff and recvbuff overlap", rank_);
  }
  return {};
}

Result<std::shared_ptr<const LocalProgram>> PointToPoint::program_for(const std::vector<LocalTransfer>& transfers) {
  if (last_program_ != nullptr && last_transfers_ == transfers) return last_program_;
  SETO_ASSIGN(LocalProgram made, local_program(rank_, ranks_, transfers, 0));
  last_program_ = std::make_shared<const LocalProgram>(std::move(made));
  last_transfers_ = transfers;
  return last_program_;
}

}  // namespace seto
