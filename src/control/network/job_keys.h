#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

class KeyRing;

// That connections under a key are heard, for as long as it lives. Ends before the front door that gave it.
class Admission final {
 public:
  Admission() = default;
  Admission(Admission&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), id_(other.id_) {}
  Admission& operator=(Admission&& other) noexcept;
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission() { end(); }

  void end();

 private:
  friend class KeyRing;
  Admission(KeyRing* ring, const KeyId& id) : ring_(ring), id_(id) {}
  KeyRing* ring_ = nullptr;
  KeyId id_{};
};

// The keys of the jobs that this process is in. Any thread.
class KeyRing final {
 public:
  // Called after a key has come that was not there, by who admits it, with no lock held.
  explicit KeyRing(std::function<void(const KeyId&)> on_new_key) : on_new_key_(std::move(on_new_key)) {}

  [[nodiscard]] Admission admit(const Secret& key);
  [[nodiscard]] std::optional<Secret> find(const KeyId& id) const;
  [[nodiscard]] bool empty() const;

 private:
  friend class Admission;
  struct Entry {
    Secret key;
    std::size_t holders = 0;
  };
  void release(const KeyId& id);

  std::function<void(const KeyId&)> on_new_key_;
  mutable std::mutex mutex_;
  std::map<KeyId, Entry> entries_;
};

}  // namespace seto
