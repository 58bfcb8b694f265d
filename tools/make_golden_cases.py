"""The models of make_golden.py: their config.json, and the features that can be left out of each.

The configs are in the form of published models, most with rope_theta and rope_scaling as files of
transformers 4 have them, some with the rope_parameters of transformers 5. `lengths` are those of
the prompts, `context` is what the model is to be run with (long-rope chooses its factors by it),
`stored` is the type in the file; `sharpness` scales the weights of queries and keys, for models
whose attention would otherwise look at all keys alike.
"""
import re

import torch
from torch import nn

LENGTHS = [1, 5, 17, 33, 70]
SHORT = [1, 5, 17, 40]  # for models with experts, whose weights take more room


def model(kind, architecture, **more):
    """Keys that all configs share; None leaves a key out. The epsilon is large, so that a wrong one shows."""
    config = {"architectures": [architecture], "model_type": kind, "vocab_size": 136,
              "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
              "max_position_embeddings": 128, "rms_norm_eps": 0.05, "tie_word_embeddings": False,
              "bos_token_id": 1, "eos_token_id": 2, **more}
    return {key: value for key, value in config.items() if value is not None}


def case(config, stored="F32", shards=1, lengths=None, context=128, sharpness=1.0, mxfp4=False):
    dtype = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[stored]
    config["dtype" if "rope_parameters" in config else "torch_dtype"] = dtype
    return {"config": config, "stored": stored, "shards": shards, "lengths": lengths or LENGTHS,
            "context": context, "sharpness": sharpness, "mxfp4": mxfp4}


def gpt_oss(**more):
    """Layers take turns with and without a window, which comes first."""
    return model(
        "gpt_oss", "GptOssForCausalLM", vocab_size=72, head_dim=32, attention_bias=True,
        num_experts_per_tok=2, num_local_experts=4, swiglu_limit=7.0, sliding_window=12,
        max_position_embeddings=256, layer_types=["sliding_attention", "full_attention"],
        rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                         "original_max_position_embeddings": 64, "beta_fast": 8.0,
                         "beta_slow": 1.0, "truncate": False}, **more)


