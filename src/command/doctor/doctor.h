#pragma once

#include <string>
#include <vector>

#include "include/seto/seto.h"

namespace seto::command {

// The findings of one rank's host, as the ranks of a job exchange them.
struct HostReport {
  std::string host;
  std::string version;
  std::string checks;  // the JSON of setoDoctor
};

// Measurements between the hosts of a job, by pair of hosts (the row sends or asks, the column answers); negative: not measured.
struct HostMatrix {
  std::vector<int> ranks;            // the rank that measured for the host
  std::vector<std::string> hosts;    // host name, with whatever distinguishes hosts of the same name
  std::vector<std::string> sites;    // the site of each host; empty: all are at one, and none is stated
  std::vector<std::string> ways;     // "shared memory", "TCP 10.0.0.1 -> 10.0.0.2", from the row's side; empty: the host itself
  std::vector<std::string> ciphers;  // of the data on that way: "none" or the name of a cipher suite; empty: unknown
  std::vector<double> latency_us;    // half the median round trip of 8 bytes
  std::vector<double> bytes_per_second;
  std::vector<double> offset_us;  // clock of the column minus clock of the row

  [[nodiscard]] std::size_t size() const { return hosts.size(); }
};

// The result of the check of a job.
struct JobReport {
  int ranks = 1;
  HostMatrix matrix;
  bool sites_stated = false;
  std::vector<std::string> differences;  // "warn kernel differs: ..."
  int bad = 0;
};

// Collective over all ranks: exchanges reports, measures (at most a second and some round trips for each pair), and compares.
// Rank 0 gets the report. Returns the exit status of a failure, which has been printed, or 0.
int examine_job(setoComm_t comm, const HostReport& own, JobReport& report);

// Warnings of hosts that state one site, although their round trip is that of a link between sites.
[[nodiscard]] std::vector<std::string> far_within_sites(const JobReport& report);

// On rank 0.
std::string text_of(const JobReport& report);
std::string json_of(const JobReport& report);

}  // namespace seto::command
