#include "src/core/dump.h"

#include "src/core/json.h"
#include "src/core/notes.h"

namespace seto {
namespace {

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

std::string verdict_of(const Note& note) { return note.verdict == 0 ? text_of(note) : "rejected: " + reason_of(note); }

std::string as_text(const Communicator& communicator, const CommunicatorState& state) {
  std::string text = "communicator " + (communicator.name().empty() ? "(none)" : communicator.name()) + ", rank " +
                     std::to_string(communicator.rank()) + " of " + std::to_string(communicator.ranks()) + ", " +
                     (state.failure.ok() ? "usable" : "failed: " + std::string(state.failure.text())) + "\n";
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
    text += "  rank " + std::to_string(rank) + ": " + name_of(peer.life) + ", " + std::to_string(peer.done) + " done";
    if (peer.blames >= 0) text += ", blames rank " + std::to_string(peer.blames);
    if (peer.note) text += ", last said: operation " + std::to_string(peer.note->operation) + ", " + verdict_of(*peer.note);
    text += "\n";
  }
  return text;
}

void put_peer(JsonWriter& json, std::size_t rank, const PeerState& peer) {
  json.open('{').key("rank").number(std::uint64_t{rank}).key("state").value(name_of(peer.life)).key("done").number(peer.done);
  if (peer.blames >= 0) json.key("blames").number(static_cast<std::uint64_t>(peer.blames));
  if (peer.note) {
    json.key("note").open('{').key("operation").number(peer.note->operation);
    json.key("text").value(verdict_of(*peer.note)).close('}');
  }
  json.close('}');
}

std::string as_json(const Communicator& communicator, const CommunicatorState& state) {
  JsonWriter json;
  json.open('{').key("name").value(communicator.name());
  json.key("rank").number(static_cast<std::uint64_t>(communicator.rank()));
  json.key("ranks").number(static_cast<std::uint64_t>(communicator.ranks()));
  json.key("state").value(state.failure.ok() ? "usable" : "failed").key("failure").value(state.failure.text());
  json.key("tiers").number(static_cast<std::uint64_t>(communicator.tiers().count()));
  json.key("algorithm").value(communicator.config().algorithm);
  json.key("constants").open('{').key("source").value(name_of(communicator.costs().source));
  json.key("agreed_in_us").number(static_cast<double>(communicator.calibration_ns()) * 1e-3);
  json.key("text").value(costs_text(communicator.costs())).close('}');
  json.key("operations").open('{').key("issued").number(state.issued).key("begun").number(state.begun);
  json.key("done").number(state.done).close('}').key("stream_tasks").number(std::uint64_t{state.under_way});
  json.key("leased_bytes").number(state.leased_bytes).key("used_bytes").number(state.used_bytes).key("peers").open('[');
  for (std::size_t rank = 0; rank < state.peers.size(); ++rank) put_peer(json, rank, state.peers[rank]);
  json.close(']').close('}');
  return std::move(json).text();
}

}  // namespace

std::string dump(const Communicator& communicator, ReportFormat format) {
  const CommunicatorState state = communicator.state();
  return format == ReportFormat::text ? as_text(communicator, state) : as_json(communicator, state);
}

}  // namespace seto
