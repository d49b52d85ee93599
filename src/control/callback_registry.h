#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/fork.h"

namespace seto {

// Callbacks by key, run one at a time by one thread, with no lock held. After remove() the callback is not running any more,
// unless the callback removes itself.
template <class Key, class Callback>
class CallbackRegistry final {
 public:
  CallbackRegistry() = default;
  CallbackRegistry(const CallbackRegistry&) = delete;
  CallbackRegistry& operator=(const CallbackRegistry&) = delete;

  // Returns false if the key is taken.
  [[nodiscard]] bool add(const Key& key, Callback callback) {
    const std::lock_guard lock(mutex_);
    return callbacks_.emplace(key, std::make_shared<const Callback>(std::move(callback))).second;
  }

  // Any thread.
  void remove(const Key& key) {
    if (generation_ != fork_generation()) return;  // in a forked child the lock may be held for ever
    std::shared_ptr<const Callback> callback;      // destroyed after the lock is released: its destructor may take the lock
    std::unique_lock lock(mutex_);
    const auto found = callbacks_.find(key);
    if (found != callbacks_.end()) {
      callback = std::move(found->second);
      callbacks_.erase(found);
    }
    if (runner_ == std::this_thread::get_id()) return;
    idle_.wait(lock, [&] { return runner_ == std::thread::id() || running_ != key; });
  }

  // Calls `use` with the callback; returns false if there is none. Always on the same thread, never from inside a callback.
  template <class Use>
  bool run(const Key& key, Use use) {
    std::shared_ptr<const Callback> callback;
    {
      const std::lock_guard lock(mutex_);
      const auto found = callbacks_.find(key);
      if (found == callbacks_.end()) return false;
      callback = found->second;
      running_ = key;
      runner_ = std::this_thread::get_id();
    }
    use(*callback);
    callback.reset();  // destroys what the callback owns while remove() still waits
    {
      const std::lock_guard lock(mutex_);
      runner_ = {};
    }
    idle_.notify_all();
    return true;
  }

  [[nodiscard]] std::vector<Key> keys() const {
    const std::lock_guard lock(mutex_);
    std::vector<Key> all;
    for (const auto& [key, callback] : callbacks_) all.push_back(key);
    return all;
  }

 private:
  const std::uint32_t generation_ = fork_generation();
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::map<Key, std::shared_ptr<const Callback>> callbacks_;
  Key running_{};
  std::thread::id runner_;
};

}  // namespace seto
