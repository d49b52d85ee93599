// The report of the host check of a job, as text and as JSON.

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "src/command/doctor/doctor.h"
#include "src/command/doctor/transfer.h"

namespace seto::command {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostPairsShown = 16;
constexpr double kFarMs = 5;

std::string cell(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 100 ? "%.2f" : "%.0f", value);
  return text;
}

std::string table(const HostMatrix& matrix, const std::vector<double>& values, double unit) {
  std::size_t width = 8;
  for (const std::string& host : matrix.hosts) width = std::max(width, host.size());
  std::string text(width + 2, ' ');
  const auto put = [&](const std::string& one) { text.append(width - std::min(width, one.size()) + 2, ' ').append(one); };
  for (const std::string& host : matrix.hosts) put(host);
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    text += "\n  " + matrix.hosts[row] + std::string(width - matrix.hosts[row].size(), ' ');
    for (std::size_t column = 0; column < matrix.size(); ++column)
      put(row == column ? "-" : cell(values[row * matrix.size() + column] * unit));
  }
  return text + "\n";
}

std::string encryption_of(const std::string& cipher) {
  if (cipher == "none") return "not encrypted";
  return cipher.empty() || cipher == "not open" ? "encryption unknown" : "encrypted by " + cipher;
}

// Nothing is said of the encryption within a host.
std::string way_of(const HostMatrix& matrix, std::size_t cell) {
  const std::string& way = matrix.ways[cell];
  return way.starts_with("TCP") || way.starts_with("RDMA") ? way + ", " + encryption_of(matrix.ciphers[cell]) : way;
}

// Lists each pair once, as seen by its first host.
std::string ways_text(const HostMatrix& matrix) {
  std::string text;
  std::size_t shown = 0;
  for (std::size_t row = 0; row < matrix.size(); ++row)
    for (std::size_t column = row + 1; column < matrix.size(); ++column)
      if (++shown <= kMostPairsShown)
        text +=
            "  " + matrix.hosts[row] + " to " + matrix.hosts[column] + ": " + way_of(matrix, row * matrix.size() + column) + "\n";
  if (shown > kMostPairsShown) text += "  and " + std::to_string(shown - kMostPairsShown) + " more: see --json\n";
  return shown == 0 ? "" : "ways\n" + text;
}

// The hosts of each site.
std::string sites_text(const JobReport& report) {
  const HostMatrix& matrix = report.matrix;
  std::map<std::string, std::string> hosts_of;
  for (std::size_t i = 0; i < matrix.sites.size(); ++i) {
    std::string& hosts = hosts_of[matrix.sites[i]];
    hosts += (hosts.empty() ? "" : ", ") + matrix.hosts[i];
  }
  std::string text = report.sites_stated ? "sites, as stated\n" : "sites, found by round trips\n";
  for (const auto& [site, hosts] : hosts_of) text += "  " + site + ": " + hosts + "\n";
  return text;
}

}  // namespace

// The limit is that of RankSites: within a site, round trips stay far below it.
std::vector<std::string> far_within_sites(const JobReport& report) {
  const HostMatrix& matrix = report.matrix;
  std::vector<std::string> lines;
  for (std::size_t row = 0; report.sites_stated && row < matrix.sites.size(); ++row)
    for (std::size_t column = row + 1; column < matrix.sites.size(); ++column) {
      const double round_trip_ms = 2e-3 * matrix.latency_us[row * matrix.size() + column];
      if (matrix.sites[row] != matrix.sites[column] || round_trip_ms < kFarMs) continue;
      const bool plain = matrix.ciphers[row * matrix.size() + column] == "none";
      char figure[32];
      std::snprintf(figure, sizeof figure, "%.1f ms", round_trip_ms);
      lines.push_back("warn  ranks " + std::to_string(matrix.ranks[row]) + " and " + std::to_string(matrix.ranks[column]) +
                      " state one site, '" + matrix.sites[row] + "', but their round trip is " + figure + ": " +
                      (plain ? "data between them is not encrypted" : "plans take them for near") +
                      "; give the sites different SETO_SITE_IDs" + (plain ? ", or set SETO_TLS=always" : ""));
    }
  return lines;
}

std::string text_of(const JobReport& report) {
  std::string text = "\njob of " + std::to_string(report.ranks) + " ranks: all reach each other\n";
  text += sites_text(report);
  text += ways_text(report.matrix);
  text += "latency, us (half a round trip of 8 bytes, median)\n" + table(report.matrix, report.matrix.latency_us, 1);
  text += "bandwidth, MB/s (row to column, the best of " + std::to_string(kBestOf) + ")\n" +
          table(report.matrix, report.matrix.bytes_per_second, 1e-6);
  text += "clock of the column less that of the row, us\n" + table(report.matrix, report.matrix.offset_us, 1);
  for (const std::string& line : report.differences) text += line + "\n";
  if (report.differences.empty()) text += "ok    the hosts agree where they should\n";
  return text;
}

std::string json_of(const JobReport& report) {
  const HostMatrix& matrix = report.matrix;
  const auto rows = [&](const auto& values) {
    Json all = Json::array();
    for (auto row = values.begin(); row != values.end(); row += static_cast<std::ptrdiff_t>(matrix.size()))
      all.push_back(Json(std::vector(row, row + static_cast<std::ptrdiff_t>(matrix.size()))));
    return all;
  };
  return Json{{"ranks", report.ranks},
              {"bad", report.bad},
              {"hosts", matrix.hosts},
              {"speakers", matrix.ranks},
              {"sites", matrix.sites},
              {"sites_stated", report.sites_stated},
              {"ways", rows(matrix.ways)},
              {"ciphers", rows(matrix.ciphers)},
              {"latency_us", rows(matrix.latency_us)},
              {"bytes_per_second", rows(matrix.bytes_per_second)},
              {"clock_offset_us", rows(matrix.offset_us)},
              {"differences", report.differences}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace seto::command
