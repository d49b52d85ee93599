// Carries packets between the network namespaces of several sites like slow, long or lossy links. See README.md.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "src/base/text.h"
#include "tests/lab/relay.h"
#include "tests/lab/settings.h"

namespace seto::lab {
namespace {

constexpr std::size_t kMostSites = 64;

constexpr char kUsage[] =
    "usage: link_emulator namespaces=A,B[,...] [device=wan0] [seed=1] [OPTION...]\n"
    "OPTION, of every ordered pair: rate= delay= jitter= loss= burst-loss= queue= bucket= overhead= largest= cut= hole= closed=\n"
    "standard input: commands, a line each (0>1 loss=1 | 0-1 cut=on | * delay=9ms | uplink 0 rate=1g | downlink * rate=2g |\n"
    "site 0 carrier=off | statistics);\n"
    "its end ends the program, which prints statistics as JSON\n";

Status set(RelayOptions& options, std::string_view argument) {
  if (argument.starts_with("namespaces=")) {
    for (const auto name : words_of(argument.substr(11), ',')) options.namespaces.emplace_back(name);
    return {};
  }
  if (argument.starts_with("device=")) {
    options.device = argument.substr(7);
    return {};
  }
  if (argument.starts_with("seed=")) {
    const auto seed = parse_uint(argument.substr(5));
    if (!seed) return {Code::invalid_argument, quoted(argument) + ": wanted a number"};
    options.seed = *seed;
    return {};
  }
  return set_option(options.links, argument);
}

int run(int count, char** arguments) {
  RelayOptions options;
  for (int index = 1; index < count; ++index) {
    if (const Status status = set(options, arguments[index]); !status.ok()) {
      std::fprintf(stderr, "link_emulator: %s\n%s", std::string(status.text()).c_str(), kUsage);
      return 2;
    }
  }
  if (options.namespaces.size() < 2 || options.namespaces.size() > kMostSites) {
    std::fprintf(stderr, "link_emulator: wanted 2 to %zu namespaces\n%s", kMostSites, kUsage);
    return 2;
  }
  auto relay = Relay::create(options);
  const Status outcome = relay.ok() ? relay->run(STDIN_FILENO) : relay.status();
  if (!outcome.ok()) {
    std::fprintf(stderr, "link_emulator: %s\n", std::string(outcome.text()).c_str());
    return 1;
  }
  std::puts(relay->statistics().c_str());
  return 0;
}

}  // namespace
}  // namespace seto::lab

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  return seto::lab::run(count, arguments);
}
