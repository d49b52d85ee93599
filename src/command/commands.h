#pragma once

#include <string>
#include <vector>

namespace seto::command {

inline constexpr int kFailed = 1;
inline constexpr int kMisused = 2;

// The limit of setoExplain; a test compares them.
inline constexpr int kMostRanks = 65'536;

struct InfoOptions {
  std::string topic;
  bool json = false;
};

struct ExplainOptions {
  std::string collective;
  std::string size;  // "64M", or "8..1G" for a table; empty for a barrier
  int ranks = 0;     // 0: the library's default
  int nodes = 0;
  int sites = 0;
  std::vector<std::string> topology_files;  // as of SimulateOptions
  int copies = 1;                           // hosts like each host of a file
  bool json = false;
};

struct ReportOptions {
  std::vector<std::string> files;  // "-": standard input
  bool json = false;
};

struct StatusOptions {
  int pid = 0;         // 0: all processes of this user
  double watch_s = 0;  // seconds between two reports; 0: one report
  bool json = false;
};

struct DoctorOptions {
  int ranks = 0;  // on this host; 0: one for each core
  bool json = false;
};

struct CodecOptions {
  std::string file;  // the array to check; empty: list the codecs
  bool json = false;
};

struct TopoOptions {
  std::vector<std::string> files;  // [SITE=]FILE; "-": standard input; none: this machine
  int copies = 1;
  bool this_machine = false;  // the file is a hint about this machine
  bool json = false;
  bool xml = false;
  std::string svg;     // the file for the drawing
  bool probe = false;  // measure the rates between the sites of a job
};

struct SimulateOptions {
  std::vector<std::string> files;  // [SITE=]FILE; "-": standard input
  int copies = 1;
  std::string collective = "all_reduce";
  std::string algorithm;  // empty: the one that the library chooses
  std::string size;       // empty with device memory: a table
  int ranks = 0;          // 0: as the files state
  bool json = false;
  std::string svg;     // the file for the Gantt chart
  std::string memory;  // host or device
  int blocks = 0;      // of each GPU; 0: the library's default
};

// Returns the version of the loaded library, such as "0.1.0". It works whatever the settings are.
std::string version_text();

// These print to standard output, failures to standard error, and return the exit status. If a variable is refused, `info` prints
// all that it can and fails at the end.
int run(const InfoOptions& options);
int run(const ExplainOptions& options);
int run(const ReportOptions& options);
int run(const StatusOptions& options);
int run(const CodecOptions& options);
int run(const TopoOptions& options);
int run(const SimulateOptions& options);
// Returns 1 if a finding is bad.
int run(const DoctorOptions& options);

}  // namespace seto::command
