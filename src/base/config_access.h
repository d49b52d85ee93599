#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "src/base/config.h"

namespace seto {

inline constexpr std::size_t kPathLimit = 4095;
inline constexpr std::size_t kNameLimit = 255;
inline constexpr std::uint64_t kLongestTimeoutMs = 7ULL * 24 * 3600 * 1000;

// The words that settings take, in the order of their enumerations in config.h.
inline constexpr std::string_view kLogNames[] = {"error", "warn", "info", "debug"};
inline constexpr std::string_view kMemoryNames[] = {"auto", "host", "device"};
inline constexpr std::string_view kSlotStoreNames[] = {"auto", "cached", "streamed"};
inline constexpr std::string_view kCalibrateNames[] = {"auto", "off", "on"};
inline constexpr std::string_view kMediumNames[] = {"auto", "tcp"};
inline constexpr std::string_view kConnectNames[] = {"auto", "all", "used"};
inline constexpr std::string_view kRdmaSetUpNames[] = {"control", "cm"};
inline constexpr std::string_view kRdmaMtuNames[] = {"auto", "256", "512", "1024", "2048", "4096"};
inline constexpr std::string_view kGpuDirectNames[] = {"auto", "off"};
inline constexpr std::string_view kControlRelayNames[] = {"auto", "on", "off"};
inline constexpr std::string_view kCongestionNames[] = {"auto", "system"};
inline constexpr std::string_view kPathsUseNames[] = {"backup", "together"};
inline constexpr std::string_view kResumeNames[] = {"auto", "off", "on"};
inline constexpr std::string_view kTlsNames[] = {"off", "sites", "always"};

// How the row of a setting reads and writes its member of Config, and which values it takes.

// A setting with named values. The position of a name in `names` is the value in the setting's enumeration.
struct ChoiceAccess {
  std::span<const std::string_view> names;
  void (*set)(Config& config, std::size_t index);
  std::size_t (*get)(const Config& config);
};

template <auto Member>
constexpr ChoiceAccess choice(std::span<const std::string_view> names) {
  using Enumeration = std::remove_cvref_t<decltype(Config{}.*Member)>;
  return {names, [](Config& config, std::size_t index) { config.*Member = static_cast<Enumeration>(index); },
          [](const Config& config) { return static_cast<std::size_t>(config.*Member); }};
}

// A number with inclusive limits. The derived type decides how the number is read and printed.
struct NumberAccess {
  std::uint64_t Config::*member;
  std::uint64_t least;
  std::uint64_t most;
};
struct CountAccess : NumberAccess {};
struct BytesAccess : NumberAccess {};
struct DurationAccess : NumberAccess {};  // milliseconds
struct TextAccess {
  std::string Config::*member;
  std::size_t longest;
};
struct WordAccess : TextAccess {};    // one of our names: kept in lower case
struct SecretAccess : TextAccess {};  // never printed
struct RootAccess : TextAccess {};    // a job id holds the job's token, so it is never printed
struct BoolAccess {
  bool Config::*member;
};
using FieldAccess = std::variant<CountAccess, BytesAccess, DurationAccess, TextAccess, WordAccess, SecretAccess, RootAccess,
                                 BoolAccess, ChoiceAccess>;

// A row of the table of settings.
struct FieldRow {
  std::string_view name;
  FieldAccess access;
  std::string_view default_text;
  Scope scope;
  std::string_view help;
};

}  // namespace seto
