#pragma once

#include <string>
#include <vector>

#include "include/seto/seto.h"

namespace seto::command {

// What one rank found on its host, as the doctor of a job passes it on.
struct HostReport {
  std::string host;
  std::string version;
  std::string checks;  // setoDoctor, as JSON
};

// What the hosts of a job measured of each other. By pair of hosts (row sends or asks, column answers); negative: not measured.
struct HostMatrix {
  std::vector<int> ranks;          // who spoke for the host
  std::vector<std::string> hosts;  // its name, and whatever tells it from another of that name
  std::vector<std::string> ways;   // "shared memory", "TCP 10.0.0.1 -> 10.0.0.2", as the row sees it; empty: to itself
  std::vector<double> latency_us;  // half a round trip of 8 bytes, the median
  std::vector<double> bytes_per_second;
  std::vector<double> offset_us;  // the clock of the column less that of the row

  [[nodiscard]] std::size_t size() const { return hosts.size(); }
};

// What the doctor found in a job.
struct JobReport {
  int ranks = 1;
  HostMatrix matrix;
  std::vector<std::string> differences;  // "warn kernel differs: ..."
  int bad = 0;
};

// Of all ranks, together: meets, measures for at most a second a pair and some round trips, and compares. Rank 0 gets the report.
// The exit status of a failure, which is printed; 0 otherwise.
int examine_job(setoComm_t comm, const HostReport& own, JobReport& report);

// For rank 0.
std::string text_of(const JobReport& report);
std::string json_of(const JobReport& report);

}  // namespace seto::command
