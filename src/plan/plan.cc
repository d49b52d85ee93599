#include "src/plan/plan.h"

#include <algorithm>

namespace seto {

std::uint32_t Program::stages() const {
  std::uint32_t last = 0;
  for (const Step& step : steps) last = std::max<std::uint32_t>(last, step.stage);
  return last + 1;
}

std::string_view name_of(Verb verb) {
  switch (verb) {
    case Verb::send:
      return "send";
    case Verb::receive:
      return "receive";
    case Verb::copy:
      return "copy";
    case Verb::reduce:
      return "reduce";
    case Verb::scale:
      return "scale";
    case Verb::finish:
      return "finish";
    case Verb::round:
      return "round";
  }
  return "?";
}

std::string_view name_of(Space space) {
  switch (space) {
    case Space::input:
      return "input";
    case Space::output:
      return "output";
    case Space::scratch:
      return "scratch";
    case Space::channel:
      return "channel";
  }
  return "?";
}

}  // namespace seto
