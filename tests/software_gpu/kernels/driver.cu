// Kernels for the tests of the stand-in driver, in a fatbin of several architectures.
extern "C" __global__ void architecture(unsigned* into) {
#if defined(__CUDA_ARCH__)
  *into = __CUDA_ARCH__;
#endif
}

struct Arguments {
  unsigned char first;
  double second;
  unsigned* third;
};

// Arguments of several sizes and alignments.
extern "C" __global__ void sum_of_arguments(unsigned* into, short a, Arguments b, unsigned long long c) {
  *into = static_cast<unsigned>(a + b.first + static_cast<unsigned>(b.second) + *b.third + static_cast<unsigned>(c));
}
