#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "src/core/connect/connected_ranks.h"

namespace seto {

// The ranks of one communicator: where each is, how it is reached, what it has completed, and whether it has left or died.
class Members final {
 public:
  explicit Members(ConnectedRanks ranks)
      : ranks_(std::move(ranks)), peer_group_(ranks_.peer_group.get()), over_network_(ranks_.over_network) {}
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  [[nodiscard]] Rank rank() const { return ranks_.rank; }
  [[nodiscard]] int ranks() const { return ranks_.ranks; }
  [[nodiscard]] const ConnectedRanks& connected() const { return ranks_; }
  [[nodiscard]] PeerGroup& peer_group() const { return *peer_group_; }
  // Null: this rank.
  [[nodiscard]] const Connection* connection_to(Rank rank) const { return ranks_.connections[index(rank)].get(); }
  // Host and process.
  [[nodiscard]] const std::string& place_of(Rank rank) const { return ranks_.places[index(rank)]; }
  [[nodiscard]] int others_of_process() const;
  [[nodiscard]] int others_over_network() const;

  [[nodiscard]] std::uint64_t completed_by(Rank rank) const { return peer_group_->status().completed_by(member(rank)); }
  // All other ranks have completed the operation, except those that have left or died.
  [[nodiscard]] bool all_have_completed(std::uint64_t operation) const;
  // The process of that rank has ended, is frozen or cannot be reached. Never true for this rank.
  [[nodiscard]] bool is_dead(Rank rank) const { return rank != ranks_.rank && connection_to(rank)->dead(); }
  [[nodiscard]] Fate fate_of(Rank rank) const { return peer_group_->status().fate_of(member(rank)); }
  [[nodiscard]] bool has_left(Rank rank) const { return fate_of(rank).reason != 0; }
  // Why that rank will send nothing more, in its own words if it left some; ok if it has neither left nor died.
  [[nodiscard]] Status loss_of(Rank rank) const;
  [[nodiscard]] std::string explanation_of(Rank rank) const { return peer_group_->status().explanation_of(member(rank)); }
  [[nodiscard]] bool has_explained(Rank rank) const { return !explanation_of(rank).empty(); }
  // That rank has left without a failure or has died, and data that it sent before may still arrive: over a network the report
  // can be faster than the data. A rank that failed or gave up has taken back what it sent.
  [[nodiscard]] bool data_may_arrive_from(Rank rank) const;
  // All that a rank which has left or died ever sent is here.
  [[nodiscard]] bool all_data_arrived_from(Rank rank) const { return peer_group_->status().silent(member(rank)); }
  // The rank at fault for the departure of that rank, as the latter reported it, so that all ranks blame the same one.
  [[nodiscard]] Rank blamed_by(Rank rank) const;
  // Something arrived that fits no call of this rank. Only over a network, where the notes of other ranks arrive late.
  [[nodiscard]] bool suspects() const { return over_network_ && peer_group_->suspects(); }
  // False: that rank has not begun the operation, or its note of it has been overwritten.
  [[nodiscard]] bool note_of(Rank rank, std::uint64_t operation, Note& note) const {
    return peer_group_->status().note_of(member(rank), operation, note);
  }

  // Must be the last call. Returns everything that the destruction of the communicator needs.
  [[nodiscard]] ConnectedRanks release() { return std::move(ranks_); }

 private:
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
  static std::uint32_t member(Rank rank) { return static_cast<std::uint32_t>(rank); }

  ConnectedRanks ranks_;
  PeerGroup* peer_group_;
  bool over_network_;
};

}  // namespace seto
