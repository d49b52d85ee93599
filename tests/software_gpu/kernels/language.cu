// Code for calls, divergence, local arrays, switches, conversions and atomics, as a compiler makes it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

__constant__ int kTable[4] = {1, 2, 3, 5};
__device__ int counter = 7;

__device__ __noinline__ int diverge(int value, const int* local) {
  const int lane = threadIdx.x & 31;
  if ((value & 1) != 0) {
    value = value * 3 + 1;
  } else {
    for (int k = 0; k < lane; ++k) {
      value ^= k * local[k & 7];
    }
  }
  value += __shfl_xor_sync(~0U, value, 16);
  value += __shfl_down_sync(~0U, value, 8);
  const unsigned ballot = __ballot_sync(~0U, (value & 2) != 0);
  return value + __popc(ballot) + __clz(value) + static_cast<int>(__brev(static_cast<unsigned>(value)) & 0xFF);
}

extern "C" __global__ void call(int* values, unsigned long long* sum, int n) {
  __shared__ int bins[7];
  int local[8];
  for (int k = 0; k < 8; ++k) {
    local[k] = kTable[k & 3] * n + k;
  }
  if (threadIdx.x < 7) {
    bins[threadIdx.x] = 0;
  }
  __syncthreads();
  values[threadIdx.x] = diverge(values[threadIdx.x], local);
  atomicAdd(&bins[threadIdx.x % 7], 1);
  __syncthreads();
  atomicAdd(sum, static_cast<unsigned long long>(bins[threadIdx.x % 7]));
  if (threadIdx.x == 0) {
    counter += 1;
    sum[1] = counter;
  }
}

extern "C" __global__ void dispatch(const int* operations, int* results, int n) {
  const int i = threadIdx.x;
  switch (operations[i]) {
    case 0: results[i] = n; break;
    case 1: results[i] = n * n; break;
    case 2: results[i] = n / (i + 1); break;
    case 3: results[i] = n % (i + 1); break;
    case 4: results[i] = __clz(n); break;
    case 5: results[i] = static_cast<int>(__umulhi(n * 77777U, i * 99999U)); break;
    case 6: results[i] = static_cast<int8_t>(n); break;
    default: results[i] = -1;
  }
}

extern "C" __global__ void convert(const float* values, __half* halves, __nv_bfloat16* bfloats, __nv_fp8x2_storage_t* e4m3,
                                   __nv_fp8x2_storage_t* e5m2, float* back) {
  const int i = threadIdx.x;
  const float2 pair = make_float2(values[i], -values[i]);
  halves[i] = __float2half_rn(values[i]);
  bfloats[i] = __float2bfloat16(values[i]);
  e4m3[i] = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
  e5m2[i] = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E5M2);
  const __half2 decoded = __half2(__nv_cvt_fp8x2_to_halfraw2(e4m3[i], __NV_E4M3));
  back[i] = __low2float(decoded) - __high2float(decoded);
}

extern "C" __global__ void half_arithmetic(const __half2* a, const __half2* b, __half2* results) {
  const int i = threadIdx.x;
  results[4 * i] = __hadd2(a[i], b[i]);
  results[4 * i + 1] = __hmul2(a[i], b[i]);
  results[4 * i + 2] = __hfma2(a[i], b[i], a[i]);
  results[4 * i + 3] = __hmax2(a[i], b[i]);
}
