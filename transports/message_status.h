#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "transports/status_record.h"

namespace seto {

// Carries status records between members on the control plane, which makes progress whatever the engines do. No call blocks; any
// thread may call.
class StatusExchange {
 public:
  virtual ~StatusExchange() = default;
  // Requests the current record of that member. May be called often: the exchange limits the rate of requests.
  virtual void ask(std::uint32_t member) = 0;
  // Sends this member's current record to all members.
  virtual void announce() = 0;
};

// The part of a departure that belongs to the data path of a transport.
class StatusDataPath {
 public:
  virtual ~StatusDataPath() = default;
  // Announces the departure behind all data that was sent before. Any thread.
  virtual void send_departure() = 0;
  // All data of that member has arrived, or its connection is lost.
  [[nodiscard]] virtual bool all_arrived(std::uint32_t member) const = 0;
};

// PeerStatus over messages: each member keeps a copy of every other member's record. A reader may get an old copy; reading it
// requests a newer one.
class MessageStatus final : public PeerStatus {
 public:
  struct Setup {
    std::uint32_t own = 0;
    std::uint32_t members = 0;
    StatusExchange* exchange = nullptr;   // outlives this object
    StatusDataPath* data_path = nullptr;  // outlives this object
  };
  explicit MessageStatus(const Setup& setup);

  void begin(const Note& note) override { record_.write(note); }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override;
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override;
  void leave(Fate fate) override;
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override;
  [[nodiscard]] std::uint64_t departures() const override { return departures_.load(std::memory_order_acquire); }
  void explain(std::string_view why) override { record_.explain(why); }
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override;
  [[nodiscard]] bool departed(std::uint32_t member) const override { return fate_of(member).reason != 0; }
  [[nodiscard]] bool silent(std::uint32_t member) const override;

  // ---- for the transport ----

  void complete(std::uint64_t operation) { record_.complete(operation); }
  // The value of the copy; does not request a newer one.
  [[nodiscard]] std::uint64_t known_completed(std::uint32_t member) const { return record_of(member).completed(); }
  // How many records of that member brought anything new.
  [[nodiscard]] std::uint64_t renewals(std::uint32_t member) const { return record_of(member).renewals(); }
  void ask(std::uint32_t member) const { setup_.exchange->ask(member); }

  // ---- for the control plane; any thread ----

  [[nodiscard]] std::string record() const { return record_.encoded(); }
  Status renew(std::uint32_t member, std::string_view record);
  // That member keeps no record of this group any more: it has left, whether or not it gave a reason.
  void lose(std::uint32_t member);

 private:
  [[nodiscard]] const StatusRecord& record_of(std::uint32_t member) const {
    return member == setup_.own ? record_ : *copies_[member];
  }

  Setup setup_;
  StatusRecord record_;
  std::atomic<bool> departure_is_sent_{false};         // behind the data
  std::vector<std::unique_ptr<StatusRecord>> copies_;  // by member
  std::atomic<std::uint64_t> departures_{0};           // changes of copies in which a member had left
};

}  // namespace seto
