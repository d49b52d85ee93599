#include "transports/tcp/inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace seto::tcp {
namespace {

constexpr std::uint64_t kShort = std::uint64_t{4} << 10;
constexpr std::uint64_t kLong = std::uint64_t{1} << 20;
constexpr std::uint32_t kLargestMessage = std::uint32_t{1} << 31;
// Messages to one member that may have begun to arrive.
constexpr std::size_t kMostMessages = 65'536;

// Where messages without bytes lie.
alignas(64) std::byte nowhere[64];

Status no_room(std::uint64_t size) {
  return seto::failure(Code::unavailable, "no memory to receive a message of %llu bytes", static_cast<unsigned long long>(size));
}

}  // namespace

std::uint64_t slices_ahead(const StreamGeometry& geometry) {
  const std::uint64_t filling = kStreamCredit / std::max<std::uint32_t>(1, geometry.slot_size);
  return std::clamp<std::uint64_t>(filling, std::clamp<std::uint64_t>(geometry.depth, 1, kMostAhead), kMostAhead);
}

std::uint64_t operations_ahead(const StreamGeometry& geometry) {
  const std::uint64_t bytes = std::uint64_t{geometry.slot_size} * geometry.slices;
  return bytes <= kShort ? kMostOperations : bytes < kLong ? 4 : 2;
}

// ---- streams ----

// No socket reads for this communicator any more: its links were left before.
InStream::~InStream() {
  for (const auto& operation : operations_)
    if (operation != nullptr) clear(*operation);
  for (const Message& message : abandoned_) landing_.give_back(message.data, message.size);
}

void InStream::free(Message& message) {
  if (message.data != nullptr && message.data != nowhere && !message.placed) {
    if (message.pending > 0)
      abandoned_.push_back(message);
    else
      landing_.give_back(message.data, message.size);
  }
  message = Message{};
}

void InStream::clear(Operation& operation) {
  for (Message& message : operation.messages) free(message);
}

void InStream::forget_before(std::uint64_t operation) {
  for (const auto& each : operations_)
    if (each != nullptr && each->number <= operation) {
      clear(*each);
      each->number = 0;
    }
}

// What the caller does not expect is not written to its memory.
void InStream::find_memory(Message& message, const Frame& frame) {
  if (frame.size == 0) {
    message.data = nowhere;
    return;
  }
  const Wanted& wanted = wanted_[operation_of(frame.mark) % wanted_.size()];
  const std::uint64_t slice = slice_of(frame.mark);
  message.placed = wanted.where.operation == operation_of(frame.mark) && wanted.digest == frame.digest &&
                   slice >= wanted.released && wanted.where.size_of(slice) == frame.size;
  message.data = message.placed ? wanted.where.first + slice * wanted.where.stride : landing_.take(frame.size);
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
    for (Message& message : operation->messages)
      if (message.placed) message = Message{};
  return std::exchange(wanted, Wanted{}).where;
}

InStream::Operation* InStream::operation_of_mark(Mark mark) {
  Operation* const operation = operations_[operation_of(mark) % kMostOperations].get();
  return operation != nullptr && operation->number == operation_of(mark) ? operation : nullptr;
}

Result<std::byte*> InStream::place(const Frame& frame, std::uint64_t done) {
  const std::uint64_t number = operation_of(frame.mark);
  if (number <= done) return static_cast<std::byte*>(nullptr);  // this rank is past it: its call was rejected, say
  if (number > done + kMostOperations) return garbage("an operation far ahead");
  if (frame.size > kLargestMessage || frame.offset > frame.size || frame.length > frame.size - frame.offset)
    return garbage("a part outside of its message");
  auto& slot = operations_[number % kMostOperations];
  if (slot == nullptr) slot = std::make_unique<Operation>();
  if (slot->number != number) {
    clear(*slot);
    slot->number = number;
  }
  Message& message = slot->messages[slice_of(frame.mark) % kMostAhead];
  if (!message.announced) {
    find_memory(message, frame);
    if (message.data == nullptr) return no_room(frame.size);
    message.size = frame.size;
    message.digest = frame.digest;
    message.slice = slice_of(frame.mark);
    message.announced = true;
  } else if (message.slice != slice_of(frame.mark) || message.size != frame.size || message.digest != frame.digest) {
    return garbage("more slices than there is credit for, or parts that do not belong together");
  }
  // Once all bytes have come none is on its way: a message that is let go is written by nobody.
  if (frame.length > message.size - message.promised) return garbage("a part of a message twice");
  message.promised += frame.length;
  ++message.pending;
  return message.data + frame.offset;
}

