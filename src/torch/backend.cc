#include "src/torch/backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/torch/errors.h"

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
    : c10d::Backend(group.rank, group.ranks),
      options_(std::move(options)),
      group_(group),
      channel_(channel_of(group, *options_)) {
  init();
}

// Works that are under way keep the channel; an interpreter that ends waits for none of them.
Backend::~Backend() { batch_.reset(); }

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
  return batch_ && batch_->thread == std::this_thread::get_id() ? &*batch_ : nullptr;
}

Backend::WorkPtr Backend::launch(const Asked& asked, const c10::intrusive_ptr<Work>& work, std::vector<Channel::Call> calls) {
  if (Batch* const batch = batch_of_thread(); batch != nullptr) {
    std::move(calls.begin(), calls.end(), std::back_inserter(batch->calls));
    return work;
  }
  setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
  config.deadlineMs = milliseconds_of(asked.timeout < std::chrono::milliseconds(0) ? options_->timeout : asked.timeout);
  config.tag = work->getSequencenumber();
  config.codec = asked.codec;
  config.errorFeedback = asked.feedback;
  channel_->launch(asked.lane, calls, config, work);
  return work;
}

void Backend::startCoalescing() {
  TORCH_CHECK(batch_of_thread() == nullptr, "seto: startCoalescing twice on this thread");
  auto work = begin({c10d::OpType::COALESCED, "seto:coalesced", c10d::kUnsetTimeout, {}}, {}, std::nullopt);
  const std::lock_guard lock(mutex_);
  batch_ = Batch{std::this_thread::get_id(), std::move(work), {}};
}

Backend::WorkPtr Backend::endCoalescing() {
  Batch* const mine = batch_of_thread();
  TORCH_CHECK(mine != nullptr, "seto: endCoalescing without startCoalescing on this thread");
  Batch batch = std::move(*mine);
  {
    const std::lock_guard lock(mutex_);
    batch_.reset();
  }
  const Lane lane{Lane::Kind::batches, 0};
  return launch({c10d::OpType::COALESCED, "seto:coalesced", c10d::kUnsetTimeout, lane}, batch.work, std::move(batch.calls));
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
  group.name = options != nullptr ? options->group_name : "";
  for (const int rank : ranks)
    group.global_ranks.push_back(group_.global_ranks.empty() ? rank : group_.global_ranks.at(static_cast<std::size_t>(rank)));
  return c10::make_intrusive<Backend>(group, std::move(asked));
}

uint64_t Backend::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

c10d::ErrorType Backend::getError() {
  switch (channel_->error()) {
    case setoSuccess:
    case setoInProgress:
      return c10d::ErrorType::SUCCESS;
    case setoTimeout:
      return c10d::ErrorType::TIMEOUT;
    case setoRemoteError:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

}  // namespace seto::torch_backend
