#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace seto::software_gpu::driver {

struct PhysicalMemory;

// The process from which memory came by legacy IPC. The real driver does not say what becomes of the memory when that process
// frees it or ends, so here it is gone then.
class Exporter final {
 public:
  // Throws if there is no such process.
  Exporter(int process, std::shared_ptr<PhysicalMemory> memory);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // Asks the system once in a millisecond.
  [[nodiscard]] bool memory_is_gone();
  // By the exporter, for all that have opened the memory.
  static void mark_freed(const PhysicalMemory& memory);

 private:
  const int process_;  // a descriptor
  const std::shared_ptr<PhysicalMemory> memory_;
  std::chrono::steady_clock::time_point next_look_;
  bool is_gone_ = false;
};

}  // namespace seto::software_gpu::driver
