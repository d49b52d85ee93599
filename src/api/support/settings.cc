#include "src/api/support/settings.h"

#include <unistd.h>

#include <cstring>
#include <mutex>

#include "src/api/support/handles.h"
#include "src/base/config_table.h"
#include "src/base/log.h"
#include "src/core/call/ids.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/device_memory/gpu_context.h"
#include "src/engine/kernels/kernel_images.h"
#include "src/net/congestion.h"
#include "src/net/traffic_class.h"

namespace seto::api {
namespace {

// The first fields of every versioned struct.
struct Head {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
};

// A process has one log: an initialization that names another file reopens the log there.
Status apply_log(const Config& config) {
  static std::mutex mutex;
  static std::string file;
  const std::lock_guard lock(mutex);
  set_log_level(config.log);
  if (config.log_file == file) return {};
  SETO_TRY(open_log(config.log_file));
  file = config.log_file;
  return {};
}

// Checks names that the table of settings does not know. An error text begins with the option that the caller set.
Status check_names(const Config& config, const char* algorithm, const char* codec) {
  SETO_TRY(CodecSetting::parse(config.codec, codec).status());
  const std::string& name = config.algorithm;
  if (name.empty() || algorithm_id(name) != 0) return {};
  return failure(Code::invalid_argument, "%s: '%.64s' is unknown; the algorithms are %s", algorithm, name.c_str(),
                 known_algorithms(name).c_str());
}

Result<bool> switch_of(int value, bool inherited_value, const char* name) {
  if (value == 0) return inherited_value;
  if (value == setoOn) return true;
  if (value == setoOff) return false;
  return failure(Code::invalid_argument, "%s: %d is neither setoOn nor setoOff", name, value);
}

// Refuses fields that this version does not support, rather than ignore them.
Status check_absent(const setoConfig_t& config) {
  if (config.livenessTimeoutMs != 0)
    return failure(Code::invalid_usage, "livenessTimeoutMs: heartbeats belong to the process: set SETO_LIVENESS_TIMEOUT_MS");
  if (config.affinity != nullptr)
    return failure(Code::invalid_usage,
                   "affinity: not in this version; threads of the library inherit that of the calling thread");
  return {};
}

Status take_text(Config& config, ConfigField field, const char* text) {
  return text == nullptr ? Status() : set_field(config, field, text, Origin::config_struct);
}

Status take_timeout(Config& config, ConfigField field, std::uint32_t milliseconds) {
  return milliseconds == 0 ? Status() : set_field(config, field, std::to_string(milliseconds), Origin::config_struct);
}

Status take_values(Config& config, const setoConfig_t& from) {
  SETO_TRY(take_timeout(config, ConfigField::operation_timeout_ms, from.operationTimeoutMs));
  SETO_TRY(take_timeout(config, ConfigField::init_timeout_ms, from.initTimeoutMs));
  SETO_TRY(take_text(config, ConfigField::algorithm, from.algorithm));
  SETO_TRY(take_text(config, ConfigField::codec, from.codec));
  SETO_TRY(take_text(config, ConfigField::host_id, from.hostId));
  SETO_TRY(take_text(config, ConfigField::site_id, from.siteId));
  SETO_TRY(take_text(config, ConfigField::topology_file, from.topologyFile));
  if (const int memory = number_in(from.memory); memory != 0) {
    if (memory < 0 || memory > setoMemoryAuto)
      return failure(Code::invalid_argument, "memory: %d is not a setoMemory_t value", memory);
    config.memory = memory == setoMemoryHost ? Memory::host : memory == setoMemoryDevice ? Memory::device : Memory::automatic;
    mark(config, ConfigField::memory, Origin::config_struct);
  }
  if (const int deterministic = number_in(from.deterministic); deterministic != 0) {
    SETO_ASSIGN(config.deterministic, switch_of(deterministic, config.deterministic, "deterministic"));
    mark(config, ConfigField::deterministic, Origin::config_struct);
  }
  return {};
}

// Where a rank is, is a matter of its context, whose connections depend on it: what the struct of the context stated holds for
// its communicators, unless theirs states something else.
Status take_place(Config& config, const Config& of_context) {
  const auto stated = [&](ConfigField field) { return of_context.origin(field) == Origin::config_struct; };
  if (stated(ConfigField::host_id)) SETO_TRY(take_text(config, ConfigField::host_id, of_context.host_id.c_str()));
  if (stated(ConfigField::site_id)) SETO_TRY(take_text(config, ConfigField::site_id, of_context.site_id.c_str()));
  return {};
}

}  // namespace

Status check_struct(const void* data, const StructShape& shape) {
  Head head;
  std::memcpy(&head, data, sizeof head);
  if (head.magic != shape.magic)
    return failure(Code::invalid_argument, "%s: magic is %#x, not %#x: begin with the initializer", shape.name, head.magic,
                   shape.magic);
  if (head.size < shape.least_size || head.size > std::size_t{1} << 16)
    return failure(Code::invalid_argument, "%s: a size of %zu, but it has %zu bytes: begin with the initializer", shape.name,
                   head.size, shape.known_size);
  if (head.version < SETO_VERSION(0, 1, 0))
    return failure(Code::invalid_argument, "%s: version %u is older than any release", shape.name, head.version);
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t at = shape.known_size; at < head.size; ++at)
    if (bytes[at] != 0)
      return failure(Code::invalid_argument, "%s: byte %zu is set, but this library (%d.%d.%d) knows only %zu bytes of it",
                     shape.name, at, SETO_MAJOR, SETO_MINOR, SETO_PATCH, shape.known_size);
  return {};
}

