#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "transports/resume/payload_retention.h"

namespace seto::resume {

// Keeps frames until the peer has them: number, header and payload.
template <class Header>
class Retention final : public PayloadRetention {
 public:
  Retention(Limits limits, CopyMemory& copies) : PayloadRetention(limits, copies) {}

  // The path takes a new frame: it gets the next number, which its header must carry.
  std::uint64_t add(const Header& header, Payload payload, std::uint32_t path) {
    const std::uint64_t number = PayloadRetention::add(std::move(payload), path);
    if (headers_.size() != capacity()) {
      std::vector<Header> larger(capacity());
      for (std::uint64_t each = first(); each < number; ++each)
        larger[each & (larger.size() - 1)] = headers_[each & (headers_.size() - 1)];
      headers_ = std::move(larger);
    }
    headers_[number & (headers_.size() - 1)] = header;
    return number;
  }
  // The frame must be kept.
  [[nodiscard]] Header& header(std::uint64_t number) {
    SETO_CHECK(keeps(number));
    return headers_[number & (headers_.size() - 1)];
  }

 private:
  std::vector<Header> headers_;  // a ring, by number
};

}  // namespace seto::resume
