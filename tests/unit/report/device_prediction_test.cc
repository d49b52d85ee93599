// Calls on GPU memory: the model of a topology's GPUs, what is predicted on it, and how it is shown.

#include "src/report/device/device_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/report/device/device_prediction_text.h"
#include "src/report/device/gpu_figures.h"
#include "src/topology/xml/topology_file.h"
#include "tests/support/h100_host.h"

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kPort = 18 * 20.6e9;  // bytes per second of an H100's NVLinks

TopologyGraph h100_host() { return read_topology(testing::h100_host_xml()).value(); }

DeviceModel model_on(const TopologyGraph& graph, int ranks = 0, std::uint32_t blocks = kDefaultBlocks) {
  return device_model_of(graph, ranks, blocks).value();
}

Question all_reduce(std::string_view pin = {}) {
  Question question;
  question.pin = pin;
  return question;
}

DevicePrediction best(const DeviceModel& model, std::uint64_t bytes, std::string_view pin = {}) {
  return predict_on_devices(all_reduce(pin), bytes, model).value().front();
}

// GPUs of a generation without GPU links, each below a port of PCI Express.
TopologyGraph pci_host(int gpus, const std::string& sm, const std::string& speed) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\" arch=\"x86_64\">";
  for (int gpu = 0; gpu < gpus; ++gpu)
    text += "<pci busid=\"0000:" + std::to_string(10 + gpu) + ":00.0\" class=\"0x030200\" link_speed=\"" + speed +
            "\" link_width=\"16\"><gpu dev=\"" + std::to_string(gpu) + "\"" + sm + "/></pci>";
  return read_topology(text + "</cpu></system>").value();
}

TEST(DeviceModel, TakesTheLinksOfTheTopology) {
  const DeviceModel model = model_on(h100_host());
  EXPECT_EQ(model.ranks, 8);
  EXPECT_EQ(model.machine, "8 x H100 SXM, joined by NVSwitch");
  EXPECT_TRUE(model.has_nccl_figures);
  for (Rank rank = 0; rank < 8; ++rank) {
    EXPECT_NEAR(1e9 / model.devices.port_ns_per_byte[static_cast<std::size_t>(rank)], kPort, 1);
    EXPECT_NEAR(1e9 / model.devices.pair_ns_per_byte(rank, (rank + 3) % 8), kPort, 1);
  }
  EXPECT_FALSE(model_on(h100_host(), 4).has_nccl_figures) << "they are of eight GPUs";
}

TEST(DeviceModel, TakesPciExpressWithoutGpuLinks) {
  const DeviceModel model = model_on(pci_host(4, " sm=\"80\"", "16.0 GT/s PCIe"));
  EXPECT_EQ(model.machine, "4 x A100 SXM 80 GB, over PCI Express");
  EXPECT_NEAR(1e9 / model.devices.port_ns_per_byte[0], 24e9, 1);  // 16 lanes of generation 4
  EXPECT_NEAR(1e9 / model.devices.pair_ns_per_byte(0, 3), 24e9, 1);
  EXPECT_EQ(model.devices.flag_ns, kPciFlagNs);
  EXPECT_FALSE(model.has_nccl_figures);
}

TEST(DeviceModel, SaysWhatToDoWithoutGpus) {
  const auto text_of = [](const TopologyGraph& graph, int ranks = 0, std::uint32_t blocks = 1) {
    return std::string(device_model_of(graph, ranks, blocks).status().text());
  };
  TopologyGraph none;
  none.hosts.resize(1);
  EXPECT_THAT(text_of(none), AllOf(HasSubstr("has no GPU"), HasSubstr("--topo oci-h100")));
  EXPECT_THAT(text_of(TopologyGraph()), HasSubstr("has no GPU"));
  TopologyGraph two = h100_host();
  two.hosts.push_back(two.hosts.front());
  EXPECT_THAT(text_of(two), AllOf(HasSubstr("2 hosts"), HasSubstr("one host")));
  EXPECT_THAT(text_of(h100_host(), 9), HasSubstr("2 to 8"));
  EXPECT_THAT(text_of(h100_host(), 1), HasSubstr("2 to 8"));
  EXPECT_THAT(text_of(h100_host(), 8, 0), HasSubstr("blocks: 0"));
  EXPECT_THAT(text_of(h100_host(), 8, 133), HasSubstr("1 to 132"));
  EXPECT_THAT(text_of(pci_host(2, "", "16.0 GT/s PCIe")), AllOf(HasSubstr("generation"), HasSubstr("seto topo --xml")));
}

