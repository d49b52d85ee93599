#pragma once

#include <cstddef>
#include <cstdint>

// The part of the binary interface of libibverbs (version 1.1, stable since rdma-core 1) that the library uses, declared by hand:
// so it is built the same on a machine without the header. tests/unit/rdma/libibverbs_abi_test.cc compares sizes and offsets with
// the header where it is installed. Polling and posting are no symbols of libibverbs: they are pointers in each context.
namespace seto::rdma::abi {

struct Context;
struct Queue;       // ibv_cq
struct Pair;        // ibv_qp
struct Domain;      // ibv_pd
struct DeviceName;  // ibv_device

struct alignas(8) Gid {
  std::uint8_t bytes[16];
};

struct GidEntry {
  Gid gid;
  std::uint32_t index;
  std::uint32_t port;
  std::uint32_t type;
  std::uint32_t interface;
};

struct Segment {  // ibv_sge
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t local_key;
};

enum SendOpcode : std::uint32_t { kWrite = 0, kWriteWithImmediate = 1, kSend = 2 };
inline constexpr std::uint32_t kSignalled = 1U << 1;
inline constexpr std::uint32_t kInline = 1U << 3;

struct SendWork {  // ibv_send_wr
  std::uint64_t id;
  SendWork* next;
  Segment* segments;
  int segment_count;
  std::uint32_t opcode;
  std::uint32_t flags;
  std::uint32_t immediate;  // network byte order
  std::uint64_t remote_address;
  std::uint32_t remote_key;
  std::uint8_t other[128 - 52];
};

struct ReceiveWork {  // ibv_recv_wr
  std::uint64_t id;
  ReceiveWork* next;
  Segment* segments;
  int segment_count;
};

inline constexpr std::uint32_t kReceived = 1U << 7;
inline constexpr std::uint32_t kReceivedWrite = kReceived + 1;

struct WorkCompletion {  // ibv_wc
  std::uint64_t id;
  std::uint32_t status;
  std::uint32_t opcode;
  std::uint32_t vendor_error;
  std::uint32_t size;
  std::uint32_t immediate;  // network byte order
  std::uint32_t queue_pair;
  std::uint32_t source_queue_pair;
  std::uint32_t flags;
  std::uint16_t pkey_index;
  std::uint16_t source_lid;
  std::uint8_t service_level;
  std::uint8_t path_bits;
};

struct ContextOperations {
  void* before_poll[11];
  int (*poll)(Queue*, int, WorkCompletion*);
  int (*request_notification)(Queue*, int);
  void* before_post[12];
  int (*post_send)(Pair*, SendWork*, SendWork**);
  int (*post_receive)(Pair*, ReceiveWork*, ReceiveWork**);
  void* after_post[5];
};

struct Context {
  DeviceName* device;
  ContextOperations operations;
  int command_descriptor;
  int event_descriptor;
};

struct Region {  // ibv_mr
  Context* context;
  Domain* domain;
  void* address;
  std::size_t length;
  std::uint32_t handle;
  std::uint32_t local_key;
  std::uint32_t remote_key;
};

struct Channel {  // ibv_comp_channel
  Context* context;
  int descriptor;
};

struct Pair {
  Context* context;
  void* own;
  Domain* domain;
  Queue* send_queue;
  Queue* receive_queue;
  void* shared_receives;
  std::uint32_t handle;
  std::uint32_t number;
};

struct Queue {
  Context* context;
};

struct DeviceAttributes {  // ibv_device_attr
  std::uint8_t before[108];
  int most_queue_pairs;
  int most_work_requests;
  std::uint32_t capabilities;
  int most_segments;
  int most_read_segments;
  int most_queues;
  int most_completions;
  std::uint8_t after[232 - 136];
};
// The number of ports is in the last bytes.
inline constexpr std::size_t kPortCountAt = 227;

struct PortAttributes {  // ibv_port_attr
  std::uint32_t state;
  std::uint32_t most_mtu;
  std::uint32_t active_mtu;
  int gid_count;
  std::uint32_t capabilities;
  std::uint32_t most_message;
  std::uint32_t bad_pkeys;
  std::uint32_t bad_qkeys;
  std::uint16_t pkey_count;
  std::uint16_t lid;
  std::uint16_t manager_lid;
  std::uint8_t lid_mask;
  std::uint8_t lanes;
  std::uint8_t manager_level;
  std::uint8_t subnet_timeout;
  std::uint8_t init_reply;
  std::uint8_t active_width;
  std::uint8_t active_speed;
  std::uint8_t physical_state;
  std::uint8_t link_layer;
  std::uint8_t flags;
  std::uint16_t capabilities2;
};

inline constexpr std::uint8_t kPortNeedsGlobalRoute = 1;

struct Capacity {  // ibv_qp_cap
  std::uint32_t sends;
  std::uint32_t receives;
  std::uint32_t send_segments;
  std::uint32_t receive_segments;
  std::uint32_t inlined;
};

inline constexpr std::uint32_t kReliableConnection = 2;

struct PairSetup {  // ibv_qp_init_attr
  void* own;
  Queue* send_queue;
  Queue* receive_queue;
  void* shared_receives;
  Capacity capacity;
  std::uint32_t type;
  int signal_all;
};

struct AddressVector {  // ibv_ah_attr
  Gid remote_gid;
  std::uint32_t flow_label;
  std::uint8_t gid_index;
  std::uint8_t hop_limit;
  std::uint8_t traffic_class;
  std::uint8_t padding;
  std::uint16_t remote_lid;
  std::uint8_t service_level;
  std::uint8_t path_bits;
  std::uint8_t static_rate;
  std::uint8_t is_global;
  std::uint8_t port;
};

enum PairState : std::uint32_t { kReset = 0, kInit = 1, kReadyToReceive = 2, kReadyToSend = 3, kError = 6 };

inline constexpr std::uint32_t kAccessLocalWrite = 1;
inline constexpr std::uint32_t kAccessRemoteWrite = 2;
inline constexpr std::uint32_t kAccessRelaxedOrdering = 1U << 20;

// Bits of the attributes that a change of a queue pair sets.
inline constexpr int kSetState = 1 << 0;
inline constexpr int kSetAccess = 1 << 3;
inline constexpr int kSetPkeyIndex = 1 << 4;
inline constexpr int kSetPort = 1 << 5;
inline constexpr int kSetPath = 1 << 7;
inline constexpr int kSetMtu = 1 << 8;
inline constexpr int kSetTimeout = 1 << 9;
inline constexpr int kSetRetries = 1 << 10;
inline constexpr int kSetRnrRetries = 1 << 11;
inline constexpr int kSetRemoteSequence = 1 << 12;
inline constexpr int kSetMostReads = 1 << 13;
inline constexpr int kSetRnrTimer = 1 << 15;
inline constexpr int kSetOwnSequence = 1 << 16;
inline constexpr int kSetMostReadsOfPeer = 1 << 17;
inline constexpr int kSetRemotePair = 1 << 20;

struct PairAttributes {  // ibv_qp_attr
  std::uint32_t state;
  std::uint32_t current_state;
  std::uint32_t mtu;
  std::uint32_t migration;
  std::uint32_t key;
  std::uint32_t remote_sequence;
  std::uint32_t own_sequence;
  std::uint32_t remote_pair;
  std::uint32_t access;
  Capacity capacity;
  AddressVector path;
  AddressVector other_path;
  std::uint16_t pkey_index;
  std::uint16_t other_pkey_index;
  std::uint8_t notify_drained;
  std::uint8_t draining;
  std::uint8_t most_reads;
  std::uint8_t most_reads_of_peer;
  std::uint8_t rnr_timer;
  std::uint8_t port;
  std::uint8_t timeout;
  std::uint8_t retry_count;
  std::uint8_t rnr_retry_count;
  std::uint8_t other_port;
  std::uint8_t other_timeout;
  std::uint32_t rate_limit;
};

struct AsyncEvent {  // ibv_async_event
  union {
    Queue* queue;
    Pair* pair;
    int port;
  } element;
  std::uint32_t kind;
};

}  // namespace seto::rdma::abi