// Its operation may have been left behind while the bytes were read.
void InStream::arrived(const Frame& frame, const std::byte* at) {
  Operation* const operation = operation_of_mark(frame.mark);
  Message* const message = operation == nullptr ? nullptr : &operation->messages[slice_of(frame.mark) % kMostAhead];
  if (message != nullptr && message->data != nullptr && at == message->data + frame.offset) {
    --message->pending;
    message->got += frame.length;
    message->there = true;
    return;
  }
  const auto abandoned =
      std::find_if(abandoned_.begin(), abandoned_.end(), [&](const Message& each) { return at == each.data + frame.offset; });
  if (abandoned == abandoned_.end() || --abandoned->pending > 0) return;
  landing_.give_back(abandoned->data, abandoned->size);
  abandoned_.erase(abandoned);
}

InStream::Message* InStream::whole(Mark mark) {
  Operation* const operation = operation_of_mark(mark);
  if (operation == nullptr) return nullptr;
  Message& message = operation->messages[slice_of(mark) % kMostAhead];
  const bool whole = message.there && message.slice == slice_of(mark) && message.got == message.size;
  return whole ? &message : nullptr;
}

void InStream::drop(Mark mark) {
  Wanted& wanted = wanted_[operation_of(mark) % wanted_.size()];
  if (wanted.where.operation == operation_of(mark)) wanted.released = slice_of(mark) + 1;
  if (Operation* const operation = operation_of_mark(mark)) free(operation->messages[slice_of(mark) % kMostAhead]);
}

// ---- pairs ----

void put_letter(std::byte* at, const Letter& letter) {
  const std::uint64_t words[3] = {letter.size, letter.label, letter.verdict};
  std::memcpy(at, words, sizeof words);
  static_assert(sizeof words == kLetterSize);
}

Letter letter_in(const std::byte* at) {
  std::uint64_t words[3];
  std::memcpy(words, at, sizeof words);
  return {words[0], words[1], static_cast<std::uint32_t>(words[2])};
}

InPair::~InPair() {
  end(~std::uint64_t{0});
  for (const Piece& piece : abandoned_) landing_.give_back(piece.data, piece.length);
}

void InPair::free(const Piece& piece) {
  released_ += piece.length;
  in_use_ -= piece.length;
  if (piece.whole)
    landing_.give_back(piece.data, piece.length);
  else
    abandoned_.push_back(piece);
}

Result<std::byte*> InPair::place(const Frame& frame) {
  if (frame.length < kLetterSize) return garbage("a message without its letter");
  if (frame.mark <= ended_) {  // refused
    released_ += frame.length;
    return static_cast<std::byte*>(nullptr);
  }
  if (messages_.size() >= kMostMessages) return garbage("more messages than there is credit for");
  if (in_use_ + frame.length > kPairCredit + kLetterSize) return garbage("more bytes of messages than there is credit for");
  Message& message = messages_[frame.mark];
  const auto [piece, fresh] = message.pieces.try_emplace(frame.position());
  if (!fresh) return garbage("a piece twice");
  piece->second = {landing_.take(frame.length), frame.length, false};
  in_use_ += frame.length;
  if (piece->second.data != nullptr) return piece->second.data;
  in_use_ -= frame.length;
  message.pieces.erase(piece);
  return no_room(frame.length);
}

void InPair::arrived(const Frame& frame, const std::byte* at) {
  const auto message = messages_.find(frame.mark);
  if (message != messages_.end()) {
    const auto piece = message->second.pieces.find(frame.position());
    if (piece == message->second.pieces.end() || piece->second.data != at) return;
    piece->second.whole = true;
    if (!message->second.known) message->second.letter = letter_in(piece->second.data);
    message->second.known = true;
    return;
  }
  const auto abandoned = std::find_if(abandoned_.begin(), abandoned_.end(), [&](const Piece& each) { return each.data == at; });
  if (abandoned == abandoned_.end()) return;
  landing_.give_back(abandoned->data, abandoned->length);
  abandoned_.erase(abandoned);
}

const Letter* InPair::letter_of(std::uint64_t message) const {
  const auto found = messages_.find(message);
  return found != messages_.end() && found->second.known ? &found->second.letter : nullptr;
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
  for (auto each = messages_.begin(); each != last; ++each)
    for (auto& [position, piece] : each->second.pieces) free(piece);
  messages_.erase(messages_.begin(), last);
  ended_ = std::max(ended_, message);
}

}  // namespace seto::tcp
