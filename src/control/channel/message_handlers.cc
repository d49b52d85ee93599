#include "src/control/channel/message_handlers.h"

#include "src/base/check.h"
#include "src/control/callback_registry.h"
#include "src/control/channel/control_channels.h"

namespace seto {

class MessageHandlers::Registry final {
 public:
  CallbackRegistry<HandlerName, Handlers> handlers;
};

MessageHandlers::Registration& MessageHandlers::Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    remove();
    owner_ = std::exchange(other.owner_, nullptr);
    name_ = other.name_;
  }
  return *this;
}

void MessageHandlers::Registration::remove() {
  if (MessageHandlers* owner = std::exchange(owner_, nullptr)) owner->callbacks_->handlers.remove(name_);
}

MessageHandlers::MessageHandlers() : callbacks_(std::make_unique<Registry>()) {}
MessageHandlers::~MessageHandlers() = default;

MessageHandlers::Registration MessageHandlers::add(const HandlerName& name, Handlers handlers) {
  SETO_CHECK(callbacks_->handlers.add(name, std::move(handlers)));
  return {this, name};
}

bool MessageHandlers::answer(const HandlerName& name, std::string& bytes) {
  const bool there = callbacks_->handlers.run(name, [&](const Handlers& handlers) { bytes = handlers.answer(); });
  SETO_CHECK(bytes.size() <= kMessageLimit);
  return there;
}

bool MessageHandlers::receive(const HandlerName& name, std::uint32_t from_member, std::string_view bytes) {
  return callbacks_->handlers.run(name, [&](const Handlers& handlers) { handlers.receive(from_member, bytes); });
}

}  // namespace seto
