#include "src/topology/discovery/host_api.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "src/base/fd.h"

namespace seto {
namespace {

class SystemHost final : public HostApi {
 public:
  std::optional<std::string> read(const std::string& path) override {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return std::nullopt;
    std::string text(65'536, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
      const ssize_t taken = ::read(file.get(), text.data() + size, text.size() - size);
      if (taken < 0) return std::nullopt;  // sysfs answers EINVAL for the speed of an interface that is down
      if (taken == 0) break;
      size += static_cast<std::size_t>(taken);
    }
    text.resize(size);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  std::vector<std::string> list(const std::string& folder) override {
    std::vector<std::string> names;
    DIR* const opened = opendir(folder.c_str());
    if (opened == nullptr) return names;
    while (const dirent* const entry = readdir(opened))
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    closedir(opened);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::optional<std::string> real_path(const std::string& path) override {
    const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), &std::free);
    return resolved == nullptr ? std::nullopt : std::optional<std::string>(resolved.get());
  }

  std::vector<Address> addresses() override {
    std::vector<Address> found;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return found;
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr) continue;
      const int family = each->ifa_addr->sa_family;
      const void* bytes = nullptr;
      if (family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
      if (family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
      std::array<char, INET6_ADDRSTRLEN> text{};
      if (bytes != nullptr && inet_ntop(family, bytes, text.data(), text.size()) != nullptr)
        found.push_back({each->ifa_name, text.data()});
    }
    freeifaddrs(all);
    return found;
  }

  CoreSet usable_cores() override { return CoreSet::of_thread(); }
};

}  // namespace

std::unique_ptr<HostApi> system_host() { return std::make_unique<SystemHost>(); }

}  // namespace seto
