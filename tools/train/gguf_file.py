"""Reads and writes GGUF version 3, the part that Hearth's own models and stories15M need: F32, F16 and Q8_0 tensors."""
import struct

import numpy as np

F32, F16, Q8_0 = 0, 1, 8
U8, I8, U16, I16, U32, I32, FLOAT, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
SCALARS = {U8: 'B', I8: 'b', U16: 'H', I16: 'h', U32: 'I', I32: 'i', FLOAT: 'f', BOOL: '?', U64: 'Q', I64: 'q', F64: 'd'}
ALIGNMENT = 32


def quantize_q8_0(x):
    """float32 [rows, cols], cols a multiple of 32 -> bytes: per 32 values an f16 scale and 32 signed bytes."""
    blocks = np.ascontiguousarray(x, dtype=np.float32).reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1) / 127.0
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    q = np.rint(blocks * inverse[:, None]).astype(np.int8)
    out = np.empty((blocks.shape[0], 34), dtype=np.uint8)
    out[:, :2] = scale.astype(np.float16).reshape(-1, 1).view(np.uint8)
    out[:, 2:] = q.view(np.uint8)
    return out.tobytes()


def dequantize_q8_0(raw, shape):
    blocks = np.frombuffer(raw, dtype=np.uint8).reshape(-1, 34)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    return (blocks[:, 2:].copy().view(np.int8).astype(np.float32) * scale).reshape(shape)


def read(path):
    """(metadata dict, {name: float32 array}); shapes in row-major order, the reverse of GGUF's."""
    data = open(path, 'rb').read()
    at = 0

    def take(code):
        nonlocal at
        v = struct.unpack_from('<' + code, data, at)[0]
        at += struct.calcsize('<' + code)
        return v

    def text():
        nonlocal at
        n = take('Q')
        s = data[at:at + n].decode('utf-8')
        at += n
        return s

    def value(kind):
        if kind == STRING:
            return text()
        if kind == ARRAY:
            inner, n = take('I'), take('Q')
            return [value(inner) for _ in range(n)]
        return take(SCALARS[kind])

    if data[:4] != b'GGUF':
        raise ValueError(f'{path} is not a GGUF file')
    at = 4
    if take('I') < 2:
        raise ValueError(f'{path}: GGUF version 1 is not supported')
    n_tensors, n_values = take('Q'), take('Q')
    meta = {}
    for _ in range(n_values):
        key = text()
        meta[key] = value(take('I'))
    infos = []
    for _ in range(n_tensors):
        name = text()
        dims = [take('Q') for _ in range(take('I'))]
        infos.append((name, dims[::-1], take('I'), take('Q')))
    base = -(-at // meta.get('general.alignment', ALIGNMENT)) * meta.get('general.alignment', ALIGNMENT)
    tensors = {}
    for name, shape, kind, offset in infos:
        n, start = int(np.prod(shape)), base + offset
        if kind == F32:
            tensors[name] = np.frombuffer(data, np.float32, n, start).reshape(shape).copy()
        elif kind == F16:
            tensors[name] = np.frombuffer(data, np.float16, n, start).reshape(shape).astype(np.float32)
        elif kind == Q8_0:
            tensors[name] = dequantize_q8_0(data[start:start + n // 32 * 34], shape)
        else:
            raise ValueError(f'{path}: tensor {name} has type {kind}, which this reader does not know')
    return meta, tensors


def write(path, metadata, tensors):
    """metadata: list of (key, type, value); an array is (key, (ARRAY, inner type), list). tensors: list of
    (name, float32 array, F32 or Q8_0)."""
    out = bytearray()

    def text(s):
        raw = s.encode('utf-8')
        return struct.pack('<Q', len(raw)) + raw

    def value(kind, v):
        return text(v) if kind == STRING else struct.pack('<' + SCALARS[kind], v)

    out += b'GGUF' + struct.pack('<IQQ', 3, len(tensors), len(metadata))
    for key, kind, v in metadata:
        out += text(key)
        if isinstance(kind, tuple):
            out += struct.pack('<IIQ', ARRAY, kind[1], len(v)) + b''.join(value(kind[1], x) for x in v)
        else:
            out += struct.pack('<I', kind) + value(kind, v)
    blobs, offset = [], 0
    for name, x, kind in tensors:
        blob = quantize_q8_0(x) if kind == Q8_0 else np.ascontiguousarray(x, dtype=np.float32).tobytes()
        out += text(name) + struct.pack('<I', x.ndim) + struct.pack(f'<{x.ndim}Q', *x.shape[::-1])
        out += struct.pack('<IQ', kind, offset)
        blob += bytes(-len(blob) % ALIGNMENT)
        blobs.append(blob)
        offset += len(blob)
    out += bytes(-len(out) % ALIGNMENT)
    with open(path, 'wb') as f:
        f.write(out)
        for blob in blobs:
            f.write(blob)


def permute_rope(w, heads):
    """Hugging Face's rows of q or k (first half, second half) -> GGUF's adjacent pairs."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def unpermute_rope(w, heads):
    return w.reshape(heads, w.shape[0] // heads // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
