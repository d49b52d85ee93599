#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "transports/rdma/verbs/verbs.h"
#include "transports/rdma/verbs/verbs_advice.h"

// RDMA devices in memory, for tests. Bytes of a write are placed piece by piece, in random order and after garbage, so they are
// valid only once its completion is there. A request needs what a real device needs: a registered source, a key and a range
// that the peer's device knows, a receive request at the peer, ports that are up, room in the queue.
namespace seto::support {

class FakeFabric final {
 public:
  enum class Drive : std::uint8_t { by_hand, by_thread };  // by_hand: requests move in run() and step() only

  explicit FakeFabric(std::uint64_t seed, Drive drive = Drive::by_hand);
  FakeFabric(const FakeFabric&) = delete;
  FakeFabric& operator=(const FakeFabric&) = delete;
  ~FakeFabric();

  // ---- devices ----
  void add(rdma::DeviceFacts device);
  // A device of one port on Ethernet with a RoCE v2 GID of this address, or on InfiniBand with this LID. With a GID: it may share
  // the LID with others, and packets for it need that GID.
  void add_ethernet(const std::string& name, const std::string& address, std::uint32_t mtu = 4'096);
  void add_infiniband(const std::string& name, std::uint16_t lid, const std::string& own_gid = {});
  [[nodiscard]] std::vector<rdma::DeviceFacts> facts();  // of all devices
  [[nodiscard]] std::unique_ptr<rdma::Verbs> verbs();    // of a process on this fabric; the fabric outlives it

  // ---- failures ----
  // The call fails with that errno, once, after so many that succeed. It counts from now, over all devices.
  void fail(rdma::VerbsCall call, int error, std::uint64_t after = 0);
  // A request that would succeed fails, after so many that do.
  void fail_completion(rdma::CompletionStatus status, std::uint64_t after = 0);
  // Queues accept so many requests at once, whatever they were made for.
  void limit_queues(std::uint32_t requests);
  void set_port(const std::string& device, std::uint8_t port, rdma::PortState state);
  void set_distance(const std::string& device, std::uint8_t distance);  // from the memory of the rank
  // The GIDs of the only port of this device on Ethernet, from now on. Empty: it has none.
  void set_address(const std::string& device, const std::string& address);
  // The port keeps only the GIDs that follow from its own hardware address, as real ports without an IP address do.
  void take_ip_address(const std::string& device);
  void remove(const std::string& device);
  // Packets between the two devices are lost from now on.
  void separate(const std::string& one, const std::string& other);

  // Bytes that devices write to memory of a dma-buf are not there before show_held_writes(), although their completion is.
  void hold_writes_to_dma_bufs();
  void show_held_writes();
  // A device reads other bytes from memory of a dma-buf than the GPU has there.
  void garble_reads_of_dma_bufs();

  // ---- movement ----
  // One step of one request. False: none can move.
  bool step();
  void run();
  // How many requests wait at a peer that has no receive request for them.
  [[nodiscard]] std::size_t starving();
  [[nodiscard]] std::size_t doorbells() const { return doorbells_; }
  // The bytes of this memory that devices have read since, where they lie; inlined ones are not among them.
  void count_reads_of(const std::byte* memory, std::size_t size);
  [[nodiscard]] std::size_t bytes_read();
  // The bytes of all dma-bufs that devices have read so far.
  [[nodiscard]] std::size_t bytes_read_of_dma_bufs();
  // The same of bytes that devices have written there.
  void count_writes_to(const std::byte* memory, std::size_t size);
  [[nodiscard]] std::size_t bytes_written();
  // From now on the rest of a write that had begun when its queue pair failed, or was destroyed, is on its way in the network.
  // land_packets() writes it where the queue pair that it is for exists, in any state, and returns how many bytes that were.
  void keep_packets();
  std::size_t land_packets();
  [[nodiscard]] std::size_t packets_on_their_way();
  [[nodiscard]] std::size_t signalled() const { return signalled_; }
  [[nodiscard]] std::size_t inlined() const { return inlined_; }
  // How many queue pairs have failed.
  [[nodiscard]] std::size_t failed();
  // The paths of the queue pairs that are connected now.
  [[nodiscard]] std::vector<rdma::QueuePairPath> paths();
  // The queue pairs that exist now on devices whose names begin so.
  [[nodiscard]] std::size_t queue_pairs(const std::string& prefix);
  // The memory that is registered now, of all devices.
  [[nodiscard]] std::size_t registered_bytes();

 private:
  static constexpr std::size_t kPiece = 256;  // bytes that are placed at once

  friend class FakeDevice;
  friend class FakeQueue;
  friend class FakePair;
  friend class FakeRegion;
  friend class FakeNames;

  struct Region {
    std::string device;
    std::uint64_t address = 0;    // as requests name the memory
    std::byte* memory = nullptr;  // where its bytes lie: for a dma-buf in a mapping of its own
    std::size_t size = 0;
    bool is_dma_buf = false;
    bool in_order = true;  // bytes of a write come behind those of the writes before it
  };
  struct HeldWrite {
    std::byte* target = nullptr;
    std::vector<std::byte> bytes;
  };
  struct Packet {
    std::uint32_t pair = 0;  // that it is for
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    std::vector<std::byte> bytes;
  };
  struct Queue {
    std::uint32_t depth = 0;
    std::deque<rdma::Completion> completions;
    bool armed = false;
    int descriptor = -1;
  };
  struct Send {
    rdma::SendRequest request;
    std::vector<std::byte> inlined;
    std::vector<std::size_t> pieces;  // not yet placed, in random order
    bool begun = false;
    std::uint32_t tries = 0;
  };
  enum class State : std::uint8_t { reset, prepared, connected, failed };
  struct Pair {
    std::string device;
    State state = State::reset;
    rdma::QueuePairSize size;
    rdma::QueuePairPath path;
    std::shared_ptr<Queue> queue;
    std::deque<Send> sends;
    std::deque<rdma::ReceiveRequest> receives;
    std::uint32_t held = 0;  // requests that succeeded unsignalled: they keep their places until a later one completes
  };
  struct Device {
    rdma::DeviceFacts facts;
    bool removed = false;
    std::vector<std::shared_ptr<std::deque<rdma::AsyncEvent>>> events;  // of each time it was opened
    std::vector<int> descriptors;
  };
  struct Failure {
    int error = 0;
    std::uint64_t after = 0;
  };

  // All with the lock.
  std::optional<int> injected(rdma::VerbsCall call);
  bool step_locked();
  bool step_pair(std::uint32_t number, Pair& pair);
  [[nodiscard]] Pair* peer_of(const Pair& pair);
  [[nodiscard]] bool port_is_up(const Pair& pair) const;
  [[nodiscard]] bool are_separate(const Pair& one, const Pair& other) const;
  [[nodiscard]] const rdma::PortFacts* port_of(const Pair& pair) const;
  [[nodiscard]] std::optional<rdma::CompletionStatus> refusal(const Pair& pair, const Pair& peer, const Send& send) const;
  [[nodiscard]] std::byte* bytes_at(std::uint32_t key, std::uint64_t address);
  // A write that is not the next one of its pair places a piece. False: none may.
  bool step_ahead(Pair& pair, const Pair& peer);
  void begin(Send& send, std::byte* target);
  void place_piece(Send& send, std::byte* target);
  [[nodiscard]] std::vector<std::byte> piece_of(const Send& send, std::size_t at);
  void leave_packets(const Pair& pair);
  void write(std::byte* target, std::span<const std::byte> bytes);
  void read_source(const rdma::SendRequest& request, std::size_t at, std::span<std::byte> to);
  void deliver(std::uint32_t number, Pair& pair, Pair& peer, Send& send);
  void complete(Queue& queue, const rdma::Completion& completion);
  void fail_pair(std::uint32_t number, Pair& pair, rdma::CompletionStatus status);
  void tell(const std::string& device, const rdma::AsyncEvent& event);
  void drive();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::map<std::string, Device> devices_;
  std::map<std::uint32_t, Pair> pairs_;
  std::map<std::uint32_t, Region> regions_;
  std::uint32_t next_number_ = 17;
  std::array<std::deque<Failure>, rdma::kVerbsCalls> failures_;
  std::deque<std::pair<rdma::CompletionStatus, std::uint64_t>> completion_failures_;
  std::set<std::pair<std::string, std::string>> separate_;
  std::uint32_t queue_limit_ = ~std::uint32_t{0};
  bool holds_writes_ = false, garbles_reads_ = false;
  std::vector<HeldWrite> held_writes_;
  std::span<const std::byte> counted_, counted_writes_;
  std::size_t bytes_read_ = 0, bytes_written_ = 0, of_dma_bufs_ = 0;
  bool keeps_packets_ = false;
  std::vector<Packet> packets_;
  std::size_t doorbells_ = 0;
  std::size_t signalled_ = 0;
  std::size_t inlined_ = 0;
  std::size_t failed_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace seto::support