TEST(DevicePrediction, ShortCallsHaveOneExchange) {
  const DevicePrediction one = best(model_on(h100_host()), 8);
  EXPECT_EQ(one.algorithm->name, "one_shot");
  EXPECT_EQ(one.outcome.hops, 1U);
  EXPECT_EQ(one.slices, 1U);
  EXPECT_GT(one.seconds, kLinkFlagNs * 1e-9);
  EXPECT_NE(one.outcome.path.binding(), DeviceCost::links);
}

TEST(DevicePrediction, ShortCallsAreMarkedWhereThatIsFaster) {
  const DeviceModel model = model_on(h100_host());
  for (const std::uint64_t bytes : {8, 1 << 10, 4 << 10}) {
    const DevicePrediction marked = best(model, bytes);
    const DevicePrediction flags = predict_slices(all_reduce("one_shot"), bytes, model, bytes / sizeof(float)).value();
    EXPECT_TRUE(marked.marked) << bytes;
    EXPECT_FALSE(flags.marked) << bytes;
    EXPECT_LT(marked.seconds, 0.6 * flags.seconds) << bytes;
    EXPECT_TRUE(predict_as_cut_now(all_reduce("one_shot"), bytes, model).value().marked) << bytes;
  }
  EXPECT_FALSE(best(model, 8 << 10).marked) << "its messages do not fit";
  EXPECT_FALSE(best(model, 1 << 10, "two_shot").marked) << "it is no exchange";
}

// No plan may beat the links: two passes of all but the own share of the buffer.
TEST(DevicePrediction, LongCallsAreBoundByTheLinks) {
  const DeviceModel model = model_on(h100_host());
  for (const std::uint64_t bytes : {std::uint64_t{64} << 20, std::uint64_t{1} << 30}) {
    const DevicePrediction one = best(model, bytes);
    EXPECT_EQ(one.outcome.path.binding(), DeviceCost::links) << bytes;
    EXPECT_LT(one.bus_bytes_per_second, kPort) << bytes;
    EXPECT_GT(one.bus_bytes_per_second, 0.7 * kPort) << bytes;
    EXPECT_NEAR(one.least_seconds, 1.75 * static_cast<double>(bytes) / kPort, 1e-3 * one.least_seconds) << bytes;
    EXPECT_LE(one.outcome.workspace, kMostWorkspace) << bytes;
    EXPECT_NEAR(one.bus_bytes_per_second, 1.75 * static_cast<double>(bytes) / one.seconds, 1) << bytes;
  }
}

TEST(DevicePrediction, FewBlocksBind) {
  const DevicePrediction few = best(model_on(h100_host(), 0, 1), 256 << 20, "ring");
  EXPECT_EQ(few.outcome.path.binding(), DeviceCost::blocks);
  EXPECT_LT(few.bus_bytes_per_second, 1.5 * 36.7e9) << "NCCL's channel, but a lent message has two operands of three";
  EXPECT_GT(few.bus_bytes_per_second, 0.8 * 36.7e9);
  EXPECT_GT(best(model_on(h100_host(), 0, 4), 256 << 20, "ring").bus_bytes_per_second, 3.5 * few.bus_bytes_per_second);
}

