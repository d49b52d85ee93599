#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/core/communicator/communicator.h"
#include "src/core/device_relay/staging.h"
#include "src/engine/relay/relay_channels.h"

namespace seto {

class Relay;

// No event tells of a launch of a graph, so its task looks for lost peers and for the deadline itself.
enum class LaunchKind : std::uint8_t { once, of_graph };

// The messages of one operation: begins it in the control when its turn has come, moves what the kernel and the peers send, and
// completes the operation once its kernel has ended, too.
class RelayTask final : public Task {
 public:
  struct Launch {
    Note note;
    LaunchKind kind = LaunchKind::once;
    std::uint64_t of_kernel = 0;  // the number of the operation for the kernel
    std::shared_ptr<RelayChannels> channels;
  };
  RelayTask(Relay& relay, Launch launch);

  Step advance() override;
  bool inspect() override;
  bool give_up(const Status& reason) override;
  [[nodiscard]] bool begun() const override { return begun_; }

  [[nodiscard]] std::uint64_t operation() const { return launch_.note.operation; }
  // Token held. What it waits for besides its kernel; empty: nothing.
  [[nodiscard]] std::string waits_for() const;

 private:
  Step begin();
  Step move();
  void judge();
  void finish(Status status);

  Relay& relay_;
  const Launch launch_;
  Deadline next_look_ = Deadline::after_ms(0);
  std::optional<Deadline> until_{};  // of a launch of a graph, once its turn has come
  bool begun_ = false;
  bool started_ = false;  // moving messages
  bool all_moved_ = false;
};

}  // namespace seto
