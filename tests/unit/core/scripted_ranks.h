#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "src/core/connect/connected_ranks.h"

// A communicator's ranks as a test states them: what each has completed, noted and told, and whether it lives.
namespace seto::testing {

class ScriptedConnection final : public Connection {
 public:
  ScriptedConnection(PeerContext peer, Reach reach) : Connection(std::move(peer), reach, "a wire") {}

  bool is_dead = false;
  bool has_ended = false;

  [[nodiscard]] bool dead() const override { return is_dead; }
  [[nodiscard]] bool ended() const override { return has_ended; }
  [[nodiscard]] std::string why_dead() const override { return "its process has ended"; }
};

struct ScriptedRank {
  std::uint64_t completed = 0;
  Fate fate;
  std::string explanation;
  bool departed = false;
  bool silent = true;
  std::map<std::uint64_t, Note> notes;
};

// Rank 0 is this rank: what it publishes is kept like what the others published.
class ScriptedGroup final : public PeerGroup, private PeerStatus {
 public:
  explicit ScriptedGroup(std::size_t ranks) : rank(ranks) {}

  std::vector<ScriptedRank> rank;
  std::uint64_t departed_now = 0;  // calls of depart()
  Status failed;
  bool suspicious = false;
  int missing_explanations = 0;  // for so many explanations of this rank there is no memory
  int missing_departures = 0;    // the same, of departures

  [[nodiscard]] std::uint32_t members() const override { return static_cast<std::uint32_t>(rank.size()); }
  [[nodiscard]] PeerStatus& status() override { return *this; }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress, std::span<const std::uint32_t>, const StreamGeometry&) override {
    return seto::failure(Code::internal, "no streams");
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress, const StreamGeometry&) override {
    return seto::failure(Code::internal, "no streams");
  }
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t) override { return seto::failure(Code::internal, "no pairs"); }
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t) override {
    return seto::failure(Code::internal, "no pairs");
  }
  void complete(std::uint64_t operation) override { rank[0].completed = operation; }
  void depart() override { ++departed_now; }
  [[nodiscard]] Status failure() const override { return failed; }
  [[nodiscard]] bool suspects() const override { return suspicious; }

 private:
  void begin(const Note& note) override { rank[0].notes[note.operation] = note; }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override {
    const auto found = rank.at(member).notes.find(operation);
    if (found == rank.at(member).notes.end()) return false;
    note = found->second;
    return true;
  }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override { return rank.at(member).completed; }
  void leave(Fate fate) override {
    if (missing_departures > 0 && missing_departures-- > 0) throw std::bad_alloc();
    if (rank[0].fate.reason == 0) rank[0].fate = fate;
  }
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override { return rank.at(member).fate; }
  [[nodiscard]] std::uint64_t departures() const override {
    std::uint64_t left = 0;
    for (std::size_t other = 1; other < rank.size(); ++other) left += rank[other].fate.reason != 0 ? 1U : 0U;
    return left;
  }
  void explain(std::string_view why) override {
    if (missing_explanations > 0 && missing_explanations-- > 0) throw std::bad_alloc();
    rank[0].explanation = why;
  }
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override { return rank.at(member).explanation; }
  [[nodiscard]] bool departed(std::uint32_t member) const override { return rank.at(member).departed; }
  [[nodiscard]] bool silent(std::uint32_t member) const override { return rank.at(member).silent; }
};

// Rank 0 of a communicator of several hosts.
struct ScriptedRanks {
  explicit ScriptedRanks(int ranks) : group(std::make_shared<ScriptedGroup>(static_cast<std::size_t>(ranks))) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string place = "host-" + std::to_string(rank) + ":17";
      connection.push_back(rank == 0 ? nullptr : std::make_shared<ScriptedConnection>(PeerContext{place, 1, 1}, Reach::network));
    }
  }

  std::shared_ptr<ScriptedGroup> group;
  std::vector<std::shared_ptr<ScriptedConnection>> connection;  // null: this rank

  [[nodiscard]] ScriptedRank& rank(Rank number) const { return group->rank.at(static_cast<std::size_t>(number)); }
  [[nodiscard]] ConnectedRanks connected() const {
    ConnectedRanks made;
    made.ranks = static_cast<int>(connection.size());
    made.over_network = true;
    for (std::size_t rank = 0; rank < connection.size(); ++rank) made.places.push_back("host-" + std::to_string(rank) + ":17");
    made.connections.assign(connection.begin(), connection.end());
    made.peer_group = group;
    return made;
  }
};

inline Fate fate(Code reason, Rank culprit) { return {static_cast<std::uint32_t>(reason), static_cast<std::uint32_t>(culprit)}; }

}  // namespace seto::testing
