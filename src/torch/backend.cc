#include "src/torch/backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "src/torch/arguments.h"
#include "src/torch/completion_threads.h"
#include "src/torch/device/device_work.h"
#include "src/torch/errors.h"

namespace seto::torch_backend {

const Backend::Asked Backend::kBatch{
    c10d::OpType::COALESCED, "seto:coalesced", c10d::kUnsetTimeout, {StreamKey::Kind::batches, 0}};

namespace {

Communicator::CommunicatorRequest request_of(const Backend::Group& group, const GroupOptions& options) {
  Communicator::CommunicatorRequest request;
  request.store = group.store;
  request.rank = group.rank;
  request.ranks = group.ranks;
  request.global_rank = group.global_ranks.empty() ? group.rank : group.global_ranks.at(static_cast<std::size_t>(group.rank));
  request.name = group.name;
  request.codec = options.codec;
  request.algorithm = options.algorithm;
  request.timeout = options.timeout;
  return request;
}

// The name of a call for error texts: "seto:all_reduce" -> "all_reduce".
const char* name_in(const char* title) {
  constexpr std::string_view kPrefix = "seto:";
  return std::string_view(title).starts_with(kPrefix) ? title + kPrefix.size() : title;
}

// The host for a call without tensors.
c10::Device device_of(const char* title, const Backend::Tensors& results, const std::optional<Backend::Tensors>& inputs) {
  const at::Tensor* const first = !results.empty()                         ? &results.front()
                                  : inputs.has_value() && !inputs->empty() ? &inputs->front()
                                                                           : nullptr;
  if (first == nullptr) return c10::kCPU;
  const Arguments arguments(name_in(title));
  arguments.same_device(first->device(), results);
  if (inputs) arguments.same_device(first->device(), *inputs);
  return first->device();
}

}  // namespace

Backend::Backend(const Group& group, c10::intrusive_ptr<GroupOptions> options)
    : C10dCompat(group.rank, group.ranks),
      options_(std::move(options)),
      group_(group),
      communicator_(Communicator::make(request_of(group, *options_))),
      on_devices_(request_of(group, *options_)) {
  init();
  CompletionThreads::of_process().start();
}

// Works that are under way keep the communicator alive. An interpreter that ends does not wait for them.
Backend::~Backend() { communicator_->forget_ended(); }

Backend::OwnWork Backend::begin(const Asked& asked, Tensors results, const std::optional<Tensors>& inputs) {
  const c10::Device device = device_of(asked.title, results, inputs);
  return begin_on(device, asked, std::move(results), inputs);
}

Backend::OwnWork Backend::begin_on(c10::Device device, const Asked& asked, Tensors results,
                                   const std::optional<Tensors>& inputs) {
  Batch* const batch = batch_of_thread();
  if (batch != nullptr && batch->work != nullptr) {
    const c10::Device first = batch->work->device();
    Arguments(name_in(asked.title))
        .check(first == device, "a batch has calls on one device, but its first call is on ", first, " and this one on ", device);
    return batch->work;
  }
  if (batch != nullptr) return batch->work = new_work(device, kBatch, {}, std::nullopt);
  return new_work(device, asked, std::move(results), inputs);
}

Backend::OwnWork Backend::new_work(c10::Device device, const Asked& asked, Tensors results,
                                   const std::optional<Tensors>& inputs) {
  Work::What what;
  what.type = asked.type;
  what.title = asked.title;
  what.source = asked.source;
  const std::lock_guard lock(mutex_);
  what.sequence = asked.key.kind == StreamKey::Kind::collectives ? ++sequence_ : sequence_;
  if (device.is_cpu()) return c10::make_intrusive<Work>(communicator_, getRank(), what, std::move(results), inputs);
  return c10::make_intrusive<DeviceWork>(device, getRank(), what, std::move(results), inputs);
}

// ---- communicators of devices ----

void Backend::abort() {
  communicator_->abort();
  for (const auto& communicator : on_devices_.all()) communicator->abort();
}

void Backend::shutdown() {
  for (const auto& communicator : on_devices_.all()) communicator->shut_down();
  communicator_->shut_down();
}

// ---- calls ----

Backend::Batch* Backend::batch_of_thread() {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(std::this_thread::get_id());
  if (found == batches_.end()) return nullptr;
  if (found->second.work == nullptr || !found->second.work->given_up()) return &found->second;
  batches_.erase(found);
  return nullptr;
}

Backend::WorkPtr Backend::launch(const Asked& asked, const c10::intrusive_ptr<Work>& work,
                                 std::vector<Communicator::Call> calls) {
  if (Batch* const batch = batch_of_thread(); batch != nullptr) {
    std::move(calls.begin(), calls.end(), std::back_inserter(batch->calls));
    batch->with_collectives = batch->with_collectives || asked.key.kind == StreamKey::Kind::collectives;
    batch->timeout = std::max(batch->timeout, asked.timeout);
    return work;
  }
  if (work->device().is_cpu())
    communicator_->launch(asked.key, calls, config_of(asked, *work), work);
  else
    on_devices_.of(work->device(), options_->timeout)->launch(calls, config_of(asked, *work), static_cast<DeviceWork&>(*work));
  return work;
}

setoCallConfig_t Backend::config_of(const Asked& asked, const Work& work) const {
  setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
  config.deadlineMs = milliseconds_of(asked.timeout < std::chrono::milliseconds(0) ? options_->timeout : asked.timeout);
  config.tag = work.getSequencenumber();
  config.label = asked.title;
  config.codec = asked.codec;
  config.errorFeedback = asked.feedback;
  config.waitsNext = asked.waits_next ? setoOn : setoOff;
  return config;
}

// A batch that a thread began and did not end, because of an exception, is replaced. Its calls were never made.
void Backend::startCoalescing() {
  Batch stale;
  {
    const std::lock_guard lock(mutex_);
    if (auto found = batches_.extract(std::this_thread::get_id()); !found.empty()) stale = std::move(found.mapped());
  }
  if (stale.work != nullptr && stale.work->device().is_cpu() &&
      stale.work->ended(setoInvalidUsage, "the batch of this call was never ended"))
    CompletionThreads::of_process().take(std::move(stale.work));
  const std::lock_guard lock(mutex_);
  batches_.emplace(std::this_thread::get_id(), Batch{});
}

Backend::WorkPtr Backend::endCoalescing() {
  Batch batch;
  {
    const std::lock_guard lock(mutex_);
    auto found = batches_.extract(std::this_thread::get_id());
    TORCH_CHECK(!found.empty(), "seto: endCoalescing without startCoalescing on this thread");
    batch = std::move(found.mapped());
    if (batch.with_collectives) batch.work->set_sequence(++sequence_);
  }
  if (batch.work == nullptr) batch.work = new_work(c10::kCPU, kBatch, {}, std::nullopt);
  const StreamKey key = batch.with_collectives ? StreamKey{StreamKey::Kind::batches, 0} : communicator_->idle_key();
  return launch({c10d::OpType::COALESCED, "seto:coalesced", batch.timeout, key}, batch.work, std::move(batch.calls));
}

// A separate communicator over the same context. Only its members take part.
c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), getRank());
  if (own == ranks.end()) return nullptr;
  auto asked = c10::make_intrusive<GroupOptions>(options != nullptr ? options->timeout : options_->timeout);
  if (const auto* const given = dynamic_cast<const GroupOptions*>(options.get()); given != nullptr)
    asked = c10::make_intrusive<GroupOptions>(*given);
  Group group;
  group.store = store;
  group.rank = static_cast<int>(own - ranks.begin());
  group.ranks = static_cast<int>(ranks.size());
  group.name = options != nullptr ? C10dCompatOptions::name_in(*options) : "";
  for (const int rank : ranks)
    group.global_ranks.push_back(group_.global_ranks.empty() ? rank : group_.global_ranks.at(static_cast<std::size_t>(rank)));
  return c10::make_intrusive<Backend>(group, std::move(asked));
}

uint64_t Backend::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

ErrorType Backend::getError() {
  setoResult_t error = communicator_->error();
  for (const auto& communicator : on_devices_.all())
    if (error == setoSuccess || error == setoInProgress) error = communicator->error();
  switch (error) {
    case setoSuccess:
    case setoInProgress:
      return ErrorType::SUCCESS;
    case setoTimeout:
      return ErrorType::TIMEOUT;
    case setoRemoteError:
      return ErrorType::REMOTE_ERROR;
    default:
      return ErrorType::COMM_ERROR;
  }
}

}  // namespace seto::torch_backend
