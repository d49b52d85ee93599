#include "src/core/choice/settings_agreement.h"

#include <algorithm>
#include <string_view>

#include "src/base/config_table.h"
#include "src/core/choice/codec_setting.h"

namespace seto {
namespace {

// SETO_CALIBRATE and SETO_TUNING_FILE are compared by the constants that result from them.
constexpr ConfigField kPlanning[] = {ConfigField::algorithm,   ConfigField::codec,      ConfigField::deterministic,
                                     ConfigField::slice_bytes, ConfigField::slot_depth, ConfigField::site_round_trip_us,
                                     ConfigField::memory};

// Codecs are compared by their meaning. An empty value is not "none": it leaves the codec to the links.
std::string value_of(const Config& config, ConfigField field) {
  if (field == ConfigField::memory) return config.memory == Memory::device ? "device" : "host";  // it was settled before
  if (field != ConfigField::codec) return value_text(config, field);
  const Result<CodecSetting> setting = CodecSetting::parse(config.codec);
  if (!setting.ok() || config.codec.empty()) return config.codec;
  return setting.value().number == 0 ? "none" : setting.value().text();
}

std::string_view name_of(ConfigField field) { return kConfigTable[static_cast<std::size_t>(field)].name; }

std::string value_in(std::string_view settings, ConfigField field) {
  const std::string_view name = name_of(field);
  while (!settings.empty()) {
    const std::string_view line = settings.substr(0, settings.find('\n'));
    if (line.size() > name.size() && line.substr(0, name.size()) == name && line[name.size()] == '=')
      return std::string(line.substr(name.size() + 1));
    settings.remove_prefix(std::min(settings.size(), line.size() + 1));
  }
  return value_of(Config(), field);
}

std::string told(const std::string& value) {
  std::string text("not set");
  if (!value.empty()) text.assign("'").append(value, 0, 64).append("'");
  return text;
}

}  // namespace

std::string planning_settings(const Config& config) {
  const Config as_it_comes;
  std::string settings;
  for (const ConfigField field : kPlanning) {
    const std::string value = value_of(config, field);
    if (value == value_of(as_it_comes, field)) continue;
    settings.append(name_of(field)).append("=").append(value).append("\n");
  }
  return settings;
}

Status check_same(const std::vector<std::string>& settings_of_ranks) {
  for (std::size_t rank = 1; rank < settings_of_ranks.size(); ++rank) {
    if (settings_of_ranks[rank] == settings_of_ranks[0]) continue;
    for (const ConfigField field : kPlanning) {
      const std::string first = value_in(settings_of_ranks[0], field);
      const std::string other = value_in(settings_of_ranks[rank], field);
      if (first == other) continue;
      return failure(
          Code::invalid_usage,
          "%s is %s on rank 0 and %s on rank %zu: all ranks plan their calls by it, so it must be the same on all, in the "
          "environment or in setoConfig_t",
          name_of(field).data(), told(first).c_str(), told(other).c_str(), rank);
    }
    return failure(Code::remote_error, "rank %zu: its statement of settings is malformed", rank);
  }
  return {};
}

}  // namespace seto
