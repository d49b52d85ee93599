#include "src/api/calls/issue.h"

#include "src/api/calls/device_calls.h"
#include "src/api/calls/error_feedback.h"
#include "src/api/calls/group_calls.h"
#include "src/api/support/settings.h"
#include "src/api/support/thread_group.h"
#include "src/core/call/ids.h"
#include "src/core/communicator/communicator.h"
#include "src/core/device_memory/memory/buffer_check.h"

namespace seto::api {
namespace {

constexpr auto kNoType = static_cast<DataType>(0xff);
constexpr auto kNoOp = static_cast<ReduceOp>(0xff);

Status check_switch(const char* name, setoSwitch_t value) {
  const int number = number_in(value);
  if (number >= 0 && number <= setoOff) return {};
  return failure(Code::invalid_argument, "%s: %d is neither setoOn nor setoOff", name, number);
}

// Runs in the order of the rank's own calls, so that a rejected call takes its own operation number.
Status check_config(const setoCallConfig_t& config) {
  SETO_TRY(check_struct(&config, {"config", sizeof(setoCallConfig_t), sizeof(setoCallConfig_t), SETO_CALL_CONFIG_MAGIC}));
  if (config.errorFeedback != nullptr) SETO_TRY(feedback_of(config.errorFeedback).status());
  if (config.codec != 0 && !is_codec_id(config.codec))
    return failure(Code::invalid_argument, "codec: %d is not an id; call setoCodecId (%s)", config.codec, known_codecs().c_str());
  if (config.algorithm != 0 && algorithm_name(config.algorithm).empty())
    return failure(Code::invalid_argument, "algorithm: %d is not an id; call setoAlgorithmId (%s)", config.algorithm,
                   known_algorithms().c_str());
  SETO_TRY(check_switch("deterministic", config.deterministic));
  return check_switch("waitsNext", config.waitsNext);
}

// Looks up a pre-multiplied sum; it must belong to this communicator and this type.
Status find_premul_sum(Call& call, int op, setoComm_t comm) {
  const PremulSums::Entry* const entry = is_alive(comm) ? comm->premul_sums.find(op) : nullptr;
  if (entry == nullptr)
    return failure(Code::invalid_argument, "op: %d is neither built in nor a custom operation of this communicator", op);
  if (call.wrong.ok() && entry->type != call.type)
    return failure(Code::invalid_argument, "op: the custom operation %d was made for %s, not for %s", op,
                   name_of(entry->type).data(), name_of(call.type).data());
  call.op = ReduceOp::premul_sum;
  call.scalar = entry->scalar;
  return {};
}

// Appends the call to this thread's group. If that fails, the failure is also the group's result.
Status queue(setoComm_t comm, const Call& call, setoStream_t stream) {
  if (comm->settings.gpu != nullptr) return queue_on_device(comm, call, stream);
  Result<CallGroup::Target> target = group_target(comm, stream);
  if (!target.ok()) {
    thread_group().calls.add_failure(target.status());
    return target.status();
  }
  thread_group().calls.add(std::move(target).value(), call);
  return {};
}

Status issue_on_stream(Communicator& communicator, const Call& call, setoStream_t stream);

// The host cannot read device memory, so a call that names it by mistake is refused where the process uses GPUs.
Status issue_beside_gpus(Communicator& communicator, const cuda::Driver& driver, Call call, setoStream_t stream) {
  if (call.wrong.ok()) call.wrong = check_host_buffers(driver, call);
  if (stream != nullptr) return issue_on_stream(communicator, call, stream);
  return communicator.run(call);
}

Status issue_on_stream(Communicator& communicator, const Call& call, setoStream_t stream) {
  SETO_ASSIGN(const std::shared_ptr<HostStream> host_stream, stream_of(stream));
  return host_stream->enqueue(communicator, call);
}

}  // namespace

void set_type(Call& call, setoDataType_t type) {
  if (static_cast<unsigned>(type) < kDataTypeCount) [[likely]] {
    call.type = static_cast<DataType>(type);
  } else {
    call.type = kNoType;  // invalid even if there is no memory for the error text
    call.wrong = failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", static_cast<int>(type));
  }
}

void set_op(Call& call, setoRedOp_t op, setoComm_t comm) {
  if (static_cast<unsigned>(op) < setoNumOps) [[likely]] {
    call.op = static_cast<ReduceOp>(op);
    return;
  }
  if (op >= setoBitAnd && op <= setoBitXor) {
    call.op = static_cast<ReduceOp>(static_cast<int>(ReduceOp::bit_and) + (op - setoBitAnd));
    return;
  }
  call.op = kNoOp;
  Status status = find_premul_sum(call, static_cast<int>(op), comm);
  if (!status.ok() && call.wrong.ok()) call.wrong = std::move(status);
}

Call with_config(const Call& call, const setoCallConfig_t* config) {
  Call with = call;
  if (config == nullptr) return with;
  if (Status status = check_config(*config); !status.ok()) {
    if (with.wrong.ok()) with.wrong = std::move(status);
    return with;
  }
  with.deadline_ms = config->deadlineMs;
  with.mark = {config->label, config->tag};
  with.algorithm = config->algorithm;
  with.codec = config->codec;
  if (config->errorFeedback != nullptr) with.feedback = feedback_of(config->errorFeedback).value();
  with.deterministic = number_in(config->deterministic) == setoOn;
  with.message_tag = config->messageTag;
  with.waited_for_next = number_in(config->waitsNext) == setoOn;
  return with;
}

Call for_transfer(setoDataType_t type, const setoCallConfig_t* config) {
  Call call;
  set_type(call, type);
  call = with_config(call, config);
  const bool asks = call.feedback != nullptr || (call.codec != 0 && codec_number(call.codec) != 0);
  if (asks && call.wrong.ok())
    call.wrong = failure(Code::invalid_argument, "codec: only sums are encoded; this call moves data unchanged");
  return call;
}

setoResult_t issue(setoComm_t comm, const Call& call, setoStream_t stream, const setoCallConfig_t* config) noexcept {
  return enter([&]() -> Status {
    if (!is_alive(comm)) [[unlikely]]
      return check_handle(comm);
    if (group_depth() > 0) [[unlikely]]
      return queue(comm, with_config(call, config), stream);
    const CallGuard guard(*comm);
    Communicator* const communicator = comm->usable.load(std::memory_order_acquire);
    if (communicator == nullptr) return comm->why_unusable();
    if (const cuda::Driver* const driver = opened_driver(); driver != nullptr) [[unlikely]] {
      if (comm->device != nullptr) return issue_on_device(*comm, with_config(call, config), stream);
      return issue_beside_gpus(*communicator, *driver, with_config(call, config), stream);
    }
    if (stream != nullptr) return issue_on_stream(*communicator, with_config(call, config), stream);
    if (config == nullptr) return communicator->run(call);
    return communicator->run(with_config(call, config));
  });
}

}  // namespace seto::api
