#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/api/support/handles.h"
#include "src/core/codec_report.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/doctor.h"
#include "src/core/dump/dump_format.h"
#include "src/core/explain.h"
#include "src/core/info.h"
#include "src/core/report.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

struct Target {
  char* text;
  size_t capacity;
  size_t* size;
};

Status check(const Target& target, int format) {
  if (target.text == nullptr && target.capacity > 0) return null_argument("text");
  if (format != setoFormatText && format != setoFormatJson)
    return failure(Code::invalid_argument, "format: %d is neither setoFormatText nor setoFormatJson", format);
  return {};
}

Status write(const Target& target, const Result<std::string>& text) {
  if (!text.ok()) return text.status();
  if (target.size != nullptr) *target.size = text.value().size();
  if (target.capacity == 0) return {};
  const size_t taken = std::min(target.capacity - 1, text.value().size());
  std::memcpy(target.text, text.value().data(), taken);
  target.text[taken] = '\0';
  return {};
}

ReportFormat format_of(setoFormat_t format) { return format == setoFormatJson ? ReportFormat::json : ReportFormat::text; }

Result<std::string> answer(const setoQuestion_t& asked, ReportFormat format) {
  SETO_TRY(check_struct(&asked, {"question", sizeof(setoQuestion_t), sizeof(setoQuestion_t), SETO_QUESTION_MAGIC}));
  if (asked.collective == nullptr) return null_argument("collective");
  if (asked.topologyFile != nullptr) return failure(Code::invalid_usage, "topologyFile: topology files are not in this version");
  const int datatype = number_in(asked.datatype);
  if (datatype < 0 || datatype >= setoNumTypes) return failure(Code::invalid_argument, "datatype: %d is none", datatype);
  Question question;
  SETO_ASSIGN(question.collective, collective_of(asked.collective));
  question.type = static_cast<DataType>(datatype);
  if (asked.comm != nullptr) {
    SETO_TRY(check_handle(asked.comm));
    const std::shared_ptr<Communicator> communicator = asked.comm->communicator();
    if (communicator == nullptr) return asked.comm->why_unusable();
    return explain_on(*communicator, question, asked.bytes, format);
  }
  question.ranks = asked.ranks == 0 ? 2 : asked.ranks;
  SETO_ASSIGN(const Tiers tiers, made_up_tiers(question.ranks, std::max(1, asked.nodes), std::max(1, asked.sites)));
  question.bytes = part_bytes(question.collective, asked.bytes, question.ranks);
  SETO_ASSIGN(const Settings settings, settings_of_environment());
  question.pin = settings.config.algorithm;
  SETO_ASSIGN(const CodecSetting codec, CodecSetting::parse(settings.config.codec));
  allow_codec(question, ReduceOp::sum, codec, tiers);
  CostModel costs;
  if (!settings.config.tuning_file.empty()) {
    SETO_ASSIGN(costs, read_costs(settings.config.tuning_file));
  }
  return explain(question, tiers, costs, format);
}

Result<std::string> report_on(const setoDumpText_t* dumps, size_t count, ReportFormat format) {
  if (dumps == nullptr && count > 0) return null_argument("dumps");
  std::vector<DumpText> texts;
  for (size_t i = 0; i < count; ++i) {
    if (dumps[i].text == nullptr && dumps[i].size > 0) return failure(Code::invalid_argument, "dumps: text %zu is NULL", i);
    texts.push_back({dumps[i].name == nullptr ? std::string_view("a dump") : dumps[i].name, {dumps[i].text, dumps[i].size}});
  }
  return report(texts, format);
}

}  // namespace

extern "C" {

setoResult_t setoInfo(const char* topic, setoFormat_t format, char* text, size_t capacity, size_t* size) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check(target, number_in(format)));
    SETO_ASSIGN(const Settings settings, settings_of_environment());
    return write(target, info(topic == nullptr ? "" : topic, version_text(), settings.config, format_of(format)));
  });
}

setoResult_t setoCodecs(setoFormat_t format, char* text, size_t capacity, size_t* size) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check(target, number_in(format)));
    return write(target, codecs_report(format_of(format)));
  });
}

setoResult_t setoCodecCheck(const void* values, setoDataType_t datatype, size_t count, setoFormat_t format, char* text,
                            size_t capacity, size_t* size) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check(target, number_in(format)));
    if (values == nullptr && count > 0) return null_argument("values");
    const int type = number_in(datatype);
    if (type < 0 || type >= setoNumTypes) return failure(Code::invalid_argument, "datatype: %d is none", type);
    return write(target, codec_check(values, static_cast<DataType>(type), count, format_of(format)));
  });
}

setoResult_t setoDoctor(int ranks, setoFormat_t format, char* text, size_t capacity, size_t* size, int* bad) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check(target, number_in(format)));
    if (ranks < 0 || ranks > kBootstrapRankLimit)
      return failure(Code::invalid_argument, "ranks: %d is not one of 0 to %d", ranks, kBootstrapRankLimit);
    SETO_ASSIGN(const Settings settings, settings_of_environment());
    const Load load = load_of(settings.config, environ, ranks);
    const std::vector<Finding> findings = examine(facts_of_host(settings.config), load);
    if (bad != nullptr) *bad = count_bad(findings);
    return write(target, findings_text(findings, format_of(format)));
  });
}

setoResult_t setoExplain(const setoQuestion_t* question, setoFormat_t format, char* text, size_t capacity, size_t* size) {
  return enter([&]() -> Status {
    if (question == nullptr) return null_argument("question");
    const Target target{text, capacity, size};
    SETO_TRY(check(target, number_in(format)));
    return write(target, answer(*question, format_of(format)));
  });
}

setoResult_t setoCommDump(setoComm_t comm, setoFormat_t format, char* text, size_t capacity, size_t* size) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    const Target target{text, capacity, size};
    SETO_TRY(check(target, number_in(format)));
    const std::shared_ptr<Communicator> communicator = comm->communicator();
    if (communicator == nullptr) return comm->why_unusable();
    return write(target, dump(*communicator, format_of(format)));
  });
}

setoResult_t setoReport(const setoDumpText_t* dumps, size_t count, setoFormat_t format, char* text, size_t capacity,
                        size_t* size) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check(target, number_in(format)));
    return write(target, report_on(dumps, count, format_of(format)));
  });
}

}  // extern "C"
