#include "tests/software_gpu/driver/fatbin.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "tests/software_gpu/driver/driver_error.h"

namespace seto::software_gpu::driver {
namespace {

// An embedded fatbin begins with a wrapper that points to it.
constexpr std::uint32_t kWrapperMagic = 0x466243B1;
constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
constexpr std::uint32_t kZstdMagic = 0xFD2FB528;
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
  std::uint64_t unused_3[3];
  std::uint64_t plain_bytes;  // of a compressed payload
};

template <class T>
T read_at(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// nvcc compresses with zstd, unless it was called with --compress-mode=speed. Debian needs this library for its packages, so it
// is there without its header.
std::string decompressed(const unsigned char* payload, std::uint32_t bytes, std::uint64_t plain_bytes) {
  if (bytes < sizeof(kZstdMagic) || read_at<std::uint32_t>(payload) != kZstdMagic)
    throw DriverError(DriverCode::invalid_image,
                      "the PTX of the fatbin is compressed, but not with zstd: build it with nvcc --compress-mode=size");
  if (plain_bytes > kMostBytes) throw DriverError(DriverCode::invalid_image, "the PTX is larger than 1 GiB");
  void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  using Decompress = std::size_t(void*, std::size_t, const void*, std::size_t);
  auto* const decompress = library == nullptr ? nullptr : reinterpret_cast<Decompress*>(dlsym(library, "ZSTD_decompress"));
  if (decompress == nullptr)
    throw DriverError(DriverCode::invalid_image, "the PTX of the fatbin is compressed, and libzstd.so.1 is missing");
  std::string text(plain_bytes, '\0');
  if (decompress(text.data(), text.size(), payload, bytes) != text.size())
    throw DriverError(DriverCode::invalid_image, "the compressed PTX of the fatbin is damaged");
  return text;
}

// The payload of an entry that has PTX.
std::string ptx_of_entry(const unsigned char* entry, const Entry& head) {
  const unsigned char* const payload = entry + head.header_bytes;
  std::string text = head.compressed_bytes == 0 ? std::string(reinterpret_cast<const char*>(payload), head.bytes)
                                                : decompressed(payload, head.compressed_bytes, head.plain_bytes);
  text.resize(std::strlen(text.c_str()));  // it is filled up with zeros
  return text;
}

std::string ptx_of_fatbin(const unsigned char* fatbin, int capability) {
  const auto header = read_at<Header>(fatbin);
  if (header.bytes > kMostBytes) throw DriverError(DriverCode::invalid_image, "the fatbin says that it is larger than 1 GiB");
  const unsigned char* best = nullptr;
  int best_architecture = 0;
  for (std::uint64_t at = header.header_bytes; at + sizeof(Entry) <= header.header_bytes + header.bytes;) {
    const auto entry = read_at<Entry>(fatbin + at);
    if (entry.header_bytes < sizeof(Entry) || at + entry.header_bytes + entry.bytes > header.header_bytes + header.bytes ||
        entry.compressed_bytes > entry.bytes)
      throw DriverError(DriverCode::invalid_image, "an entry of the fatbin leaves it");
    const int architecture = static_cast<int>(entry.architecture);
    if (entry.kind == kPtxEntry && architecture <= capability && architecture > best_architecture) {
      best = fatbin + at;
      best_architecture = architecture;
    }
    at += entry.header_bytes + entry.bytes;
  }
  if (best != nullptr) return ptx_of_entry(best, read_at<Entry>(best));
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
