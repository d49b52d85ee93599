#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/core/communicator/operation_order.h"
#include "src/core/device_memory/device_shapes.h"
#include "src/core/device_memory/lending/lent_buffers.h"
#include "src/core/device_memory/replays.h"
#include "src/core/device_relay/relay.h"
#include "src/core/progress/call_deadline.h"
#include "src/core/record/recorder_entry.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/transfer_program.h"

namespace seto {

// The launches of one device communicator, in the order in which they were issued: each waits for the one before, on whatever
// streams they are. Launches that are captured form a chain of their own in each capture. One thread launches; any thread may
// make the other calls.
class Launches final {
 public:
  // `order`: of the communicator, whose operations these are. It hears of them when their kernels begin and end.
  // `among`: null where ranks of this process share the GPU: a thread that launches for two of them may not launch for the second
  // before the first has launched twice. `member`: this communicator in that order.
  static Result<std::unique_ptr<Launches>> create(const GpuContext& gpu, OperationOrder& order, std::uint32_t most_blocks,
                                                  LaunchOrder* among, const LaunchOrder::Member* member);
  ~Launches();
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  // A launch has ended when its relay has, too. The tasks of the relay begin and complete its operation.
  void follow(const Relay& relay) { relay_ = &relay; }

  // A program of a launch.
  struct Request {
    std::shared_ptr<DeviceShape> shape;
    kernels::DeviceArguments arguments;     // without the program and the words of this class
    kernels::TransferArguments transfers;   // the same, of a shape of sends and receives
    std::vector<BufferCopy> before, after;  // of the kernel
    cuda::Stream stream = nullptr;
    std::vector<cuda::Stream> joined;  // the launch comes after their work so far, and before what follows in them
    Note note;                         // without an operation: sends and receives
    CallDeadline limit;
    RecorderEntry record;
    // With a relay the stream may announce the launch; the number of its operation is here then, unless a graph repeats it.
    Relay::AnnouncementPtr announcement{};  // null: none, or its stream has taken it
    std::shared_ptr<AnnouncedOperation> announced{};
    std::shared_ptr<DeviceResiduals> residuals{};  // null: none, or of a graph
    MessageRelay::Hold messages{};                 // empty: none are relayed
  };
  // The id of the capture in which the stream is; 0: none. Fails if the capture was invalidated.
  Result<std::uint64_t> capture_of(cuda::Stream stream) const;
  Status launch(Request request, std::uint64_t capture) { return launch({&request, 1}, capture); }
  // One launch executes the programs of several requests, if they are for one kernel and one stream. Launches what was added
  // before, unless a request for this shape fits to it: the next launch is then that of the request.
  Status make_room(const DeviceShape& shape, cuda::Stream stream, std::uint64_t capture);
  // After make_room(). The request is launched by flush(), or at once if no other one may be in its launch.
  Status add(Request request, std::uint64_t capture);
  Status flush();
  // Forgets what flush() would launch, because the communicator has failed.
  void drop(const Status& reason);
  // A launch that is no operation of the communicator: the caller waits for it. Nothing else runs meanwhile.
  Status launch_unwatched(Request& request);

  // The first program of a launch that has not ended.
  struct State {
    std::shared_ptr<DeviceShape> shape;  // null: all have ended
    // Without a shape: of the last operation that has ended; its number is 0 if none has ended since.
    Note note;
    CallDeadline limit;
    std::uint64_t launch = 0;    // its number
    std::uint32_t program = 0;   // of the launch
    std::uint64_t exchange = 0;  // of transfers: the number before those of the launch
    bool has_begun = false;
    bool is_overdue = false;
    bool kernel_has_ended = false;  // and its relay has not
    Status failure;                 // of the driver; this program has ended
  };
  // Removes the programs that have ended. `outcome`: that of the communicator, for the record. The context is current. Only the
  // watcher calls this.
  State poll(const Status& outcome);
  // Waits until a launch ends or for a short time.
  void await_change();

