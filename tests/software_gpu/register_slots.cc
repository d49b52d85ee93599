#include "tests/software_gpu/register_slots.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace seto::software_gpu {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kDropped = 2;  // slots 0 and 1 take results that are dropped

// Calls see(slot) for each register that the instruction reads.
template <class See>
void for_each_source(const Instruction& in, const See& see) {
  const auto look = [&see](const Operand& operand) {
    if (operand.kind == Operand::Kind::reg && operand.index >= kDropped) see(operand.index);
  };
  for (std::size_t i = 0; i < in.sources; ++i) look(in.s[i]);
  look(in.base);
  if (in.predicate >= 0) see(static_cast<std::uint32_t>(in.predicate));
}

template <class See>
void for_each_destination(const Instruction& in, const See& see) {
  for (std::size_t i = 0; i < in.destinations; ++i)
    if (in.d[i].index >= kDropped) see(in.d[i].index);
}

// A set of registers whose values pass from block to block, by their numbers among these.
class RegisterSet final {
 public:
  explicit RegisterSet(std::size_t registers) : words_((registers + 63) / 64) {}

  void add(std::uint32_t number) { words_[number / 64] |= std::uint64_t{1} << (number % 64); }
  [[nodiscard]] bool has(std::uint32_t number) const { return (words_[number / 64] >> (number % 64) & 1) != 0; }
  void add_all(const RegisterSet& others) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
  }
  // Adds `from` without `without`. Returns whether the set grew.
  bool add_difference(const RegisterSet& from, const RegisterSet& without) {
    bool grew = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t before = words_[i];
      words_[i] |= from.words_[i] & ~without.words_[i];
      grew |= words_[i] != before;
    }
    return grew;
  }
  template <class See>
  void for_each(const See& see) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1)
        see(static_cast<std::uint32_t>(i * 64 + static_cast<std::size_t>(__builtin_ctzll(rest))));
  }

 private:
  std::vector<std::uint64_t> words_;
};

// Instructions that are executed one after another.
struct BasicBlock {
  std::uint32_t begin = 0, end = 0;
  std::vector<std::uint32_t> successors{};  // blocks
};

std::vector<BasicBlock> basic_blocks(const Function& function, const std::vector<Exit>& exits) {
  const auto count = static_cast<std::uint32_t>(function.code.size());
  const auto for_each_target = [&](std::uint32_t at, const auto& see) {
    const std::uint32_t target = function.code[at].target;
    if (exits[at] == Exit::branch) see(target);
    if (exits[at] == Exit::table)
      for (const std::uint32_t label : function.label_tables[target]) see(label);
  };
  std::vector<bool> begins(count + 1, false);
  begins[0] = true;
  for (std::uint32_t at = 0; at < count; ++at) {
    for_each_target(at, [&](std::uint32_t target) { begins[target] = true; });
    if (exits[at] != Exit::next) begins[at + 1] = true;
  }
  std::vector<BasicBlock> blocks;
  std::vector<std::uint32_t> block_at(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    if (begins[at]) blocks.push_back({.begin = at});
    blocks.back().end = at + 1;
    block_at[at] = static_cast<std::uint32_t>(blocks.size() - 1);
  }
  for (BasicBlock& block : blocks) {
    const std::uint32_t last = block.end - 1;
    for_each_target(last, [&](std::uint32_t target) { block.successors.push_back(block_at[target]); });
    const bool goes_on = exits[last] == Exit::next || function.code[last].predicate >= 0;
    if (goes_on && block.end < count) block.successors.push_back(block_at[block.end]);
  }
  return blocks;
}

// The instructions between which a register may hold a value that is still read, both included.
struct Span {
  std::uint32_t slot = 0;  // of the register, as parsed
  bool is_wide = false;
  std::uint32_t first = kNone, last = 0;
  std::uint32_t block = 0;         // of the first instruction
  std::uint32_t crossing = kNone;  // the number among registers whose values may pass from block to block

