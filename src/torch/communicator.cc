#include "src/torch/communicator.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/torch/completion_threads.h"
#include "src/torch/errors.h"
#include "src/torch/interrupts.h"
#include "src/torch/store_bootstrap.h"

namespace seto::torch_backend {

std::uint32_t milliseconds_of(std::chrono::milliseconds time) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.count(), 1, std::numeric_limits<std::int32_t>::max()));
}

// ---- the context ----

std::shared_ptr<SharedContext> SharedContext::of_rank(std::int64_t global_rank) {
  static std::mutex mutex;
  static auto* const contexts = new std::map<std::int64_t, std::weak_ptr<SharedContext>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<SharedContext>& known = (*contexts)[global_rank];
  std::shared_ptr<SharedContext> context = known.lock();
  if (context == nullptr) known = context = std::make_shared<SharedContext>();
  return context;
}

SharedContext::SharedContext() {
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.memory = setoMemoryHost;
  check(setoContextCreate(&context_, &config), "the context of this process");
}

SharedContext::~SharedContext() { (void)setoContextDestroy(context_); }

// ---- creation and destruction ----

std::shared_ptr<Communicator> Communicator::make(const CommunicatorRequest& request) {
  std::shared_ptr<SharedContext> context = SharedContext::of_rank(request.global_rank);
  const setoComm_t comm = connect(request, *context);
  return std::make_shared<Communicator>(std::move(context), comm);
}

setoComm_t Communicator::connect(const CommunicatorRequest& request, const SharedContext& context) {
  StoreBootstrap bootstrap(request.store, request.rank, request.ranks, request.timeout);
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.memory = request.memory;
  config.context = context.get();
  config.commName = request.name.empty() ? nullptr : request.name.c_str();
  config.codec = request.codec.empty() ? nullptr : request.codec.c_str();
  config.algorithm = request.algorithm.empty() ? nullptr : request.algorithm.c_str();
  config.bootstrap = bootstrap.as_config();
  config.operationTimeoutMs = milliseconds_of(request.timeout);
  config.initTimeoutMs = milliseconds_of(request.timeout);
  setoComm_t comm = nullptr;
  const setoResult_t result = setoCommInitRankConfig(&comm, request.ranks, setoUniqueId{}, request.rank, &config);
  if (result != setoSuccess) {
    std::string text = "group " + request.name + ", rank " + std::to_string(request.rank) + " of " +
                       std::to_string(request.ranks) + ": " + setoGetLastError(nullptr);
    if (!bootstrap.why().empty()) text += ": " + bootstrap.why();
    std::rethrow_exception(making_exception_of(result, text));
  }
  return comm;
}

Communicator::Communicator(std::shared_ptr<SharedContext> context, setoComm_t comm) : context_(std::move(context)), comm_(comm) {}

// Works that are under way hold a reference to this object, so there is nothing to wait for here.
Communicator::~Communicator() {
  shut_down();
  for (const auto& [key, stream] : streams_) (void)setoStreamDestroy(stream.handle);
}

void Communicator::abort() {
  {
    const std::lock_guard lock(issuing_);
    if (comm_ != nullptr) (void)setoCommAbort(std::exchange(comm_, nullptr));
  }
  forget_ended();
}

void Communicator::look_for_interrupts() {
  try {
    torch_backend::look_for_interrupts();
  } catch (...) {
    interrupted_.store(true, std::memory_order_relaxed);
    throw;
  }
}

// Waits without the lock, so that other threads can abort or query meanwhile.
void Communicator::shut_down() {
  std::vector<Stream> streams;
  {
    const std::lock_guard lock(issuing_);
    for (const auto& [key, stream] : streams_) streams.push_back(stream);
  }
  for (const Stream& stream : streams) {
    while (setoStreamPoll(stream.handle, stream.last) == setoInProgress) {
      if (interrupted_.load(std::memory_order_relaxed)) return abort();
      (void)setoStreamWait(stream.handle, stream.last, kLookMs);
      look_for_interrupts();
    }
  }
  setoComm_t comm = nullptr;
  {
    const std::lock_guard lock(issuing_);
    std::swap(comm, comm_);
  }
  if (comm != nullptr) (void)setoCommDestroy(comm);
  forget_ended();
}

