#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/tcp/tcp_peer_group.h"

namespace seto::tcp {

class TcpSender final : public SendStream {
 public:
  TcpSender(TcpCircle& circle, StreamAddress address, std::span<const std::uint32_t> receivers, const StreamGeometry& geometry);

  std::byte* acquire(Mark mark) override;
  [[nodiscard]] bool asks_size() const override { return true; }
  void tell_size(Mark mark, std::size_t size) override;
  void commit(Mark mark) override;
  [[nodiscard]] bool lends() const override { return true; }
  bool lend(Mark mark, const std::byte* first, std::size_t stride) override;
  [[nodiscard]] bool taken(std::uint64_t operation) override;
  bool revoke(std::uint64_t operation) override;

 private:
  // Slots of two operations, and how many frames of each wait to be written.
  struct Slots final : Source {
    explicit Slots(std::size_t count) : unwritten(count) {}
    std::unique_ptr<std::byte[]> memory;
    std::vector<Unwritten> unwritten;  // by slot
    std::array<Unwritten, 2> lent{};   // of all that an operation lent
  };
  struct Operation {
    std::uint64_t number = 0;
    const std::byte* lent = nullptr;
    std::size_t stride = 0;
    std::size_t size = 0;  // of the slice that is committed next
    bool asks = false;     // receivers are to say how far they are
  };

  bool open(Operation& operation, std::uint64_t number);
  [[nodiscard]] bool has_credit(Mark mark);
  [[nodiscard]] std::size_t slot_of(Mark mark) const;
  void send(const Operation& operation, Mark mark, const std::byte* message, Unwritten* unwritten);

  TcpCircle& circle_;
  StreamAddress address_;
  std::vector<std::uint32_t> receivers_;
  StreamGeometry geometry_;
  std::uint64_t ahead_;       // slices
  std::uint64_t operations_;  // ahead
  std::size_t stride_;
  std::shared_ptr<Slots> slots_;
  std::array<Operation, 2> under_way_;
  std::vector<std::array<Mark, kMostOperations>*> taken_;  // by receiver: its credit
};

class TcpReceiver final : public ReceiveStream {
 public:
  TcpReceiver(TcpCircle& circle, StreamAddress address, const StreamGeometry& geometry);

  const std::byte* front(Mark mark) override;
  [[nodiscard]] bool asks_size() const override { return true; }
  bool brings(Mark mark, std::size_t size) override;
  void release(Mark mark) override;
  [[nodiscard]] bool places() const override { return true; }
  void place(const Placement& placement) override { stream_.want(placement, geometry_.digest); }
  void displace(std::uint64_t operation) override;

 private:
  void disagree(Mark mark, const std::string& what);

  TcpCircle& circle_;
  StreamAddress address_;
  StreamGeometry geometry_;
  std::uint64_t ahead_;
  InStream& stream_;
};

}  // namespace seto::tcp
