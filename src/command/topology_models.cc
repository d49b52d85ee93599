#include "src/command/topology_models.h"

#include <cstdarg>
#include <cstdio>

namespace seto::command {
namespace {

constexpr int kGpusOfNode = 4;
constexpr int kSwitches = 4;
constexpr int kLinksToSwitch[kSwitches] = {5, 5, 4, 4};  // of each GPU: 18

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void append(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

// A device of PCI Express 5 with 16 lanes. The caller closes it.
void open_device(std::string& text, int bus, const char* about) {
  append(text, "<pci busid=\"0000:%02x:00.0\" %s link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n", static_cast<unsigned>(bus),
         about);
}

void add_gpu(std::string& text, int gpu) {
  constexpr const char* kBridge = "class=\"0x060400\"";
  const int bus = 0x10 * (gpu + 1);
  open_device(text, bus, kBridge);
  open_device(text, bus + 1, "class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\"");
  append(text, "<gpu dev=\"%d\" sm=\"90\" rank=\"%d\" gdr=\"1\">\n", gpu, gpu);
  for (int i = 0; i < kSwitches; ++i)
    append(text, "<nvlink target=\"0000:%02x:00.0\" count=\"%d\" tclass=\"0x068000\"/>\n",
           static_cast<unsigned>(0xc0 + (gpu + i) % kSwitches), kLinksToSwitch[i]);
  text += "</gpu>\n</pci>\n";
  open_device(text, bus + 2, "class=\"0x020000\" vendor=\"0x15b3\" device=\"0x1021\"");
  text += "<nic>\n";
  for (int port = 1; port <= 2; ++port)
    append(text, "<net name=\"mlx5_%d\" dev=\"%d\" speed=\"200000\" port=\"%d\" gdr=\"1\"/>\n", 2 * gpu + port - 1,
           2 * gpu + port - 1, port);
  text += "</nic>\n</pci>\n</pci>\n";
}

std::string eight_h100() {
  std::string text = "<system version=\"1\">\n";
  for (int node = 0; node < 2; ++node) {
    append(text, "<cpu numaid=\"%d\" affinity=\"%s\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n",
           node, node == 0 ? "00ffffff,ffffffff" : "ffffffff,ffffff00,00000000");
    for (int i = 0; i < kGpusOfNode; ++i) add_gpu(text, node * kGpusOfNode + i);
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

}  // namespace

std::optional<std::string> topology_model(std::string_view name) {
  if (name == "oci-h100") return eight_h100();
  return std::nullopt;
}

}  // namespace seto::command
