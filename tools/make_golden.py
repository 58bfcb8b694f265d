#!/usr/bin/env python3
"""Writes tests/models/golden: tiny random models of every architecture, with their reference logits.

    tools/make_golden.py OUTPUT_FOLDER [CASE...]

Needs PyTorch and transformers 5; a GPU is used for a second opinion where there is one. A case is
a Hugging Face folder: config.json, written by hand in the form that published models have, and
model.safetensors. transformers loads that folder as it would any other and gives the logits, in
float32 on the CPU with its plain ("eager") attention.

Every weight is exactly representable in F16 (and in BF16 where that is what the file holds), so
that a copy of the model in F16 is the same model. Weights depend on the names of case and tensor
alone. They are scaled so that the logits depend on everything an architecture does; that is checked
by leaving out one feature after the other, and the table of how far that moves the logits, as
normalized mean square error, is printed and written to golden.json. A feature that hardly moves
them is an error.

golden.json: the prompts as token ids, the size of the vocabulary, the context length to run the
model with, and the table. logits.bin: little-endian floats [position][vocabulary], the positions
of the first prompt, then of the second, and so on.
"""
import argparse
import copy
import json
import pathlib
import re
import shutil
import sys
import traceback
import warnings
import zlib

import numpy as np
import safetensors.torch
import torch
import transformers
from make_golden_cases import CASES, feature_changes
from make_golden_experts import clear_prompts, mxfp4_values, published_experts
from transformers import AutoConfig, AutoModelForCausalLM

FLOOR = 1e-3  # a feature must move the logits by more than this, 1000 times what a test lets pass
F32_NOISE, F16_NOISE = 1e-9, 5e-5  # a second run must be nearer than this, at every position
STORED = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def random_tensor(case, name, shape, gemma, sharpness, transposed):
    """Draws weights scaled by their role, so that no part of the model dominates another."""
    rng = np.random.default_rng(zlib.crc32(f"{case}/{name}".encode()))
    values = rng.standard_normal(shape)
    if name.endswith("norm.weight"):
        values = values * 0.3 + (0.0 if gemma else 1.0)
    elif name.endswith("bias"):
        values = values * 0.5
    elif "embed_tokens" in name:
        values = values * 0.6
    elif "lm_head" in name:
        values = values * 0.3
    elif name.endswith("sinks"):
        values = values + 1.0
    elif re.search(r"mlp\.(gate|router)\.weight", name):
        values = values * 2 / shape[-1] ** 0.5
    elif name.endswith("experts.gate_up_proj"):
        # Wide enough that gpt-oss's limits take effect.
        values = values * (4.0 if transposed else 1.0) / shape[1 if transposed else 2] ** 0.5
    elif name.endswith("experts.down_proj"):
        values = values * (0.15 if transposed else 1.5) / shape[1 if transposed else 2] ** 0.5
    else:
        picky = re.search(r"\.(q|k|qkv)_proj", name)
        values = values * (sharpness if picky else 1.0) / shape[-1] ** 0.5
    return torch.from_numpy(values.astype(np.float32))


def exact(tensor, stored):
    """The nearest value that both F16 and `stored` hold as a normal number."""
    tensor = tensor.to(STORED[stored]).to(torch.float16).to(torch.float32)
    tensor = torch.where(tensor.abs() < 2.0**-14, torch.zeros_like(tensor), tensor)
    assert torch.equal(tensor.half().float(), tensor)
    assert torch.equal(tensor.to(STORED[stored]).float(), tensor)
    return tensor.contiguous()


def build(config, state, dtype=torch.float32, device="cpu"):
    """The model of a config as a dictionary, as if it had been read from a folder."""
    config = copy.deepcopy(config)
    config = AutoConfig.for_model(config.pop("model_type"), **config)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    if state is not None:
        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected, unexpected
        assert set(missing) <= {"lm_head.weight"} and bool(missing) == config.tie_word_embeddings
    return model.to(device=device, dtype=dtype).eval()


def make_state(case, spec):
    model = build(spec["config"], None)
    gemma = spec["config"]["model_type"].startswith("gemma")
    tied = spec["config"]["tie_word_embeddings"]
    transposed = spec["config"]["model_type"] == "gpt_oss"
    state = {}
    for name, value in model.state_dict().items():
        if tied and name == "lm_head.weight":
            continue
        tensor = random_tensor(case, name, tuple(value.shape), gemma, spec["sharpness"], transposed)
        if spec["mxfp4"] and re.search(r"experts\.\w+_proj$", name):
            tensor = mxfp4_values(tensor)
        state[name] = exact(tensor, spec["stored"])
    return state


def make_prompts(case, spec, state):
    """Ragged prompts that include the first and the last id of the vocabulary."""
    rng = np.random.default_rng(zlib.crc32(f"{case}/prompts".encode()))
    vocab = spec["config"]["vocab_size"]
    if "num_experts_per_tok" in spec["config"]:
        return clear_prompts(build(spec["config"], state), rng, spec["lengths"], vocab)
    prompts = [rng.integers(0, vocab, length).tolist() for length in spec["lengths"]]
    prompts[-1][2], prompts[-1][4] = 0, vocab - 1
    return prompts


