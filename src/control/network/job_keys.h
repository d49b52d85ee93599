#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "src/base/fork.h"
#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

class JobKeys;

// While it exists, connections under its key are accepted. Must be destroyed before the TcpConnector that returned it.
class Admission final {
 public:
  Admission() = default;
  Admission(Admission&& other) noexcept : keys_(std::exchange(other.keys_, nullptr)), id_(other.id_) {}
  Admission& operator=(Admission&& other) noexcept;
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission() { end(); }

  void end();

 private:
  friend class JobKeys;
  Admission(JobKeys* keys, const KeyId& id) : keys_(keys), id_(id) {}
  JobKeys* keys_ = nullptr;
  KeyId id_{};
};

// The keys of the jobs of this process. Any thread.
class JobKeys final {
 public:
  // `on_new_key` runs after a new key was added, on the thread that admits it, with no lock held.
  explicit JobKeys(std::function<void(const Secret&)> on_new_key) : on_new_key_(std::move(on_new_key)) {}

  [[nodiscard]] Admission admit(const Secret& key);
  // The key that the hello names. Tries each key, which costs a hash (0.3 µs): a process has one for each communicator that spans
  // nodes, and fewer where some were split.
  [[nodiscard]] std::optional<Secret> find(const AnswererHandshake& hello) const;
  [[nodiscard]] bool empty() const;

 private:
  friend class Admission;
  struct Entry {
    Secret key;
    std::size_t holders = 0;
  };
  void release(const KeyId& id);

  std::function<void(const Secret&)> on_new_key_;
  const std::uint32_t generation_ = fork_generation();
  mutable std::mutex mutex_;
  std::map<KeyId, Entry> entries_;
};

}  // namespace seto
