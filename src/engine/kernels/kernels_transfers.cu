#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/transfers.h"

// Sends and receives: bytes of any type.
extern "C" __global__ void __launch_bounds__(seto::kernels::kMostThreads, 1)
    seto_run_transfers(const __grid_constant__ seto::kernels::TransferArguments arguments) {
  seto::kernels::TransferBlock(arguments, blockIdx.x).run();
}