  void cover(std::uint32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

class SlotSharing final {
 public:
  SlotSharing(Function& function, const std::vector<Exit>& exits, const std::vector<std::uint32_t>& wide)
      : function_(function), blocks_(basic_blocks(function, exits)), number_of_(function.register_slots, kNone) {
    for (std::uint32_t block = 0; block < blocks_.size(); ++block)
      for (std::uint32_t at = blocks_[block].begin; at < blocks_[block].end; ++at) find_registers(block, at);
    for (const std::uint32_t slot : wide)
      if (number_of_[slot] != kNone) spans_[number_of_[slot]].is_wide = true;
  }

  void share() {
    extend_over_blocks();
    rename(slots_of_spans());
  }

 private:
  void find_registers(std::uint32_t block, std::uint32_t at) {
    const Instruction& in = function_.code[at];
    const auto see = [&](std::uint32_t slot, bool is_read) {
      std::uint32_t& number = number_of_[slot];
      const bool is_new = number == kNone;
      if (is_new) {
        number = static_cast<std::uint32_t>(spans_.size());
        spans_.push_back({.slot = slot, .block = block});
      }
      Span& span = spans_[number];
      span.cover(at);
      // Most registers are written once, and read in the same block.
      if (span.crossing == kNone && (is_new ? is_read : span.block != block)) span.crossing = crossing_++;
    };
    for_each_read(in, [&](std::uint32_t slot) { see(slot, true); });
    for_each_destination(in, [&](std::uint32_t slot) { see(slot, false); });
  }

  // A destination of an instruction with a predicate keeps its value where the predicate is false, as if it were read.
  template <class See>
  static void for_each_read(const Instruction& in, const See& see) {
    for_each_source(in, see);
    if (in.predicate >= 0) for_each_destination(in, see);
  }

  void extend_over_blocks() {
    const RegisterSet none(crossing_);
    std::vector<RegisterSet> read(blocks_.size(), none), written(blocks_.size(), none);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      for (std::uint32_t at = blocks_[i].begin; at < blocks_[i].end; ++at) look(function_.code[at], read[i], written[i]);
    // A register that a block reads before it writes it has a value at the begin of the block, so at the end of blocks before it.
    std::vector<RegisterSet>& at_begin = read;
    std::vector<RegisterSet> at_end(blocks_.size(), none);
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t i = blocks_.size(); i-- > 0;) {
        for (const std::uint32_t next : blocks_[i].successors) at_end[i].add_all(at_begin[next]);
        grew |= at_begin[i].add_difference(at_end[i], written[i]);
      }
    }
    std::vector<Span*> crossing(crossing_);
    for (Span& span : spans_)
      if (span.crossing != kNone) crossing[span.crossing] = &span;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      at_begin[i].for_each([&](std::uint32_t number) { crossing[number]->cover(blocks_[i].begin); });
      at_end[i].for_each([&](std::uint32_t number) { crossing[number]->cover(blocks_[i].end - 1); });
    }
  }

  void look(const Instruction& in, RegisterSet& read, RegisterSet& written) const {
    for_each_read(in, [&](std::uint32_t slot) {
      const std::uint32_t number = spans_[number_of_[slot]].crossing;
      if (number != kNone && !written.has(number)) read.add(number);
    });
    for_each_destination(in, [&](std::uint32_t slot) {
      if (const std::uint32_t number = spans_[number_of_[slot]].crossing; number != kNone) written.add(number);
    });
  }

  // The slot of each register. Slots are taken in the order in which spans begin, and given back when they have ended.
  std::vector<std::uint32_t> slots_of_spans() {
    using Ending = std::pair<std::uint32_t, std::uint32_t>;  // the end, the slot
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> used[2];
    std::vector<std::uint32_t> free[2];
    std::vector<std::uint32_t> order(spans_.size()), slots(spans_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](auto one, auto other) { return spans_[one].first < spans_[other].first; });
    std::uint32_t end = kDropped;
    for (const std::uint32_t number : order) {
      const Span& span = spans_[number];
      const std::size_t kind = span.is_wide ? 1 : 0;
      for (; !used[kind].empty() && used[kind].top().first < span.first; used[kind].pop())
        free[kind].push_back(used[kind].top().second);
      if (free[kind].empty()) {
        free[kind].push_back(end);
        end += span.is_wide ? 2 : 1;
      }
      slots[number] = free[kind].back();
      free[kind].pop_back();
      used[kind].emplace(span.last, slots[number]);
    }
    function_.register_slots = end;
    return slots;
  }

  void rename(const std::vector<std::uint32_t>& slots) {
    const auto renamed = [&](std::uint32_t slot) { return slot < kDropped ? slot : slots[number_of_[slot]]; };
    for (Instruction& in : function_.code) {
      for (std::size_t i = 0; i < in.destinations; ++i) in.d[i].index = renamed(in.d[i].index);
      for (std::size_t i = 0; i < in.sources; ++i)
        if (in.s[i].kind == Operand::Kind::reg) in.s[i].index = renamed(in.s[i].index);
      if (in.base.kind == Operand::Kind::reg) in.base.index = renamed(in.base.index);
      if (in.predicate >= 0) in.predicate = static_cast<std::int32_t>(renamed(static_cast<std::uint32_t>(in.predicate)));
    }
  }

  Function& function_;
  const std::vector<BasicBlock> blocks_;
  std::vector<std::uint32_t> number_of_;  // of the register in a slot, as parsed
  std::vector<Span> spans_;               // by the number of the register
  std::uint32_t crossing_ = 0;            // registers whose values may pass from block to block
};

}  // namespace

Exit exit_of(std::string_view opcode) {
  const std::string_view name = opcode.substr(0, opcode.find('.'));
  if (name == "bra") return Exit::branch;
  if (name == "brx") return Exit::table;
  return name == "ret" || name == "exit" || name == "trap" || name == "brkpt" ? Exit::leaves : Exit::next;
}

void share_register_slots(Function& function, const std::vector<Exit>& exits, const std::vector<std::uint32_t>& wide) {
  SlotSharing(function, exits, wide).share();
}

}  // namespace seto::software_gpu