@torch.no_grad()
def logits_of(model, prompts):
    device = next(model.parameters()).device
    rows = [model(input_ids=torch.tensor([prompt], device=device), use_cache=False).logits[0]
            for prompt in prompts]
    return torch.cat(rows).float().cpu().numpy()


def nmse(result, reference):
    result, reference = result.astype(np.float64), reference.astype(np.float64)
    return float(((result - reference) ** 2).sum() / (reference**2).sum())


def worst_nmse(result, reference):
    """One value per position."""
    return max(nmse(a, b) for a, b in zip(result, reference))


def write_weights(folder, state, stored, shards):
    state = {name: tensor if tensor.dtype == torch.uint8 else tensor.to(STORED[stored])
             for name, tensor in sorted(state.items())}
    if shards == 1:
        safetensors.torch.save_file(state, folder / "model.safetensors", {"format": "pt"})
        return
    names = list(state)
    index = {"metadata": {"total_size": sum(t.numel() * t.element_size() for t in state.values())},
             "weight_map": {}}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        mine = names[shard * len(names) // shards:(shard + 1) * len(names) // shards]
        safetensors.torch.save_file({n: state[n] for n in mine}, folder / file, {"format": "pt"})
        index["weight_map"].update({name: file for name in mine})
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def check_noise(case, spec, state, prompts, logits):
    """Checks that the model does not amplify rounding: tests would fail although the tested program is right."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    runs = (("F32", torch.float32, F32_NOISE), ("F16", torch.float16, F16_NOISE))
    for name, dtype, limit in runs:
        # oneDNN lacks an F16 matmul for these shapes on some CPUs; PyTorch's own always works.
        with torch.backends.mkldnn.flags(enabled=False):
            other = logits_of(build(spec["config"], state, dtype, device), prompts)
        worst = worst_nmse(other, logits)
        print(f"  {case:14} {f'(all in {name} on {device}, worst position)':44} {worst:9.2e}")
        assert worst < limit, worst


def check_features(case, spec, state, prompts, logits):
    """How far the logits move without each feature; warns about those that hardly move them."""
    table, weak = {}, []
    for change in feature_changes(spec, state):
        config = copy.deepcopy(spec["config"])
        changed = {name: tensor.clone() for name, tensor in state.items()}
        change.apply(config, changed)
        model = build(config, changed)
        change.edit(model)
        moved = nmse(logits_of(model, prompts), logits)
        table[change.name] = float(f"{moved:.3g}")
        print(f"  {case:14} {change.name:44} {moved:9.2e}")
        if not moved > FLOOR:
            weak.append(change.name)
    if weak:
        raise RuntimeError(f"{case}: the logits hardly depend on {', '.join(weak)}")
    return table


def make_case(case, spec, output):
    folder = output / case
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(spec["config"], indent=2) + "\n")
    state = make_state(case, spec)
    prompts = make_prompts(case, spec, state)
    write_weights(folder, published_experts(spec, state), spec["stored"], spec["shards"])

    direct = logits_of(build(spec["config"], state), prompts)
    # Reading MXFP4 needs a GPU and kernels from the network; published_experts() has checked it.
    logits = direct
    if not spec["mxfp4"]:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                     attn_implementation="eager").eval()
        assert all(p.dtype == torch.float32 for p in model.parameters())
        logits = logits_of(model, prompts)
    assert np.isfinite(logits).all()
    assert np.array_equal(direct, logits), "the folder is not the model that was written"

    print(f"  {case:14} {'(spread of the logits)':44} {logits.std():9.2f}")
    check_noise(case, spec, state, prompts, logits)

    table = check_features(case, spec, state, prompts, logits)
    logits.astype("<f4").tofile(folder / "logits.bin")
    golden = {"vocab": spec["config"]["vocab_size"], "context": spec["context"],
              "made_by": f"transformers {transformers.__version__}, torch {torch.__version__}",
              "prompts": prompts, "nmse_without": table}
    lines = json.dumps(golden, indent=1, separators=(",", ": "))
    (folder / "golden.json").write_text(compact_prompts(lines, prompts) + "\n")


def compact_prompts(text, prompts):
    """Writes one prompt per line instead of one number per line."""
    start, end = text.index(' "prompts": ['), text.index(' "nmse_without"')
    rows = ",\n".join("  " + json.dumps(prompt, separators=(",", ":")) for prompt in prompts)
    return text[:start] + ' "prompts": [\n' + rows + "\n ],\n" + text[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", help="default: all")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(min(torch.get_num_threads(), 4))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.filterwarnings("ignore")

    failed = []
    for case in options.cases or CASES:
        try:
            make_case(case, CASES[case], options.output)
        except Exception:  # One broken case must not lose the others.
            traceback.print_exc(limit=-3)
            failed.append(case)
    total = sum(f.stat().st_size for f in options.output.rglob("*") if f.is_file())
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {total} bytes")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
