#!/usr/bin/env python3
"""Writes tests/engine/weights/golden: blocks of every weight format from an independent source.

    tools/make_golden_blocks.py OUTPUT_FOLDER [--ggml libggml-base.so.0]

Needs numpy, python3-gguf and llama.cpp's libggml-base. llama.cpp's quantizer makes the blocks from
rows of floats; python3-gguf, which shares no code with it, gives their values. Further blocks are
random bytes with sane scales, so that every bit of a format is seen in both states.

rows.bin: u32 rows, u32 cols, then rows * cols floats.
FORMAT.bin: u32 ggml type, u32 weights per block, u32 bytes per block, u32 blocks made from rows.bin,
u32 random blocks; the bytes of all blocks; their values as floats. Everything little-endian.
"""
import argparse
import ctypes
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

FORMATS = [Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1,
           Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ4_NL, Type.IQ4_XS,
           Type.MXFP4]
COLS = 1024
RANDOM_WEIGHTS = 2048

# Byte offsets of the half-precision factors of a block, which must not be random bytes: they would be absurd.
HALVES = {Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2],
          Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2],
          Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0]}


def make_rows(rng):
    """Values like real weights, weights with outliers, heavy tails, and edge cases in rows of 256."""
    normal = rng.normal(0, 0.02, COLS)
    outliers = rng.normal(0, 0.02, COLS)
    outliers[rng.choice(COLS, 12, replace=False)] *= 30
    heavy = rng.standard_t(3, COLS) * 0.05
    edges = np.concatenate([
        np.zeros(128), np.full(128, -0.37),
        np.abs(rng.normal(0, 1, 256)),
        rng.normal(0, 1e-6, 256),
        rng.integers(-8, 8, 256) * 0.125,
    ])
    return np.stack([normal, outliers, heavy, edges]).astype(np.float32)


def quantize(ggml, rows, kind):
    """llama.cpp's own quantizer, without an importance matrix."""
    weights, size = gguf.GGML_QUANT_SIZES[kind]
    out = np.zeros(rows.size // weights * size, dtype=np.uint8)
    written = ggml.ggml_quantize_chunk(int(kind), rows.ctypes.data, out.ctypes.data, 0,
                                       rows.shape[0], rows.shape[1], None)
    assert written == out.size, (kind, written, out.size)
    return out.reshape(-1, size)


def random_blocks(rng, kind):
    weights, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (RANDOM_WEIGHTS // weights, size), dtype=np.uint8)
    count = blocks.shape[0]
    for offset in HALVES.get(kind, []):
        factors = rng.normal(0, 0.05, count).astype(np.float16)
        factors[:2] = [6e-8, -3e-6]  # the smallest subnormal half and another one
        blocks[:, offset:offset + 2] = factors.view(np.uint8).reshape(-1, 2)
    if kind == Type.MXFP4:
        blocks[:6, 0] = [0, 1, 2, 3, 254, 255]  # subnormal, smallest normal and largest scales
        blocks[6:, 0] = rng.integers(100, 140, count - 6)
    if kind in (Type.F32, Type.F16, Type.BF16):
        # Any bit pattern except NaN, whose payload is not guaranteed.
        values = gguf.dequantize(blocks.reshape(1, -1), kind).reshape(-1)
        blocks[np.isnan(values)] = 0
    return blocks


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--ggml", default="libggml-base.so.0")
    arguments = parser.parse_args()

    ggml = ctypes.CDLL(arguments.ggml)
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                                         ctypes.c_int64, ctypes.c_int64, ctypes.c_int64,
                                         ctypes.c_void_p]
    rng = np.random.default_rng(20240607)
    rows = make_rows(rng)
    arguments.output.mkdir(parents=True, exist_ok=True)
    with open(arguments.output / "rows.bin", "wb") as file:
        file.write(np.array(rows.shape, dtype="<u4").tobytes())
        file.write(rows.astype("<f4").tobytes())

    for kind in FORMATS:
        weights, size = gguf.GGML_QUANT_SIZES[kind]
        quantized = quantize(ggml, rows, kind)
        noise = random_blocks(rng, kind)
        blocks = np.concatenate([quantized, noise])
        with np.errstate(over="ignore"):  # MXFP4's largest scale goes to infinity
            values = gguf.dequantize(blocks.reshape(1, -1), kind)
        values = values.reshape(-1).astype("<f4")
        assert values.size == blocks.shape[0] * weights
        header = [int(kind), weights, size, quantized.shape[0], noise.shape[0]]
        with open(arguments.output / f"{kind.name.lower()}.bin", "wb") as file:
            file.write(np.array(header, dtype="<u4").tobytes())
            file.write(blocks.tobytes())
            file.write(values.tobytes())
        error = values[:rows.size].reshape(rows.shape) - rows
        print(f"{kind.name:7} {blocks.shape[0]:5} blocks, error a row (rms):",
              " ".join(f"{e:.3g}" for e in np.sqrt((error.astype(np.float64) ** 2).mean(axis=1))))


if __name__ == "__main__":
    main()