std::string version_text() {
  return std::to_string(SETO_MAJOR) + "." + std::to_string(SETO_MINOR) + "." + std::to_string(SETO_PATCH);
}

Result<Settings> settings_of_environment() {
  Settings settings;
  SETO_ASSIGN(settings.config, load_config(environ));
  SETO_TRY(apply_log(settings.config));
  set_traffic_marks({settings.config.dscp_control, settings.config.dscp_data});
  set_congestion(settings.config.congestion);
  SETO_TRY(check_names(settings.config, "SETO_ALGORITHM", "SETO_CODEC"));
  return settings;
}

Result<Settings> with_struct(Settings base, const setoConfig_t* config) {
  if (config == nullptr) return base;
  SETO_TRY(check_struct(config, {"config", sizeof(setoConfig_t), sizeof(setoConfig_t), SETO_CONFIG_MAGIC}));
  SETO_TRY(check_absent(*config));
  if (config->context != nullptr) {
    SETO_TRY(check_handle(config->context));
    base.context = config->context->context;
    SETO_TRY(take_place(base.config, base.context->config()));
  }
  SETO_TRY(take_values(base.config, *config));
  SETO_TRY(check_names(base.config, "algorithm", "codec"));
  SETO_ASSIGN(base.blocking, switch_of(number_in(config->blocking), base.blocking, "blocking"));
  SETO_ASSIGN(base.share_context, switch_of(number_in(config->splitShare), base.share_context, "splitShare"));
  if (config->commName != nullptr) base.name = std::string(config->commName, strnlen(config->commName, kNameLimit));
  base.bootstrap = {config->bootstrap.allGather, config->bootstrap.argument};
  return base;
}

// Where the user has not decided, a program that uses no GPU pays one look at the list of loaded libraries, and one that cannot
// use the library's kernels goes on with host memory.
Status settle_memory(Settings& settings) {
  Memory& memory = settings.config.memory;
  if (memory == Memory::automatic && (!driver_is_loaded() || kernels::kernel_images().images.empty())) memory = Memory::host;
  if (memory == Memory::host) {
    settings.gpu.reset();
    return {};
  }
  if (memory == Memory::device && settings.gpu != nullptr) return {};  // inherited
  Result<std::shared_ptr<GpuContext>> gpu = GpuContext::of_thread();
  if (!gpu.ok() && memory == Memory::device)
    return failure(gpu.status().code(), "memory: device memory cannot be used: %s", std::string(gpu.status().text()).c_str());
  memory = gpu.ok() ? Memory::device : Memory::host;
  if (gpu.ok()) settings.gpu = std::move(gpu).value();
  return {};
}

Settings inherited(const Settings& parent, const std::shared_ptr<Context>& context) {
  Settings settings = parent;
  settings.bootstrap = {};
  settings.context = parent.share_context ? context : nullptr;
  return settings;
}

}  // namespace seto::api
