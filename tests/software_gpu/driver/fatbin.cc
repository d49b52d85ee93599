#include "tests/software_gpu/driver/fatbin.h"

#include <cstdint>
#include <cstring>

#include "tests/software_gpu/driver/driver_error.h"

namespace seto::software_gpu::driver {
namespace {

// An embedded fatbin begins with a wrapper that points to it.
constexpr std::uint32_t kWrapperMagic = 0x466243B1;
constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
constexpr std::uint16_t kPtxEntry = 1;
constexpr std::uint64_t kMostBytes = 1ULL << 30;

struct Wrapper {
  std::uint32_t magic, version;
  const void* fatbin;
  const void* unused;
};

struct Header {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;  // of all entries
};

// Only the parts that are used here have names.
struct Entry {
  std::uint16_t kind, unused_1;
  std::uint32_t header_bytes;
  std::uint64_t bytes;
  std::uint32_t compressed_bytes;  // 0: the payload is not compressed
  std::uint32_t unused_2;
  std::uint16_t minor, major;
  std::uint32_t architecture;  // 90
};

template <class T>
T read_at(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string ptx_of_fatbin(const unsigned char* fatbin, int capability) {
  const auto header = read_at<Header>(fatbin);
  if (header.bytes > kMostBytes) throw DriverError(DriverCode::invalid_image, "the fatbin says that it is larger than 1 GiB");
  std::string best;
  int best_architecture = 0;
  bool compressed = false;
  for (std::uint64_t at = header.header_bytes; at + sizeof(Entry) <= header.header_bytes + header.bytes;) {
    const auto entry = read_at<Entry>(fatbin + at);
    if (entry.header_bytes < sizeof(Entry) || at + entry.header_bytes + entry.bytes > header.header_bytes + header.bytes)
      throw DriverError(DriverCode::invalid_image, "an entry of the fatbin leaves it");
    const int architecture = static_cast<int>(entry.architecture);
    const bool fits = entry.kind == kPtxEntry && architecture <= capability && architecture > best_architecture;
    compressed = compressed || (fits && entry.compressed_bytes != 0);
    if (fits && entry.compressed_bytes == 0) {
      best.assign(reinterpret_cast<const char*>(fatbin + at + entry.header_bytes), entry.bytes);
      best.resize(std::strlen(best.c_str()));  // the payload is filled up with zeros
      best_architecture = architecture;
    }
    at += entry.header_bytes + entry.bytes;
  }
  if (!best.empty()) return best;
  if (compressed)
    throw DriverError(DriverCode::invalid_image, "the PTX of the fatbin is compressed: build it with nvcc --no-compress");
  throw DriverError(DriverCode::no_binary_for_gpu,
                    "the fatbin has no PTX for compute capability " + std::to_string(capability) + " (it runs no machine code)");
}

}  // namespace

std::string ptx_of_image(const void* image, int capability) {
  if (image == nullptr) throw DriverError(DriverCode::invalid_value, "the image is NULL");
  const auto* const bytes = static_cast<const unsigned char*>(image);
  switch (bytes[0] == 0xB1 || bytes[0] == 0x50 ? read_at<std::uint32_t>(bytes) : 0U) {
    case kWrapperMagic:
      return ptx_of_fatbin(static_cast<const unsigned char*>(read_at<Wrapper>(bytes).fatbin), capability);
    case kFatbinMagic:
      return ptx_of_fatbin(bytes, capability);
    default:
      break;
  }
  std::string text(static_cast<const char*>(image));
  if (text.find(".version") == std::string::npos)
    throw DriverError(DriverCode::invalid_image, "the image is neither PTX nor a fatbin");
  return text;
}

}  // namespace seto::software_gpu::driver
