// The settings of a communicator: versioned structs, and which source overrides which.

#include "src/api/support/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/base/config_table.h"

namespace seto::api {
namespace {

using ::testing::HasSubstr;

constexpr unsigned kMagic = 0x5e70abcd;
constexpr std::size_t kLeast = 24;
constexpr std::size_t kKnown = 32;

// A versioned struct of any size, as a program compiled with another header would pass it.
std::string refusal(std::size_t size, unsigned magic, unsigned version, std::size_t set_byte = 0) {
  std::vector<unsigned char> bytes(std::max<std::size_t>(size, kKnown) + 8);
  std::memcpy(bytes.data(), &size, sizeof size);
  std::memcpy(&bytes[8], &magic, sizeof magic);
  std::memcpy(&bytes[12], &version, sizeof version);
  if (set_byte != 0) bytes.at(set_byte) = 1;
  const Status status = check_struct(bytes.data(), {"thing", kLeast, kKnown, kMagic});
  return status.ok() ? "accepted" : std::string(status.text());
}

TEST(VersionedStruct, IsAcceptedInEverySizeThatARealHeaderCanHave) {
  for (const std::size_t size : {kLeast, kLeast + 8, kKnown, kKnown + 1, kKnown + 100, std::size_t{1} << 16})
    EXPECT_EQ(refusal(size, kMagic, SETO_VERSION_CODE), "accepted") << size;
}

TEST(VersionedStruct, OfAnotherSizeWasNotInitialized) {
  for (const std::size_t size : {std::size_t{0}, kLeast - 1, (std::size_t{1} << 16) + 1})
    EXPECT_EQ(refusal(size, kMagic, SETO_VERSION_CODE),
              "thing: a size of " + std::to_string(size) + ", but it has 32 bytes: begin with the initializer");
}

TEST(VersionedStruct, NeedsItsMagicBeforeAllElse) {
  EXPECT_EQ(refusal(0, 0, 0), "thing: magic is 0, not 0x5e70abcd: begin with the initializer");
  EXPECT_EQ(refusal(kKnown, kMagic + 1, SETO_VERSION_CODE),
            "thing: magic is 0x5e70abce, not 0x5e70abcd: begin with the initializer");
}

TEST(VersionedStruct, OlderThanTheFirstReleaseIsRefused) {
  EXPECT_EQ(refusal(kKnown, kMagic, SETO_VERSION(0, 1, 0)), "accepted");
  EXPECT_EQ(refusal(kKnown, kMagic, SETO_VERSION(0, 1, 0) - 1),
            "thing: version " + std::to_string(SETO_VERSION(0, 1, 0) - 1) + " is older than any release");
}

// A field that this library does not know would be ignored, and the program would believe that it had an effect.
TEST(VersionedStruct, WithAnUnknownFieldThatIsSetIsRefusedByTheByte) {
  for (std::size_t byte = kKnown; byte < kKnown + 40; ++byte)
    EXPECT_EQ(
        refusal(kKnown + 40, kMagic, SETO_VERSION_CODE, byte),
        "thing: byte " + std::to_string(byte) + " is set, but this library (" + version_text() + ") knows only 32 bytes of it");
  EXPECT_EQ(refusal(kKnown + 40, kMagic, SETO_VERSION_CODE, kKnown + 40), "accepted") << "the byte behind it belongs to others";
}

setoConfig_t fresh() { return SETO_CONFIG_INITIALIZER; }

template <class Change>
Result<Settings> changed(const Settings& base, const Change& change) {
  setoConfig_t config = fresh();
  change(config);
  return with_struct(base, &config);
}

TEST(ConfigStruct, ThatIsNullOrFreshChangesNothing) {
  Settings base;
  base.config.operation_timeout_ms = 17;
  base.config.codec = "fp16";
  base.name = "parent";
  base.blocking = false;
  for (const bool null : {true, false}) {
    const Settings same = null ? with_struct(base, nullptr).value() : changed(base, [](setoConfig_t&) {}).value();
    EXPECT_EQ(same.config.operation_timeout_ms, 17U);
    EXPECT_EQ(same.config.codec, "fp16");
    EXPECT_EQ(same.name, "parent");
    EXPECT_FALSE(same.blocking);
    EXPECT_EQ(same.config.origins, base.config.origins);
  }
}

TEST(ConfigStruct, OverridesAndSaysSo) {
  const Settings settings = changed({}, [](setoConfig_t& config) {
                              config.operationTimeoutMs = 250;
                              config.initTimeoutMs = 300;
                              config.algorithm = "ring";
                              config.codec = "world=fp16";
                              config.hostId = "a";
                              config.siteId = "b";
                              config.memory = setoMemoryHost;
                              config.deterministic = setoOn;
                              config.blocking = setoOff;
                              config.splitShare = setoOff;
                              config.commName = "gradients";
                            }).value();
  EXPECT_EQ(settings.config.operation_timeout_ms, 250U);
  EXPECT_EQ(settings.config.init_timeout_ms, 300U);
  EXPECT_EQ(settings.config.algorithm, "ring");
  EXPECT_EQ(settings.config.codec, "world=fp16");
  EXPECT_EQ(settings.config.host_id, "a");
  EXPECT_EQ(settings.config.site_id, "b");
  EXPECT_EQ(settings.config.memory, Memory::host);
  EXPECT_TRUE(settings.config.deterministic);
  EXPECT_FALSE(settings.blocking);
  EXPECT_FALSE(settings.share_context);
  EXPECT_EQ(settings.name, "gradients");
  for (const ConfigField field :
       {ConfigField::operation_timeout_ms, ConfigField::init_timeout_ms, ConfigField::algorithm, ConfigField::codec,
        ConfigField::host_id, ConfigField::site_id, ConfigField::memory, ConfigField::deterministic})
    EXPECT_EQ(settings.config.origin(field), Origin::config_struct);
  EXPECT_EQ(settings.config.origin(ConfigField::spin), Origin::default_value);
}

// Environment, context, struct of the communicator: the later one counts.
TEST(ConfigStruct, TakesFromItsContextWhereItIs) {
  setoConfig_t where = fresh();
  where.hostId = "of the context";
  setoContext_t context = nullptr;
  ASSERT_EQ(setoContextCreate(&context, &where), setoSuccess);
  Settings base;
  base.config.host_id = base.config.site_id = "of the environment";
  {
    const Settings joined = changed(base, [&](setoConfig_t& config) { config.context = context; }).value();
    EXPECT_EQ(joined.config.host_id, "of the context");
    EXPECT_EQ(joined.config.origin(ConfigField::host_id), Origin::config_struct);
    EXPECT_EQ(joined.config.site_id, "of the environment") << "the context states none";
    EXPECT_NE(joined.context, nullptr);
    const Settings own = changed(base, [&](setoConfig_t& config) {
                           config.context = context;
                           config.hostId = "of its own";
                         }).value();
    EXPECT_EQ(own.config.host_id, "of its own");
  }
  EXPECT_EQ(setoContextDestroy(context), setoSuccess);
}

TEST(ConfigStruct, CanTurnOffWhatTheParentTurnedOn) {
  Settings base;
  base.config.deterministic = true;
  EXPECT_FALSE(changed(base, [](setoConfig_t& config) { config.deterministic = setoOff; }).value().config.deterministic);
  EXPECT_TRUE(changed(base, [](setoConfig_t&) {}).value().config.deterministic);
}

TEST(ConfigStruct, NamesTheFieldAndTheValueThatIsWrong) {
  const auto text = [](void (*change)(setoConfig_t&)) { return std::string(changed({}, change).status().text()); };
  EXPECT_EQ(text([](setoConfig_t& config) { config.blocking = static_cast<setoSwitch_t>(3); }),
            "blocking: 3 is neither setoOn nor setoOff");
  EXPECT_EQ(text([](setoConfig_t& config) { config.splitShare = static_cast<setoSwitch_t>(3); }),
            "splitShare: 3 is neither setoOn nor setoOff");
  EXPECT_THAT(text([](setoConfig_t& config) { config.algorithm = "rign"; }),
              ::testing::AllOf(HasSubstr("algorithm: 'rign' is unknown; the algorithms are "), HasSubstr("did you mean ring")));
  EXPECT_THAT(text([](setoConfig_t& config) { config.codec = "fp61"; }), HasSubstr("codec"));
  EXPECT_THAT(text([](setoConfig_t& config) { config.operationTimeoutMs = ~std::uint32_t{0}; }),
              HasSubstr("SETO_OPERATION_TIMEOUT_MS=4294967295 is not allowed: give milliseconds from 1 to 604800000"));
}

TEST(ConfigStruct, RefusesWhatThisVersionDoesNotDoRatherThanIgnoreIt) {
  const auto refused = [](void (*change)(setoConfig_t&)) { return changed({}, change).status(); };
  for (const auto& [change, field] : std::initializer_list<std::pair<void (*)(setoConfig_t&), const char*>>{
           {[](setoConfig_t& config) { config.livenessTimeoutMs = 1; }, "livenessTimeoutMs: "},
           {[](setoConfig_t& config) { config.affinity = "0-3"; }, "affinity: "}}) {
    EXPECT_EQ(refused(change).code(), Code::invalid_usage) << field;
    EXPECT_THAT(std::string(refused(change).text()), ::testing::StartsWith(field));
  }
}

TEST(ConfigStruct, CutsALongName) {
  const std::string name(5000, 'n');
  setoConfig_t config = fresh();
  config.commName = name.c_str();
  EXPECT_EQ(with_struct({}, &config).value().name, name.substr(0, kNameLimit));
}

TEST(InheritedSettings, KeepTheParentsValuesAndShareItsContextIfItAllows) {
  const std::shared_ptr<Context> context = Context::create(Config{}).value();
  Settings parent;
  parent.name = "parent";
  parent.config.codec = "fp16";
  parent.bootstrap.function = [](const void*, void*, std::size_t, void*) { return 0; };
  const Settings child = inherited(parent, context);
  EXPECT_EQ(child.name, "parent");
  EXPECT_EQ(child.config.codec, "fp16");
  EXPECT_EQ(child.context, context);
  EXPECT_EQ(child.bootstrap.function, nullptr) << "a child bootstraps over its parent";
  parent.share_context = false;
  EXPECT_EQ(inherited(parent, context).context, nullptr);
}

}  // namespace
}  // namespace seto::api
