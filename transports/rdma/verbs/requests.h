#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transports/rdma/verbs/port_facts.h"

// Requests to a device and its answers: plain values, the same for libibverbs and for a fake.
namespace seto::rdma {

// The numbers are those of ibv_wc_status.
enum class CompletionStatus : std::uint8_t {
  success = 0,
  local_length_error = 1,
  local_queue_pair_error = 2,
  local_protection_error = 4,
  flushed = 5,
  bad_response = 7,
  local_access_error = 8,
  remote_invalid_request = 9,
  remote_access_error = 10,
  remote_operation_error = 11,
  retry_exceeded = 12,
  rnr_retry_exceeded = 13,
  remote_aborted = 16,
  fatal = 19,
  response_timeout = 20,
  general_error = 21,
};

// The end of a request. The other fields than id, status, vendor_error and queue_pair are valid only after success.
struct Completion {
  enum class Kind : std::uint8_t { sent, received, written_to };  // written_to: the peer wrote with an immediate value

  std::uint64_t id = 0;
  CompletionStatus status = CompletionStatus::success;
  Kind kind = Kind::sent;
  std::uint32_t size = 0;       // received, written_to: bytes that the peer sent
  std::uint32_t immediate = 0;  // written_to
  std::uint32_t queue_pair = 0;
  std::uint32_t vendor_error = 0;
};

struct SendRequest {
  enum class Kind : std::uint8_t { write, write_with_immediate, send };

  std::uint64_t id = 0;
  Kind kind = Kind::write;
  bool signalled = false;  // a completion reports its success; a failure is always reported
  bool inlined = false;    // the device copies the bytes during the call; at most QueuePair::most_inline()
  const std::byte* source = nullptr;
  std::uint32_t size = 0;
  std::uint32_t local_key = 0;
  // The last bytes may come from a second place: `size` counts them, too. Not where they are inlined.
  const std::byte* rest = nullptr;
  std::uint32_t rest_size = 0;
  std::uint32_t rest_key = 0;
  std::uint64_t target = 0;  // writes: the address at the peer
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;
};

// Memory for one send of the peer. A write with an immediate value uses up a request too, and leaves its memory alone.
struct ReceiveRequest {
  std::uint64_t id = 0;
  std::byte* target = nullptr;
  std::uint32_t size = 0;
  std::uint32_t local_key = 0;
};

struct QueuePairSize {
  std::uint32_t sends = 0;
  std::uint32_t receives = 0;
  std::uint32_t inlined = 0;  // bytes that are wanted; the device may offer more or fewer
};

// How the two ends of a queue pair reach each other.
struct QueuePairPath {
  std::uint8_t port = 1;  // own
  std::uint16_t pkey_index = 0;
  std::uint32_t mtu = 1024;                // the smaller one of both ends
  std::optional<std::uint32_t> gid_index;  // own; absent: packets carry no global route (InfiniBand within a subnet)
  Gid remote_gid;
  std::uint16_t remote_lid = 0;
  std::uint32_t remote_queue_pair = 0;
  std::uint32_t own_sequence = 0;  // the first packet number, 24 bits
  std::uint32_t remote_sequence = 0;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  // Only the connection manager knows other values.
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 64;
  std::uint8_t static_rate = 0;       // 0: that of the port
  std::uint8_t source_path_bits = 0;  // of the own LID
  std::uint8_t timeout = 16;          // 4.096 us * 2^timeout until a packet is sent again
  std::uint8_t retry_count = 6;       // then the queue pair fails (7: with the software device, never)
  std::uint8_t rnr_retry_count = 7;   // 7: a sender waits without limit for a receive request of the peer
};

// The numbers are those of ibv_event_type.
enum class AsyncEventKind : std::uint8_t {
  completion_queue_error = 0,
  queue_pair_fatal = 1,
  queue_pair_request_error = 2,
  queue_pair_access_error = 3,
  established = 4,
  device_fatal = 8,
  port_active = 9,
  port_error = 10,
  lid_change = 11,
  pkey_change = 12,
  gid_change = 18,
};

struct AsyncEvent {
  AsyncEventKind kind = AsyncEventKind::port_error;
  std::uint8_t port = 0;         // of events of a port
  std::uint32_t queue_pair = 0;  // of events of a queue pair
};

}  // namespace seto::rdma
