#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/config.h"
#include "src/base/config_access.h"

namespace seto {

inline constexpr std::size_t kPathLimit = 4095;
inline constexpr std::size_t kNameLimit = 255;
inline constexpr std::uint64_t kLongestTimeoutMs = 7ULL * 24 * 3600 * 1000;

// All SETO_* variables, in the order of ConfigField.
inline constexpr std::array<FieldRow, kConfigFieldCount> kConfigTable = {{
    {"SETO_LOG", choice<&Config::log>(kLogNames), "warn", Scope::process,
     "which lines are logged: this level and more severe ones"},
    {"SETO_LOG_FILE", TextAccess{&Config::log_file, kPathLimit}, "", Scope::process,
     "file that log lines are appended to; empty: standard error"},
    {"SETO_HOST_ID", TextAccess{&Config::host_id, kNameLimit}, "", Scope::process,
     "ranks with equal text are one node; empty: found by a probe of shared memory"},
    {"SETO_SITE_ID", TextAccess{&Config::site_id, kNameLimit}, "", Scope::process,
     "nodes with equal text are one site; empty on all ranks: found by the round trips between hosts"},
    {"SETO_SITE_ROUND_TRIP_US", CountAccess{{&Config::site_round_trip_us, 0, 10'000'000}}, "1000", Scope::communicator,
     "hosts with a shorter round trip are one site where SETO_SITE_ID is not set; 0: all hosts are one site"},
    {"SETO_SITE_UPLINK_MBIT", CountAccess{{&Config::site_uplink_mbit, 0, 100'000'000}}, "0", Scope::process,
     "Mbit/s from this site to others, for plans by the rates of all sites; 0: not known, or as the downlink"},
    {"SETO_SITE_DOWNLINK_MBIT", CountAccess{{&Config::site_downlink_mbit, 0, 100'000'000}}, "0", Scope::process,
     "Mbit/s from other sites to this one; 0: not known, or as the uplink"},
    {"SETO_SITE_PACING_MBIT", CountAccess{{&Config::site_pacing_mbit, 0, 100'000'000}}, "0", Scope::process,
     "most Mbit/s that the ranks of this site together send to other sites over TCP, headers included; 0: no limit"},
    {"SETO_MEMORY", choice<&Config::memory>(kMemoryNames), "auto", Scope::communicator,
     "memory of the buffers; auto: device if the calling thread has a current CUDA context"},
    {"SETO_OPERATION_TIMEOUT_MS", DurationAccess{{&Config::operation_timeout_ms, 1, kLongestTimeoutMs}}, "1800000",
     Scope::communicator, "an operation fails after this time, naming the ranks that it waits for"},
    {"SETO_INIT_TIMEOUT_MS", DurationAccess{{&Config::init_timeout_ms, 1, kLongestTimeoutMs}}, "120000", Scope::communicator,
     "making a communicator fails after this time, naming the missing ranks"},
    {"SETO_ALGORITHM", WordAccess{{&Config::algorithm, kNameLimit}}, "", Scope::communicator,
     "pins the algorithm by name (seto explain lists them); empty: chosen for each call"},
    {"SETO_CODEC", WordAccess{{&Config::codec, kNameLimit}}, "", Scope::communicator,
     "permits a codec for sums of floats: fp16, bf16, e4m3, e5m2, int8, int4 or none, on all tiers or on the outermost one "
     "(world=fp16); empty: fp16 for large sums of float32 between sites from 5 ms on (stated ones: 1 ms)"},
    {"SETO_DETERMINISTIC", BoolAccess{&Config::deterministic}, "off", Scope::communicator,
     "choose by shipped constants only, so that every run rounds alike"},
    {"SETO_CALIBRATE", choice<&Config::calibrate>(kCalibrateNames), "auto", Scope::communicator,
     "measure the links of this machine; auto: at the first init of a host and job"},
    {"SETO_TUNING_FILE", TextAccess{&Config::tuning_file, kPathLimit}, "", Scope::communicator,
     "file with the constants of choice, read instead of measuring them"},
    {"SETO_TOPOLOGY_FILE", TextAccess{&Config::topology_file, kPathLimit}, "", Scope::communicator,
     "topology file (seto topo --xml), equal on all ranks: sites of hosts without SETO_SITE_ID, and rates not stated otherwise"},
    {"SETO_SLICE_BYTES", BytesAccess{{&Config::slice_bytes, 1024, 64ULL << 20}}, "auto", Scope::communicator,
     "size of a pipelined piece of a message"},
    {"SETO_SLOT_DEPTH", CountAccess{{&Config::slot_depth, 1, 64}}, "auto", Scope::communicator, "slots in the ring of a channel"},
    {"SETO_SLOT_STORE", choice<&Config::slot_store>(kSlotStoreNames), "auto", Scope::process,
     "how slots are filled: through the cache or past it; auto: as measured for each pair of cores"},
    {"SETO_SHARED_MEMORY_LIMIT", BytesAccess{{&Config::shared_memory_limit, 64ULL << 10, 1ULL << 40}}, "auto", Scope::process,
     "shared memory that a rank may use for its slots; auto: what the machine has"},
    {"SETO_SPIN", CountAccess{{&Config::spin, 0, 1'000'000'000}}, "auto", Scope::process,
     "pause instructions of a wait before it yields; auto: 0 when ranks outnumber cores"},
    {"SETO_RECORDER", CountAccess{{&Config::recorder, 0, 1'048'576}}, "1024", Scope::communicator,
     "number of calls that the flight recorder keeps; 0: it is off"},
    {"SETO_DUMP_FILE", TextAccess{&Config::dump_file, kPathLimit}, "", Scope::process,
     "file to which a failed communicator writes its flight recorder, as JSON: %h host, %p process, %r rank; empty: none"},
    {"SETO_DUMP_SIGNAL", CountAccess{{&Config::dump_signal, 0, 64}}, "0", Scope::process,
     "number of a signal that writes every flight recorder to SETO_DUMP_FILE, or without one to the log; 0: none"},
    {"SETO_AUDIT_FILE", TextAccess{&Config::audit_file, kPathLimit}, "", Scope::process,
     "file to which lines of JSON are appended when a flow to a rank of another site begins and when it ends; empty: none"},
    {"SETO_AUDIT_FILE_BYTES", BytesAccess{{&Config::audit_file_bytes, 4096, 1ULL << 50}}, "64M", Scope::process,
     "the audit file is renamed to FILE.1, FILE.2, ... and begun anew before it becomes larger than this"},
    {"SETO_TRANSPORT", choice<&Config::transport>(kMediumNames), "auto", Scope::communicator,
     "auto: shared memory within a node, TCP beyond; tcp: TCP between all ranks, as if each were a node"},
    {"SETO_INTERFACE", TextAccess{&Config::interface, kNameLimit}, "", Scope::process,
     "interfaces for TCP: names, prefixes or address blocks (eth,10.1.0.0/16); ^ excludes what follows; empty: chosen"},
    {"SETO_PATHS", TextAccess{&Config::paths, kNameLimit}, "", Scope::process,
     "interfaces to other sites, the best first (fibre0,backup0); empty: one path"},
    {"SETO_PATHS_USE", choice<&Config::paths_use>(kPathsUseNames), "backup", Scope::process,
     "backup: data takes the first of SETO_PATHS that works; together: all that work, each as much as it carries"},
    {"SETO_PORTS", TextAccess{&Config::ports, kNameLimit}, "", Scope::process, "ports to listen on: first-last; empty: any"},
    {"SETO_ADVERTISE", TextAccess{&Config::advertise, kNameLimit}, "", Scope::process,
     "addresses at which other networks reach this host, tried before those of its interfaces (203.0.113.7,2001:db8::7)"},
    {"SETO_DIAL_ONLY", BoolAccess{&Config::dial_only}, "off", Scope::process,
     "other networks cannot connect to this host (NAT, firewall), so it connects to them"},
    {"SETO_TCP_STREAMS", CountAccess{{&Config::tcp_streams, 1, 16}}, "auto", Scope::communicator,
     "TCP sockets between two ranks; auto: 1 where the round trip is below 1 ms, else what the link needs (8 if its rate is "
     "unknown), divided by the ranks of a site that share it"},
    {"SETO_CONNECT", choice<&Config::connect>(kConnectNames), "auto", Scope::communicator,
     "TCP sockets of a pair open at init (all) or on first use (used); auto: on first use where a rank would open more than 128"},
    {"SETO_CONTROL_RELAY", choice<&Config::control_relay>(kControlRelayNames), "auto", Scope::communicator,
     "where sockets open on first use, processes pass control messages on, so that each has a control connection to few others; "
     "auto: in jobs of 49 processes or more of one site, stated or found; off wins over auto"},
    {"SETO_RESUME", choice<&Config::resume>(kResumeNames), "auto", Scope::communicator,
     "calls go on when TCP data sockets of two ranks break; auto: where the round trip is 1 ms or more; on: also near ones of "
     "several sockets; off wins"},
    {"SETO_RDMA", TextAccess{&Config::rdma, kNameLimit}, "auto", Scope::process,
     "RDMA between hosts of one site, where their data is not encrypted; auto: all ports that are up; off; or names of devices, "
     "with a port or without (mlx5_0:1,mlx5_1); always, alone or before names (always,mlx5_0): also where TCP is faster"},
    {"SETO_RDMA_SETUP", choice<&Config::rdma_setup>(kRdmaSetUpNames), "control", Scope::process,
     "cm (on all ranks): RDMA paths are those of the connection manager (librdmacm), as InfiniBand with routers needs them"},
    {"SETO_RDMA_TRAFFIC_CLASS", CountAccess{{&Config::rdma_traffic_class, 0, 255}}, "auto", Scope::process,
     "traffic class of RDMA packets with a global route, as RoCE has (DSCP x 4); auto: that of SETO_DSCP_DATA, 0 without it"},
    {"SETO_RDMA_SERVICE_LEVEL", CountAccess{{&Config::rdma_service_level, 0, 15}}, "0", Scope::process,
     "service level of RDMA packets: InfiniBand's lane, the priority in the VLAN tag of RoCE"},
    {"SETO_RDMA_TIMEOUT", CountAccess{{&Config::rdma_timeout, 1, 31}}, "16", Scope::process,
     "an RDMA device sends packets again that are not acknowledged within 4.096 us x 2^this (14: 67 ms, 16: 0.27 s)"},
    {"SETO_RDMA_RETRY_COUNT", CountAccess{{&Config::rdma_retry_count, 0, 7}}, "6", Scope::process,
     "after so many repetitions without an answer an RDMA connection breaks, and TCP carries the data"},
    {"SETO_TLS", choice<&Config::tls>(kTlsNames), "sites", Scope::process,
     "TLS between hosts; sites: but data within a stated site"},
    {"SETO_TLS_CERTIFICATE", TextAccess{&Config::tls_certificate, kPathLimit}, "", Scope::process,
     "PEM file with the certificate of this host for TLS, with SETO_TLS_KEY and SETO_TLS_CA; empty: TLS uses the job's key"},
    {"SETO_TLS_KEY", TextAccess{&Config::tls_key, kPathLimit}, "", Scope::process,
     "PEM file with the key of SETO_TLS_CERTIFICATE, readable only by its owner"},
    {"SETO_TLS_CA", TextAccess{&Config::tls_ca, kPathLimit}, "", Scope::process,
     "PEM file with the CAs that sign the certificates of the job's hosts"},
    {"SETO_LONG_LINK_MEMORY", BytesAccess{{&Config::long_link_memory, 0, 1ULL << 40}}, "256M", Scope::process,
     "memory for data that far peers (round trip of 1 ms or more) send ahead of the calls that take it; windows share it"},
    {"SETO_CONGESTION", choice<&Config::congestion>(kCongestionNames), "auto", Scope::process,
     "congestion control of TCP data sockets to other sites; auto: bbr where the kernel grants it; system: as the kernel says"},
    {"SETO_DSCP_CONTROL", CountAccess{{&Config::dscp_control, 0, 63}}, "auto", Scope::process,
     "code point (DSCP) of rendezvous and control connections over TCP, and of handshakes; auto: none"},
    {"SETO_DSCP_DATA", CountAccess{{&Config::dscp_data, 0, 63}}, "auto", Scope::process,
     "code point (DSCP) of data connections over TCP; auto: none"},
    {"SETO_ROOT", RootAccess{{&Config::root, kPathLimit}}, "", Scope::process,
     "where ranks join without a launcher: host:port of rank 0, file:PATH on a shared file system, or id:HEX of a job"},
    {"SETO_RANK", CountAccess{{&Config::rank, 0, 65'535}}, "auto", Scope::process,
     "this process's rank where SETO_ROOT is set; auto: from the launcher's environment"},
    {"SETO_RANKS", CountAccess{{&Config::ranks, 1, 65'536}}, "auto", Scope::process,
     "number of ranks where SETO_ROOT is set; auto: from the launcher's environment"},
    {"SETO_SECRET_FILE", TextAccess{&Config::secret_file, kPathLimit}, "", Scope::process,
     "file with the job's secret, readable only by its owner; the same content for every rank"},
    {"SETO_SECRET", SecretAccess{{&Config::secret, kNameLimit}}, "", Scope::process,
     "the job's secret itself, as a launcher passes it to its processes"},
    {"SETO_ALLOW_NO_SECRET", BoolAccess{&Config::allow_no_secret}, "off", Scope::process,
     "connect over a network without a secret that authenticates the processes of the job"},
    {"SETO_HEARTBEAT_MS", DurationAccess{{&Config::heartbeat_ms, 0, kLongestTimeoutMs}}, "1000", Scope::process,
     "time between heartbeats to processes of the same job; 0: none are sent or expected"},
    {"SETO_LIVENESS_TIMEOUT_MS", DurationAccess{{&Config::liveness_timeout_ms, 10, kLongestTimeoutMs}}, "5000", Scope::process,
     "a process that sends no heartbeat for this time counts as lost"},
    {"SETO_LINK_PATIENCE", CountAccess{{&Config::link_patience_s, 0, 86'400}}, "60", Scope::process,
     "seconds for which another site is waited for of which no process answers; 0: its processes count as lost like others"},
}};

// "a number from 1 to 64 or auto": the values that a row accepts, for messages and for the documentation.
std::string allowed_text(const FieldRow& row);

}  // namespace seto