TEST(DevicePrediction, TheFastestIsFirst) {
  const DevicePredictions all = predict_on_devices(all_reduce(), 1 << 20, model_on(h100_host())).value();
  ASSERT_EQ(all.size(), 6U);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].seconds, all[i - 1].seconds);
  for (const DevicePrediction& one : all) EXPECT_LE(one.least_seconds, one.seconds) << one.algorithm->name;
  const DevicePrediction whole = predict_slices(all_reduce("ring"), 1 << 20, model_on(h100_host()), 1 << 20).value();
  EXPECT_EQ(whole.slices, 1U);
  EXPECT_GE(whole.seconds, best(model_on(h100_host()), 1 << 20, "ring").seconds);
}

// The library's workspace holds slots of a few KiB, so a long call has many short slices.
TEST(DevicePrediction, TheCutOfNowFitsIntoTheWorkspace) {
  const DeviceModel model = model_on(h100_host());
  for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{1} << 20, std::uint64_t{64} << 20}) {
    const DeviceSize size = predict_size(all_reduce(), bytes, model).value();
    EXPECT_LE(size.now.outcome.workspace, std::size_t{4} << 20) << bytes;
    EXPECT_GE(size.now.blocks, 1U) << bytes;
    EXPECT_LE(size.now.blocks, model.blocks) << bytes;
    EXPECT_EQ(size.now.bytes, bytes);
  }
  EXPECT_EQ(predict_as_cut_now(all_reduce("ring"), 1 << 20, model).value().algorithm->name, "ring");
  EXPECT_EQ(predict_as_cut_now(all_reduce("ring"), 1 << 20, model).value().blocks, 8U);  // 128 KiB of 16 KiB each
}

// By constants of host memory choice would take two_shot for both, in ten times the time.
TEST(DevicePrediction, TheCutOfNowFollowsFromTheLinks) {
  const DeviceModel model = model_on(h100_host());
  EXPECT_DOUBLE_EQ(model.costs.node.bytes_per_second, kPort);
  EXPECT_DOUBLE_EQ(model.costs.node.latency_seconds, (kLinkFlagNs + model.devices.fence_ns) * 1e-9);
  DeviceModel with_host_costs = model;
  with_host_costs.costs = CostModel();
  for (const std::uint64_t bytes : {std::uint64_t{4} << 10, std::uint64_t{64} << 10}) {
    const DevicePrediction now = predict_as_cut_now(all_reduce(), bytes, model).value();
    EXPECT_EQ(now.algorithm->name, "one_shot") << bytes;
    EXPECT_LT(3 * now.seconds, predict_as_cut_now(all_reduce(), bytes, with_host_costs).value().seconds) << bytes;
  }
  const DeviceModel pci = model_on(pci_host(4, " sm=\"80\"", "16.0 GT/s PCIe"));
  EXPECT_DOUBLE_EQ(pci.costs.node.bytes_per_second, 24e9);
  EXPECT_DOUBLE_EQ(pci.costs.node.latency_seconds, 3e-6);
}

// Long messages are read where they lie, so their slices need no slots.
TEST(DevicePrediction, LongCallsOfNowAreLent) {
  const DeviceModel model = model_on(h100_host());
  const DevicePrediction longest = predict_as_cut_now(all_reduce(), 1 << 30, model).value();
  EXPECT_TRUE(longest.lent);
  EXPECT_EQ(longest.slice_bytes, std::uint64_t{8} << 20);
  EXPECT_GT(longest.bus_bytes_per_second, 0.9 * kPort);
  EXPECT_LT(longest.bus_bytes_per_second, kPort);
  const DevicePrediction shortest = predict_as_cut_now(all_reduce("two_shot"), 8 * (16 << 10), model).value();
  EXPECT_TRUE(shortest.lent) << "chunks of 16 KiB";
  EXPECT_FALSE(predict_as_cut_now(all_reduce("two_shot"), 8 * (15 << 10), model).value().lent);
  EXPECT_THAT(device_prediction_text(all_reduce(), {predict_size(all_reduce(), 64 << 20, model).value()}, model),
              AllOf(HasSubstr("32 blocks, read in the buffers of the peers"), HasSubstr("371 GB/s), which a job replaces")));
}

