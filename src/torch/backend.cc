#include "src/torch/backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/torch/completion_threads.h"
#include "src/torch/errors.h"

namespace seto::torch_backend {
namespace {

std::shared_ptr<Communicator> channel_of(const Backend::Group& group, const GroupOptions& options) {
  Communicator::CommunicatorRequest request;
  request.store = group.store;
  request.rank = group.rank;
  request.ranks = group.ranks;
  request.global_rank = group.global_ranks.empty() ? group.rank : group.global_ranks.at(static_cast<std::size_t>(group.rank));
  request.name = group.name;
  request.codec = options.codec;
  request.algorithm = options.algorithm;
  request.timeout = options.timeout;
  return Communicator::make(request);
}

}  // namespace

Backend::Backend(const Group& group, c10::intrusive_ptr<GroupOptions> options)
    : C10dCompat(group.rank, group.ranks),
      options_(std::move(options)),
      group_(group),
      communicator_(channel_of(group, *options_)) {
  init();
  CompletionThreads::of_process().start();
}

// Works that are under way keep the communicator alive. An interpreter that ends does not wait for them.
Backend::~Backend() { communicator_->forget_ended(); }

c10::intrusive_ptr<Work> Backend::begin(const Asked& asked, Tensors results, const std::optional<Tensors>& inputs) {
  if (const Batch* const batch = batch_of_thread(); batch != nullptr) return batch->work;
  Work::What what;
  what.type = asked.type;
  what.title = asked.title;
  what.source = asked.source;
  const std::lock_guard lock(mutex_);
  what.sequence = asked.key.kind == StreamKey::Kind::collectives ? ++sequence_ : sequence_;
  return c10::make_intrusive<Work>(communicator_, getRank(), what, std::move(results), inputs);
}

Backend::Batch* Backend::batch_of_thread() {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(std::this_thread::get_id());
  if (found == batches_.end()) return nullptr;
  if (!found->second.work->given_up()) return &found->second;
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
  communicator_->launch(asked.key, calls, config_of(asked, *work), work);
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
  if (stale.work != nullptr && stale.work->ended(setoInvalidUsage, "the batch of this call was never ended"))
    CompletionThreads::of_process().take(std::move(stale.work));
  Batch batch;
  batch.work =
      begin({c10d::OpType::COALESCED, "seto:coalesced", c10d::kUnsetTimeout, {StreamKey::Kind::batches, 0}}, {}, std::nullopt);
  const std::lock_guard lock(mutex_);
  batches_.emplace(std::this_thread::get_id(), std::move(batch));
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
  switch (communicator_->error()) {
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
