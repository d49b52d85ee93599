#include "tests/soak/resources.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>

#ifdef SETO_SANITIZED
extern "C" std::size_t
__sanitizer_get_current_allocated_bytes();  // a function of both sanitizers; their header is not installed everywhere
#endif

namespace seto::soak {
namespace {

// Tables that remember rejected inits keep 4,096 entries of each kind, of some 200 bytes, before they forget any.
constexpr std::uint64_t kHeapGrowth = std::uint64_t{1536} << 10;
constexpr std::uint64_t kMemoryGrowth = std::uint64_t{16} << 20;

template <class Each>
void each_name_in(const char* directory, const Each& each) {
  DIR* const open = opendir(directory);
  if (open == nullptr) return;
  while (const dirent* entry = readdir(open))
    if (entry->d_name[0] != '.') each(entry->d_name);
  closedir(open);
}

// Drops the inode: "socket:[123]" is "socket".
std::string kind_of(std::string target) {
  target.erase(std::remove_if(target.begin(), target.end(), [](unsigned char one) { return std::isdigit(one) != 0; }),
               target.end());
  return target;
}

std::uint64_t proportional_set_size() {
#ifndef SETO_SANITIZED
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    unsigned long kib = 0;
    if (std::sscanf(line.c_str(), "Pss: %lu kB", &kib) == 1) return std::uint64_t{kib} << 10;
  }
#endif
  return 0;
}

std::uint64_t heap_size() {
#ifdef SETO_SANITIZED
  return __sanitizer_get_current_allocated_bytes();
#else
  malloc_trim(0);
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

}  // namespace

void make_heap_plain() {
#ifndef SETO_SANITIZED
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
#endif
}

int Resources::open() const {
  int all = 0;
  for (const auto& [kind, count] : descriptors) all += count;
  return all;
}

std::string Resources::text() const {
  char text[160];
  std::snprintf(text, sizeof text, "%d descriptors, %d threads, heap %.1f KiB, memory %.1f MiB", open(), threads,
                static_cast<double>(heap_bytes) / 1024, static_cast<double>(memory_bytes) / (1 << 20));
  return text;
}

Resources resources_now() {
  Resources now;
  each_name_in("/proc/self/fd", [&](const char* name) {
    char target[256] = {};
    const std::string path = std::string("/proc/self/fd/") + name;
    if (readlink(path.c_str(), target, sizeof target - 1) > 0) ++now.descriptors[kind_of(target)];
  });
  each_name_in("/proc/self/task", [&](const char*) { ++now.threads; });
  now.heap_bytes = heap_size();
  now.memory_bytes = proportional_set_size();
  return now;
}

void keep_least(Resources& least, const Resources& now) {
  for (auto& [kind, count] : least.descriptors) {
    const auto found = now.descriptors.find(kind);
    count = std::min(count, found == now.descriptors.end() ? 0 : found->second);
  }
  least.threads = std::min(least.threads, now.threads);
}

bool as_few(const Resources& before, const Resources& now) {
  const auto more = [&](const auto& kind) {
    const auto old = before.descriptors.find(kind.first);
    return kind.second > (old == before.descriptors.end() ? 0 : old->second);
  };
  return now.threads <= before.threads && std::none_of(now.descriptors.begin(), now.descriptors.end(), more);
}

std::string growth(const Resources& before, const Resources& now) {
  std::string found;
  for (const auto& [kind, count] : now.descriptors) {
    const auto old = before.descriptors.find(kind);
    const int had = old == before.descriptors.end() ? 0 : old->second;
    if (count > had) found += kind + ": " + std::to_string(had) + " became " + std::to_string(count) + "; ";
  }
  if (now.threads > before.threads)
    found += std::to_string(before.threads) + " threads became " + std::to_string(now.threads) + "; ";
  if (now.heap_bytes > before.heap_bytes + kHeapGrowth || now.memory_bytes > before.memory_bytes + kMemoryGrowth)
    found += "memory: " + before.text() + " became " + now.text() + "; ";
  return found;
}

}  // namespace seto::soak
