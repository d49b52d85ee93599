#include "src/control/network/job_keys.h"

namespace seto {

Admission& Admission::operator=(Admission&& other) noexcept {
  if (this != &other) {
    end();
    keys_ = std::exchange(other.keys_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

void Admission::end() {
  if (JobKeys* keys = std::exchange(keys_, nullptr)) keys->release(id_);
}

Admission JobKeys::admit(const Secret& key) {
  const KeyId id = key_id(key);
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[id];
    is_new = entry.holders++ == 0;
    if (is_new) entry.key = key;
  }
  if (is_new && on_new_key_) on_new_key_(key);
  return {this, id};
}

std::optional<Secret> JobKeys::find(const AnswererHandshake& hello) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (hello.names(entry.key)) return entry.key;
  return std::nullopt;
}

bool JobKeys::empty() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

// In a forked child the lock may be held for ever.
void JobKeys::release(const KeyId& id) {
  if (generation_ != fork_generation()) return;
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (--found->second.holders == 0) entries_.erase(found);
}

}  // namespace seto
