#!/usr/bin/env python3
"""Writes tests/models/golden/quantized_perplexity.json: llama.cpp's results for each weight format.

    tools/make_golden_quantized.py MODEL.gguf TEXT OUTPUT_FILE
    tools/make_golden_quantized.py --add MODEL.gguf TEXT OUTPUT_FILE

Needs llama.cpp's tools, python3-gguf and PyTorch. MODEL, a llama, is dequantized to an F32 file,
which llama-quantize turns into every format, as a mix and with --pure; TEXT gives the perplexity of
each over chunks of 256 tokens, the second half of each counted.

For every file there are two numbers. `perplexity` is llama.cpp's own, which also rounds activations
to 8 bits and keys and values to F16; that moves it by up to 0.7 %, even the order of its sums by
0.1 %. For `perplexity_exact` PyTorch runs the model in F32 with the values that python3-gguf reads
from the file: it depends on the quantized weights alone. Have a fast BLAS installed.

--add adds the exact perplexity of the first 30 chunks of another text to an existing file, for the mixes.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile

import gguf
import numpy as np
import torch

FORMATS = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
           "IQ4_NL", "IQ4_XS", "Q4_K_M"]
# A batch of one chunk: with several at a time the sums have another order.
PERPLEXITY = ["llama-perplexity", "-c", "256", "-b", "256", "-dev", "none", "-t", "1"]
CHUNK = 256
ADDED_CHUNKS = 30


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    log = done.stdout + done.stderr
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{log[-2000:]}")
    return log


def perplexity(model, text, chunks):
    """The mean over the first chunks. llama-perplexity sometimes ends before it has printed its last lines;
    `text` is longer than the chunks needed, so that those lines do not matter."""
    log = call(*PERPLEXITY, "-m", model, "-f", text)
    return float(re.search(rf"\[{len(chunks)}\]([0-9.]+),", log).group(1))


def chunks_of(model, text):
    """The text's tokens in full chunks, with the first token of each replaced by BOS."""
    ids = call("llama-tokenize", "-m", model, "-f", text, "--ids", "--log-disable")
    ids = torch.tensor(json.loads(re.search(r"\[[\d, \n]+\]", ids).group(0)))
    chunks = ids[:len(ids) // CHUNK * CHUNK].view(-1, CHUNK).clone()
    chunks[:, 0] = ids[0]
    return chunks


def rms_norm(x, weight, epsilon):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight


def rotate(x, base):
    """Rope of neighbours, as in a GGUF file of a llama; x is [chunk, head, token, size]."""
    tokens, size = x.shape[-2:]
    turns = base ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.outer(torch.arange(tokens, dtype=torch.float64), turns)
    cos, sin = angles.cos().float(), angles.sin().float()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


@torch.no_grad()
def exact_perplexity(path, chunks):
    reader = gguf.GGUFReader(path)
    w = {t.name.removesuffix(".weight"): torch.from_numpy(
        gguf.dequantize(t.data, t.tensor_type).astype(np.float32)) for t in reader.tensors}

    def field(name):
        return reader.fields["llama." + name].contents()

    heads, epsilon = field("attention.head_count"), field("attention.layer_norm_rms_epsilon")
    assert heads == field("attention.head_count_kv")
    x = w["token_embd"][chunks]
    for layer in range(field("block_count")):
        blk = f"blk.{layer}."
        h = rms_norm(x, w[blk + "attn_norm"], epsilon)
        q, k, v = ((h @ w[f"{blk}attn_{part}"].T).unflatten(-1, (heads, -1)).transpose(1, 2)
                   for part in "qkv")
        q, k = (rotate(part, field("rope.freq_base")) for part in (q, k))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        hidden = torch.ones(CHUNK, CHUNK, dtype=torch.bool).triu(1)
        attended = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        x = x + attended.transpose(1, 2).flatten(-2) @ w[blk + "attn_output"].T
        h = rms_norm(x, w[blk + "ffn_norm"], epsilon)
        gate = torch.nn.functional.silu(h @ w[blk + "ffn_gate"].T)
        x = x + (gate * (h @ w[blk + "ffn_up"].T)) @ w[blk + "ffn_down"].T
    x = rms_norm(x, w["output_norm"], epsilon)
    output = w.get("output", w["token_embd"]).T
    losses = [torch.nn.functional.cross_entropy(x[i, CHUNK // 2:-1] @ output,
                                                chunks[i, CHUNK // 2 + 1:], reduction="none")
              for i in range(len(chunks))]
    return round(float(torch.cat(losses).double().mean().exp()), 4)


def dequantize(source, target):
    """The same metadata and tensors, all in F32."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    left_out = {"general.architecture", "general.quantization_version", "general.file_type"}
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in left_out:
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, sub_type=element)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensor_types(path):
    """{"ffn_down": "Q4_K"}, or {"ffn_down": {"Q4_K": [layers], "Q6_K": [layers]}}."""
    kinds = {}
    for tensor in gguf.GGUFReader(path).tensors:
        layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", tensor.name)
        kind = layer.group(2) if layer else tensor.name.removesuffix(".weight")
        of_kind = kinds.setdefault(kind, {}).setdefault(tensor.tensor_type.name, [])
        of_kind.append(int(layer.group(1)) if layer else 0)
    return {kind: next(iter(types)) if len(types) == 1 else types
            for kind, types in sorted(kinds.items())}


def fallbacks(log):
    """{wanted: taken} for tensors whose rows do not divide into blocks of the format."""
    found = re.findall(r"required for type\s+(\w+)\) -> falling back to\s+(\w+)", log)
    return {wanted.upper(): taken.upper() for wanted, taken in sorted(set(found))}


def quantize(base, text, chunks, folder, name, pure, known):
    quantized = folder / "quantized.gguf"
    log = call("llama-quantize", *(["--pure"] if pure else []), base, quantized, name, 1)
    key = sha256(quantized)
    if key not in known:  # Some mixes are pure.
        known[key] = perplexity(quantized, text, chunks), exact_perplexity(quantized, chunks)
    entry = {"format": name, "pure": pure, "perplexity": known[key][0],
             "perplexity_exact": known[key][1],
             "bytes": os.path.getsize(quantized), "fallbacks": fallbacks(log),
             "tensors": tensor_types(quantized)}
    print(f"{name:8} {'pure' if pure else 'mix':5} {entry['perplexity']:10.4f} "
          f"{entry['perplexity_exact']:10.4f} {entry['fallbacks']}", flush=True)
    return entry


def add_text(options, folder, base):
    result = json.loads(options.output.read_text())
    assert result["model"]["sha256"] == sha256(options.model)
    chunks = chunks_of(options.model, options.text)[:ADDED_CHUNKS]
    quantized, known = folder / "quantized.gguf", {}
    for entry in result["quantized"]:
        if entry["pure"]:
            continue
        call("llama-quantize", base, quantized, entry["format"], 1)
        key = sha256(quantized)
        if key not in known:
            known[key] = exact_perplexity(quantized, chunks)
        entry["added"] = {"file": options.text.name, "chunks": len(chunks),
                          "perplexity_exact": known[key]}
        print(entry["format"], entry["added"], flush=True)
    options.output.write_text(as_text(result))


def as_text(result):
    """JSON with a list of layers on one line."""
    return re.sub(r"\[\s+(\d[\d,\s]*?)\s+\]",
                  lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]",
                  json.dumps(result, indent=1)) + "\n"


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--add", action="store_true")
    options = parser.parse_args()

    torch.set_num_threads(1)
    version = call("llama-perplexity", "--version")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        base = folder / "f32.gguf"
        dequantize(options.model, base)
        if options.add:
            add_text(options, folder, base)
            return
        chunks = chunks_of(options.model, options.text)
        longer = folder / "longer.txt"
        longer.write_bytes(options.text.read_bytes() + b"\n" + options.text.read_bytes()[:4000])
        result = {
            "made_by": "llama.cpp " + re.search(r"version: (.*)", version).group(1) + ", " +
                       re.search(r"built with (.*)", version).group(1) +
                       f"; exact: PyTorch {torch.__version__}",
            "commands": ["llama-quantize [--pure] f32.gguf quantized.gguf FORMAT",
                         " ".join(PERPLEXITY) + " -m quantized.gguf -f " + options.text.name],
            "model": {"file": options.model.name, "sha256": sha256(options.model),
                      "perplexity": perplexity(options.model, longer, chunks),
                      "perplexity_exact": exact_perplexity(options.model, chunks)},
            "text": {"file": options.text.name, "sha256": sha256(options.text)},
        }
        print(result["made_by"], result["model"], flush=True)
        result["quantized"], known = [], {}
        for name in FORMATS:
            for pure in (True, False):
                entry = quantize(base, longer, chunks, folder, name, pure, known)
                result["quantized"].append(entry)
        options.output.write_text(as_text(result))


if __name__ == "__main__":
    main()