CASES = {
    # Two queries share a key head; head size 16.
    "llama": case(model("llama", "LlamaForCausalLM", hidden_size=64, intermediate_size=96,
                        rope_theta=10000.0)),
    # Llama 3.2: scaled rope, tied embeddings, all queries share one key head; an odd vocabulary.
    "llama3": case(model(
        "llama", "LlamaForCausalLM", vocab_size=131, hidden_size=64, intermediate_size=96,
        num_attention_heads=2, num_key_value_heads=1, head_dim=32, tie_word_embeddings=True,
        max_position_embeddings=384, rope_theta=500000.0,
        rope_scaling={"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 48, "rope_type": "llama3"})),
    # One key head per query head, biases on all of attention, rope scaled in the oldest spelling; head size 48.
    "llama_linear": case(model(
        "llama", "LlamaForCausalLM", num_attention_heads=2, head_dim=48, attention_bias=True,
        rope_theta=10000.0, rope_scaling={"type": "linear", "factor": 4.0}),
        sharpness=1.5),
    # YaRN in the form of transformers 5, head size 64.
    "llama_yarn": case(model(
        "llama", "LlamaForCausalLM", num_attention_heads=2, num_key_value_heads=1, head_dim=64,
        max_position_embeddings=512,
        rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                         "original_max_position_embeddings": 128, "beta_fast": 8.0,
                         "beta_slow": 1.0})),
    # A window shorter than most prompts; four heads of 32 are wider than the hidden state.
    "mistral": case(model("mistral", "MistralForCausalLM", head_dim=32, rope_theta=10000.0,
                          sliding_window=12)),
    # Biases on q, k and v; a window that is switched off; tied; a file in BF16.
    "qwen2": case(model(
        "qwen2", "Qwen2ForCausalLM", hidden_size=64, intermediate_size=96,
        tie_word_embeddings=True, rope_theta=1000000.0, use_sliding_window=False,
        sliding_window=8, max_window_layers=1), stored="BF16"),
    # Norms on q and k; four heads of 32 are wider than the hidden state; a file in two parts.
    "qwen3": case(model(
        "qwen3", "Qwen3ForCausalLM", head_dim=32, attention_bias=False, use_sliding_window=False,
        max_window_layers=2, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
        shards=2),
    # Soft caps that take effect, a window on every other layer, norms after attention and MLP.
    "gemma2": case(model(
        "gemma2", "Gemma2ForCausalLM", num_hidden_layers=3, head_dim=32,
        hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh",
        tie_word_embeddings=True, pad_token_id=0, eos_token_id=1, bos_token_id=2,
        rope_theta=10000.0, sliding_window=12, query_pre_attn_scalar=256,
        attn_logit_softcapping=2.0, final_logit_softcapping=3.0), sharpness=2.0),
    # Five layers with a window and their own rope, one without; linear scaling on that one only.
    "gemma3": case(model(
        "gemma3_text", "Gemma3ForCausalLM", num_hidden_layers=7, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, hidden_act=None, hidden_activation="gelu_pytorch_tanh",
        tie_word_embeddings=True, pad_token_id=0, eos_token_id=1, bos_token_id=2,
        rope_theta=100000.0, rope_local_base_freq=100.0, sliding_window=10,
        sliding_window_pattern=6, rope_scaling={"factor": 4.0, "rope_type": "linear"},
        query_pre_attn_scalar=12)),
    # Phi-3 mini 4k: fused projections and a window.
    "phi3": case(model("phi3", "Phi3ForCausalLM", num_attention_heads=2, rope_theta=10000.0,
                       sliding_window=12, pad_token_id=0, original_max_position_embeddings=128)),
    # Phi-4 mini: tied, three quarters of a head rotated, long rope within the original context.
    "phi3_short": case(model(
        "phi3", "Phi3ForCausalLM", hidden_size=64, intermediate_size=96, num_attention_heads=2,
        num_key_value_heads=1, tie_word_embeddings=True, partial_rotary_factor=0.75,
        max_position_embeddings=256, original_max_position_embeddings=40, rope_theta=10000.0,
        pad_token_id=0,
        rope_scaling={"type": "longrope",
                      "short_factor": [1.0 + 0.125 * i for i in range(12)],
                      "long_factor": [1.5 + 0.75 * i for i in range(12)]}),
        lengths=[1, 5, 17, 40], context=40),
    # Phi-3 mini 128k: long rope beyond the original context; every prompt is longer than that.
    "phi3_long": case(model(
        "phi3", "Phi3ForCausalLM", hidden_size=64, intermediate_size=96, num_key_value_heads=4,
        max_position_embeddings=256, original_max_position_embeddings=16, rope_theta=10000.0,
        pad_token_id=0, sliding_window=1024,
        rope_scaling={"type": "longrope", "short_factor": [1.0 + 0.125 * i for i in range(8)],
                      "long_factor": [1.25 + 0.5 * i for i in range(8)]}),
        stored="F16", lengths=[17, 33, 70], context=256),
    # Four experts instead of one MLP, two of them for each token, in a tensor each.
    "mixtral": case(model(
        "mixtral", "MixtralForCausalLM", vocab_size=72, head_dim=32, intermediate_size=24, num_local_experts=4,
        num_experts_per_tok=2, rope_theta=10000.0, sliding_window=None), lengths=SHORT),
    # Three of six experts, narrower than `intermediate_size`; norms on q and k.
    "qwen3moe": case(model(
        "qwen3_moe", "Qwen3MoeForCausalLM", vocab_size=72, head_dim=16, attention_bias=False,
        use_sliding_window=False, max_window_layers=2, num_experts=6, num_experts_per_tok=3,
        moe_intermediate_size=16, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
        rope_theta=1000000.0), lengths=SHORT),
    # Sinks, biases everywhere, a window in every other layer, YaRN that is not truncated; gate and up interleaved.
    "gpt_oss": case(gpt_oss(hidden_size=32, intermediate_size=32, num_attention_heads=4,
                            num_key_value_heads=2), stored="BF16", lengths=SHORT),
    # As published: the experts in MXFP4.
    "gpt_oss_mxfp4": case(gpt_oss(hidden_size=64, intermediate_size=32, num_attention_heads=4,
                                  num_key_value_heads=2), stored="BF16", lengths=SHORT, mxfp4=True),
}


class Change:
    """Leaves one feature out: by config (a__b is b within a), by weights, or by code."""

    def __init__(self, name, weights=None, code=None, **config):
        self.name, self.weights, self.code, self.config = name, weights, code, config

    def apply(self, config, state):
        for key, value in self.config.items():
            owner = config
            *path, key = key.split("__")
            for step in path:
                owner = owner[step]
            owner[key] = value
        if self.weights:
            self.weights(config, state)

    def edit(self, model):
        if self.code:
            self.code(model)


def no_rope(model):
    rope = model.model.rotary_emb
    forward = rope.forward

    def still(*args, **kwargs):
        cos, sin = forward(*args, **kwargs)
        return torch.ones_like(cos), torch.zeros_like(sin)

    rope.forward = still


def no_embedding_scale(model):
    model.model.embed_tokens.embed_scale.fill_(1.0)


def without_module(name):
    """Layers pass through the module instead of calling it."""
    def edit(model):
        for layer in model.model.layers:
            owner = layer.self_attn if hasattr(layer.self_attn, name) else layer
            setattr(owner, name, nn.Identity())
    return edit


def set_all(pattern, value):
    def change(_, state):
        for name, tensor in state.items():
            if re.fullmatch(pattern, name):
                tensor.fill_(value)
    return change


def head_size(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def swap_key_heads(config, state):
    """Every query takes another key and value head."""
    size, heads = head_size(config), config["num_key_value_heads"]
    for name, tensor in state.items():
        if re.search(r"self_attn\.[kv]_proj", name):
            split = tensor.view(heads, size, *tensor.shape[1:])
            tensor.copy_(split.roll(1, 0).reshape(tensor.shape))


def neighbours_rotate(config, state):
    """Rope of neighbouring elements, for which llama GGUF files are permuted."""
    size = head_size(config)
    for name, tensor in state.items():
        if re.search(r"self_attn\.[qk]_proj", name):
            split = tensor.view(-1, size // 2, 2, *tensor.shape[1:])
            tensor.copy_(split.transpose(1, 2).reshape(tensor.shape))


def swap_halves(pattern):
    def change(_, state):
        for name, tensor in state.items():
            if re.search(pattern, name):
                tensor.copy_(tensor.roll(tensor.shape[0] // 2, 0))
    return change


def swap_expert_halves(_, state):
    for name, tensor in state.items():
        if name.endswith("experts.gate_up_proj"):
            tensor.copy_(tensor.roll(tensor.shape[1] // 2, 1))


def swap_fused_keys_and_values(config, state):
    rows = head_size(config) * config["num_key_value_heads"]
    for name, tensor in state.items():
        if "qkv_proj" in name:
            tensor[-2 * rows:] = tensor[-2 * rows:].roll(rows, 0)


def tie(_, state):
    state["lm_head.weight"].copy_(state["model.embed_tokens.weight"])


def norms_not_from_one(_, state):
    for name, tensor in state.items():
        if name.endswith("norm.weight"):
            tensor.sub_(1.0)


def same_factors(wrong, right):
    def change(config, _):
        config["rope_scaling"][right] = config["rope_scaling"][wrong]
    return change


def common_changes(config, state):
    """Features of every architecture: each kind of norm and bias, rope, attention, the MLP."""
    neutral = 0.0 if config["model_type"].startswith("gemma") else 1.0
    kinds = sorted({re.sub(r"\.\d+\.", ".*.", name) for name in state})
    for kind in kinds:
        pattern = re.escape(kind).replace(r"\*", r"\d+")
        short = kind.replace("model.", "").replace("layers.*.", "").replace("self_attn.", "")
        if kind.endswith("norm.weight"):
            yield Change(f"{short} ignored", weights=set_all(pattern, neutral))
        elif kind.endswith("bias"):
            yield Change(f"{short} ignored", weights=set_all(pattern, 0.0))
    yield Change("rms_norm_eps 1e-6", rms_norm_eps=1e-6)
    yield Change("rope off", code=no_rope)
    yield Change("attention off", weights=set_all(r".*self_attn\.o_proj\..*", 0.0))
    yield Change("MLP off", weights=set_all(r".*mlp\.(experts\.)?down_proj(\.weight|_bias)?", 0.0))
    if config["model_type"].startswith("gemma"):
        yield Change("silu instead of gelu", hidden_activation="silu")
    elif config["model_type"] != "gpt_oss":
        yield Change("gelu instead of silu", hidden_act="gelu_pytorch_tanh")
    if not config["tie_word_embeddings"]:
        yield Change("lm_head tied to the embeddings", weights=tie)
    if config["model_type"] != "phi3" and config["num_key_value_heads"] > 1:
        yield Change("keys of another head", weights=swap_key_heads)
    if config["model_type"] != "phi3":
        yield Change("rope of neighbours", weights=neighbours_rotate)


def window_changes(window):
    return [Change("no window", sliding_window=4096),
            Change("window one longer", sliding_window=window + 1),
            Change("window one shorter", sliding_window=window - 1)]


def edit_layers(edit):
    def change(model):
        for layer in model.model.layers:
            edit(layer)
    return change


def set_in_experts(**values):
    """Sets the constants of gpt-oss's activation."""
    return edit_layers(lambda layer: vars(layer.mlp.experts).update(values))


def weigh_alike(layer):
    """The chosen experts count alike: replaces the weights in what the router returns."""
    router = getattr(layer.mlp, "router", None) or layer.mlp.gate

    def alike(module, _, returned):
        return tuple(torch.full_like(part, 1 / module.top_k)
                     if part.is_floating_point() and part.shape[-1] == module.top_k else part
                     for part in returned)
    router.register_forward_hook(alike)


def shift_experts(_, state):
    """Every expert computes what the next one should."""
    for name, tensor in state.items():
        if ".experts." in name:
            tensor.copy_(tensor.roll(1, 0))


def up_without_one(_, state):
    for name, tensor in state.items():
        if name.endswith("experts.gate_up_proj_bias"):
            tensor[:, 1::2] -= 1.0


def halves_not_interleaved(_, state):
    """Gate first, then up, instead of taking turns."""
    for name, tensor in state.items():
        if "experts.gate_up_proj" in name:
            half = tensor.shape[-1] // 2
            tensor.copy_(tensor.reshape(*tensor.shape[:-1], 2, half).transpose(-1, -2)
                         .reshape(tensor.shape))


def expert_changes(used):
    return [Change("one expert fewer", num_experts_per_tok=used - 1),
            Change("one expert more", num_experts_per_tok=used + 1),
            Change("experts weighted alike", code=edit_layers(weigh_alike)),
            Change("experts of the next number", weights=shift_experts)]


GPT_OSS_CHANGES = [
    *expert_changes(2), *window_changes(12),
    Change("window on the other layers", layer_types=["full_attention", "sliding_attention"]),
    Change("sinks ignored", weights=set_all(r".*self_attn\.sinks", -30000.0)),
    Change("no limit in the activation", code=set_in_experts(limit=1e9)),
    Change("alpha 1 in the activation", code=set_in_experts(alpha=1.0)),
    Change("up without + 1", weights=up_without_one),
    Change("gate and up not interleaved", weights=halves_not_interleaved),
    Change("YaRN truncated", rope_parameters__truncate=True),
    Change("attention factor 1", rope_parameters__attention_factor=1.0),
    Change("no rope scaling", rope_parameters={"rope_type": "default", "rope_theta": 10000.0})]


OWN_CHANGES = {
    "mixtral": [*expert_changes(2),
                Change("gate and up swapped", weights=swap_expert_halves)],
    "qwen3moe": [*expert_changes(3),
                 Change("weights not normalised", norm_topk_prob=False),
                 Change("gate and up swapped", weights=swap_expert_halves),
                 Change("no q norm", code=without_module("q_norm")),
                 Change("no k norm", code=without_module("k_norm"))],
    "gpt_oss": GPT_OSS_CHANGES,
    "gpt_oss_mxfp4": GPT_OSS_CHANGES,
    "llama3": [
        Change("no rope scaling", rope_scaling=None),
        Change("linear scaling instead", rope_scaling={"type": "linear", "factor": 8.0}),
        Change("low_freq_factor 2", rope_scaling__low_freq_factor=2.0),
        Change("high_freq_factor 8", rope_scaling__high_freq_factor=8.0),
        Change("original context 128", rope_scaling__original_max_position_embeddings=128)],
    "llama_linear": [Change("no rope scaling", rope_scaling=None)],
    "llama_yarn": [
        Change("no rope scaling", rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
        Change("linear scaling instead", rope_parameters={
            "rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
        Change("attention factor 1", rope_parameters__attention_factor=1.0),
        Change("beta_fast 32", rope_parameters__beta_fast=32.0),
        Change("beta_slow 4", rope_parameters__beta_slow=4.0)],
    "mistral": window_changes(12),
    "qwen2": [Change("window on", use_sliding_window=True)],
    "qwen3": [Change("no q norm", code=without_module("q_norm")),
              Change("no k norm", code=without_module("k_norm"))],
    "gemma2": [
        *window_changes(12),
        Change("window on the other layers", layer_types=[
            "full_attention", "sliding_attention", "full_attention"]),
        Change("no cap on scores", attn_logit_softcapping=None),
        Change("no cap on logits", final_logit_softcapping=None),
        Change("scores scaled by the head size", query_pre_attn_scalar=32),
        Change("embeddings not scaled", code=no_embedding_scale),
        Change("no norm after attention", code=without_module("post_attention_layernorm")),
        Change("no norm after the MLP", code=without_module("post_feedforward_layernorm")),
        Change("norm weights not 1 + w", weights=norms_not_from_one)],
    "gemma3": [
        *window_changes(10),
        Change("a window on every layer", layer_types=["sliding_attention"] * 7),
        Change("pattern of 5", sliding_window_pattern=5),
        Change("global rope base everywhere", rope_local_base_freq=100000.0),
        Change("local rope base everywhere", rope_theta=100.0),
        Change("no rope scaling", rope_scaling=None),
        Change("rope scaling on every layer", rope_scaling=None, rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100000.0},
            "sliding_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}}),
        Change("scores scaled by the head size", query_pre_attn_scalar=32),
        Change("embeddings not scaled", code=no_embedding_scale),
        Change("no q norm", code=without_module("q_norm")),
        Change("no k norm", code=without_module("k_norm")),
        Change("no norm after attention", code=without_module("post_attention_layernorm")),
        Change("no norm after the MLP", code=without_module("post_feedforward_layernorm")),
        Change("norm weights not 1 + w", weights=norms_not_from_one)],
    "phi3": [*window_changes(12),
             Change("gate and up swapped", weights=swap_halves("gate_up_proj")),
             Change("keys and values swapped", weights=swap_fused_keys_and_values)],
    "phi3_short": [
        Change("long factors", weights=same_factors("long_factor", "short_factor")),
        Change("attention factor 1", rope_scaling__attention_factor=1.0),
        Change("whole head rotated", partial_rotary_factor=1.0, rope_scaling=None),
        Change("no rope scaling", rope_scaling=None)],
    "phi3_long": [
        Change("short factors", weights=same_factors("short_factor", "long_factor")),
        Change("attention factor 1", rope_scaling__attention_factor=1.0),
        Change("no rope scaling", rope_scaling=None)],
}


def feature_changes(spec, state):
    name = next(key for key, value in CASES.items() if value is spec)
    return [*common_changes(spec["config"], state), *OWN_CHANGES.get(name, [])]
