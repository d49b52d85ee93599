#include "transports/tcp/streams/inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace seto::tcp {
namespace {

constexpr std::uint64_t kShort = std::uint64_t{4} << 10;
constexpr std::uint64_t kLong = std::uint64_t{1} << 20;
constexpr std::uint32_t kLargestMessage = std::uint32_t{1} << 31;

// The address of messages without bytes.
alignas(64) std::byte nowhere[64];

}  // namespace

std::uint64_t slices_ahead(const StreamGeometry& geometry, std::uint64_t window) {
  const std::uint64_t filling = window / std::max<std::uint32_t>(1, geometry.slot_size);
  const std::uint64_t most = window > kStreamCredit ? kMostAheadFar : kMostAhead;
  return std::clamp<std::uint64_t>(filling, std::clamp<std::uint64_t>(geometry.depth, 1, kMostAhead), most);
}

std::uint64_t operations_ahead(std::uint64_t bytes) {
  if (bytes < kLong) return bytes <= kShort ? kMostOperations : 4;
  return bytes <= kStreamCredit ? kLongOperations : kWindow;
}

std::uint64_t operations_ahead(const StreamGeometry& geometry) {
  return operations_ahead(std::uint64_t{geometry.slot_size} * geometry.slices);
}

// ---- streams ----

// No socket reads for this communicator any more: it has left its connections.
InStream::~InStream() {
  for (const auto& operation : operations_)
    if (operation != nullptr) clear(*operation);
  for (const Message& message : abandoned_) share_.give_back(message.data, message.size);
  share_.discharge(charged_);
}

// The tables that a peer makes this end keep count like its messages.
Status InStream::charge(std::size_t bytes) {
  if (!share_.charge(bytes)) return share_.refusal(bytes);
  charged_ += bytes;
  return {};
}

void InStream::free(Operation& operation, Message& message) {
  operation.held_bytes -= message.size;
  if (message.data != nowhere && !message.placed) {
    if (message.pending > 0)
      abandoned_.push_back(message);
    else
      share_.give_back(message.data, message.size);
  }
  operation.messages.remove(message);
}

void InStream::clear(Operation& operation) {
  operation.messages.for_each([&](Message& message) { free(operation, message); });
}

void InStream::forget_before(std::uint64_t operation) {
  for (const auto& each : operations_)
    if (each != nullptr && each->number <= operation) {
      clear(*each);
      each->number = 0;
    }
}

// A message with an unexpected size or digest is not written to the caller's memory.
void InStream::find_memory(Message& message, const Frame& frame) {
  if (frame.size == 0) {
    message.data = nowhere;
    return;
  }
  const Wanted& wanted = wanted_[operation_of(frame.mark) % wanted_.size()];
  const std::uint64_t slice = slice_of(frame.mark);
  message.placed = wanted.where.operation == operation_of(frame.mark) && wanted.digest == frame.digest &&
                   slice >= wanted.released && wanted.where.size_of(slice) == frame.size;
  message.data = message.placed ? wanted.where.first + slice * wanted.where.stride : share_.take(frame.size);
}

void InStream::want(const Placement& placement, std::uint32_t digest) {
  Wanted& wanted = wanted_[placement.operation % wanted_.size()];
  if (wanted.where.operation != placement.operation) wanted.released = 0;
  wanted.where = placement;
  wanted.digest = digest;
}

Placement InStream::displace(std::uint64_t number) {
  Wanted& wanted = wanted_[number % wanted_.size()];
  if (wanted.where.operation != number) return {};
  if (Operation* const operation = operation_of_mark(mark_of(number, 0)))
    operation->messages.for_each([&](Message& message) {
      if (message.placed) free(*operation, message);
    });
  return std::exchange(wanted, Wanted{}).where;
}

InStream::Operation* InStream::operation_of_mark(Mark mark) {
  Operation* const operation = operations_[operation_of(mark) % kMostOperations].get();
  return operation != nullptr && operation->number == operation_of(mark) ? operation : nullptr;
}

InStream::Message* InStream::message_of_mark(Mark mark) {
  Operation* const operation = operation_of_mark(mark);
  return operation == nullptr ? nullptr : operation->messages.find(slice_of(mark));
}

