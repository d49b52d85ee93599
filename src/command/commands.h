#pragma once

#include <string>
#include <vector>

namespace seto::command {

inline constexpr int kFailed = 1;
inline constexpr int kMisused = 2;

// As setoExplain; a test compares.
inline constexpr int kMostRanks = 65'536;

struct InfoOptions {
  std::string topic;
  bool json = false;
};

struct ExplainOptions {
  std::string collective;
  std::string size;  // a barrier has none
  int ranks = 2;
  int nodes = 1;
  int sites = 1;
  bool json = false;
};

struct ReportOptions {
  std::vector<std::string> files;  // "-": standard input
  bool json = false;
};

struct DoctorOptions {
  int ranks = 0;  // of this host; 0: one for each core
  bool json = false;
};

struct CodecOptions {
  std::string file;  // to check; empty: the codecs are listed
  bool json = false;
};

// "0.1.0": of the library that runs, whatever the settings say.
std::string version_text();

// Print to standard output; a failure to standard error. Give the exit status. Where a variable is refused, info says all that it
// can, and fails at the end.
int run(const InfoOptions& options);
int run(const ExplainOptions& options);
int run(const ReportOptions& options);
int run(const CodecOptions& options);
// 1 where something is bad.
int run(const DoctorOptions& options);

}  // namespace seto::command
