#include <algorithm>
#include <array>

#include "src/base/json_writer.h"
#include "src/bootstrap/bootstrap.h"
#include "src/core/call/ids.h"
#include "src/report/job_report.h"

namespace seto {
namespace {

// One row of the table.
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

std::string table_of(const DumpGroup& group) {
  std::vector<Row> rows = {{"rank", "process", "state", "done/issued", "for", "doing"}};
  for (const ReadDump& dump : group.dumps) rows.push_back(row_of(dump));
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

std::string as_text(const std::vector<DumpGroup>& groups, const std::vector<std::string>& left_out) {
  std::string text;
  for (const DumpGroup& group : groups) {
    text += (text.empty() ? "" : "\n") + group.diagnosis.text + "\n";
    text += "communicator " + (group.dumps.front().name.empty() ? "(none)" : group.dumps.front().name) + " (" +
            group.dumps.front().attempt + "), dumps of " + std::to_string(group.dumps.size()) + " of " +
            std::to_string(group.ranks()) + " ranks\n";
    for (const std::string& remark : group.remarks) text += "note: " + remark + "\n";
    text += table_of(group);
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

std::string as_json(const std::vector<DumpGroup>& groups, const std::vector<std::string>& left_out) {
  JsonWriter json;
  json.open('{').key("seto_report").number(std::uint64_t{1}).key("verdict").value(groups.front().diagnosis.text);
  json.key("communicators").open('[');
  for (const DumpGroup& group : groups) {
    json.open('{').key("attempt").value(group.dumps.front().attempt).key("name").value(group.dumps.front().name);
    json.key("ranks").number(static_cast<std::uint64_t>(group.ranks())).key("verdict").value(group.diagnosis.text);
    json.key("kind").value(group.diagnosis.kind).key("operation").number(group.diagnosis.operation).key("culprits");
    put_ranks(json, group.diagnosis.blamed);
    json.key("missing");
    put_ranks(json, group.missing);
    json.key("notes");
    put_texts(json, group.remarks);
    json.key("table").open('[');
    for (const ReadDump& dump : group.dumps) put_row(json, dump);
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
  const std::vector<DumpGroup> groups = group_dumps(std::move(read), left_out);
  return format == ReportFormat::text ? as_text(groups, left_out) : as_json(groups, left_out);
}

}  // namespace seto
