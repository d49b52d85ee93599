#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/core/device_memory/device_shapes.h"
#include "src/core/launch/point_to_point.h"
#include "src/engine/device/device_transfers.h"

namespace seto {

// Sends and receives that one rank issues together, and that one kernel runs.
class TransferBatch final {
 public:
  void add(Transfer transfer, std::uint32_t deadline_ms);
  // All transfers of an all_to_all_v.
  void add(std::vector<Transfer> exchange, std::uint32_t deadline_ms);

  [[nodiscard]] const std::vector<Transfer>& transfers() const { return transfers_; }
  [[nodiscard]] std::uint32_t exchanges() const { return exchanges_; }
  // 0: a send or a receive; else the number of its all_to_all_v in this batch, from 1.
  [[nodiscard]] std::uint32_t exchange_of(std::size_t transfer) const { return exchange_of_[transfer]; }
  // The longest of all; 0: the communicator's own.
  [[nodiscard]] std::uint32_t deadline_ms() const { return deadline_ms_; }

 private:
  void make_room(std::size_t more);
  void merge(std::uint32_t deadline_ms);

  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> exchange_of_;
  std::uint32_t exchanges_ = 0;
  std::uint32_t deadline_ms_ = 0;
  bool has_deadline_ = false;
};

// The messages of one launch with other ranks, for texts.
struct TransferList {
  // Those of a pair in one direction and one channel.
  struct Lane {
    LocalTransfer pair;
    std::uint32_t report = 0;
    std::uint32_t first_message = 0;
    std::uint32_t message_count = 0;
  };
  std::vector<Lane> lanes;
  std::vector<Rank> relayed;  // the ranks of them that the GPU does not reach
  std::vector<kernels::TransferMessage> messages;
};

// The programs of sends and receives of one device communicator, by what they move and where. One thread at a time binds, and the
// context is current then; any thread may ask how far a launch is.
class TransferShapes final {
 public:
  struct Setup {
    const GpuContext* gpu = nullptr;
    Rank rank = 0;
    int ranks = 1;
    std::span<const kernels::Address> workspaces;
    std::uint64_t area = 0;  // where the area of transfers begins in every workspace
    std::uint32_t most_blocks = 1;
    const RelayedPairs* relayed = nullptr;
    kernels::Address staging = 0;  // of relayed pairs: where their channels begin
  };
  // `staging` outlives the object.
  static Result<std::unique_ptr<TransferShapes>> create(const Setup& setup, DeviceShapes& staging);
  ~TransferShapes();
  TransferShapes(const TransferShapes&) = delete;
  TransferShapes& operator=(const TransferShapes&) = delete;

  // The transfers were checked one by one; here those of this rank to itself are. Null: nothing is to be moved.
  Result<std::shared_ptr<DeviceShape>> find(const TransferBatch& batch, std::uint64_t ended);
  // Numbers the exchanges of a batch. Returns the number before the first one.
  std::uint64_t number_exchanges(const TransferBatch& batch);
  [[nodiscard]] kernels::Address reports() const { return reports_there_; }

  // A message of a launch that has not ended. A launch that was stopped knows which; else it may also be a later one.
  struct Waiting {
    LocalTransfer pair;
    std::string text;  // "receive of 4 float from rank 1"
  };
  [[nodiscard]] std::vector<Waiting> waiting(const TransferList& list, std::uint64_t launch, std::uint64_t exchange) const;
  [[nodiscard]] static std::string text_of(const std::vector<Waiting>& waiting);
  // The two calls that differ, if a kernel has refused a message.
  [[nodiscard]] Status refusal() const;

  static constexpr std::size_t kMostShapes = 64;

 private:
  using Image = std::vector<std::byte>;

  TransferShapes(const Setup& setup, DeviceShapes& staging, TransferArea area)
      : setup_(setup), driver_(setup.gpu->driver()), staging_(staging), area_(area) {}
  Status open();
  Result<Image> image_of(const TransferBatch& batch) const;
  Result<std::shared_ptr<DeviceShape>> bind(const TransferBatch& batch, const Image& image);
  [[nodiscard]] bool is_done(std::uint32_t report, std::uint64_t launch) const;

  Setup setup_;
  const cuda::Driver& driver_;
  DeviceShapes& staging_;
  TransferArea area_;
  kernels::TransferReport* reports_ = nullptr;  // pinned
  kernels::Address reports_there_ = 0;
  std::uint64_t exchanges_ = 0;
  std::map<std::string, std::shared_ptr<DeviceShape>> shapes_;  // by the bytes of their programs
};

}  // namespace seto
