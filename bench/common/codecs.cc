#include "bench/common/codecs.h"

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

std::size_t size_in(const std::string& codec, setoDataType_t type, std::size_t count) {
  std::size_t size = 0;
  (void)setoCodecSize(codec_named(codec), type, count, &size);
  return size;
}

std::string travelled_in(setoComm_t comm) {
  std::size_t size = 0;
  if (setoCommDump(comm, setoFormatJson, nullptr, 0, &size) != setoSuccess) return {};
  // One that is made a moment later may be longer.
  std::string text(size + size / 4 + 1024, '\0');
  if (setoCommDump(comm, setoFormatJson, text.data(), text.size(), &size) != setoSuccess) return {};
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
