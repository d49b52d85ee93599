#pragma once

#include <cstdint>
#include <vector>

#include "src/engine/lowering.h"

namespace seto {

inline constexpr std::uint32_t kNoValue = 0xffffffff;

// The value that a source operand reads from memory.
struct ValueRead {
  std::uint32_t value = kNoValue;  // kNoValue: this rank's own input, or several values at once
  bool own_input = false;          // untouched input
};

// The content that one step wrote to a range of places.
struct Value {
  std::uint32_t step = 0;  // in Program::steps
  Operand place;
  std::uint32_t count = 1;
  std::uint32_t sources = 1;          // operands that its pass reads, with those of values that are inlined into it
  std::uint32_t alias_of = kNoValue;  // a copy, finish or round of another value, made in the pass that makes that one
  bool live_out = false;              // the caller finds it in the output
  bool stored = false;                // some step reads it from memory
  bool inlined = false;  // it has no pass of its own: it is part of its one reader's pass, or each reader computes it
  bool finishes = false;
  bool rounds = false;                 // after `finishes`
  std::vector<std::uint32_t> readers;  // steps that read exactly this value
};

// The values of a plain program, whose steps are taken by stage and then in the author's order, and the decision which values
// need a pass of their own.
class ValueGraph {
 public:
  ValueGraph(const Program& plain, const Shape& shape, InPlace in_place, LoweringRules rules);

  [[nodiscard]] const std::vector<std::uint32_t>& order() const { return order_; }
  [[nodiscard]] const Value& value(std::uint32_t id) const { return values_[id]; }
  [[nodiscard]] std::uint32_t value_of_step(std::uint32_t step) const { return defined_[step]; }
  [[nodiscard]] const ValueRead& read(std::uint32_t step, std::uint32_t source) const { return reads_[step][source]; }
  [[nodiscard]] const std::vector<std::uint32_t>& aliases_of(std::uint32_t id) const { return aliases_[id]; }

 private:
  struct Version {
    std::uint32_t value = kNoValue;
    std::uint32_t offset = 0;
  };

  void follow(std::uint32_t step_index);
  ValueRead resolve(const Operand& source, std::uint32_t count);
  void define(std::uint32_t step_index);
  void join_aliases(std::uint32_t id);
  void mark_live_out(const Shape& shape);
  void decide(std::uint32_t id);
  [[nodiscard]] bool alone_read_by(const Value& value, Verb verb) const;
  void mark_stored();

  const Program& plain_;
  LoweringRules rules_;
  PlaceTable table_;
  std::vector<std::uint32_t> order_;
  std::vector<Version> versions_;  // by place
  std::vector<Value> values_;
  std::vector<std::uint32_t> defined_;               // by step: the value it makes, or kNoValue
  std::vector<std::vector<ValueRead>> reads_;        // by step and source
  std::vector<std::vector<std::uint32_t>> aliases_;  // by value
};

}  // namespace seto
