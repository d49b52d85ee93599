#include "src/base/config.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "src/base/config_table.h"

namespace seto {
namespace {

Result<Config> load(std::initializer_list<const char*> variables) {
  std::vector<const char*> environment(variables);
  environment.push_back(nullptr);
  return load_config(environment.data());
}

std::string rejection(const char* variable) {
  const auto config = load({variable});
  return config.ok() ? "accepted" : std::string(config.status().text());
}

ConfigField field_at(std::size_t index) { return static_cast<ConfigField>(index); }

TEST(Config, DefaultsOfTheStructAreThoseOfTheTable) {
  const Config config;
  for (std::size_t index = 0; index < kConfigFieldCount; ++index) {
    EXPECT_EQ(value_text(config, field_at(index)), kConfigTable[index].default_text) << kConfigTable[index].name;
    EXPECT_EQ(config.origin(field_at(index)), Origin::default_value);
  }
}

TEST(Config, EveryDefaultIsReadBack) {
  for (std::size_t index = 0; index < kConfigFieldCount; ++index) {
    Config config;
    const Status status = set_field(config, field_at(index), kConfigTable[index].default_text, Origin::environment);
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(Config, RowsAreNamedOnceAndExplained) {
  std::set<std::string_view> names;
  for (const FieldRow& row : kConfigTable) {
    EXPECT_TRUE(row.name.starts_with("SETO_"));
    EXPECT_GT(row.help.size(), 10U) << row.name;
    EXPECT_FALSE(allowed_text(row).empty());
    names.insert(row.name);
  }
  EXPECT_EQ(names.size(), kConfigFieldCount);
}

TEST(Config, EachRowSetsTheFieldOfItsName) {
  // Only their order connects the table and the enumeration, so each row must change its own member.
  Config config = load({"SETO_SPIN=17", "SETO_RECORDER=18", "SETO_SLOT_DEPTH=19", "SETO_SITE_ID=kyoto"}).value();
  EXPECT_EQ(config.spin, 17U);
  EXPECT_EQ(config.recorder, 18U);
  EXPECT_EQ(config.slot_depth, 19U);
  EXPECT_EQ(config.site_id, "kyoto");
  EXPECT_EQ(value_text(config, ConfigField::spin), "17");
  EXPECT_EQ(value_text(config, ConfigField::recorder), "18");
  EXPECT_EQ(value_text(config, ConfigField::slot_depth), "19");
  EXPECT_EQ(value_text(config, ConfigField::site_id), "kyoto");
}

TEST(Config, ReadsEveryType) {
  const auto config = load({"PATH=/bin", "SETO_LOG=debug", "SETO_SLICE_BYTES=64K", "SETO_DETERMINISTIC=on", "SETO_MEMORY=host",
                            "SETO_OPERATION_TIMEOUT_MS=250", "SETO_ALGORITHM=ring", "SETO_SLOT_STORE=streamed"});
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config.value().log, LogLevel::debug);
  EXPECT_EQ(config.value().slice_bytes, 65536U);
  EXPECT_TRUE(config.value().deterministic);
  EXPECT_EQ(config.value().memory, Memory::host);
  EXPECT_EQ(config.value().operation_timeout_ms, 250U);
  EXPECT_EQ(config.value().algorithm, "ring");
  EXPECT_EQ(config.value().slot_store, SlotStore::streamed);
}

TEST(Config, RemembersWhereAValueCameFrom) {
  Config config = load({"SETO_LOG=info"}).value();
  EXPECT_EQ(config.origin(ConfigField::log), Origin::environment);
  EXPECT_EQ(config.origin(ConfigField::memory), Origin::default_value);
  config.memory = Memory::host;
  mark(config, ConfigField::memory, Origin::config_struct);
  EXPECT_EQ(config.origin(ConfigField::memory), Origin::config_struct);
  EXPECT_EQ(name_of(config.origin(ConfigField::memory)), "config struct");
}

TEST(Config, EmptyValueMeansUnset) {
  const auto config = load({"SETO_LOG=", "SETO_SPIN="});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().log, LogLevel::warn);
  EXPECT_EQ(config.value().origin(ConfigField::log), Origin::default_value);
}

TEST(Config, AutoIsAValueOnlyWhereItIsTheDefault) {
  EXPECT_EQ(load({"SETO_SPIN=auto"}).value().spin, kAutomatic);
  EXPECT_EQ(load({"SETO_SLICE_BYTES=auto"}).value().slice_bytes, kAutomatic);
  EXPECT_EQ(rejection("SETO_RECORDER=auto"), "SETO_RECORDER=auto is not allowed: give a number from 0 to 1048576");
}

TEST(Config, RejectionNamesVariableValueAndAllowedValues) {
  EXPECT_EQ(rejection("SETO_LOG=loud"), "SETO_LOG=loud is not allowed: give one of error, warn, info, debug");
  EXPECT_EQ(rejection("SETO_SLOT_DEPTH=0"), "SETO_SLOT_DEPTH=0 is not allowed: give a number from 1 to 64 or auto");
  EXPECT_EQ(rejection("SETO_SLOT_DEPTH=65"), "SETO_SLOT_DEPTH=65 is not allowed: give a number from 1 to 64 or auto");
  EXPECT_EQ(rejection("SETO_SLICE_BYTES=1000"), "SETO_SLICE_BYTES=1000 is not allowed: give a size from 1K to 64M or auto");
  EXPECT_EQ(rejection("SETO_DETERMINISTIC=maybe"), "SETO_DETERMINISTIC=maybe is not allowed: give on or off");
  EXPECT_EQ(rejection("SETO_INIT_TIMEOUT_MS=-1"),
            "SETO_INIT_TIMEOUT_MS=-1 is not allowed: give milliseconds from 1 to 604800000");
}

TEST(Config, LimitsAreInclusive) {
  EXPECT_TRUE(load({"SETO_SLOT_DEPTH=1"}).ok());
  EXPECT_TRUE(load({"SETO_SLOT_DEPTH=64"}).ok());
  EXPECT_TRUE(load({"SETO_SLICE_BYTES=64M"}).ok());
  EXPECT_EQ(rejection("SETO_SLICE_BYTES=67108865"),
            "SETO_SLICE_BYTES=67108865 is not allowed: give a size from 1K to 64M or auto");
}

TEST(Config, LongTextIsRejectedAndShortenedInTheError) {
  const std::string variable = "SETO_HOST_ID=" + std::string(1000, 'h');
  const std::string text = rejection(variable.c_str());
  EXPECT_LT(text.size(), 200U);
  EXPECT_NE(text.find("a text of at most 255 bytes"), std::string::npos);
}

TEST(Config, ASecretIsNeverShown) {
  const Config config = load({"SETO_SECRET=cormorant"}).value();
  EXPECT_EQ(config.secret, "cormorant");
  EXPECT_EQ(value_text(config, ConfigField::secret), "(not shown)");
  const std::string variable = "SETO_SECRET=" + std::string(1000, 'c');
  EXPECT_EQ(rejection(variable.c_str()), "SETO_SECRET=(not shown) is not allowed: give a text of at most 255 bytes");
}

// The token in an id proves membership of the job, so it must not be printed.
TEST(Config, AnIdIsNeverShown) {
  const Config config = load({"SETO_ROOT=id:0123abcd"}).value();
  EXPECT_EQ(config.root, "id:0123abcd");
  EXPECT_EQ(value_text(config, ConfigField::root), "id:(not shown)");
  EXPECT_EQ(value_text(load({"SETO_ROOT=a:1"}).value(), ConfigField::root), "a:1");
  const std::string variable = "SETO_ROOT=id:" + std::string(5000, 'c');
  EXPECT_EQ(rejection(variable.c_str()), "SETO_ROOT=id:(not shown) is not allowed: give a text of at most 4095 bytes");
}

TEST(Config, BooleansHaveTheUsualTexts) {
  for (const char* yes : {"SETO_DETERMINISTIC=1", "SETO_DETERMINISTIC=on", "SETO_DETERMINISTIC=true", "SETO_DETERMINISTIC=yes"}) {
    EXPECT_TRUE(load({yes}).value().deterministic) << yes;
  }
  for (const char* no : {"SETO_DETERMINISTIC=0", "SETO_DETERMINISTIC=off", "SETO_DETERMINISTIC=false", "SETO_DETERMINISTIC=no"}) {
    EXPECT_FALSE(load({no}).value().deterministic) << no;
  }
}

TEST(Config, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(rejection("SETO_LOG_FIEL=x"), "SETO_LOG_FIEL is not a variable of Seto; did you mean SETO_LOG_FILE?");
  EXPECT_EQ(rejection("SETO_SLOTDEPTH=4"), "SETO_SLOTDEPTH is not a variable of Seto; did you mean SETO_SLOT_DEPTH?");
  EXPECT_EQ(rejection("SETO_LOGG="), "SETO_LOGG is not a variable of Seto; did you mean SETO_LOG?");
}

TEST(Config, PrefixesAndNamesOfOtherLibrariesAreSuggested) {
  EXPECT_EQ(rejection("SETO_ALGO=ring"), "SETO_ALGO is not a variable of Seto; did you mean SETO_ALGORITHM?");
  EXPECT_EQ(rejection("SETO_LOG_LEVEL=info"), "SETO_LOG_LEVEL is not a variable of Seto; did you mean SETO_LOG?");
  EXPECT_EQ(rejection("SETO_DEBUG=INFO"), "SETO_DEBUG is not a variable of Seto; did you mean SETO_LOG?");
  EXPECT_EQ(rejection("SETO_DEBUG_FILE=x"), "SETO_DEBUG_FILE is not a variable of Seto; did you mean SETO_LOG_FILE?");
}

TEST(Config, WordsAreAcceptedInAnyCase) {
  const auto config =
      load({"SETO_LOG=INFO", "SETO_MEMORY=Host", "SETO_DETERMINISTIC=ON", "SETO_SPIN=AUTO", "SETO_ALGORITHM=Two_Shot"});
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config.value().log, LogLevel::info);
  EXPECT_EQ(config.value().memory, Memory::host);
  EXPECT_TRUE(config.value().deterministic);
  EXPECT_EQ(config.value().spin, kAutomatic);
  EXPECT_EQ(config.value().algorithm, "two_shot");
  EXPECT_EQ(load({"SETO_HOST_ID=Kyoto"}).value().host_id, "Kyoto") << "the case of a text is kept";
}

TEST(Config, UnknownNameWithoutASimilarOneNamesTheList) {
  EXPECT_EQ(rejection("SETO_TYPO=1"), "SETO_TYPO is not a variable of Seto: unset it (seto info --config lists them all)");
  EXPECT_EQ(rejection("SETO_CHRYSANTHEMUM_GARDEN=1"),
            "SETO_CHRYSANTHEMUM_GARDEN is not a variable of Seto: unset it (seto info --config lists them all)");
}

TEST(Config, OtherVariablesAreIgnored) {
  EXPECT_TRUE(load({"SETOLOG=x", "seto_log=x", "NCCL_DEBUG=INFO", "SETO_WITHOUT_EQUALS"}).ok());
}

TEST(Config, FirstFailureLeavesNoPartialResult) {
  const auto config = load({"SETO_LOG=debug", "SETO_SPIN=many"});
  EXPECT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace seto
