#include "bench/common/codecs.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace seto::bench {

int codec_named(const std::string& name) {
  int id = 0;
  return setoCodecId(name.c_str(), &id) == setoSuccess ? id : 0;
}

bool takes(const std::string& codec, setoDataType_t type, Op op) {
  std::size_t size = 0;
  return codec != kExact && sums(op) && setoCodecSize(codec_named(codec), type, 1, &size) == setoSuccess;
}

std::string codec_of_setting(std::string_view setting) {
  std::string codec = kExact;
  while (!setting.empty()) {
    const std::string_view one = setting.substr(0, setting.find(','));
    setting.remove_prefix(std::min(setting.size(), one.size() + 1));
    std::string name(one.substr(one.find('=') == std::string_view::npos ? 0 : one.find('=') + 1));
    for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (!name.empty() && name != kExact) codec = name;
  }
  return codec;
}

std::size_t size_in(const std::string& codec, setoDataType_t type, std::size_t count) {
  std::size_t size = 0;
  (void)setoCodecSize(codec_named(codec), type, count, &size);
  return size;
}

std::string travelled_in(setoComm_t comm) {
  std::size_t size = 0;
  std::string text;
  for (;;) {  // the dump may have grown since its length was asked
    if (setoCommDump(comm, setoFormatJson, text.data(), text.size(), &size) != setoSuccess) return {};
    if (size < text.size()) break;
    text.resize(size + size / 4 + 1024);
  }
  text.resize(size);
  return last_codec(text);
}

std::string last_codec(const std::string& dump_json) {
  const nlohmann::json dump = nlohmann::json::parse(dump_json, nullptr, /*allow_exceptions=*/false);
  std::string codec;
  const auto calls = nlohmann::json::json_pointer("/recorder/calls");
  if (!dump.is_object() || !dump.contains(calls)) return codec;
  for (const nlohmann::json& call : dump[calls]) codec = call.value("codec", codec);
  return codec;
}

}  // namespace seto::bench
