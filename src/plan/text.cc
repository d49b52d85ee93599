#include "src/plan/text.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>

#include "src/base/text.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

constexpr Verb kVerbs[] = {Verb::send, Verb::receive, Verb::copy, Verb::reduce, Verb::scale, Verb::finish, Verb::round};
constexpr Space kSpaces[] = {Space::input, Space::output, Space::scratch, Space::channel};
constexpr Finish kFinishes[] = {Finish::none, Finish::scale_contributions, Finish::divide_result};

std::string_view name_of_finish(Finish finish) {
  switch (finish) {
    case Finish::none:
      return "none";
    case Finish::scale_contributions:
      return "scale_contributions";
    case Finish::divide_result:
      return "divide_result";
  }
  return "?";
}

// ---- writing ----

class Writer {
 public:
  std::string run(const Plan& plan) && {
    text_ = "seto plan 1\nname ";
    text_ += plain_ascii(plan.name);
    add("\nshape ", name_of(plan.shape.collective));
    add(" ranks ", plan.shape.ranks);
    add(" root ", plan.shape.root);
    add(" pieces ", plan.shape.pieces);
    add(" finish ", name_of_finish(plan.shape.finish));
    if (plan.shape.codec != 0) add(" codec ", plan.shape.codec);
    if (plan.shape.codec != 0) add(" tiers ", plan.shape.coded_tiers);
    text_ += '\n';
    for (const Program& program : plan.programs) write(program);
    return std::move(text_);
  }

 private:
  void add(std::string_view before, std::string_view word) {
    text_ += before;
    text_ += word;
  }
  void add(std::string_view before, std::int64_t number) { add(before, std::to_string(number)); }

  void add_chunks(std::uint32_t first, std::uint32_t count) {
    add(" chunks ", first);
    add("+", count);
  }

  void write(const Program& program) {
    add("\nprogram ", program.rank);
    add(" scratch ", program.scratch_chunks);
    add(" fan ", program.fan);
    text_ += '\n';
    for (std::size_t i = 0; i < program.channels.size(); ++i) {
      add("channel ", static_cast<std::int64_t>(i));
      write(program, program.channels[i]);
    }
    for (std::size_t i = 0; i < program.lanes.size(); ++i) {
      add("lane ", static_cast<std::int64_t>(i));
      text_ += '\n';
      for (const Step& step : program.steps_of(program.lanes[i])) write(program, step);
    }
  }

  void write(const Program& program, const Channel& channel) {
    add(" from ", channel.sender);
    std::string_view before = " to ";
    for (const Rank receiver : program.receivers_of(channel)) {
      add(before, receiver);
      before = ", ";
    }
    add(" group ", channel.group);
    add(" port ", channel.port);
    add_chunks(channel.chunk, channel.count);
    add(" stage ", channel.stage);
    if (channel.coded) text_ += " coded";
    text_ += '\n';
  }

  void write(const Program& program, const Step& step) {
    add("  ", name_of(step.verb));
    if (step.finishes) text_ += " finishes";
    if (step.rounds) text_ += " rounds";
    add_chunks(step.chunk, step.count);
    add(" stage ", step.stage);
    add(" order ", step.order);
    text_ += ':';
    write(program.sources(step));
    text_ += " ->";
    write(program.targets(step));
    if (step.dependency_count > 0) text_ += " after";
    for (const Dependency& dependency : program.dependencies_of(step)) {
      add(" ", dependency.lane);
      add(":", dependency.steps);
    }
    text_ += '\n';
  }

  void write(std::span<const Operand> operands) {
    std::string_view before = " ";
    for (const Operand& operand : operands) {
      add(before, operand.scaled ? "scaled " : "");
      add(name_of(operand.space), " ");
      text_ += std::to_string(operand.index);
      before = ", ";
    }
  }

  std::string text_;
};

// ---- reading ----

