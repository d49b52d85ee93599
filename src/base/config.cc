#include "src/base/config.h"

#include <algorithm>
#include <optional>

#include "src/base/config_table.h"
#include "src/base/text.h"

namespace seto {
namespace {

constexpr std::string_view kPrefix = "SETO_";
constexpr std::string_view kAutomaticText = "auto";
constexpr std::string_view kTrueTexts[] = {"1", "on", "true", "yes"};
constexpr std::string_view kFalseTexts[] = {"0", "off", "false", "no"};
constexpr std::string_view kNotShown = "(not shown)";
constexpr std::string_view kIdPrefix = "id:";  // prefix of a SETO_ROOT that holds a job id
constexpr int kShownValueLimit = 80;

// Names that other libraries use after their prefix. They differ too much from ours for a guess by spelling.
struct Synonym {
  std::string_view theirs;
  std::string_view ours;
};
constexpr Synonym kSynonyms[] = {{"DEBUG", "LOG"}, {"DEBUG_FILE", "LOG_FILE"}};

const FieldRow& row_of(ConfigField field) { return kConfigTable[static_cast<std::size_t>(field)]; }

std::optional<std::size_t> index_in(std::span<const std::string_view> texts, std::string_view text) {
  const auto found = std::find(texts.begin(), texts.end(), lower_case(text));
  if (found == texts.end()) return std::nullopt;
  return static_cast<std::size_t>(found - texts.begin());
}

std::string join(std::span<const std::string_view> texts) {
  std::string joined;
  for (const std::string_view text : texts) joined.append(joined.empty() ? "" : ", ").append(text);
  return joined;
}

bool accepts_automatic(const FieldRow& row) { return row.default_text == kAutomaticText; }

// Stores the value. Returns false if the row does not accept the text.
struct Store {
  Config& config;
  const FieldRow& row;
  std::string_view text;

  bool number(const NumberAccess& access, std::optional<std::uint64_t> value) const {
    if (lower_case(text) == kAutomaticText && accepts_automatic(row)) {
      config.*access.member = kAutomatic;
      return true;
    }
    if (!value || *value < access.least || *value > access.most) return false;
    config.*access.member = *value;
    return true;
  }
  bool operator()(const CountAccess& access) const { return number(access, parse_uint(text)); }
  bool operator()(const DurationAccess& access) const { return number(access, parse_uint(text)); }
  bool operator()(const BytesAccess& access) const { return number(access, parse_size(text)); }
  bool operator()(const TextAccess& access) const {
    if (text.size() > access.longest) return false;
    config.*access.member = text;
    return true;
  }
  bool operator()(const WordAccess& access) const {
    if (text.size() > access.longest) return false;
    config.*access.member = lower_case(text);
    return true;
  }
  bool operator()(const SecretAccess& access) const { return (*this)(static_cast<const TextAccess&>(access)); }
  bool operator()(const RootAccess& access) const { return (*this)(static_cast<const TextAccess&>(access)); }
  bool operator()(const BoolAccess& access) const {
    const bool yes = index_in(kTrueTexts, text).has_value();
    if (!yes && !index_in(kFalseTexts, text)) return false;
    config.*access.member = yes;
    return true;
  }
  bool operator()(const ChoiceAccess& access) const {
    const auto index = index_in(access.names, text);
    if (index) access.set(config, *index);
    return index.has_value();
  }
};

// The value as it may be printed in messages and lists.
struct Shown {
  std::string_view text;

  std::string operator()(const SecretAccess&) const { return std::string(text.empty() ? "" : kNotShown); }
  std::string operator()(const RootAccess&) const {
    return text.starts_with(kIdPrefix) ? std::string(kIdPrefix).append(kNotShown) : std::string(text);
  }
  template <typename Access>
  std::string operator()(const Access&) const {
    return std::string(text);
  }
};

struct Print {
  const Config& config;

  std::string operator()(const CountAccess& access) const { return number(config.*access.member); }
  std::string operator()(const DurationAccess& access) const { return number(config.*access.member); }
  std::string operator()(const BytesAccess& access) const {
    const std::uint64_t value = config.*access.member;
    return value == kAutomatic ? std::string(kAutomaticText) : size_text(value);
  }
  std::string operator()(const TextAccess& access) const { return config.*access.member; }
  std::string operator()(const SecretAccess& access) const { return Shown{config.*access.member}(access); }
  std::string operator()(const RootAccess& access) const { return Shown{config.*access.member}(access); }
  std::string operator()(const BoolAccess& access) const { return config.*access.member ? "on" : "off"; }
  std::string operator()(const ChoiceAccess& access) const { return std::string(access.names[access.get(config)]); }