Result<InStream::Placed> InStream::place(const Frame& frame, std::uint64_t done) {
  const std::uint64_t number = operation_of(frame.mark);
  if (number <= done) return Placed{};  // this rank has ended the operation, for example because it rejected its call
  if (number > done + kMostOperations) return garbage("an operation far ahead");
  if (frame.size > kLargestMessage || frame.offset > frame.size || frame.length > frame.size - frame.offset)
    return garbage("a part outside of its message");
  auto& slot = operations_[number % kMostOperations];
  if (slot == nullptr) {
    SETO_TRY(charge(sizeof(Operation) + (charged_ == 0 ? sizeof(InStream) : 0)));
    slot = std::make_unique<Operation>(most_ahead_);
  }
  if (slot->number != number) {
    clear(*slot);
    slot->number = number;
  }
  Message* message = slot->messages.find(slice_of(frame.mark));
  const bool first = message == nullptr;
  if (first) {
    SETO_ASSIGN(message, announce(*slot, frame, done));
  } else if (message->size != frame.size || message->digest != frame.digest) {
    return garbage("parts that do not belong together");
  }
  // No byte may arrive twice: then a complete message is not written to any more.
  if (frame.length > message->size - message->promised) return garbage("a part of a message twice");
  message->promised += frame.length;
  ++message->pending;
  return Placed{message->data + frame.offset, first};
}

// Up to kMostAhead messages need no window, whatever their size: a receiver knows it only when it opens the stream. The longer an
// operation is, the fewer of them a sender may begin ahead: so no more of them fill a window than WindowBudget reserves.
Result<InStream::Message*> InStream::announce(Operation& operation, const Frame& frame, std::uint64_t done) {
  const std::uint64_t bytes = operation.held_bytes + frame.size;
  if (operation.number > done + operations_ahead(bytes))
    return garbage("an operation further ahead than one of its length may be");
  if (operation.messages.held() >= kMostAhead && bytes > window_) return garbage("more bytes of slices than there is credit for");
  const std::size_t table = operation.messages.bytes();
  Message* const message = operation.messages.add(slice_of(frame.mark));
  if (message == nullptr) return garbage("more slices than there is credit for");
  if (operation.messages.bytes() > table) {
    if (const Status charged = charge(operation.messages.bytes() - table); !charged.ok()) {
      operation.messages.remove(*message);
      return charged;
    }
  }
  find_memory(*message, frame);
  if (message->data == nullptr) {
    operation.messages.remove(*message);
    return share_.refusal(frame.size);
  }
  message->size = frame.size;
  message->digest = frame.digest;
  operation.held_bytes = bytes;
  return message;
}

// The operation may have ended while the bytes were read.
void InStream::arrived(const Frame& frame, const std::byte* at) {
  Message* const message = message_of_mark(frame.mark);
  if (message != nullptr && at == message->data + frame.offset) {
    --message->pending;
    message->got += frame.length;
    message->there = true;
    return;
  }
  let_go(frame, at);
}

void InStream::unplace(const Frame& frame, const std::byte* at) {
  Message* const message = message_of_mark(frame.mark);
  if (message == nullptr || at != message->data + frame.offset) return let_go(frame, at);
  --message->pending;
  message->promised -= frame.length;
}

void InStream::let_go(const Frame& frame, const std::byte* at) {
  const auto abandoned =
      std::find_if(abandoned_.begin(), abandoned_.end(), [&](const Message& each) { return at == each.data + frame.offset; });
  if (abandoned == abandoned_.end() || --abandoned->pending > 0) return;
  share_.give_back(abandoned->data, abandoned->size);
  abandoned_.erase(abandoned);
}

InStream::Message* InStream::whole(Mark mark) {
  Message* const message = message_of_mark(mark);
  return message != nullptr && message->there && message->got == message->size ? message : nullptr;
}

void InStream::drop(Mark mark) {
  Wanted& wanted = wanted_[operation_of(mark) % wanted_.size()];
  if (wanted.where.operation == operation_of(mark)) wanted.released = slice_of(mark) + 1;
  if (Message* const message = message_of_mark(mark)) free(*operation_of_mark(mark), *message);
}

// ---- pairs ----

void put_header(std::byte* at, const MessageHeader& header) {
  const std::uint64_t words[3] = {header.size, header.label, header.verdict};
  std::memcpy(at, words, sizeof words);
  static_assert(sizeof words == kMessageHeaderSize);
}

MessageHeader header_in(const std::byte* at) {
  std::uint64_t words[3];
  std::memcpy(words, at, sizeof words);
  return {words[0], words[1], static_cast<std::uint32_t>(words[2])};
}

