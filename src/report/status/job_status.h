#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_writer.h"
#include "src/base/result.h"

namespace seto {

struct StatusAnswer;

// The parsed status of a host. Texts hold no control characters.
struct ReadLink {
  std::uint64_t peer = 0;
  std::string place;
  std::string site;
  std::string way;
  std::string state;
  std::string why;
  std::uint64_t silent_ms = 0;
  std::string cipher;
  std::optional<std::uint64_t> sockets;  // absent: within the host, so nothing below is known
  std::uint64_t paths = 0;               // of SETO_PATHS
  std::string used_paths;                // those that data takes, as in "1, 2"
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_per_second = 0;  // 0: unknown, as all that follows
  std::uint64_t round_trip_us = 0;
  std::uint64_t shortest_round_trip_us = 0;
  std::uint64_t tcp_bytes_sent = 0;
  std::uint64_t tcp_bytes_resent = 0;
  std::optional<double> sent_per_second;  // since an earlier status
  std::optional<double> received_per_second;
};

struct ReadSite {
  std::string name;
  std::string ranks;
};

struct ReadCommunicator {
  std::string id;
  std::string name;
  std::uint64_t rank = 0;
  std::uint64_t ranks = 0;
  std::string state;
  std::string failure;
  std::uint64_t issued = 0;
  std::uint64_t done = 0;
  std::string call;  // the oldest that has not ended; empty: none
  std::uint64_t call_operation = 0;
  std::uint64_t call_us = 0;
  std::string codec;
  std::string latest_codec;
  double codec_ratio = 0;
  std::string site;
  std::vector<ReadSite> sites;
  std::vector<ReadLink> links;
  std::uint64_t links_left_out = 0;
};

struct ReadProcess {
  std::uint64_t pid = 0;
  std::string program;
  std::string failure;  // why nothing else is known
  std::vector<ReadCommunicator> communicators;
  std::uint64_t communicators_left_out = 0;
};

struct ReadStatus {
  std::string host;
  std::vector<ReadProcess> processes;
};

// The answers of the processes of this host as one JSON text.
Result<std::string> collect_status(std::span<const StatusAnswer> answers, std::string_view host, std::uint64_t time_us);

// A text of collect_status() for people or as JSON. With an earlier one, the rates of links between the two are added.
Result<std::string> report_status(std::string_view now, std::string_view before, ReportFormat format);

// The text form of report_status(): one table of links for each communicator.
std::string status_text(const ReadStatus& status);

}  // namespace seto
