#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace seto {

// Who is meant: a member of what a key names.
struct MailboxName {
  std::uint64_t key = 0;
  std::uint32_t member = 0;
  auto operator<=>(const MailboxName&) const = default;
};

// What members of this process say and hear over wires, without help of their engines. Any thread.
class Mailboxes final {
 public:
  // Both run on the control thread, with no lock of wires held: short, never blocking; they may send.
  struct Handlers {
    // What is to be said to whoever asks: at most kNewsLimit bytes.
    std::function<std::string()> answer;
    // What another member says. No bytes: it has no mailbox there, not yet or no longer.
    std::function<void(std::uint32_t from_member, std::string_view bytes)> hear;
  };

  // A mailbox in place. Destroying it waits until its handlers are not running (unless they destroy it).
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
    friend class Mailboxes;
    Registration(Mailboxes* owner, const MailboxName& name) : owner_(owner), name_(name) {}
    Mailboxes* owner_ = nullptr;
    MailboxName name_;
  };

  Mailboxes();
  ~Mailboxes();
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;

  // Nobody else of this process may have that name.
  [[nodiscard]] Registration add(const MailboxName& name, Handlers handlers);

 private:
  friend class TcpWire;
  // On the control thread. False: there is no such mailbox.
  bool answer(const MailboxName& name, std::string& bytes);
  bool hear(const MailboxName& name, std::uint32_t from_member, std::string_view bytes);

  class Shelf;
  std::unique_ptr<Shelf> shelf_;
};

}  // namespace seto
