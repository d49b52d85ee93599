#include "transports/message_status.h"

#include <new>

namespace seto {

MessageStatus::MessageStatus(const Setup& setup) : setup_(setup) {
  for (std::uint32_t i = 0; i < setup.members; ++i) copies_.push_back(std::make_unique<StatusRecord>());
}

bool MessageStatus::note_of(std::uint32_t member, std::uint64_t operation, Note& note) const {
  if (record_of(member).note_of(operation, note)) return true;
  if (member != setup_.own) ask(member);
  return false;
}

std::uint64_t MessageStatus::completed_by(std::uint32_t member) const {
  if (member != setup_.own) ask(member);
  return known_completed(member);
}

// The departure is announced twice: on the control plane, which is faster than the data, and behind the data. Without memory for
// one of them, the next call tries it again.
void MessageStatus::leave(Fate fate) {
  record_.leave(fate);
  setup_.exchange->announce();
  if (departure_is_sent_.exchange(true, std::memory_order_acq_rel)) return;
  try {
    setup_.data_path->send_departure();
  } catch (const std::bad_alloc&) {
    departure_is_sent_.store(false, std::memory_order_release);
    throw;
  }
}

Fate MessageStatus::fate_of(std::uint32_t member) const { return record_of(member).fate(); }

std::string MessageStatus::explanation_of(std::uint32_t member) const { return record_of(member).explanation(); }

bool MessageStatus::silent(std::uint32_t member) const { return member == setup_.own || setup_.data_path->all_arrived(member); }

Status MessageStatus::renew(std::uint32_t member, std::string_view record) {
  if (member >= setup_.members || member == setup_.own)
    return failure(Code::remote_error, "a status record of member %u, which is no peer of this group", member);
  StatusRecord& copy = *copies_[member];
  const bool knew = copy.fate().reason != 0;
  Status renewed = copy.renew(record);
  if (!knew && copy.fate().reason != 0) departures_.fetch_add(1, std::memory_order_release);
  return renewed;
}

void MessageStatus::lose(std::uint32_t member) {
  if (member < setup_.members && member != setup_.own)
    copies_[member]->leave({static_cast<std::uint32_t>(Code::invalid_usage), member});
  departures_.fetch_add(1, std::memory_order_release);
}

}  // namespace seto