TEST(DevicePrediction, EveryCollectiveHasOne) {
  const DeviceModel model = model_on(h100_host());
  for (const Collective collective :
       {Collective::all_gather, Collective::reduce_scatter, Collective::broadcast, Collective::reduce, Collective::all_to_all,
        Collective::gather, Collective::scatter, Collective::barrier}) {
    Question question;
    question.collective = collective;
    const DevicePrediction one =
        predict_on_devices(question, collective == Collective::barrier ? 0 : 64 << 20, model).value().front();
    EXPECT_GT(one.seconds, 0) << name_of(collective);
    EXPECT_LT(one.bus_bytes_per_second, 1.001 * kPort) << name_of(collective);
  }
}

TEST(DevicePrediction, RefusesAlgorithmsThatCannotRun) {
  const auto text_of = [](std::string_view pin) {
    return std::string(predict_on_devices(all_reduce(pin), 8, model_on(h100_host())).status().text());
  };
  EXPECT_THAT(text_of("magic"), AllOf(HasSubstr("magic cannot run here"), HasSubstr("one_shot")));
  EXPECT_THAT(text_of("hierarchical"), HasSubstr("hierarchical cannot run here: there is one tier"));
}

TEST(DevicePredictionText, MarksEveryRow) {
  const DeviceModel model = model_on(h100_host());
  std::vector<DeviceSize> sizes;
  for (const std::uint64_t bytes : {8, 1024, 4 << 20}) sizes.push_back(predict_size(all_reduce(), bytes, model).value());
  const std::string text = device_prediction_text(all_reduce(), sizes, model);
  EXPECT_THAT(text, StartsWith("prediction, no GPU has confirmed it: all_reduce of "));
  std::size_t rows = 0;
  for (std::size_t at = text.find("\npredicted "); at != std::string::npos; at = text.find("\npredicted ", at + 1)) ++rows;
  EXPECT_EQ(rows, sizes.size());
  EXPECT_THAT(text, AllOf(HasSubstr("15 to 17.8 us"), HasSubstr("149 GB/s"), HasSubstr("docs/dsl/results.md"),
                          HasSubstr("\nassumed:\n"), HasSubstr("the launch is not contained")));
  Question gather;
  gather.collective = Collective::all_gather;
  EXPECT_THAT(device_prediction_text(gather, {predict_size(gather, 1024, model).value()}, model), Not(HasSubstr("NCCL:")));
}

TEST(DevicePredictionText, ShowsWhereTheTimeOfOneSizeGoes) {
  const DeviceModel model = model_on(h100_host());
  const std::vector<DeviceSize> one{predict_size(all_reduce(), 8, model).value()};
  EXPECT_THAT(device_prediction_text(all_reduce(), one, model),
              AllOf(HasSubstr("the longest chain of one_shot, predicted, with 1 wait for a peer:"),
                    HasSubstr("112 bytes to peers, 16 to one"), HasSubstr("each block: 2 passes, 1 barriers, 0 flags"),
                    HasSubstr("1 block, marked messages"), HasSubstr("recursive_doubling")));
  EXPECT_THAT(device_prediction_json(all_reduce(), one, model),
              AllOf(StartsWith(R"({"kind":"prediction","memory":"device","collective":"all_reduce")"),
                    HasSubstr(R"("algorithm":"one_shot","slices":1)"), HasSubstr(R"("messages":"marked")"),
                    HasSubstr(R"("exchanges":1)"), HasSubstr(R"("nccl_source")")));
}

TEST(NcclFigures, AreThereForSomeSizes) {
  EXPECT_EQ(nccl_figure(8), nullptr);
  ASSERT_NE(nccl_figure(1 << 10), nullptr);
  EXPECT_EQ(nccl_figure(1 << 10), nccl_figure(64 << 10));
  EXPECT_EQ(nccl_figure(256 << 10), nullptr);
  EXPECT_EQ(nccl_figure(1 << 30)->algorithm_gb, 275);
}

}  // namespace
}  // namespace seto
