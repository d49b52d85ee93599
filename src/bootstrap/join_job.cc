#include "src/bootstrap/join_job.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "src/bootstrap/local_bootstrap.h"
#include "src/bootstrap/named_bootstrap.h"
#include "src/bootstrap/pmi.h"
#include "src/bootstrap/rendezvous_server.h"
#include "src/bootstrap/solo.h"
#include "src/bootstrap/unique_id.h"

namespace seto {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::string hex_of(const UniqueIdBytes& id) {
  std::string text;
  for (const char byte : id) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

Result<UniqueIdBytes> id_of_hex(std::string_view text) {
  UniqueIdBytes id{};
  bool right = text.size() == 2 * id.size();
  for (std::size_t at = 0; right && at < id.size(); ++at) {
    const std::size_t high = kDigits.find(text[2 * at]);
    const std::size_t low = kDigits.find(text[2 * at + 1]);
    right = high != std::string_view::npos && low != std::string_view::npos;
    id[at] = static_cast<char>(high << 4 | low);
  }
  if (right) return id;
  return failure(Code::invalid_argument, "a unique id of %zu letters: it has %zu, of 0 to 9 and a to f", text.size(),
                 2 * id.size());
}

Result<std::unique_ptr<Bootstrap>> join_id(std::string_view hex, const Launch& launch, Deadline until) {
  SETO_ASSIGN(const UniqueIdBytes id, id_of_hex(hex));
  SETO_ASSIGN(LocalBootstrap joined, LocalBootstrap::join(id, launch.rank, launch.ranks, until));
  return std::unique_ptr<Bootstrap>(std::make_unique<LocalBootstrap>(std::move(joined)));
}

Result<std::unique_ptr<Bootstrap>> join_pmi(const Launch& launch, Deadline until) {
  std::string mine;
  if (launch.rank == 0) {
    SETO_ASSIGN(const UniqueIdBytes id, create_unique_id(until));
    mine = hex_of(id);
  }
  SETO_ASSIGN(const std::string hex, broadcast_over_pmi(launch.pmi_fd, launch.rank, mine, until));
  return join_id(hex, launch, until);
}

Result<std::unique_ptr<Bootstrap>> join_root(const Launch& launch, Deadline until) {
  constexpr std::string_view kId = "id:";
  if (launch.where.starts_with(kId)) return join_id(std::string_view(launch.where).substr(kId.size()), launch, until);
  return failure(Code::invalid_usage, "root %s: a rendezvous over TCP is not in this version", launch.where.c_str());
}

Result<std::unique_ptr<Bootstrap>> join_name(const Launch& launch, Deadline until) {
  SETO_ASSIGN(std::unique_ptr<NamedBootstrap> joined, NamedBootstrap::join(launch.where, launch.rank, launch.ranks, until));
  return std::unique_ptr<Bootstrap>(std::move(joined));
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_job(const Launch& launch, const Config& config, Deadline until) {
  static_cast<void>(config);
  switch (launch.way) {
    case MeetingWay::alone:
      break;
    case MeetingWay::root:
      return join_root(launch, until);
    case MeetingWay::locally:
      return join_name(launch, until);
    case MeetingWay::pmi:
      return join_pmi(launch, until);
  }
  return std::unique_ptr<Bootstrap>(std::make_unique<SoloBootstrap>());
}

}  // namespace seto
