#include "src/api/support/handles.h"
#include "src/api/support/text_target.h"
#include "src/control/local/status_query.h"
#include "src/core/dump/dump_file.h"
#include "src/core/record/observability.h"
#include "src/report/status/job_status.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

constexpr int kAnswerMs = 2'000;

}  // namespace

extern "C" {

setoResult_t setoStatus(int pid, char* text, size_t capacity, size_t* size, int* found) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check_target(target));
    if (pid < 0) return failure(Code::invalid_argument, "pid: %d is below 0", pid);
    SETO_ASSIGN(const std::vector<StatusAnswer> answers, ask_for_status(pid, Deadline::after_ms(kAnswerMs)));
    if (found != nullptr) *found = static_cast<int>(answers.size());
    return write(target, collect_status(answers, host_name(), wall_us()));
  });
}

setoResult_t setoStatusReport(const char* now, const char* before, setoFormat_t format, char* text, size_t capacity,
                              size_t* size) {
  return enter([&]() -> Status {
    const Target target{text, capacity, size};
    SETO_TRY(check_target(target));
    if (now == nullptr) return null_argument("now");
    const int form = number_in(format);
    if (form != setoFormatText && form != setoFormatJson)
      return failure(Code::invalid_argument, "format: %d is neither setoFormatText nor setoFormatJson", form);
    return write(target, report_status(now, before == nullptr ? "" : before,
                                       form == setoFormatJson ? ReportFormat::json : ReportFormat::text));
  });
}

}  // extern "C"
