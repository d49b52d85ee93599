#include "src/torch/backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/torch/errors.h"
#include "src/torch/completion_threads.h"

namespace seto::torch_backend {
namespace {

std::shared_ptr<Channel> channel_of(const Backend::Group& group, const GroupOptions& options) {
  Channel::Making making;
  making.store = group.store;
  making.rank = group.rank;
  making.ranks = group.ranks;
  making.global_rank = group.global_ranks.empty() ? group.rank : group.global_ranks.at(static_cast<std::size_t>(group.rank));
  making.name = group.name;
  making.codec = options.codec;
  making.algorithm = options.algorithm;
  making.timeout = options.timeout;
  return Channel::make(making);
}

}  // namespace

Backend::Backend(const Group& group, c10::intrusive_ptr<GroupOptions> options)
    : Seam(group.rank, group.ranks), options_(std::move(options)), group_(group), channel_(channel_of(group, *options_)) {
  init();
  Finisher::of_process().start();
}

// Works that are under way keep the channel; an interpreter that ends waits for none of them.
Backend::~Backend() { channel_->forget_ended(); }

c10::intrusive_ptr<Work> Backend::begin(const Asked& asked, Tensors results, const std::optional<Tensors>& inputs) {
  if (const Batch* const batch = batch_of_thread(); batch != nullptr) return batch->work;
  Work::What what;
  what.type = asked.type;
  what.title = asked.title;
  what.source = asked.source;
  const std::lock_guard lock(mutex_);
  what.sequence = asked.lane.kind == Lane::Kind::collectives ? ++sequence_ : sequence_;
  return c10::make_intrusive<Work>(channel_, getRank(), what, std::move(results), inputs);
}

Backend::Batch* Backend::batch_of_thread() {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(std::this_thread::get_id());
  if (found == batches_.end()) return nullptr;
  if (!found->second.work->given_up()) return &found->second;
  batches_.erase(found);
  return nullptr;
}

Backend::WorkPtr Backend::launch(const Asked& asked, const c10::intrusive_ptr<Work>& work, std::vector<Channel::Call> calls) {
  if (Batch* const batch = batch_of_thread(); batch != nullptr) {
    std::move(calls.begin(), calls.end(), std::back_inserter(batch->calls));
    batch->with_collectives = batch->with_collectives || asked.lane.kind == Lane::Kind::collectives;
    batch->timeout = std::max(batch->timeout, asked.timeout);
    return work;
  }
  channel_->launch(asked.lane, calls, config_of(asked, *work), work);
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

// One that a thread began and, by an exception, never ended gives way: its calls were never made.
void Backend::startCoalescing() {
  Batch stale;
  {
    const std::lock_guard lock(mutex_);
    if (auto found = batches_.extract(std::this_thread::get_id()); !found.empty()) stale = std::move(found.mapped());
  }
  if (stale.work != nullptr && stale.work->ended(setoInvalidUsage, "the batch of this call was never ended"))
    Finisher::of_process().take(std::move(stale.work));
  Batch batch;
  batch.work =
      begin({c10d::OpType::COALESCED, "seto:coalesced", c10d::kUnsetTimeout, {Lane::Kind::batches, 0}}, {}, std::nullopt);
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
  const Lane lane = batch.with_collectives ? Lane{Lane::Kind::batches, 0} : channel_->idle_lane();
  return launch({c10d::OpType::COALESCED, "seto:coalesced", batch.timeout, lane}, batch.work, std::move(batch.calls));
}

// A group of its own over the same context: only its members take part.
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
  group.name = options != nullptr ? SeamOptions::name_in(*options) : "";
  for (const int rank : ranks)
    group.global_ranks.push_back(group_.global_ranks.empty() ? rank : group_.global_ranks.at(static_cast<std::size_t>(rank)));
  return c10::make_intrusive<Backend>(group, std::move(asked));
}

uint64_t Backend::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

ErrorType Backend::getError() {
  switch (channel_->error()) {
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
