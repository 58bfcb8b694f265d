"""What make_golden.py needs for models with experts.

transformers 5 keeps the experts of a layer in two tensors, gate and up together; published files have
a tensor per expert and projection (Mixtral, Qwen3), or blocks and scales of MXFP4 (gpt-oss).
"""
import re

import torch
from torch.nn.functional import linear
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

MARGIN = 0.1  # between the last expert that a router chooses and the first that it does not
FP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def blocks_of(tensor):
    """[experts, inputs, outputs] to [experts, outputs, inputs / 32, 32]"""
    rows = tensor.transpose(1, 2)
    return rows.reshape(*rows.shape[:2], -1, 32)


def mxfp4_codes(blocks):
    """The nearest codes, and for each block the power of two that brings its largest value to 4 or 6."""
    largest = blocks.abs().amax(-1, keepdim=True)
    exponents = torch.floor(torch.log2(largest)) - 2
    scaled = blocks / 2.0**exponents
    codes = (scaled.abs()[..., None] - FP4).abs().argmin(-1)
    return codes + 8 * (scaled < 0), exponents


def mxfp4_values(tensor):
    """The nearest tensor [experts, inputs, outputs] that MXFP4 holds."""
    codes, exponents = mxfp4_codes(blocks_of(tensor))
    values = FP4[codes % 8] * torch.where(codes < 8, 1.0, -1.0) * 2.0**exponents
    return values.reshape(tensor.shape[0], tensor.shape[2], -1).transpose(1, 2).contiguous()


def pack_mxfp4(tensor):
    """Blocks and scales as published: neighbours share a byte, the first in its low half."""
    codes, exponents = mxfp4_codes(blocks_of(tensor))
    blocks = (codes[..., 0::2] + 16 * codes[..., 1::2]).to(torch.uint8)
    scales = (exponents[..., 0] + 127).to(torch.uint8)
    unpacked = convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16)
    assert torch.equal(unpacked.float().cpu(), tensor), "transformers reads these blocks differently"
    return blocks, scales


def published_experts(spec, state):
    """The state with the names and shapes of published files."""
    kind, result = spec["config"]["model_type"], {}
    for name, tensor in state.items():
        found = re.fullmatch(r"(.*\.)mlp\.experts\.(gate_up|down)_proj", name)
        if kind == "mixtral" and name.endswith("mlp.gate.weight"):
            result[name.replace("mlp.gate", "block_sparse_moe.gate")] = tensor
        elif found is None or (kind == "gpt_oss" and not spec["mxfp4"]):
            result[name] = tensor
        elif kind == "gpt_oss":
            result[name + "_blocks"], result[name + "_scales"] = pack_mxfp4(tensor)
        else:
            layer, part = found.groups()
            tensors = tensor.chunk(2, 1) if part == "gate_up" else (tensor,)
            own = {"mixtral": ("block_sparse_moe", {"gate_up": ("w1", "w3"), "down": ("w2",)}),
                   "qwen3_moe": ("mlp", {"gate_up": ("gate_proj", "up_proj"),
                                         "down": ("down_proj",)})}[kind]
            for projection, matrices in zip(own[1][part], tensors):
                for expert, matrix in enumerate(matrices):
                    result[f"{layer}{own[0]}.experts.{expert}.{projection}.weight"] = (
                        matrix.clone().contiguous())
    return result


@torch.no_grad()
def clear_choice(model, prompt):
    """Whether every router is sure about the prompt's last token: rounding cannot change its experts."""
    margins = []

    def look(router, inputs, _):
        rows = inputs[0].reshape(len(prompt), -1)
        logits = linear(rows[-1], router.weight, getattr(router, "bias", None))
        logits = logits.sort(descending=True).values
        margins.append(float(logits[router.top_k - 1] - logits[router.top_k]))

    hooks = [(getattr(layer.mlp, "router", None) or layer.mlp.gate).register_forward_hook(look)
             for layer in model.model.layers]
    model(input_ids=torch.tensor([prompt]), use_cache=False)
    for hook in hooks:
        hook.remove()
    assert len(margins) == len(model.model.layers)
    return min(margins) > MARGIN


def clear_prompts(model, rng, lengths, vocab):
    """Prompts over whose experts rounding does not decide. The last one includes the vocabulary's first and last id."""
    prompts = []
    for number, length in enumerate(lengths):
        forced = {2: 0, 4: vocab - 1} if number == len(lengths) - 1 else {}
        prompt = []
        while len(prompt) < length:
            token = forced.get(len(prompt), int(rng.integers(0, vocab)))
            if clear_choice(model, [*prompt, token]):
                prompt.append(token)
            elif len(prompt) in forced:
                prompt.clear()
        prompts.append(prompt)
    return prompts
