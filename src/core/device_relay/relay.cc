#include "src/core/device_relay/relay.h"

#include <utility>

#include "src/core/call/call_shape.h"
#include "src/core/device_relay/kept_by_graphs.h"

namespace seto {
namespace {

constexpr std::uint64_t kPatienceMs = 100;

std::atomic<std::size_t> announcements_left{0};

}  // namespace

class Relay::Announcement {
 public:
  Announcement(std::shared_ptr<Gate> gate, const Note& note, std::shared_ptr<RelayChannels> channels,
               std::shared_ptr<AnnouncedOperation> operation)
      : gate_(std::move(gate)), note_(note), channels_(std::move(channels)), operation_(std::move(operation)) {
    announcements_left.fetch_add(1, std::memory_order_relaxed);
  }
  ~Announcement() { announcements_left.fetch_sub(1, std::memory_order_relaxed); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  void announce() const {
    const std::lock_guard lock(gate_->mutex);
    Relay* const relay = gate_->relay;
    if (relay == nullptr) return;
    const Note note = relay->add(note_, channels_, is_of_graph() ? LaunchKind::of_graph : LaunchKind::once);
    if (operation_ != nullptr) {
      operation_->digest = note.digest;
      operation_->number.store(note.operation, std::memory_order_release);
    }
    relay->on_announced_();
  }
  [[nodiscard]] bool is_of_graph() const { return operation_ == nullptr; }

 private:
  const std::shared_ptr<Gate> gate_;
  const Note note_;
  const std::shared_ptr<RelayChannels> channels_;
  const std::shared_ptr<AnnouncedOperation> operation_;
};

Result<std::unique_ptr<Relay>> Relay::create(Communicator& control, const Staging& staging, std::function<void()> on_announced) {
  SETO_TRY(control.context()->progress().prepare());
  std::unique_ptr<Relay> made(new Relay(control, staging, on_announced));
  made->readers_.resize(static_cast<std::size_t>(control.ranks()));
  SETO_ASSIGN(made->messages_, MessageRelay::create(control, staging, std::move(on_announced)));
  return made;
}

Result<std::shared_ptr<RelayChannels>> Relay::open(RelayProgram program, std::uint32_t digest, std::uint64_t window_bytes) {
  SETO_ASSIGN(std::shared_ptr<RelayChannels> channels,
              RelayChannels::open(std::move(program), digest, window_bytes, control_.members().peer_group(), slots_));
  std::erase_if(opened_, [](const auto& one) { return one.expired(); });
  opened_.push_back(channels);
  return channels;
}

Relay::Readers Relay::readers() const {
  const std::lock_guard lock(readers_mutex_);
  return {readers_number(), readers_};
}

void Relay::find_readers(const RelayChannels& channels) {
  if (slots_ == nullptr) return;
  const std::lock_guard lock(readers_mutex_);
  channels.find_readers(readers_);
  std::uint64_t number = 0;
  for (std::size_t rank = 0; rank < readers_.size(); ++rank)
    if (readers_[rank]) number = (number ^ (rank + 1)) * 0x9e37'79b9'7f4a'7c15;
  readers_number_.store(number, std::memory_order_release);
}

Note Relay::add(const Note& note, std::shared_ptr<RelayChannels> channels, LaunchKind kind) {
  RelayTask::Launch launch{note, kind, 0, std::move(channels)};
  RelayTask* added = nullptr;
  {
    const std::lock_guard lock(mutex_);
    launch.note.operation = control_.order().next();
    launch.note.digest = digest_ = folded(digest_, note.digest);
    launch.of_kernel = ++launches_;
    while (!tasks_.empty() && tasks_.front()->ended()) tasks_.pop_front();
    added = tasks_.emplace_back(std::make_unique<RelayTask>(*this, launch)).get();
    control_.order().issue();
  }
  control_.context()->progress().join(*added);
  return launch.note;
}

Relay::AnnouncementPtr Relay::announce(const Note& note, std::shared_ptr<RelayChannels> channels,
                                       std::shared_ptr<AnnouncedOperation> operation) {
  announces_ = true;
  AnnouncementPtr made(new Announcement(gate_, note, std::move(channels), std::move(operation)));
  if (made->is_of_graph()) KeptByGraphs<Announcement>::add(made.get());
  return made;
}

void Relay::DropAnnouncement::operator()(Announcement* announcement) const {
  if (announcement->is_of_graph()) KeptByGraphs<Announcement>::remove(announcement);
  delete announcement;
}

void Relay::run(void* announcement) {
  auto* const announced = static_cast<Announcement*>(announcement);
  announced->announce();
  if (!announced->is_of_graph()) delete announced;
}

std::size_t Relay::announcements() { return announcements_left.load(std::memory_order_relaxed); }

void Relay::close() {
  {
    const std::lock_guard lock(gate_->mutex);
    gate_->relay = nullptr;
  }
  messages_.reset();
  for (const std::unique_ptr<RelayTask>& task : tasks_) {
    if (!task->ended())
      control_.fail(failure(Code::aborted, "rank %d destroyed the communicator before its operations had ended", control_.rank()),
                    control_.rank());
    while (!control_.context()->progress().wait(*task, Deadline::after_ms(kPatienceMs))) continue;
  }
  const std::lock_guard lock(mutex_);
  tasks_.clear();
  for (const std::weak_ptr<RelayChannels>& one : opened_)
    if (const std::shared_ptr<RelayChannels> channels = one.lock()) channels->close();
  opened_.clear();
}

std::string Relay::waits_for() const {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<RelayTask>& task : tasks_)
    if (!task->ended()) return task->waits_for();
  return {};
}

}  // namespace seto
