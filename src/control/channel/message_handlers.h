#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace seto {

// Names a handler: a member (rank) of the communicator that the key names.
struct HandlerName {
  std::uint64_t key = 0;
  std::uint32_t member = 0;
  auto operator<=>(const HandlerName&) const = default;
};

// The message handlers of the members in this process; they need no help of the engines. Any thread.
class MessageHandlers final {
 public:
  // Both run on the control thread with no lock of a channel held. They must be short and must not block; they may send.
  struct Handlers {
    // Returns the answer to an ask: at most kMessageLimit bytes.
    std::function<std::string()> answer;
    // Takes a message of another member. No bytes: that member has no handler, not yet or not any more.
    std::function<void(std::uint32_t from_member, std::string_view bytes)> receive;
  };

  // Keeps handlers registered. The destructor waits until they are not running (unless they destroy it).
  class Registration final {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), name_(other.name_) {}
    Registration& operator=(Registration&& other) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { remove(); }
    void remove();

   private:
    friend class MessageHandlers;
    Registration(MessageHandlers* owner, const HandlerName& name) : owner_(owner), name_(name) {}
    MessageHandlers* owner_ = nullptr;
    HandlerName name_;
  };

  MessageHandlers();
  ~MessageHandlers();
  MessageHandlers(const MessageHandlers&) = delete;
  MessageHandlers& operator=(const MessageHandlers&) = delete;

  // The name must be unique in this process.
  [[nodiscard]] Registration add(const HandlerName& name, Handlers handlers);

 private:
  friend class TcpControlChannel;
  friend class TcpControlOverlay;
  // On the control thread. Returns false if there is no such handler.
  bool answer(const HandlerName& name, std::string& bytes);
  bool receive(const HandlerName& name, std::uint32_t from_member, std::string_view bytes);

  class Registry;
  std::unique_ptr<Registry> callbacks_;
};

}  // namespace seto
