#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/common/gpu.h"
#include "bench/common/job.h"
#include "bench/common/options.h"
#include "bench/common/program.h"
#include "bench/common/result.h"

namespace seto::bench {

// One line of the table, before it is measured.
struct RowPlan {
  std::uint64_t size;
  setoDataType_t type;
  Op op;
  int root;
  std::string codec = "none";  // permitted for sums
};

enum class Where : std::uint8_t { out_of_place, in_place };

// One rank's communicator, stream and buffers. All ranks call every function in the same order. A false result or an empty
// Placement means that the job has failed: the reason is on stderr, and Job::fail was called.
class RankRun final {
 public:
  RankRun(const Program& program, const Options& options, Job& job, int rank);
  ~RankRun();
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  [[nodiscard]] bool open();
  [[nodiscard]] bool close();
  [[nodiscard]] bool measure(const RowPlan& row, Where where, Placement& result);

 private:
  struct Prepared;  // a row whose operation and pointers are ready
  struct Elapsed {
    double seconds;
    double* iterations;  // one time for each iteration, or null
  };

  static double seconds_now();
  [[nodiscard]] bool ok(setoResult_t result, const char* what);
  [[nodiscard]] bool allocate();
  [[nodiscard]] bool allocate_one(std::byte*& buffer, void*& handle);
  [[nodiscard]] bool prepare(const RowPlan& row, Where where, Prepared& prepared);
  static Call moved(const Prepared& prepared, std::size_t place);
  [[nodiscard]] bool issue(const Prepared& prepared, std::size_t iteration);
  [[nodiscard]] bool iterate(const Prepared& prepared, int iterations, Elapsed& elapsed);
  // The same from a graph of the calls, which is launched as often as -G says.
  [[nodiscard]] bool record_iterations(const Prepared& prepared);
  [[nodiscard]] bool launch_iterations(Elapsed& elapsed);
  [[nodiscard]] bool record(const std::function<bool()>& calls);
  [[nodiscard]] bool links_may_code(const RowPlan& row) const;
  [[nodiscard]] bool ask_codec(Prepared& prepared, Placement& result);
  [[nodiscard]] bool time_row(const Prepared& prepared, Placement& result);
  [[nodiscard]] bool check_row(const Prepared& prepared, Placement& result);
  [[nodiscard]] bool call_once(const Call& call);
  [[nodiscard]] bool check_once(Prepared& prepared, std::uint64_t& wrong);
  [[nodiscard]] bool find_bound(Prepared& prepared);
  [[nodiscard]] bool exchange(double mine, std::span<double> all);
  [[nodiscard]] bool wait_stream();
  [[nodiscard]] bool ok(const Status& status, const char* what);
  [[nodiscard]] bool open_gpu();
  [[nodiscard]] bool idle(std::byte* buffer, std::size_t size);
  // Where the host prepares and checks what a buffer holds: in the buffer, or in a copy of device memory.
  template <class Byte>
  [[nodiscard]] Byte* on_host(Byte* memory) const;
  void fill_input(const Prepared& prepared);
  std::uint64_t compare(const Prepared& prepared) const;
  IterationStatistics slowest_iterations();

  const Program& program_;
  const Options& options_;
  Job& job_;
  int rank_;
  setoComm_t comm_ = nullptr;
  setoStream_t stream_ = nullptr;
  std::byte* send_ = nullptr;
  std::byte* receive_ = nullptr;
  void* send_handle_ = nullptr;
  void* receive_handle_ = nullptr;
  std::size_t capacity_ = 0;
  std::unique_ptr<Gpu> gpu_;                         // null: host memory
  std::vector<std::byte> send_copy_, receive_copy_;  // of device memory, for checks
  std::uint64_t seed_ = 1;
};

// Bytes that each buffer must hold for the largest row.
std::size_t largest_buffer(const Program& program, const Options& options);

}  // namespace seto::bench
