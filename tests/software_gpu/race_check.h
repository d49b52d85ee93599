#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/software_gpu/launch.h"
#include "tests/software_gpu/thread_order.h"

namespace seto::software_gpu {

// Finds accesses that conflict and that the causality order of the PTX memory model does not order: no barrier, no release and
// acquire of sufficient scope, no end of a kernel. It follows which value each strong load has read, so it finds a missing
// release or too small a scope although the values of this run were right. Accesses of the host and what only fence.sc orders are
// not counted. A shuffle orders nothing.
class RaceCheck final {
 public:
  RaceCheck(bool checks_shared, bool checks_global) : checks_shared_(checks_shared), checks_global_(checks_global) {}

  [[nodiscard]] bool enabled() const { return checks_shared_ || checks_global_; }

  void launch(const Launch& launch);
  // Kernels that are launched after that of the thread has ended know all that the thread knew at its end.
  void end_thread(std::uint32_t launch, const ThreadOrder& thread);
  void end_launch(std::uint32_t number);
  // `number` is that of the block before plus 1.
  [[nodiscard]] BlockOrder start_block(std::uint32_t number, std::uint32_t launch, const std::array<std::uint32_t, 3>& index);
  // All kernels are gone.
  void forget();

  struct Access {
    BlockOrder* shared = nullptr;  // the block whose shared memory it is; null: global memory
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    Order order = Order::weak;
    Scope scope = Scope::system;
    std::uint32_t line = 0;
  };
  // These throw a Fault of kind `race` that names both accesses. `source` is the write whose value a strong read has returned.
  void read(ThreadOrder& thread, const Access& access, const WriteRef& source);
  // Returns what has to travel with the value of a strong store.
  [[nodiscard]] WriteRef write(ThreadOrder& thread, const Access& access);
  // An atomic is checked at its end, when it is known what it has read. Its write is complete then, before another thread runs.
  [[nodiscard]] std::shared_ptr<StrongWrite> begin_update(const ThreadOrder& thread, const Access& access);
  void end_update(ThreadOrder& thread, const Access& access, const WriteRef& source, StrongWrite& write);

  static void fence(ThreadOrder& thread, Scope scope);

 private:
  struct KernelRun {
    LaunchRequest request;
    std::shared_ptr<const Clocks> past;
    std::uint64_t ended = 0;                 // 0: it runs
    Clocks known{};                          // by its threads that have ended
    std::shared_ptr<const Clocks> joined{};  // the last part of it
  };
  struct BlockPlace {
    std::uint32_t launch = 0;
    std::array<std::uint32_t, 3> index{};
  };

  [[nodiscard]] bool checks(const Access& access) const { return access.shared != nullptr ? checks_shared_ : checks_global_; }
  [[nodiscard]] bool happens_before(const Moment& earlier, const ThreadOrder& thread, Order order) const;
  [[nodiscard]] bool is_ordered(const Record& earlier, const Cell& cell, const ThreadOrder& thread, Order order) const;
  void check(ThreadOrder& thread, const Access& access, Record record);
  void check_cell(const ThreadOrder& thread, const Access& access, const Record& record, const Cell& cell) const;
  [[nodiscard]] static bool sees(const ThreadOrder& thread, const Access& access, const StrongWrite& source);
  void note_observation(const ThreadOrder& thread, const Access& access, const StrongWrite& source);
  static void sign(ThreadOrder& thread, const Access& access, StrongWrite& write);
  [[noreturn]] void report(const ThreadOrder& thread, const Access& access, const Record& record, const Record& earlier) const;
  [[nodiscard]] std::string missing(const ThreadOrder& thread, const Access& access, const Record& record,
                                    const Record& earlier) const;
  ShadowMemory& accesses_of(const Access& access) {
    return access.shared != nullptr ? access.shared->shared_accesses : accesses_;
  }

  bool checks_shared_, checks_global_;
  ShadowMemory accesses_;
  std::uint64_t ended_ = 0;  // kernels so far
  Clocks known_;             // by their threads
  std::uint64_t writes_ = 0;
  // By number, which begins at 1.
  std::vector<KernelRun> kernels_ = std::vector<KernelRun>(1);
  std::vector<BlockPlace> blocks_ = std::vector<BlockPlace>(1);
};

}  // namespace seto::software_gpu
