"""The speed at which numpy, torch (CPU, one thread) and FBGEMM (through torch) encode and decode fp32. One JSON line for each figure.

The work is the same as ours: the same format, a scale for each block of the same size, and results in allocated memory if the
library can do that. FBGEMM's rows are its blocks; they have an offset besides the scale.
"""

import json
import sys
import time

import numpy
import torch

BUDGET_S = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
SIZES = {"256KiB": 256 << 10, "64MiB": 64 << 20}
TOPS = {"fp16": 15, "e4m3": 8, "e5m2": 15}


def speed(function, size):
    """GB/s: the median of calls within the budget."""
    function()
    times, end = [], time.perf_counter() + BUDGET_S
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return size / sorted(times)[len(times) // 2] / 1e9


def numpy_works(size):
    numbers = numpy.random.default_rng(1).normal(0, 1e-3, size // 4).astype(numpy.float32).reshape(-1, 256)
    scaled, codes, back = numpy.empty_like(numbers), numpy.empty(numbers.shape, numpy.float16), numpy.empty_like(numbers)
    bytes_, exponents = numpy.empty(numbers.shape, numpy.int8), None

    def largest():
        return numpy.abs(numbers, out=scaled).max(axis=1, keepdims=True)

    def encode_fp16():
        nonlocal exponents
        exponents = numpy.frexp(largest())[1] - 15
        codes[...] = numpy.multiply(numbers, numpy.ldexp(numpy.float32(1), -exponents), out=scaled)

    def decode_fp16():
        numpy.multiply(codes, numpy.ldexp(numpy.float32(1), exponents), out=back)

    def encode_int8():
        nonlocal exponents
        exponents = largest() / numpy.float32(127)
        numpy.rint(numpy.multiply(numbers, 1 / exponents, out=scaled), out=scaled)
        bytes_[...] = scaled

    def decode_int8():
        numpy.multiply(bytes_, exponents, out=back)

    yield "fp16", encode_fp16, decode_fp16
    yield "int8", encode_int8, decode_int8


def torch_works(size):
    numbers = torch.randn(size // 4).mul_(1e-3).view(-1, 256)
    scaled, back, scale = torch.empty_like(numbers), torch.empty_like(numbers), None

    def by_powers(top, codes):
        def encode():
            nonlocal scale
            largest = torch.abs(numbers, out=scaled).amax(1, keepdim=True)
            scale = torch.ldexp(torch.ones(()), torch.frexp(largest)[1] - top)
            codes.copy_(torch.mul(numbers, 1 / scale, out=scaled))

        return encode, lambda: back.copy_(codes).mul_(scale)

    def by_steps(codes):
        def encode():
            nonlocal scale
            scale = torch.abs(numbers, out=scaled).amax(1, keepdim=True) / 127
            codes.copy_(torch.mul(numbers, 1 / scale, out=scaled).round_())

        return encode, lambda: back.copy_(codes).mul_(scale)

    for codec, kind in (("fp16", torch.float16), ("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        yield codec, *by_powers(TOPS[codec], torch.empty(numbers.shape, dtype=kind))
    brain = torch.empty(numbers.shape, dtype=torch.bfloat16)
    yield "bf16", lambda: brain.copy_(numbers), lambda: back.copy_(brain)
    yield "int8", *by_steps(torch.empty(numbers.shape, dtype=torch.int8))


def fbgemm_works(size):
    rows = torch.ops.quantized
    for codec, width, pack, unpack in (
        ("int8", 256, rows.embedding_bag_byte_prepack, rows.embedding_bag_byte_unpack),
        ("int4", 64, rows.embedding_bag_4bit_prepack, rows.embedding_bag_4bit_unpack),
    ):
        numbers = torch.randn(size // 4).mul_(1e-3).view(-1, width)
        packed = pack(numbers)
        yield codec, lambda: pack(numbers), lambda: unpack(packed)


def casts(size):
    numbers = torch.randn(size // 4)
    back = torch.empty_like(numbers)
    for codec, kind in (("fp16", torch.float16), ("bf16", torch.bfloat16), ("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        codes = torch.empty(numbers.shape, dtype=kind)
        yield codec, lambda: codes.copy_(numbers), lambda: back.copy_(codes)


torch.set_num_threads(1)
for name, works in (("numpy", numpy_works), ("torch", torch_works), ("FBGEMM", fbgemm_works), ("plain cast", casts)):
    for label, size in SIZES.items():
        for codec, encode, decode in works(size):
            for work, function in (("encode", encode), ("decode", decode)):
                figure = {"name": name, "codec": codec, "work": work, "size": label, "gb_s": speed(function, size)}
                print(json.dumps(figure), flush=True)
