#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "src/base/log.h"
#include "src/base/result.h"

namespace seto {

enum class Memory : std::uint8_t { automatic, host, device };
enum class SlotStore : std::uint8_t { automatic, cached, streamed };
enum class Calibrate : std::uint8_t { automatic, off, on };
enum class Medium : std::uint8_t { automatic, tcp };
enum class Connect : std::uint8_t { automatic, all, used };
enum class RdmaSetUp : std::uint8_t { control, manager };
enum class GpuDirect : std::uint8_t { automatic, off };
enum class ControlRelay : std::uint8_t { automatic, on, off };
enum class Congestion : std::uint8_t { automatic, system };
enum class PathsUse : std::uint8_t { backup, together };
enum class Resume : std::uint8_t { automatic, off, on };
enum class TlsMode : std::uint8_t { off, sites, always };
enum class Scope : std::uint8_t { process, communicator };
std::string_view name_of(Scope scope);
std::string_view name_of(TlsMode mode);

// The origin of an effective value. A later one overrides an earlier one.
enum class Origin : std::uint8_t { default_value, environment, config_struct };
std::string_view name_of(Origin origin);

// One value for each row of the table in config_table.h, in the same order.
enum class ConfigField : std::uint8_t {
  log,
  log_file,
  host_id,
  site_id,
  site_round_trip_us,
  site_uplink_mbit,
  site_downlink_mbit,
  site_pacing_mbit,
  memory,
  nvls,
  operation_timeout_ms,
  init_timeout_ms,
  algorithm,
  codec,
  deterministic,
  calibrate,
  tuning_file,
  topology_file,
  slice_bytes,
  slot_depth,
  slot_store,
  shared_memory_limit,
  spin,
  recorder,
  dump_file,
  dump_signal,
  audit_file,
  audit_file_bytes,
  transport,
  interface,
  paths,
  paths_use,
  ports,
  advertise,
  dial_only,
  tcp_streams,
  connect,
  control_relay,
  resume,
  rdma,
  rdma_setup,
  rdma_mtu,
  rdma_traffic_class,
  rdma_service_level,
  rdma_timeout,
  rdma_retry_count,
  gpu_direct,
  tls,
  tls_certificate,
  tls_key,
  tls_ca,
  long_link_memory,
  congestion,
  dscp_control,
  dscp_data,
  root,
  rank,
  ranks,
  secret_file,
  secret,
  allow_no_secret,
  heartbeat_ms,
  liveness_timeout_ms,
  link_patience_s,
};
inline constexpr std::size_t kConfigFieldCount = 64;
inline constexpr std::uint64_t kAutomatic = std::numeric_limits<std::uint64_t>::max();  // of a number whose text is "auto"

// The effective settings. The initial values here are the defaults of the table; a test compares the two.
struct Config {
  LogLevel log = LogLevel::warn;
  std::string log_file, host_id, site_id;
  std::uint64_t site_round_trip_us = 1'000, site_uplink_mbit = 0, site_downlink_mbit = 0, site_pacing_mbit = 0;
  Memory memory = Memory::automatic;
  std::uint64_t operation_timeout_ms = 1'800'000, init_timeout_ms = 120'000;
  std::string algorithm, codec;  // empty: chosen; none
  bool deterministic = false, dial_only = false, allow_no_secret = false, nvls = false;
  Calibrate calibrate = Calibrate::automatic;
  std::uint64_t slice_bytes = kAutomatic, slot_depth = kAutomatic, shared_memory_limit = kAutomatic, spin = kAutomatic;
  SlotStore slot_store = SlotStore::automatic;
  std::string tuning_file, topology_file, dump_file, audit_file, interface, paths, ports, advertise;
  std::uint64_t recorder = 1024, dump_signal = 0, audit_file_bytes = std::uint64_t{64} << 20;
  Medium transport = Medium::automatic;
  PathsUse paths_use = PathsUse::backup;
  std::uint64_t tcp_streams = kAutomatic, long_link_memory = 256ULL << 20, rdma_mtu = 0;  // 0: auto; n: 128 bytes << n
  Connect connect = Connect::automatic;
  ControlRelay control_relay = ControlRelay::automatic;
  Resume resume = Resume::automatic;
  TlsMode tls = TlsMode::sites;
  std::string rdma = "auto", tls_certificate, tls_key, tls_ca;
  RdmaSetUp rdma_setup = RdmaSetUp::control;
  GpuDirect gpu_direct = GpuDirect::automatic;
  std::uint64_t rdma_traffic_class = kAutomatic, rdma_service_level = 0, rdma_timeout = 16, rdma_retry_count = 6;
  Congestion congestion = Congestion::automatic;
  std::uint64_t dscp_control = kAutomatic, dscp_data = kAutomatic, rank = kAutomatic, ranks = kAutomatic;
  std::string root, secret_file, secret;  // the secret is never shown
  std::uint64_t heartbeat_ms = 1'000, liveness_timeout_ms = 5'000, link_patience_s = 60;
  std::array<Origin, kConfigFieldCount> origins{};
  [[nodiscard]] Origin origin(ConfigField field) const { return origins[static_cast<std::size_t>(field)]; }
};

// The defaults, overridden by the SETO_* variables of a null-terminated environment. A value out of its range and an unknown name
// are failures: the text names variable, value and what is allowed. An empty value means unset. Words are taken in any case.
Result<Config> load_config(const char* const* environment);

// Sets one field from text, with the same checks. Code that sets a field directly (the C API) calls mark() afterwards.
Status set_field(Config& config, ConfigField field, std::string_view text, Origin origin);
void mark(Config& config, ConfigField field, Origin origin);

// The effective value as text that set_field accepts. For a secret, only whether it is set.
std::string value_text(const Config& config, ConfigField field);

}  // namespace seto
