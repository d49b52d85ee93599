#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace seto::testing {

// A host of eight H100 in NCCL's format: two NUMA nodes, and for each GPU a PCI switch that also holds a NIC of two ports. Four
// switches of GPU links join the GPUs.
inline std::string h100_host_xml() {
  std::string text = "<system version=\"1\">\n";
  for (int node = 0; node < 2; ++node) {
    text += "<cpu numaid=\"" + std::to_string(node) + "\" affinity=\"" + (node == 0 ? "0000ffff" : "ffff0000") +
            "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n";
    for (int i = 0; i < 4; ++i) {
      const int gpu = 4 * node + i;
      const auto line = [&](const char* format, int bus) {
        std::array<char, 256> buffer{};
        std::snprintf(buffer.data(), buffer.size(), format, static_cast<unsigned>(bus));
        text += buffer.data();
      };
      const int bus = 0x10 + 0x10 * gpu;
      line("<pci busid=\"0000:%02x:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n", bus);
      line("<pci busid=\"0000:%02x:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n", bus + 1);
      line(
          "<pci busid=\"0000:%02x:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" "
          "link_width=\"16\">\n",
          bus + 2);
      line("<gpu dev=\"%u\" sm=\"90\" gdr=\"1\">\n", gpu);
      for (int link = 0; link < 4; ++link)
        line(link < 2 ? "<nvlink target=\"0000:%02x:00.0\" count=\"5\" tclass=\"0x068000\"/>\n"
                      : "<nvlink target=\"0000:%02x:00.0\" count=\"4\" tclass=\"0x068000\"/>\n",
             0xa0 + (link + gpu) % 4);
      text += "</gpu>\n</pci>\n</pci>\n";
      line("<pci busid=\"0000:%02x:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n", bus + 3);
      line(
          "<pci busid=\"0000:%02x:00.0\" class=\"0x020000\" vendor=\"0x15b3\" device=\"0x1021\" link_speed=\"32.0 GT/s PCIe\" "
          "link_width=\"16\">\n<nic>\n",
          bus + 4);
      line("<net name=\"mlx5_%u\" speed=\"200000\" port=\"1\" gdr=\"1\"/>\n", 2 * gpu);
      line("<net name=\"mlx5_%u\" speed=\"200000\" port=\"2\" gdr=\"1\"/>\n", 2 * gpu + 1);
      text += "</nic>\n</pci>\n</pci>\n</pci>\n";
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

}  // namespace seto::testing
