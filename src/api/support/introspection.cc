#include <unistd.h>

#include "src/api/support/handles.h"
#include "src/api/support/text_target.h"
#include "src/core/communicator/communicator.h"
#include "src/core/dump/dump_format.h"
#include "src/report/codec_report.h"
#include "src/report/host_check.h"
#include "src/report/info.h"
#include "src/report/job_report.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Status check(const Target& target, int format) {
  SETO_TRY(check_target(target));
  if (format != setoFormatText && format != setoFormatJson)
    return failure(Code::invalid_argument, "format: %d is neither setoFormatText nor setoFormatJson", format);
  return {};
}

ReportFormat format_of(setoFormat_t format) { return format == setoFormatJson ? ReportFormat::json : ReportFormat::text; }

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
    if (type < 0 || type >= setoNumTypes) return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", type);
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
