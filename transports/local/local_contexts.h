#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace seto {

// Which contexts this process has, by number, and what each shares with the others: whatever its maker put there, mapped once, so
// that both sides see one address. An entry keeps nothing alive. Any thread; control path only.
class LocalContexts final {
 public:
  static LocalContexts& of_process();

  void add(std::uint64_t context, const std::shared_ptr<void>& shared);
  void remove(std::uint64_t context);
  // Null: no such context, or no longer. Else what add() was given, which lives as long as the result does.
  [[nodiscard]] std::shared_ptr<void> find(std::uint64_t context);

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<void>> by_number_;
};

}  // namespace seto
