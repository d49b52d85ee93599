#include "src/control/network/listen_address.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/net/peer_listener.h"
#include "src/net/version.h"

namespace seto {
namespace {

constexpr std::uint32_t kMagic = 0x5e70d00c;
constexpr std::size_t kHeadSize = sizeof kMagic + sizeof(std::uint32_t) + kVersionSize + sizeof(Token) + 1;
constexpr std::size_t kCandidateSize = kEncodedAddressSize + 1;

Status garbage() { return failure(Code::remote_error, "a peer's address is malformed: does the peer have the same version?"); }

}  // namespace

std::uint32_t ListenAddress::path_count() const { return paths.empty() ? 0 : *std::max_element(paths.begin(), paths.end()); }

// Layout: magic, number of candidates, version, process, whether it only dials, candidates and their paths. The sizes are the
// same in every version, so that an error can name the other version.
std::string encode(const ListenAddress& address) {
  const auto count = static_cast<std::uint32_t>(std::min(address.candidates.size(), kListenAddressLimit));
  std::string bytes(reinterpret_cast<const char*>(&kMagic), sizeof kMagic);
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(address.library.substr(0, kVersionSize)).resize(sizeof kMagic + sizeof count + kVersionSize, '\0');
  bytes.append(reinterpret_cast<const char*>(address.process.data()), address.process.size());
  bytes.push_back(address.dial_only ? '\1' : '\0');
  for (std::size_t index = 0; index < count; ++index) {
    const EncodedAddress one = encode(address.candidates[index]);
    bytes.append(reinterpret_cast<const char*>(one.data()), one.size());
    bytes.push_back(static_cast<char>(address.path_of(index)));
  }
  return bytes;
}

Result<ListenAddress> decode_listen_address(const std::string& bytes) {
  if (bytes.size() < kHeadSize) {
    return failure(Code::remote_error, "a peer's address has %zu bytes, fewer than %zu: does the peer have the same version?",
                   bytes.size(), kHeadSize);
  }
  std::uint32_t words[2];
  std::memcpy(words, bytes.data(), sizeof words);
  const std::uint32_t count = words[1];
  if (words[0] != kMagic || count == 0 || count > kListenAddressLimit) return garbage();
  if (bytes.size() != kHeadSize + count * kCandidateSize) return garbage();
  ListenAddress address;
  const char* const library = bytes.data() + sizeof words;
  address.library.assign(library, strnlen(library, kVersionSize));
  for (char& header : address.library)
    if (header < ' ' || header > '~') header = '?';
  std::memcpy(address.process.data(), library + kVersionSize, address.process.size());
  const char dial_only = bytes[kHeadSize - 1];
  if (dial_only != '\0' && dial_only != '\1') return garbage();
  address.dial_only = dial_only == '\1';
  for (std::size_t index = 0; index < count; ++index) {
    EncodedAddress one;
    std::memcpy(one.data(), bytes.data() + kHeadSize + index * kCandidateSize, one.size());
    const auto candidate = decode_address(one);
    const auto path = static_cast<std::uint8_t>(bytes[kHeadSize + index * kCandidateSize + one.size()]);
    if (!candidate || candidate->port == 0 || path > kMostPaths) return garbage();
    address.candidates.push_back(*candidate);
    address.paths.push_back(path);
  }
  return address;
}

}  // namespace seto
