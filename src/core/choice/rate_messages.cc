#include "src/core/choice/rate_messages.h"

#include <algorithm>
#include <cstring>

namespace seto {
namespace {

// Little-endian, as is every machine that this library runs on.
struct Head {
  std::uint64_t version = 0;
  std::uint64_t operation = 0;
  std::uint32_t rates = 0;
  std::uint32_t kind = 0;
};

}  // namespace

SiteLinkRates lowest_that_fit(SiteLinkRates rates) {
  std::stable_sort(rates.begin(), rates.end(), [](const SiteLinkRate& one, const SiteLinkRate& other) {
    return one.bytes_per_second < other.bytes_per_second;
  });
  rates.resize(std::min(rates.size(), kMostRatesOfMessage));
  return rates;
}

std::string encoded(const RateMessage& message) {
  const SiteLinkRates rates = lowest_that_fit(message.rates);
  const Head head{message.version, message.operation, static_cast<std::uint32_t>(rates.size()),
                  static_cast<std::uint32_t>(message.kind)};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(rates.data()), rates.size() * sizeof(SiteLinkRate));
  return bytes;
}

Result<RateMessage> rate_message_in(std::string_view bytes) {
  Head head;
  if (bytes.size() < sizeof head) return failure(Code::remote_error, "a message about rates of %zu bytes", bytes.size());
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  const bool known = head.kind >= static_cast<std::uint32_t>(RateMessageKind::report) &&
                     head.kind <= static_cast<std::uint32_t>(RateMessageKind::bounds);
  if (!known || head.rates > kMostRatesOfMessage || bytes.size() != head.rates * sizeof(SiteLinkRate))
    return failure(Code::remote_error, "a malformed message about rates: kind %u, %u rates", head.kind, head.rates);
  RateMessage message{static_cast<RateMessageKind>(head.kind), head.version, head.operation, SiteLinkRates(head.rates)};
  if (!bytes.empty()) std::memcpy(message.rates.data(), bytes.data(), bytes.size());
  return message;
}

}  // namespace seto