// Reads words, numbers and punctuation of one line. The first unexpected thing is the failure of the line. After it every read
// returns zero, so callers check once, at the end.
class Line {
 public:
  Line(std::string_view text, std::size_t number) : rest_(text), number_(number) { skip(); }

  [[nodiscard]] bool failed() const { return !status_.ok(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

  bool accept(std::string_view token) {
    if (failed() || !starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    skip();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(std::string("\"").append(token).append("\""));
  }

  std::uint32_t number(std::string_view what, std::uint64_t limit) {
    if (failed()) return 0;
    std::size_t digits = 0;
    while (digits < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[digits])) != 0) ++digits;
    const auto value = parse_uint(rest_.substr(0, digits));
    if (!value || *value > limit) {
      fail(std::string(what) + " as a number up to " + std::to_string(limit));
      return 0;
    }
    rest_.remove_prefix(digits);
    skip();
    return static_cast<std::uint32_t>(*value);
  }

  std::uint32_t field(std::string_view name, std::uint64_t limit) {
    expect(name);
    return number(name, limit);
  }

  template <class Enum, std::size_t kCount, class Name>
  Enum one_of(const Enum (&all)[kCount], Name name, std::string_view what) {
    for (const Enum each : all)
      if (accept(name(each))) return each;
    fail(std::string(what));
    return all[0];
  }

  void end() {
    if (!failed() && !rest_.empty()) fail("the end of the line");
  }

  void fail(const std::string& expected) {
    if (failed()) return;
    const std::string found(rest_.substr(0, 24));
    status_ = failure(Code::invalid_argument, "plan text, line %zu: expected %s, found \"%s\"", number_, expected.c_str(),
                      found.empty() ? "the end of the line" : found.c_str());
  }

 private:
  static bool part_of_word(char header) { return std::isalnum(static_cast<unsigned char>(header)) != 0 || header == '_'; }

  [[nodiscard]] bool starts_with(std::string_view token) const {
    if (!rest_.starts_with(token)) return false;
    const bool word_goes_on = rest_.size() > token.size() && part_of_word(token.back()) && part_of_word(rest_[token.size()]);
    return !word_goes_on;
  }

  void skip() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
  std::size_t number_;
  Status status_;
};

constexpr std::uint64_t kAny32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kAny16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kAny8 = std::numeric_limits<std::uint8_t>::max();

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<Plan> run() && {
    if (text_.size() > kPlanTextLimit)
      return failure(Code::invalid_argument, "plan text: %zu bytes, more than the limit of %zu", text_.size(), kPlanTextLimit);
    for (int heading = 0; heading < 3; ++heading) {
      Line line = next_line();
      if (heading == 0) read_version(line);
      if (heading == 1) read_name(line);
      if (heading == 2) read_shape(line);
      line.end();
      if (line.failed()) return line.status();
    }
    while (more()) {
      Line line = next_line();
      read_body(line);
      line.end();
      if (line.failed()) return line.status();
    }
    SETO_TRY(check_program());
    return std::move(plan_);
  }

 private:
  // Moves to the next line with content. At the end of the text it gives an empty line.
  bool more() {
    while (!text_.empty()) {
      const Line line(text_.substr(0, text_.find('\n')), 0);
      if (!line.rest().empty() && line.rest().front() != '#') return true;
      take();
    }
    return false;
  }

  std::string_view take() {
    const std::size_t end = text_.find('\n');
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    ++line_number_;
    return line;
  }

  Line next_line() {
    more();
    const std::string_view line = take();
    return {line, line_number_};
  }

  static void read_version(Line& line) { line.expect("seto plan 1"); }

  void read_name(Line& line) {
    line.expect("name");
    if (line.failed()) return;
    plan_.name = plain_ascii(line.rest());
    while (!plan_.name.empty() && std::isspace(static_cast<unsigned char>(plan_.name.back())) != 0) plan_.name.pop_back();
    line = Line("", line_number_);
  }

