#pragma once

namespace seto::software_gpu::driver {

// Kernels for tests of the driver: none of them is compiled, so that these tests run without nvcc.
inline constexpr const char* kTestKernels = R"(.version 9.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter = 7;
// words[i] += value, for i < count
.visible .entry add(.param .u64 words, .param .u32 count, .param .u32 value)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<4>;
ld.param.u64 %d0, [words]; ld.param.u32 %r0, [count]; ld.param.u32 %r1, [value];
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
mad.lo.u32 %r5, %r3, %r4, %r2;
setp.ge.u32 %p0, %r5, %r0; @%p0 exit;
mul.wide.u32 %d1, %r5, 4; add.u64 %d0, %d0, %d1;
ld.global.u32 %r6, [%d0]; add.u32 %r6, %r6, %r1; st.global.u32 [%d0], %r6;
ret;
}
// to[i] = from[i] * 2, for i < count; the memory of a peer may be on either side
.visible .entry twice(.param .u64 to, .param .u64 from, .param .u32 count)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<4>;
ld.param.u64 %d0, [to]; ld.param.u64 %d1, [from]; ld.param.u32 %r0, [count];
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
mad.lo.u32 %r5, %r3, %r4, %r2;
setp.ge.u32 %p0, %r5, %r0; @%p0 exit;
mul.wide.u32 %d2, %r5, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
ld.global.u32 %r6, [%d1]; add.u32 %r6, %r6, %r6; st.global.u32 [%d0], %r6;
ret;
}
// Each thread waits until the flag is not 0; then thread 0 sets the other word.
.visible .entry wait_for_flag(.param .u64 flag, .param .u64 ended)
{
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<2>;
ld.param.u64 %d0, [flag]; ld.param.u64 %d1, [ended];
AGAIN:
ld.acquire.sys.global.u32 %r0, [%d0];
setp.eq.u32 %p0, %r0, 0; @%p0 bra AGAIN;
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 exit;
mov.u32 %r2, 1; st.release.sys.global.u32 [%d1], %r2;
ret;
}
.visible .entry increment_counter()
{
.reg .b32 %r<2>; .reg .b64 %d<2>;
mov.u64 %d0, counter;
ld.global.u32 %r0, [%d0]; add.u32 %r0, %r0, 1; st.global.u32 [%d0], %r0;
ret;
}
)";

}  // namespace seto::software_gpu::driver
