#include "src/core/dump/dump_format.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "src/base/json_writer.h"
#include "src/core/call/call_summary.h"
#include "src/core/call/collective_call.h"
#include "src/core/call/ids.h"
#include "src/core/communicator/communicator.h"
#include "src/core/dump/dump_file.h"

namespace seto {
namespace {

// The text form shows all calls that have not ended, and this many of those that ended last.
constexpr std::size_t kEndedInText = 16;

const char* name_of(PeerState::Life life) {
  switch (life) {
    case PeerState::Life::own:
      return "this rank";
    case PeerState::Life::alive:
      return "alive";
    case PeerState::Life::left:
      return "left";
    case PeerState::Life::dead:
      return "dead";
  }
  return "unknown";
}

std::string note_text(const Note& note) { return note.verdict == 0 ? text_of(note) : "rejected: " + reason_of(note); }

std::string hex(std::uint64_t number) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

std::string_view name_of(const RecordedCall::Parts& call) {
  switch (call.kind) {
    case RecordedKind::collective:
      return name_of(call.collective);
    case RecordedKind::send:
      return "send";
    case RecordedKind::receive:
      return "receive";
    case RecordedKind::transfers:
      return "sends_and_receives";
    case RecordedKind::all_to_all_v:
      return "all_to_all_v";
    case RecordedKind::receive_any:
      return "receive_any";
  }
  return "unknown";
}

}  // namespace

std::string text_of(const RecordedCall::Parts& call) {
  if (static_cast<int>(call.type) >= kDataTypeCount) return std::string(name_of(call)) + " of an unknown type";
  const std::string amount = std::to_string(call.count) + " " + std::string(name_of(call.type));
  switch (call.kind) {
    case RecordedKind::collective:
      return describe(call.collective, call.count, call.type, call.op, call.root);
    case RecordedKind::send:
      return "send of " + amount + " to rank " + std::to_string(call.root);
    case RecordedKind::receive:
      return "receive of " + amount + " from rank " + std::to_string(call.root);
    case RecordedKind::receive_any:
      return "receive of " + amount + " from any rank";
    default:
      return std::string(name_of(call)) + ": " + std::to_string(call.count) + " messages, " + std::to_string(call.bytes) +
             " bytes";
  }
}

namespace {

std::string as_text(const CommunicatorSnapshot& state, const RecordedEntry& entry) {
  const RecordedOperation& one = entry.operation;
  std::string text =
      "  " + (one.operation == 0 ? "call " + std::to_string(one.sequence) : "operation " + std::to_string(one.operation)) + ": " +
      text_of(one.call);
  if (one.call.algorithm != 0) text += " by " + std::string(algorithm_name(one.call.algorithm));
  if (one.call.codec != 0) text += " in " + std::string(codec_name(one.call.codec));
  if (one.mark.label != nullptr) text += std::string(", the caller's ") + one.mark.label;
  if (one.mark.tag != 0) text += ", tag " + std::to_string(one.mark.tag);
  text += ", " + std::string(name_of(one.state)) + ", issued " + seconds_text(state.wall_us(one.issued), state.now_us) + " ago";
  if (one.ended > one.issued) text += ", took " + seconds_text(state.wall_us(one.issued), state.wall_us(one.ended));
  if (entry.wait) text += "; " + entry.wait->with_step();
  return text + "\n";
}

std::string recorder_text(const CommunicatorSnapshot& state) {
  const auto over = [](const RecordedEntry& entry) { return entry.operation.state >= RecordedState::ended; };
  const auto ended = static_cast<std::size_t>(std::count_if(state.entries.begin(), state.entries.end(), over));
  std::size_t silent = ended - std::min(ended, kEndedInText);
  std::string text = "flight recorder: " + std::to_string(state.entries.size()) + " of " + std::to_string(state.recorded) +
                     " calls remembered" + (silent > 0 ? ", " + std::to_string(silent) + " that have ended not shown" : "") +
                     "\n";
  for (const RecordedEntry& entry : state.entries)
    if (over(entry) && silent > 0)
      --silent;
    else
      text += as_text(state, entry);
  return text;
}

std::string as_text(const Communicator& communicator, const CommunicatorSnapshot& state) {
  std::string text = "communicator " + (communicator.name().empty() ? "(none)" : communicator.name()) + ", rank " +
                     std::to_string(communicator.rank()) + " of " + std::to_string(communicator.ranks()) + ", " +
                     (state.failure.ok() ? "usable" : "failed: " + std::string(state.failure.text())) + "\n";
  text += "host " + host_name() + ", process " + std::to_string(getpid()) + "\n";
  text += "tiers " + std::to_string(communicator.tiers().count()) + ", algorithm " +
          (communicator.config().algorithm.empty() ? "chosen for each call" : communicator.config().algorithm) + "\n";
  text += "constants of choice: " + std::string(name_of(communicator.costs().source)) + ", agreed on in " +
          std::to_string(communicator.calibration_ns() / 1000) + " us\n";
  text += "operations: " + std::to_string(state.issued) + " issued, " + std::to_string(state.begun) + " begun, " +
          std::to_string(state.done) + " done; " + std::to_string(state.under_way) + " tasks of streams under way\n";
  text += "shared memory: " + std::to_string(state.leased_bytes) + " bytes of slots leased, " + std::to_string(state.used_bytes) +
          " bytes in use by the context\n";
  for (std::size_t rank = 0; rank < state.peers.size(); ++rank) {
    const PeerState& peer = state.peers[rank];
    text += "  rank " + std::to_string(rank) + " (" + communicator.place_of(static_cast<Rank>(rank)) +
            (peer.way.empty() ? "" : ", by " + peer.way) + "): " + name_of(peer.life) +
            (peer.why_dead.empty() ? "" : " (" + peer.why_dead + ")") + ", " + std::to_string(peer.done) + " done";
    if (peer.blames >= 0) text += ", blames rank " + std::to_string(peer.blames);
    if (peer.note) text += ", last report: operation " + std::to_string(peer.note->operation) + ", " + note_text(*peer.note);
    text += "\n";
  }
  return text + recorder_text(state);
}

// The place of a peer, and how data goes there.
void put_place(JsonWriter& json, const Communicator& communicator, Rank rank) {
  const ConnectedRanks& ranks = communicator.sources().members.connected();
  const Connection* const connection = communicator.sources().members.connection_to(rank);
  json.key("place").value(communicator.place_of(rank));
  json.key("site").value(ranks.site_names[ranks.sites.of_rank[static_cast<std::size_t>(rank)]]);
  if (connection != nullptr) json.key("cipher").value(connection->cipher());
}

void put_peer(JsonWriter& json, const Communicator& communicator, std::size_t rank, const PeerState& peer) {
  json.open('{').key("rank").number(std::uint64_t{rank});
  put_place(json, communicator, static_cast<Rank>(rank));
  if (!peer.way.empty()) json.key("way").value(peer.way);
  json.key("state").value(name_of(peer.life)).key("done").number(peer.done);
  if (!peer.why_dead.empty()) json.key("why").value(peer.why_dead);
  if (peer.blames >= 0) json.key("blames").number(static_cast<std::uint64_t>(peer.blames));
  if (peer.note) {
    json.key("note").open('{').key("operation").number(peer.note->operation).key("digest").value(hex(peer.note->digest));
    json.key("text").value(note_text(*peer.note)).close('}');
  }
  json.close('}');
}

void put_call(JsonWriter& json, const RecordedCall::Parts& call) {
  json.key("what").value(name_of(call)).key("text").value(text_of(call)).key("count").number(call.count);
  if (call.kind == RecordedKind::collective || call.kind == RecordedKind::send || call.kind == RecordedKind::receive)
    json.key("type").value(static_cast<int>(call.type) < kDataTypeCount ? name_of(call.type) : "unknown");
  if (call.kind == RecordedKind::send || call.kind == RecordedKind::receive)
    json.key("peer").number(static_cast<std::uint64_t>(call.root));
  if (call.kind == RecordedKind::collective) {
    json.key("op").value(static_cast<int>(call.op) < kReduceOpCount ? name_of(call.op) : "unknown");
    json.key("root").number(static_cast<std::uint64_t>(call.root)).key("algorithm").value(algorithm_name(call.algorithm));
    json.key("codec").value(codec_name(call.codec));
    json.key("digest").value(hex(call.digest));
  }
  json.key("bytes").number(call.bytes);
}

void put_entry(JsonWriter& json, const CommunicatorSnapshot& state, const RecordedEntry& entry) {
  const RecordedOperation& one = entry.operation;
  json.open('{').key("sequence").number(one.sequence);
  if (one.operation != 0) json.key("operation").number(one.operation);
  put_call(json, one.call);
  if (one.mark.label != nullptr) json.key("label").value(one.mark.label);
  if (one.mark.tag != 0) json.key("tag").number(one.mark.tag);
  json.key("state").value(name_of(one.state)).key("issued_us").number(state.wall_us(one.issued));
  if (one.begun != 0) json.key("begun_us").number(state.wall_us(one.begun));
  if (one.ended != 0) json.key("ended_us").number(state.wall_us(one.ended));
  if (entry.wait) {
    json.key("waits").open('{');
    if (entry.wait->peer >= 0) json.key("peer").number(static_cast<std::uint64_t>(entry.wait->peer));
    json.key("text").value(entry.wait->text);
    if (!entry.wait->step.empty()) json.key("step").value(entry.wait->step);
    json.close('}');
  }
  json.close('}');
}

std::string as_json(const Communicator& communicator, const CommunicatorSnapshot& state) {
  JsonWriter json;
  json.open('{').key("seto_dump").number(kDumpSchema).key("host").value(host_name());
  json.key("pid").number(static_cast<std::uint64_t>(getpid())).key("time_us").number(state.now_us);
  json.key("name").value(communicator.name()).key("attempt").value(hex(communicator.attempt()));
  json.key("rank").number(static_cast<std::uint64_t>(communicator.rank()));
  json.key("ranks").number(static_cast<std::uint64_t>(communicator.ranks()));
  json.key("state").value(state.failure.ok() ? "usable" : "failed").key("failure").value(state.failure.text());
  if (!state.failure.ok()) {
    json.key("failure_code").value(name_of(state.failure.code())).key("failed_at_us").number(state.failed_at_us);
    if (state.culprit >= 0) json.key("culprit").number(static_cast<std::uint64_t>(state.culprit));
  }
  json.key("tiers").number(static_cast<std::uint64_t>(communicator.tiers().count()));
  json.key("algorithm").value(communicator.config().algorithm);
  json.key("constants").open('{').key("source").value(name_of(communicator.costs().source));
  json.key("agreed_in_us").number(static_cast<double>(communicator.calibration_ns()) * 1e-3);
  json.key("text").value(costs_text(communicator.costs())).close('}');
  json.key("operations").open('{').key("issued").number(state.issued).key("begun").number(state.begun);
  json.key("done").number(state.done).close('}').key("stream_tasks").number(std::uint64_t{state.under_way});
  json.key("leased_bytes").number(state.leased_bytes).key("used_bytes").number(state.used_bytes);
  json.key("sites").value(communicator.sources().members.connected().sites.stated ? "stated" : "measured").key("peers").open('[');
  for (std::size_t rank = 0; rank < state.peers.size(); ++rank) put_peer(json, communicator, rank, state.peers[rank]);
  json.close(']').key("recorder").open('{').key("capacity").number(communicator.observability().recorder().capacity());
  json.key("recorded").number(state.recorded).key("calls").open('[');
  for (const RecordedEntry& entry : state.entries) put_entry(json, state, entry);
  json.close(']').close('}').close('}');
  return std::move(json).text();
}

}  // namespace

std::string dump(const Communicator& communicator, ReportFormat format) {
  const CommunicatorSnapshot state = take_snapshot(communicator.sources());
  return format == ReportFormat::text ? as_text(communicator, state) : as_json(communicator, state);
}

}  // namespace seto
