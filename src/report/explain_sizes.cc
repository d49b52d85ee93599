#include "src/report/explain_sizes.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "src/base/text.h"
#include "src/core/call/ids.h"
#include "src/report/explain.h"
#include "src/report/explain_tiers.h"

namespace seto {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

struct Row {
  std::uint64_t bytes = 0;
  std::string name;
  double seconds = 0;
  std::string next;  // the best of the others; empty if there is none
  double next_seconds = 0;
  std::uint64_t slice_bytes = 0;
};

Row row_of(const Question& question, const Choice& choice, std::uint64_t bytes) {
  Row row{bytes, {}, 0, {}, 0, choice.cut.slice_bytes};
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.algorithm == choice.algorithm && candidate.coded_tiers == choice.coded_tiers) {
      row.name = candidate.name(question);
      row.seconds = candidate.estimate.seconds;
    } else if (candidate.can_run() && (row.next.empty() || candidate.estimate.seconds < row.next_seconds)) {
      row.next = candidate.name(question);
      row.next_seconds = candidate.estimate.seconds;
    }
  }
  return row;
}

// "hierarchical up to 32K, then hierarchical in fp16"
std::string crossovers(const std::vector<Row>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].name == rows[i - 1].name) continue;
    if (i > 0) text += " up to " + size_text(rows[i - 1].bytes) + ", then ";
    text += rows[i].name;
  }
  return text;
}

std::string as_text(const Question& question, const std::vector<Row>& rows) {
  char line[256];
  std::string text = std::string(name_of(question.collective)) + ", " + std::to_string(question.ranks) +
                     (question.ranks == 1 ? " rank" : " ranks") + ": the candidate that is chosen for each size\n";
  int widest = 20;
  for (const Row& row : rows) widest = std::max(widest, static_cast<int>(row.name.size()));
  std::snprintf(line, sizeof line, "%8s %12s %12s  %-*s  %s\n", "size", "estimate", "rate", widest, "candidate", "the next best");
  text += line;
  for (const Row& row : rows) {
    const std::string rate = row.seconds > 0 ? rate_text(static_cast<double>(row.bytes) / row.seconds) : "-";
    std::snprintf(line, sizeof line, "%8s %12s %12s  %-*s  ", size_text(row.bytes).c_str(), duration_text(row.seconds).c_str(),
                  rate.c_str(), widest, row.name.c_str());
    text += line;
    if (!row.next.empty()) {
      std::snprintf(line, sizeof line, "%s, %.2f times", row.next.c_str(), row.seconds > 0 ? row.next_seconds / row.seconds : 1);
      text += line;
    }
    text += "\n";
  }
  return text + "crossovers: " + crossovers(rows) + "\n";
}

std::string as_json(const Question& question, const std::vector<Row>& rows) {
  JsonWriter json;
  json.open('{').key("collective").value(name_of(question.collective));
  json.key("ranks").number(static_cast<std::uint64_t>(question.ranks)).key("sizes").open('[');
  for (const Row& row : rows) {
    json.open('{').key("bytes").number(row.bytes).key("candidate").value(row.name).key("seconds").number(row.seconds);
    json.key("slice_bytes").number(row.slice_bytes);
    if (!row.next.empty()) json.key("next").value(row.next).key("next_seconds").number(row.next_seconds);
    json.close('}');
  }
  json.close(']').key("crossovers").value(crossovers(rows)).close('}');
  return std::move(json).text();
}

}  // namespace

Result<std::string> explain_sizes(const Question& question, std::uint64_t first, std::uint64_t last, const SizesInput& input,
                                  ReportFormat format) {
  if (question.collective == Collective::barrier) return failure(Code::invalid_argument, "bytesTo: a barrier has no size");
  if (first == 0 || first > last || last > kMostBytes)
    return failure(Code::invalid_argument, "bytesTo: %s to %s is not a range of sizes from 1 to 1024T", size_text(first).c_str(),
                   size_text(last).c_str());
  std::vector<Row> rows;
  for (std::uint64_t bytes = first;; bytes = std::min(2 * bytes, last)) {
    SETO_ASSIGN(const Question sized, of_size(question, bytes, input.codec, input.tiers, input.costs));
    SETO_ASSIGN(const Choice choice, choose(sized, input.tiers, input.costs));
    rows.push_back(row_of(sized, choice, bytes));
    if (bytes == last) break;
  }
  return format == ReportFormat::text ? as_text(question, rows) : as_json(question, rows);
}

}  // namespace seto
