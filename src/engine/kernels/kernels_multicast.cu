#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/multicast/multicast_sum.h"

// All types in one kernel. A launch has one program.
extern "C" __global__ void __launch_bounds__(seto::kernels::kMostThreads, 1)
    seto_run_multicast(const __grid_constant__ seto::kernels::LaunchArguments launch) {
  seto::kernels::MulticastBlock(launch.programs[0], blockIdx.x).run();
}