  static std::string number(std::uint64_t value) {
    return value == kAutomatic ? std::string(kAutomaticText) : std::to_string(value);
  }
};

struct Allowed {
  std::string operator()(const CountAccess& access) const {
    return "a number from " + std::to_string(access.least) + " to " + std::to_string(access.most);
  }
  std::string operator()(const DurationAccess& access) const {
    return "milliseconds from " + std::to_string(access.least) + " to " + std::to_string(access.most);
  }
  std::string operator()(const BytesAccess& access) const {
    return "a size from " + size_text(access.least) + " to " + size_text(access.most);
  }
  std::string operator()(const TextAccess& access) const {
    return "a text of at most " + std::to_string(access.longest) + " bytes";
  }
  std::string operator()(const BoolAccess&) const { return "on or off"; }
  std::string operator()(const ChoiceAccess& access) const { return "one of " + join(access.names); }
};

// Compares the names without the prefix, which would make all names similar.
std::string_view meant(std::string_view name) {
  for (const Synonym& synonym : kSynonyms)
    if (synonym.theirs == name) return synonym.ours;
  std::array<std::string_view, kConfigFieldCount> names;
  std::transform(kConfigTable.begin(), kConfigTable.end(), names.begin(),
                 [](const FieldRow& row) { return row.name.substr(kPrefix.size()); });
  return nearest(name, names);
}

Status unknown_variable(std::string_view name) {
  const std::string guess(meant(name.substr(kPrefix.size())));
  const std::string wrong(name);
  if (guess.empty()) {
    return failure(Code::invalid_argument, "%s is not a variable of Seto: unset it (seto info --config lists them all)",
                   wrong.c_str());
  }
  return failure(Code::invalid_argument, "%s is not a variable of Seto; did you mean SETO_%s?", wrong.c_str(), guess.c_str());
}

// An empty value means that the variable is not set: scripts write it so.
Status apply(Config& config, std::string_view name, std::string_view text) {
  const auto row =
      std::find_if(kConfigTable.begin(), kConfigTable.end(), [&](const FieldRow& each) { return each.name == name; });
  if (row == kConfigTable.end()) return unknown_variable(name);
  if (text.empty()) return {};
  return set_field(config, static_cast<ConfigField>(row - kConfigTable.begin()), text, Origin::environment);
}

}  // namespace

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::default_value:
      return "default";
    case Origin::environment:
      return "environment";
    case Origin::config_struct:
      return "config struct";
  }
  return "unknown";
}

std::string_view name_of(TlsMode mode) { return kTlsNames[static_cast<std::size_t>(mode)]; }

std::string_view name_of(Scope scope) { return scope == Scope::process ? "process" : "communicator"; }

std::string allowed_text(const FieldRow& row) {
  std::string text = std::visit(Allowed{}, row.access);
  const bool named_already = std::holds_alternative<ChoiceAccess>(row.access);
  return accepts_automatic(row) && !named_already ? text + " or auto" : text;
}

Status set_field(Config& config, ConfigField field, std::string_view text, Origin origin) {
  const FieldRow& row = row_of(field);
  if (!std::visit(Store{config, row, text}, row.access)) {
    const std::string shown = std::visit(Shown{text}, row.access).substr(0, kShownValueLimit);
    return failure(Code::invalid_argument, "%s=%s is not allowed: give %s", row.name.data(), shown.c_str(),
                   allowed_text(row).c_str());
  }
  mark(config, field, origin);
  return {};
}

void mark(Config& config, ConfigField field, Origin origin) { config.origins[static_cast<std::size_t>(field)] = origin; }

std::string value_text(const Config& config, ConfigField field) { return std::visit(Print{config}, row_of(field).access); }

Result<Config> load_config(const char* const* environment) {
  Config config;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const std::size_t equals = variable.find('=');
    if (!variable.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    SETO_TRY(apply(config, variable.substr(0, equals), variable.substr(equals + 1)));
  }
  return config;
}

}  // namespace seto
