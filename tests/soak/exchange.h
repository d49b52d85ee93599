#pragma once

#include <memory>
#include <string>

#include "include/seto/seto.h"
#include "tests/soak/area.h"
#include "tests/soak/operation.h"

namespace seto::soak {

// One rank's handle and position in a communicator.
struct Seat {
  setoComm_t comm = nullptr;
  int rank = 0;
  int ranks = 1;
};

// One rank's end of one call: its buffers, and the expected result.
class Exchange final {
 public:
  Exchange(const Seat& seat, const Operation& operation);

  [[nodiscard]] setoResult_t issue(setoStream_t stream);
  // Frees what only the issue needed. To be called when it is over, groups included.
  void issued();
  // Returns an empty text if every byte is right.
  [[nodiscard]] std::string difference() const;
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] const Operation& operation() const { return operation_; }

 private:
  [[nodiscard]] setoResult_t issue_rooted(setoStream_t stream);
  [[nodiscard]] setoResult_t issue_uneven(setoStream_t stream);
  [[nodiscard]] setoResult_t issue_messages(setoStream_t stream);
  [[nodiscard]] setoResult_t choose_fold(setoRedOp_t& fold);
  void expect_pieces();
  [[nodiscard]] void* in() const { return in_; }
  [[nodiscard]] void* out() const { return out_; }

  Seat seat_;
  Operation operation_;
  const Type& type_;
  Layout layout_;
  Numbers numbers_;
  std::unique_ptr<Area> input_;  // null if in place
  std::unique_ptr<Area> output_;
  void* in_ = nullptr;
  void* out_ = nullptr;
  setoRedOp_t custom_ = setoNumOps;  // until issued(): the custom operation; setoNumOps: none
};

}  // namespace seto::soak
