#include "src/report/dump_parser.h"

#include <algorithm>

#include "src/core/dump/dump_format.h"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#endif

namespace seto {
namespace {

constexpr std::size_t kLongestText = 4096;

}  // namespace

// Control characters exist beyond ASCII: U+0080 to U+009F; U+009B begins a sequence as ESC [ does.
std::string printable(std::string text) {
  std::size_t end = std::min(text.size(), kLongestText);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  text.resize(end);
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool beyond = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    clean += beyond || byte < ' ' || byte == 0x7f ? '?' : text[i];
    i += beyond ? 1 : 0;
  }
  return clean;
}

#if __has_include(<nlohmann/json.hpp>)
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostRanks = 65'536;

// Parses tolerantly: a value that is missing or has another type reads as empty. Only the keys on which all others depend are
// required.
const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::uint64_t number(const Json& object, const char* key, std::uint64_t otherwise = 0) {
  const Json* const value = find(object, key);
  return value != nullptr && value->is_number_unsigned() ? value->get<std::uint64_t>() : otherwise;
}

std::string text(const Json& object, const char* key) {
  const Json* const value = find(object, key);
  if (value == nullptr || !value->is_string()) return {};
  return printable(value->get<std::string>());
}

Rank rank_in(const Json& object, const char* key, int ranks) {
  const std::uint64_t value = number(object, key, kMostRanks);
  return value < static_cast<std::uint64_t>(ranks) ? static_cast<Rank>(value) : -1;
}

ReadCall call_of(const Json& json, int ranks) {
  ReadCall call;
  call.sequence = number(json, "sequence");
  call.operation = number(json, "operation");
  call.what = text(json, "what");
  call.text = text(json, "text");
  call.count = number(json, "count");
  call.type = text(json, "type");
  call.op = text(json, "op");
  call.root = number(json, "root");
  call.algorithm = text(json, "algorithm");
  call.digest = text(json, "digest");
  call.state = text(json, "state");
  call.issued_us = number(json, "issued_us");
  call.begun_us = number(json, "begun_us");
  call.ended_us = number(json, "ended_us");
  if (const Json* const wait = find(json, "waits"); wait != nullptr)
    call.wait = WaitReport{rank_in(*wait, "peer", ranks), text(*wait, "text"), text(*wait, "step")};
  return call;
}

Status put_peers(ReadDump& dump, const Json& json) {
  const Json* const peers = find(json, "peers");
  if (peers == nullptr || !peers->is_array() || peers->size() != static_cast<std::size_t>(dump.ranks))
    return failure(Code::invalid_argument, "%s: it does not have %d \"peers\"", dump.source.c_str(), dump.ranks);
  for (const Json& one : *peers) {
    ReadPeer peer{text(one, "state"), number(one, "done"), 0, rank_in(one, "blames", dump.ranks), text(one, "place"),
                  text(one, "way"),   text(one, "why")};
    if (const Json* const note = find(one, "note"); note != nullptr) peer.noted = number(*note, "operation");
    dump.peers.push_back(std::move(peer));
  }
  return {};
}

}  // namespace

Result<ReadDump> read_dump(std::string_view source, std::string_view bytes) {
  ReadDump dump;
  dump.source = source;
  const char* const name = dump.source.c_str();
  const Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return failure(Code::invalid_argument, "%s: not JSON, or truncated (%zu bytes)", name, bytes.size());
  const std::uint64_t schema = number(json, "seto_dump");
  if (schema == 0) return failure(Code::invalid_argument, "%s: not a dump of Seto: it has no \"seto_dump\"", name);
  if (schema != kDumpSchema)
    return failure(Code::invalid_argument, "%s: schema %llu, but this version reads %llu: use the library that wrote it", name,
                   static_cast<unsigned long long>(schema), static_cast<unsigned long long>(kDumpSchema));
  const std::uint64_t ranks = number(json, "ranks");
  const std::uint64_t rank = number(json, "rank", kMostRanks);
  if (ranks == 0 || ranks > kMostRanks || rank >= ranks)
    return failure(Code::invalid_argument, "%s: \"rank\" or \"ranks\" is invalid", name);
  dump.rank = static_cast<Rank>(rank);
  dump.ranks = static_cast<int>(ranks);
  dump.host = text(json, "host");
  dump.pid = number(json, "pid");
  dump.time_us = number(json, "time_us");
  dump.name = text(json, "name");
  dump.attempt = text(json, "attempt");
  dump.failed = text(json, "state") == "failed";
  dump.failure = text(json, "failure");
  dump.failure_code = text(json, "failure_code");
  dump.failed_at_us = number(json, "failed_at_us");
  dump.blamed = rank_in(json, "culprit", dump.ranks);
  if (const Json* const operations = find(json, "operations"); operations != nullptr) {
    dump.issued = number(*operations, "issued");
    dump.begun = number(*operations, "begun");
    dump.done = number(*operations, "done");
  }
  SETO_TRY(put_peers(dump, json));
  const Json* const recorder = find(json, "recorder");
  const Json* const calls = recorder == nullptr ? nullptr : find(*recorder, "calls");
  if (calls == nullptr || !calls->is_array()) return failure(Code::invalid_argument, "%s: its recorder has no \"calls\"", name);
  for (const Json& one : *calls) dump.calls.push_back(call_of(one, dump.ranks));
  std::stable_sort(dump.calls.begin(), dump.calls.end(),
                   [](const ReadCall& left, const ReadCall& right) { return left.sequence < right.sequence; });
  return dump;
}

#else

Result<ReadDump> read_dump(std::string_view source, std::string_view) {
  return failure(Code::invalid_usage, "%s: this library was built without nlohmann-json, so it reads no dumps",
                 std::string(source).c_str());
}

#endif

}  // namespace seto
