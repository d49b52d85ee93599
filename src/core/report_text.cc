#include <algorithm>
#include <array>

#include "src/bootstrap/bootstrap.h"
#include "src/core/json.h"
#include "src/core/call/ids.h"
#include "src/core/report.h"

namespace seto {
namespace {

// One row of the table, as text.
struct Row {
  std::string rank;
  std::string place;
  std::string state;
  std::string at;
  std::string since;
  std::string doing;
};

std::string since_text(const ReadDump& dump, const ReadCall& call) {
  return seconds_text(call.since_us(), call.ended_us != 0 ? call.ended_us : dump.time_us);
}

Row row_of(const ReadDump& dump) {
  Row row{std::to_string(dump.rank),
          dump.host + ":" + std::to_string(dump.pid),
          dump.failed ? "failed" : "usable",
          std::to_string(dump.done) + "/" + std::to_string(dump.issued),
          "",
          "no call under way"};
  const ReadCall* const call = stuck_call(dump);
  if (call == nullptr) return row;
  row.since = since_text(dump, *call);
  row.doing = (call->operation == 0 ? "" : std::to_string(call->operation) + ": ") + call->text;
  if (call->wait) row.doing += "; " + call->wait->with_step();
  return row;
}

std::string table_of(const Case& one) {
  std::vector<Row> rows = {{"rank", "process", "state", "done/issued", "for", "doing"}};
  for (const ReadDump& dump : one.dumps) rows.push_back(row_of(dump));
  std::array<std::size_t, 5> widths{};
  const auto cells = [](const Row& row) { return std::array{&row.rank, &row.place, &row.state, &row.at, &row.since}; };
  for (const Row& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], cells(row)[i]->size());
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      text.append(i == 0 ? 2 : 0, ' ').append(*cells(row)[i]).append(widths[i] - cells(row)[i]->size() + 2, ' ');
    text += row.doing + "\n";
  }
  return text;
}

std::string as_text(const std::vector<Case>& cases, const std::vector<std::string>& left_out) {
  std::string text;
  for (const Case& one : cases) {
    text += (text.empty() ? "" : "\n") + one.verdict.text + "\n";
    text += "communicator " + (one.dumps.front().name.empty() ? "(none)" : one.dumps.front().name) + " (" +
            one.dumps.front().attempt + "), dumps of " + std::to_string(one.dumps.size()) + " of " + std::to_string(one.ranks()) +
            " ranks\n";
    for (const std::string& remark : one.remarks) text += "note: " + remark + "\n";
    text += table_of(one);
  }
  for (const std::string& reason : left_out) text += "left out: " + reason + "\n";
  return text;
}

void put_ranks(JsonWriter& json, const std::vector<Rank>& ranks) {
  json.open('[');
  for (const Rank rank : ranks) json.number(static_cast<std::uint64_t>(rank));
  json.close(']');
}

void put_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.open('[');
  for (const std::string& text : texts) json.value(text);
  json.close(']');
}

void put_row(JsonWriter& json, const ReadDump& dump) {
  json.open('{')
      .key("rank")
      .number(static_cast<std::uint64_t>(dump.rank))
      .key("host")
      .value(dump.host)
      .key("pid")
      .number(dump.pid);
  json.key("source").value(dump.source).key("state").value(dump.failed ? "failed" : "usable").key("failure").value(dump.failure);
  json.key("issued").number(dump.issued).key("begun").number(dump.begun).key("done").number(dump.done);
  if (const ReadCall* const call = stuck_call(dump); call != nullptr) {
    json.key("doing").value(call->text).key("operation").number(call->operation);
    json.key("for_us").number(std::max(dump.time_us, call->since_us()) - call->since_us());
    if (call->wait) json.key("waits").value(call->wait->text).key("step").value(call->wait->step);
    if (call->wait && call->wait->peer >= 0) json.key("peer").number(static_cast<std::uint64_t>(call->wait->peer));
  }
  json.close('}');
}

std::string as_json(const std::vector<Case>& cases, const std::vector<std::string>& left_out) {
  JsonWriter json;
  json.open('{').key("seto_report").number(std::uint64_t{1}).key("verdict").value(cases.front().verdict.text);
  json.key("communicators").open('[');
  for (const Case& one : cases) {
    json.open('{').key("attempt").value(one.dumps.front().attempt).key("name").value(one.dumps.front().name);
    json.key("ranks").number(static_cast<std::uint64_t>(one.ranks())).key("verdict").value(one.verdict.text);
    json.key("kind").value(one.verdict.kind).key("operation").number(one.verdict.operation).key("culprits");
    put_ranks(json, one.verdict.culprits);
    json.key("missing");
    put_ranks(json, one.missing);
    json.key("notes");
    put_texts(json, one.remarks);
    json.key("table").open('[');
    for (const ReadDump& dump : one.dumps) put_row(json, dump);
    json.close(']').close('}');
  }
  json.close(']').key("left_out");
  put_texts(json, left_out);
  json.close('}');
  return std::move(json).text();
}

}  // namespace

Result<std::string> report(std::span<const DumpText> dumps, ReportFormat format) {
  std::vector<ReadDump> read;
  std::vector<std::string> left_out;
  for (const DumpText& one : dumps) {
    Result<ReadDump> dump = read_dump(one.name, one.text);
    if (dump.ok())
      read.push_back(std::move(dump).value());
    else
      left_out.emplace_back(dump.status().text());
  }
  if (read.empty()) {
    std::string why;
    for (const std::string& reason : left_out) why += (why.empty() ? "" : "; ") + reason;
    return failure(Code::invalid_argument, "no dump to report on%s%s", why.empty() ? "" : ": ", why.c_str());
  }
  const std::vector<Case> cases = cases_of(std::move(read), left_out);
  return format == ReportFormat::text ? as_text(cases, left_out) : as_json(cases, left_out);
}

}  // namespace seto