  void read_shape(Line& line) {
    line.expect("shape");
    constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                           Collective::broadcast,  Collective::reduce,     Collective::all_to_all,
                                           Collective::gather,     Collective::scatter,    Collective::barrier};
    Shape& shape = plan_.shape;
    shape.collective = line.one_of(
        kCollectives, [](Collective each) { return name_of(each); }, "a collective");
    shape.ranks = static_cast<int>(line.field("ranks", kPlanTextRanks));
    if (shape.ranks < 1) line.fail("at least one rank before this");
    shape.root = static_cast<Rank>(line.field("root", static_cast<std::uint64_t>(std::max(shape.ranks, 1)) - 1));
    shape.pieces = line.field("pieces", kPlanTextChunks);
    line.expect("finish");
    shape.finish = line.one_of(kFinishes, name_of_finish, "a finish");
    if (line.accept("codec")) {
      shape.codec = static_cast<std::uint8_t>(line.number("codec", kAny8));
      shape.coded_tiers = static_cast<std::uint8_t>(line.field("tiers", kAny8));
      if (shape.codec == 0) line.fail("a codec from 1 before this");
    }
    const auto ranks = static_cast<std::uint64_t>(shape.ranks);
    const bool squared = shape.collective == Collective::all_to_all;
    if (shape.pieces < 1 || shape.pieces * ranks * (squared ? ranks : 1) > kPlanTextChunks)
      line.fail("1 to " + std::to_string(kPlanTextChunks) + " chunks in all");
  }

  void read_body(Line& line) {
    if (line.accept("program")) return read_program(line);
    if (plan_.programs.empty()) return line.fail("\"program\"");
    Program& program = plan_.programs.back();
    if (program.lanes.empty() && line.accept("channel")) return read_channel(line, program);
    if (line.accept("lane")) {
      if (line.number("the number of the next lane", kAny32) != program.lanes.size()) line.fail("the number of the next lane");
      program.lanes.push_back({static_cast<std::uint32_t>(program.steps.size()), 0});
      return;
    }
    if (program.lanes.empty()) return line.fail("\"channel\" or \"lane\"");
    read_step(line, program);
  }

  void read_program(Line& line) {
    if (const Status finished = check_program(); !finished.ok()) return line.fail(std::string(finished.text()));
    Program program;
    program.rank = static_cast<Rank>(line.number("a rank", static_cast<std::uint64_t>(plan_.shape.ranks) - 1));
    if (!plan_.programs.empty() && plan_.programs.back().rank >= program.rank) line.fail("programs in the order of ranks");
    program.scratch_chunks = line.field("scratch", kPlanTextChunks);
    program.fan = line.field("fan", kPlanTextRanks);
    program_line_ = line_number_;
    plan_.programs.push_back(std::move(program));
  }

  Rank read_rank(Line& line) const {
    return static_cast<Rank>(line.number("a rank", static_cast<std::uint64_t>(plan_.shape.ranks) - 1));
  }

  void read_chunks(Line& line, std::uint32_t& first, std::uint32_t& count) const {
    const std::uint64_t all = logical_chunks(plan_.shape);
    first = line.field("chunks", all);
    line.expect("+");
    count = line.number("how many chunks", all);
    if (std::uint64_t{first} + count > all) line.fail("chunks below " + std::to_string(all) + " before this");
  }

  void read_channel(Line& line, Program& program) {
    if (line.number("the number of the next channel", kAny32) != program.channels.size())
      line.fail("the number of the next channel");
    Channel channel;
    line.expect("from");
    channel.sender = read_rank(line);
    channel.first_receiver = static_cast<std::uint32_t>(program.receivers.size());
    line.expect("to");
    do program.receivers.push_back(read_rank(line));
    while (line.accept(","));
    channel.receiver_count = static_cast<std::uint32_t>(program.receivers.size()) - channel.first_receiver;
    channel.group = static_cast<std::uint8_t>(line.field("group", kAny8));
    channel.port = static_cast<std::uint16_t>(line.field("port", kAny16));
    read_chunks(line, channel.chunk, channel.count);
    channel.stage = static_cast<std::uint16_t>(line.field("stage", kPlanTextStages - 1));
    channel.coded = line.accept("coded");
    program.channels.push_back(channel);
  }

  void read_step(Line& line, Program& program) {
    Step step;
    step.verb = line.one_of(
        kVerbs, [](Verb each) { return name_of(each); }, "\"lane\", \"program\" or a verb");
    step.finishes = line.accept("finishes");
    step.rounds = line.accept("rounds");
    read_chunks(line, step.chunk, step.count);
    step.stage = static_cast<std::uint16_t>(line.field("stage", kPlanTextStages - 1));
    step.order = line.field("order", kAny32);
    step.first_operand = static_cast<std::uint32_t>(program.operands.size());
    line.expect(":");
    step.source_count = read_operands(line, program, step.count);
    line.expect("->");
    step.target_count = read_operands(line, program, step.count);
    step.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
    if (line.accept("after")) read_dependencies(line, program);
    step.dependency_count = static_cast<std::uint32_t>(program.dependencies.size()) - step.first_dependency;
    program.steps.push_back(step);
    ++program.lanes.back().step_count;
  }

  std::uint16_t read_operands(Line& line, Program& program, std::uint32_t count) const {
    std::uint64_t operands = 0;
    if (line.rest().starts_with("->") || line.rest().empty() || line.rest().starts_with("after")) return 0;
    do {
      Operand operand;
      operand.scaled = line.accept("scaled");
      operand.space = line.one_of(
          kSpaces, [](Space each) { return name_of(each); }, "input, output, scratch or channel");
      operand.index = line.number("an index", kAny32);
      const std::uint64_t all = size_of_space(program, operand.space);
      if (operand.index + std::uint64_t{operand.space == Space::channel ? 1 : count} > all)
        line.fail(std::string(name_of(operand.space)) + " below " + std::to_string(all) + " before this");
      program.operands.push_back(operand);
      if (++operands > kAny16) line.fail("at most 65535 operands");
    } while (line.accept(","));
    return static_cast<std::uint16_t>(operands);
  }

  [[nodiscard]] std::uint64_t size_of_space(const Program& program, Space space) const {
    switch (space) {
      case Space::input:
        return input_chunks(plan_.shape, program.rank);
      case Space::output:
        return output_chunks(plan_.shape, program.rank);
      case Space::scratch:
        return program.scratch_chunks;
      case Space::channel:
        return program.channels.size();
    }
    return 0;
  }

  static void read_dependencies(Line& line, Program& program) {
    do {
      Dependency dependency;
      dependency.lane = line.number("a lane", kAny32);
      line.expect(":");
      dependency.steps = line.number("how many steps", kAny32);
      program.dependencies.push_back(dependency);
    } while (!line.failed() && !line.rest().empty());
  }

  // Dependencies may point forward, so they are checked when a program is complete.
  [[nodiscard]] Status check_program() const {
    if (plan_.programs.empty()) return {};
    const Program& program = plan_.programs.back();
    for (const Dependency& dependency : program.dependencies) {
      const bool known = dependency.lane < program.lanes.size() && dependency.steps <= program.lanes[dependency.lane].step_count;
      if (!known)
        return failure(Code::invalid_argument,
                       "plan text, program %d at line %zu: expected dependencies on existing steps, found %u:%u", program.rank,
                       program_line_, dependency.lane, dependency.steps);
    }
    return {};
  }

  std::string_view text_;
  std::size_t line_number_ = 0;
  std::size_t program_line_ = 0;
  Plan plan_;
};

}  // namespace

std::string to_text(const Plan& plan) { return Writer().run(plan); }

Result<Plan> plan_from_text(std::string_view text) { return Reader(text).run(); }

}  // namespace seto