  [[nodiscard]] std::size_t running() const;  // programs
  [[nodiscard]] std::uint64_t ended() const;  // the number of launches
  // That were issued, without those of captures. On the launching thread.
  [[nodiscard]] std::uint64_t issued() const { return launched_; }
  // A launch has failed half-way, so copies and a kernel of it may be in its stream, and no event tells when they have ended.
  [[nodiscard]] bool has_unwatched() const { return has_unwatched_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_graphs() const { return has_graphs_.load(std::memory_order_relaxed); }
  // Launches of graphs without host functions.
  [[nodiscard]] Replays& replays() { return *replays_; }
  // Ends the kernels under way, and later ones as soon as they wait. They cannot be used again. A kernel that lends buffers ends
  // only when this is called again after passes of peers have had time to end; until then is_stopping() holds. The watcher does
  // that, also for kernels of graphs and for those of a communicator that has ended.
  void stop();
  [[nodiscard]] bool is_stopping() const;
  // At the end of the communicator, while its GpuContext is there: nothing launches any more.
  void leave_order();
  // A kernel has refused a message, and stopped all.
  [[nodiscard]] bool has_refused() const;
  // Where the first block was in this program of a launch when it was stopped; empty: none was.
  [[nodiscard]] std::optional<kernels::StopReport> stopped_at(std::uint32_t program) const;

 private:
  // A program of a launch. Those of one launch share its number and its events.
  struct Launch {
    cuda::Event begin = nullptr, end = nullptr;
    std::shared_ptr<DeviceShape> shape;
    Note note;
    CallDeadline limit;
    std::optional<Deadline> until;  // set when the kernel can have begun: the work before it in the stream takes its own time
    RecorderEntry record;
    std::uint64_t launch = 0;
    std::uint64_t exchange = 0;
    std::shared_ptr<AnnouncedOperation> announced{};
    std::shared_ptr<DeviceResiduals> residuals{};   // kept until the end
    std::shared_ptr<MessageRelay::Use> messages{};  // the same
    std::uint32_t program = 0;                      // its place in the launch
    bool is_last = true;                            // of the launch
    bool is_issued = false;                         // the driver has taken the kernel, so its end event is recorded

    void take_number();  // once it is announced
    [[nodiscard]] bool is_relayed() const { return shape->relayed != nullptr; }
  };

  Launches(const GpuContext& gpu, OperationOrder& order) : driver_(gpu.driver()), order_(order) {}
  void begin(Launch& launch);
  void end_first(const Status& outcome, bool failed);
  [[nodiscard]] std::uint32_t programs_done(std::uint64_t launch) const;
  // Says which call the driver has refused. Nothing of the launch is watched then.
  Status launch(std::span<Request> requests, std::uint64_t capture);
  Status launch_watched(std::span<Request> requests);
  void forget_last();
  void note_running(std::span<const Request> requests, cuda::Event begin, cuda::Event end);
  Status copy_program(const Request& request);
  // `launch`: its number; 0: a graph may repeat it, or nothing watches it.
  // `begun`: recorded once all blocks have begun; null: not wanted.
  Status launch_kernel(std::span<Request> requests, std::uint64_t launch, cuda::Event begun);
  [[nodiscard]] kernels::LaunchArguments arguments_of(std::span<const Request> requests, std::uint64_t launch) const;
  Status copy_buffers(const std::vector<BufferCopy>& copies, cuda::Stream stream);
  Status launch_between(std::span<Request> requests, cuda::Event begin, cuda::Event end, cuda::Event begun);
  // After the last kernel of another communicator has begun. `body` launches one, with the given event. Messages are not
  // ordered: ranks often send in one order and receive in another.
  Status in_turn(const Request& first, const std::function<Status(cuda::Event begun)>& body);
  Status launch_captured(std::span<Request> requests, std::uint64_t capture);
  Status join(const Request& request, cuda::Event event);
  Status join_back(const Request& request, cuda::Event event);
  Result<cuda::Event> take_event();

  const cuda::Driver& driver_;
  OperationOrder& order_;
  const Relay* relay_ = nullptr;  // null: there is none
  // Pinned: the word that stops kernels, that of their progress, that of replays, then a report for each program of a launch and
  // each block.
  std::uint64_t* words_ = nullptr;
  kernels::Address words_there_ = 0;
  std::uint32_t most_blocks_ = 0;
  std::unique_ptr<Replays> replays_;
  LaunchOrder* among_ = nullptr;  // null: none is kept
  const LaunchOrder::Member* member_ = nullptr;
  cuda::Event begun_ = nullptr;  // of the last launch in that order; not used for anything else
  std::atomic<bool> has_graphs_{false};
  std::atomic<bool> has_unwatched_{false};

  // On the launching thread: what the next launch executes, the last launch, and the last one in a capture.
  std::vector<Request> pending_;
  std::uint64_t pending_capture_ = 0;
  cuda::Event last_ = nullptr;
  cuda::Stream last_stream_ = nullptr;
  std::uint64_t launched_ = 0;
  std::uint64_t capture_ = 0;
  cuda::Event last_captured_ = nullptr;
  cuda::Stream last_captured_stream_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Launch> running_;
  std::vector<cuda::Event> free_events_;
  std::vector<cuda::Event> all_events_;
  std::uint64_t ended_ = 0;             // launch
  Note unread_;                         // of the last operation that has ended, until poll() has returned it
  std::optional<Deadline> passes_end_;  // set by the first stop()
};

}  // namespace seto