InPair::~InPair() {
  end(~std::uint64_t{0});
  for (const Piece& piece : abandoned_) share_.give_back(piece.data, piece.length);
}

void InPair::free(const Piece& piece) {
  share_.discharge(kPieceEntry);
  released_ += charge_of(piece.length);
  in_use_ -= charge_of(piece.length);
  if (piece.whole)
    share_.give_back(piece.data, piece.length);
  else
    abandoned_.push_back(piece);
}

Result<std::byte*> InPair::place(const Frame& frame) {
  if (frame.length < kMessageHeaderSize) return garbage("a message without its header");
  if (frame.mark <= ended_) return static_cast<std::byte*>(nullptr);  // refused
  if (in_use_ + charge_of(frame.length) > window_) return garbage("more messages, or bytes of them, than there is credit for");
  const auto [message, first] = messages_.try_emplace(frame.mark);
  const auto [piece, fresh] = message->second.pieces.try_emplace(frame.position());
  if (!fresh) return garbage("a piece twice");
  const std::size_t entries = kPieceEntry + (first ? kMessageEntry : 0);
  Status refusal;
  if (!share_.charge(entries)) {
    refusal = share_.refusal(entries);
  } else if (std::byte* const data = share_.take(frame.length); data != nullptr) {
    piece->second = {data, frame.length, false};
    in_use_ += charge_of(frame.length);
    return data;
  } else {
    refusal = share_.refusal(frame.length);
    share_.discharge(entries);
  }
  message->second.pieces.erase(piece);
  if (first) messages_.erase(message);
  return refusal;
}

void InPair::arrived(const Frame& frame, const std::byte* at) {
  const auto message = messages_.find(frame.mark);
  if (at != nullptr && message != messages_.end()) {
    const auto piece = message->second.pieces.find(frame.position());
    if (piece == message->second.pieces.end() || piece->second.data != at) return;
    piece->second.whole = true;
    if (!message->second.known) message->second.header = header_in(piece->second.data);
    message->second.known = true;
    return;
  }
  if (at == nullptr)
    released_ += charge_of(frame.length);  // refused
  else
    let_go(at);
}

void InPair::unplace(const Frame& frame, const std::byte* at) {
  const auto message = messages_.find(frame.mark);
  if (message == messages_.end()) {
    if (let_go(at)) released_ -= charge_of(frame.length);
    return;
  }
  const auto piece = message->second.pieces.find(frame.position());
  if (piece == message->second.pieces.end() || piece->second.data != at) return;
  in_use_ -= charge_of(piece->second.length);
  share_.give_back(piece->second.data, piece->second.length);
  share_.discharge(kPieceEntry);
  message->second.pieces.erase(piece);
  if (message->second.known || !message->second.pieces.empty()) return;
  share_.discharge(kMessageEntry);
  messages_.erase(message);
}

bool InPair::let_go(const std::byte* at) {
  const auto abandoned = std::find_if(abandoned_.begin(), abandoned_.end(), [&](const Piece& each) { return each.data == at; });
  if (abandoned == abandoned_.end()) return false;
  share_.give_back(abandoned->data, abandoned->length);
  abandoned_.erase(abandoned);
  return true;
}

const MessageHeader* InPair::header_of(std::uint64_t message) const {
  const auto found = messages_.find(message);
  return found != messages_.end() && found->second.known ? &found->second.header : nullptr;
}

const InPair::Piece* InPair::piece_at(std::uint64_t message, std::uint64_t position) const {
  const auto found = messages_.find(message);
  if (found == messages_.end()) return nullptr;
  const auto piece = found->second.pieces.find(position);
  return piece != found->second.pieces.end() && piece->second.whole ? &piece->second : nullptr;
}

void InPair::drop_piece(std::uint64_t message, std::uint64_t position) {
  const auto found = messages_.find(message);
  const auto piece = found->second.pieces.find(position);
  free(piece->second);
  found->second.pieces.erase(piece);
}

void InPair::end(std::uint64_t message) {
  const auto last = messages_.upper_bound(message);
  for (auto each = messages_.begin(); each != last; ++each) {
    for (auto& [position, piece] : each->second.pieces) free(piece);
    share_.discharge(kMessageEntry);
  }
  messages_.erase(messages_.begin(), last);
  ended_ = std::max(ended_, message);
}

}  // namespace seto::tcp
