#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/core/call/collective_call.h"
#include "src/core/choice/planner.h"
#include "src/core/device_memory/memory/device_arena.h"
#include "src/core/device_relay/relay.h"
#include "src/engine/device/device_lowering.h"
#include "src/engine/kernels/device_launch.h"
#include "src/plan/layout.h"
#include "transports/peer_status.h"

namespace seto {

struct TransferList;
// Whether this rank's GPU can read the buffers of every other rank where they lie.
enum class PeerBuffers : std::uint8_t { out_of_reach, in_reach };

// A call shape that is ready to be launched. Its program and its scalar lie in pinned memory, and are copied to the GPU in the
// stream of the first launch: a stream of the library might share a hardware queue with work that waits for this rank.
struct DeviceShape {
  kernels::Address program = 0;
  kernels::Address scalar = 0;
  bool lends = false;           // the GPUs of other ranks read or may read the caller's buffers (decision 36)
  kernels::Address staged = 0;  // the same bytes on the host
  std::size_t staged_size = 0;
  bool is_copied = false;  // the copy was issued, in a stream that is not captured
  std::size_t scratch_size = 0;
  cuda::Kernel kernel = nullptr;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;
  std::string what;  // "all_reduce of 1024 float, sum"
  std::string plan;  // "ring all_reduce"
  RecordedCall recorded;
  Note note;  // what the ranks compare; the communicator sets the operation and the digest at each call

  // The peer for whom a block waits at an operand of a step, and what it waits for: "a message of rank 3".
  [[nodiscard]] std::string wait_text(const kernels::StopReport& report) const;
  // -1: unknown.
  [[nodiscard]] Rank awaited(const kernels::StopReport& report) const;

  Rank rank = 0;
  std::vector<std::byte> image;                   // the program, for reports
  std::vector<Rank> end_peers;                    // of the program's ends
  std::vector<Rank> done_peers;                   // of its peers that say what they have done; this rank: its relay
  std::shared_ptr<RelayChannels> relayed;         // null: the communicator has no relay, or these are sends and receives
  std::shared_ptr<const TransferList> transfers;  // null: a collective
  std::uint64_t last_launch = 0;
  bool is_captured = false;   // a graph may launch it again at any time
  bool is_multicast = false;  // the program is a kernels::MulticastProgram
};

// The bound shapes of one device communicator, by call. A rank binds the programs of all ranks, so the layout of the workspaces
// follows from the call alone and needs no exchange. One thread at a time; the context is current.
class DeviceShapes final {
 public:
  struct Setup {
    const GpuContext* gpu = nullptr;
    Rank rank = 0;
    Surroundings here;  // its costs are set by this class
    CostModel costs;    // of calls between GPUs; all ranks have the same
    std::span<const kernels::Address> workspaces;
    std::size_t workspace_capacity = 0;
    cuda::DevicePointer first_piece = 0;  // DeviceArena::kPiece bytes behind this rank's workspace, for programs
    std::uint32_t most_blocks = 1;
    PeerBuffers peer_buffers = PeerBuffers::out_of_reach;  // the same on all ranks
    const RelayedPairs* pairs = nullptr;
    Relay* relay = nullptr;  // null: no pair of ranks is relayed
    bool marks = false;      // short calls may be exchanges of marked messages
  };
  static Result<std::unique_ptr<DeviceShapes>> create(const Setup& setup);
  ~DeviceShapes();
  DeviceShapes(const DeviceShapes&) = delete;
  DeviceShapes& operator=(const DeviceShapes&) = delete;

  // The call was checked. `ended`: the number of launches that have ended, so that shapes of them may be replaced.
  Result<std::shared_ptr<DeviceShape>> find(const Call& call, std::uint64_t ended);
  // Forgets all shapes. No launch is under way, and no graph has one.
  void use(const CostModel& costs, std::size_t workspace_capacity);
  [[nodiscard]] const CostModel& costs() const { return setup_.costs; }
  // From now on this rank's GPU can read the buffers of every other rank, as all ranks have found. Forgets all shapes.
  void allow_lending();
  // From now on short calls may be exchanges of marked messages. Forgets all shapes.
  void allow_marks();
  // Scratch memory of at least so many bytes, valid until the end. All operations use the same.
  Result<kernels::Address> scratch(std::size_t size) { return arena_.grow(scratch_, size); }
  // The same for copies of callers' buffers that peers cannot read.
  Result<kernels::Address> lendable(std::size_t size) { return arena_.grow(lendable_, size); }

  // Memory for the residuals of a state of error feedback. The communicator keeps it until it ends, and uses it again.
  Result<std::shared_ptr<FeedbackMemory>> residuals(std::shared_ptr<GpuContext> gpu, std::size_t size);

  // Puts a program and its scalar where a launch copies them from, and takes both back.
  Status stage(const std::vector<std::byte>& image, const std::array<std::byte, 8>& scalar, DeviceShape& shape);
  void unstage(const DeviceShape& shape);

  static constexpr std::size_t kMostShapes = 256;

 private:
  struct Key {
    Collective collective;
    DataType type;
    ReduceOp op;
    InPlace in_place;
    Rank root;
    std::uint64_t count;
    int algorithm, codec;
    bool deterministic;
    std::uint64_t readers;            // Relay::Readers
    std::array<std::byte, 8> scalar;  // of pre-multiplied sums
    std::vector<std::uint64_t> counts, displacements;

    auto operator<=>(const Key&) const = default;
  };
  struct Chosen;  // everything from which a program is bound, but how it is cut
  struct Fitted;

  explicit DeviceShapes(const Setup& setup);
  Status open();
  [[nodiscard]] Key key_of(const Call& call) const;
  [[nodiscard]] Layout layout_of(const Call& call, const Chosen& chosen, Rank rank) const;
  Result<std::shared_ptr<DeviceShape>> bind(const Call& call, const Key& key);
  [[nodiscard]] Result<Chosen> chosen_for(const Call& call, const Key& key) const;
  void lend(const Call& call, Chosen& chosen, const Tiers& tiers) const;
  [[nodiscard]] std::vector<Rank> done_peers() const;
  Result<Fitted> fit(const Call& call, const Chosen& chosen) const;
  void use_gpu_slots(const Relay::Readers& readers, Fitted& fitted) const;
  // The blocks of `wanted` count, and whether its messages are marked.
  Result<Fitted> cut(const Call& call, const Chosen& chosen, std::uint64_t slice_elements, const DeviceCut& wanted) const;

  Setup setup_;
  const cuda::Driver& driver_;
  DeviceArena arena_;
  DeviceArena staging_;
  std::map<Key, std::shared_ptr<DeviceShape>> shapes_;
  const Key* last_key_ = nullptr;
  std::shared_ptr<DeviceShape> last_;
  GrowingMemory scratch_, lendable_;
  std::vector<std::shared_ptr<DeviceResiduals>> residuals_;
};

}  // namespace seto
