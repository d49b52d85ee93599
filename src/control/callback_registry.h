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

// Callbacks of others by key, run one at a time by one thread, with no lock held. Who removes one knows that it is not running
// any more, unless it removes itself.
template <class Key, class Callback>
class CallbackShelf final {
 public:
  CallbackShelf() = default;
  CallbackShelf(const CallbackShelf&) = delete;
  CallbackShelf& operator=(const CallbackShelf&) = delete;

  // False: the key is taken.
  [[nodiscard]] bool add(const Key& key, Callback callback) {
    const std::lock_guard lock(mutex_);
    return callbacks_.emplace(key, std::make_shared<const Callback>(std::move(callback))).second;
  }

  // Any thread.
  void remove(const Key& key) {
    if (generation_ != fork_generation()) return;  // in a forked child the lock may be held for ever
    std::shared_ptr<const Callback> callback;      // outlives the lock: it may own what takes it
    std::unique_lock lock(mutex_);
    const auto found = callbacks_.find(key);
    if (found != callbacks_.end()) {
      callback = std::move(found->second);
      callbacks_.erase(found);
    }
    if (runner_ == std::this_thread::get_id()) return;
    idle_.wait(lock, [&] { return runner_ == std::thread::id() || running_ != key; });
  }

  // Calls `use` with the callback; false if there is none. Always by the same thread, not from inside a callback.
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
    callback.reset();  // what it owns goes while remove() still waits
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
