#include "src/device/cuda/gpu_facts.h"

#include <array>
#include <cstdio>
#include <utility>

#include "src/base/text.h"

namespace seto::cuda {
namespace {

constexpr int kMostGpus = 1024;

// A UUID is 16 bytes; the usual text of it has groups of 4, 2, 2, 2 and 6 bytes.
std::string uuid_text(const DeviceUuid& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += digits.data();
  }
  return text;
}

Result<GpuFacts> facts_of(const Driver& driver, int index) {
  GpuFacts gpu;
  SETO_TRY(driver.device_get(&gpu.number, index));
  std::array<char, 256> name{};
  SETO_TRY(driver.device_get_name(name.data(), static_cast<int>(name.size()) - 1, gpu.number));
  gpu.name = plain_ascii(name.data());
  std::array<char, 64> address{};
  SETO_TRY(driver.device_get_pci_bus_id(address.data(), static_cast<int>(address.size()) - 1, gpu.number));
  gpu.pci_address = lower_case(plain_ascii(address.data()));
  DeviceUuid uuid;
  SETO_TRY(driver.device_get_uuid(&uuid, gpu.number));
  gpu.uuid = uuid_text(uuid);
  std::size_t memory = 0;
  SETO_TRY(driver.device_total_mem(&memory, gpu.number));
  gpu.memory = memory;
  int mode = 0, multicast = 0;
  for (const auto& [attribute, into] : {std::pair{DeviceAttribute::compute_capability_major, &gpu.capability_major},
                                        {DeviceAttribute::compute_capability_minor, &gpu.capability_minor},
                                        {DeviceAttribute::multiprocessor_count, &gpu.multiprocessors},
                                        {DeviceAttribute::compute_mode, &mode},
                                        {DeviceAttribute::multicast, &multicast}})
    SETO_TRY(driver.device_get_attribute(into, attribute, gpu.number));
  gpu.mode = static_cast<ComputeMode>(mode);
  gpu.multicast = multicast != 0;
  return gpu;
}

const char* mode_text(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::prohibited:
      return ", compute mode prohibited";
    case ComputeMode::exclusive_process:
      return ", compute mode exclusive: one process";
    default:
      return "";
  }
}

}  // namespace

Result<std::vector<GpuFacts>> find_gpus(const Driver& driver) {
  SETO_TRY(driver.init(0));
  int count = 0;
  SETO_TRY(driver.device_get_count(&count));
  if (count <= 0) return driver.device_get_count.failed(DriverCode::no_device);
  std::vector<GpuFacts> gpus;
  for (int index = 0; index < count && index < kMostGpus; ++index) {
    SETO_ASSIGN(GpuFacts gpu, facts_of(driver, index));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string facts_text(const GpuFacts& gpu) {
  return "compute capability " + std::to_string(gpu.capability_major) + "." + std::to_string(gpu.capability_minor) + ", " +
         std::to_string(gpu.memory >> 20) + " MiB, PCI " + gpu.pci_address + (gpu.multicast ? ", NVLink multicast" : "") +
         mode_text(gpu.mode);
}

GpuReport report_gpus(const std::string& driver_file) {
  GpuReport report;
  const auto driver = Driver::open(driver_file);
  if (!driver.ok()) {
    report.trouble = plain_ascii(driver.status().text());
    return report;
  }
  report.driver = version_text(driver.value()->version());
  auto gpus = find_gpus(*driver.value());
  if (gpus.ok())
    report.gpus = std::move(gpus).value();
  else
    report.trouble = plain_ascii(gpus.status().text());
  return report;
}

std::string line_of(const GpuReport& report) {
  if (report.driver.empty()) return report.trouble;
  std::string line = "driver of CUDA " + report.driver;
  if (!report.trouble.empty()) return line + ": " + report.trouble;
  for (const GpuFacts& gpu : report.gpus)
    line += (&gpu == &report.gpus.front() ? ": " : "; ") + std::string("GPU ") + std::to_string(gpu.number) + " is " + gpu.name +
            " (" + facts_text(gpu) + ")";
  return line;
}

}  // namespace seto::cuda
