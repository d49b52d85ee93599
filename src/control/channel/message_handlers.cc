#include "src/control/channel/message_handlers.h"

#include "src/base/check.h"
#include "src/control/callback_registry.h"
#include "src/control/channel/control_channels.h"

namespace seto {

class Mailboxes::Shelf final {
 public:
  CallbackShelf<MailboxName, Handlers> handlers;
};

Mailboxes::Registration& Mailboxes::Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    remove();
    owner_ = std::exchange(other.owner_, nullptr);
    name_ = other.name_;
  }
  return *this;
}

void Mailboxes::Registration::remove() {
  if (Mailboxes* owner = std::exchange(owner_, nullptr)) owner->shelf_->handlers.remove(name_);
}

Mailboxes::Mailboxes() : shelf_(std::make_unique<Shelf>()) {}
Mailboxes::~Mailboxes() = default;

Mailboxes::Registration Mailboxes::add(const MailboxName& name, Handlers handlers) {
  SETO_CHECK(shelf_->handlers.add(name, std::move(handlers)));
  return {this, name};
}

bool Mailboxes::answer(const MailboxName& name, std::string& bytes) {
  const bool there = shelf_->handlers.run(name, [&](const Handlers& handlers) { bytes = handlers.answer(); });
  SETO_CHECK(bytes.size() <= kNewsLimit);
  return there;
}

bool Mailboxes::hear(const MailboxName& name, std::uint32_t from_member, std::string_view bytes) {
  return shelf_->handlers.run(name, [&](const Handlers& handlers) { handlers.hear(from_member, bytes); });
}

}  // namespace seto