setoResult_t Communicator::error() const {
  const std::lock_guard lock(issuing_);
  setoResult_t result = setoInvalidUsage;
  if (comm_ != nullptr) (void)setoCommGetAsyncError(comm_, &result);
  return result;
}

std::string Communicator::dump(setoFormat_t format) const {
  const std::lock_guard lock(issuing_);
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr, "seto: this group was shut down or aborted");
  return dump_of(comm_, format);
}

std::string Communicator::dump_of(setoComm_t comm, setoFormat_t format) {
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(size + 4096);  // the dump may grow meanwhile
    check(setoCommDump(comm, format, text.data(), text.size(), &size), "a dump");
    if (size >= text.size()) continue;
    text.resize(size);
    return text;
  }
}

setoErrorFeedback_t Communicator::make_error_feedback(std::size_t count, setoDataType_t type) {
  const std::lock_guard lock(issuing_);
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr, "seto: this group was shut down or aborted");
  setoErrorFeedback_t state = nullptr;
  check(setoErrorFeedbackCreate(&state, count, type, comm_), "error feedback");
  return state;
}

// ---- calls ----

Communicator::Stream& Communicator::stream_of(StreamKey key) {
  Stream& stream = streams_[key];
  if (stream.handle == nullptr) check(setoStreamCreate(&stream.handle), "a stream");
  return stream;
}

StreamKey Communicator::idle_key() {
  const std::lock_guard lock(issuing_);
  StreamKey key{StreamKey::Kind::message_batches, 0};
  for (auto found = streams_.find(key); found != streams_.end(); found = streams_.find(key)) {
    if (setoStreamPoll(found->second.handle, found->second.last) != setoInProgress) break;
    ++key.number;
  }
  return key;
}

void Communicator::launch(StreamKey key, const std::vector<Call>& calls, const setoCallConfig_t& config,
                          const c10::intrusive_ptr<Work>& work) {
  forget_ended();
  const std::lock_guard lock(issuing_);
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr, "seto: this group was shut down or aborted");
  Stream& stream = stream_of(key);
  const IssueTarget target{comm_, stream.handle, &config};
  std::uint64_t after = 0;
  setoResult_t result = setoSuccess;
  std::string text;
  const auto note = [&](setoResult_t one) {
    if (one == setoSuccess || result != setoSuccess) return;
    result = one;
    text = setoGetLastError(nullptr);
  };
  if (calls.size() == 1) {
    note(calls.front()(target));
  } else {
    check(setoGroupStart(), "a group of calls");
    for (const Call& call : calls) note(call(target));
    note(setoGroupEnd());
  }
  check(setoStreamPosition(stream.handle, &after), "a stream");
  if (after == stream.last) {  // nothing was queued
    if (work->ended(result, text.c_str())) CompletionThreads::of_process().take(work);
    return;
  }
  stream.last = after + 1;
  work->issued(stream.handle, stream.last);
  c10::intrusive_ptr<Work> told = work;
  check(setoLaunchOutcomeFunction(stream.handle, &Communicator::on_outcome, told.release()), "a stream");
}

// Called on a thread of the library, which must not release a work: the work may hold the last reference to its communicator.
void Communicator::on_outcome(setoResult_t result, const char* text, void* argument) noexcept {
  auto work = c10::intrusive_ptr<Work>::reclaim(static_cast<Work*>(argument));
  Communicator& communicator = work->communicator();
  const bool alone = work.use_count() == 1;
  if (work->ended(result, text) || alone) return CompletionThreads::of_process().take(std::move(work));
  const std::lock_guard lock(communicator.endings_);
  communicator.ended_.push_back(std::move(work));
}

void Communicator::forget_ended() {
  std::vector<c10::intrusive_ptr<Work>> ended;
  const std::lock_guard lock(endings_);
  ended.swap(ended_);
}

}  // namespace seto::torch_backend
