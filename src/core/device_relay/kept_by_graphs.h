#pragma once

#include <mutex>
#include <vector>

namespace seto {

// The objects of one class that host functions of graphs use. A graph may outlive its communicator, so an object is never freed
// once a graph has it. The list shows checkers of leaks where it is.
template <class Object>
class KeptByGraphs final {
 public:
  static void add(const Object* object) {
    KeptByGraphs& kept = of_process();
    const std::lock_guard lock(kept.mutex_);
    kept.all_.push_back(object);
  }
  // No graph has taken it.
  static void remove(const Object* object) {
    KeptByGraphs& kept = of_process();
    const std::lock_guard lock(kept.mutex_);
    std::erase(kept.all_, object);
  }

 private:
  KeptByGraphs() = default;
  static KeptByGraphs& of_process() {
    static auto* const only = new KeptByGraphs;
    return *only;
  }

  std::mutex mutex_;
  std::vector<const Object*> all_;
};

}  // namespace seto
