"""The llama architecture in plain PyTorch: training forward, one-token step with a KV cache, sampling.

Parameter names are those of Hugging Face's LlamaForCausalLM, so that a state dict is exported as it is. Rotary
embedding in the half-split form, embeddings tied with the output, grouped queries.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

import gguf_file

FUSED_ATTENTION = hasattr(F, 'scaled_dot_product_attention')


@dataclass
class Config:
    vocab: int = 4096
    width: int = 512
    layers: int = 8
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 64
    ffn: int = 1408
    context: int = 1024
    rope_theta: float = 10000.0
    eps: float = 1e-5


SIZES = {
    # 25.7 M parameters: 27 MB as Q8_0.
    'storyteller': Config(),
    # Under 1 M parameters, the same tokenizer: for tests, and later as a draft model.
    'tiny': Config(width=128, layers=3, heads=2, kv_heads=1, head_dim=64, ffn=256),
    # For trying the scripts on a CPU.
    'toy': Config(width=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=128, context=256),
}


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        f = x.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight.type_as(x)


def rotate(x, cos, sin):
    """x [..., head_dim]; cos, sin broadcast over [..., head_dim / 2]."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q, k, v, causal):
    """[batch, heads, tokens, head_dim] each. Older PyTorch has no fused attention; this is the same sum."""
    if FUSED_ATTENTION:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n = q.shape[-2]
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1), float('-inf'))
    return scores.softmax(-1) @ v


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q_proj = nn.Linear(c.width, c.heads * c.head_dim, bias=False)
        self.k_proj = nn.Linear(c.width, c.kv_heads * c.head_dim, bias=False)
        self.v_proj = nn.Linear(c.width, c.kv_heads * c.head_dim, bias=False)
        self.o_proj = nn.Linear(c.heads * c.head_dim, c.width, bias=False)

    def qkv(self, x, cos, sin):
        c, (b, t) = self.c, x.shape[:2]
        q = self.q_proj(x).view(b, t, c.heads, c.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(b, t, c.kv_heads, c.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(b, t, c.kv_heads, c.head_dim).transpose(1, 2)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def spread(self, kv):
        """Each key and value head serves heads / kv_heads query heads."""
        groups = self.c.heads // self.c.kv_heads
        return kv if groups == 1 else kv.repeat_interleave(groups, dim=1)

    def forward(self, x, cos, sin):
        q, k, v = self.qkv(x, cos, sin)
        o = attend(q, self.spread(k), self.spread(v), causal=True)
        return self.o_proj(o.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))

    def step(self, x, cos, sin, cache, p):
        q, k, v = self.qkv(x, cos, sin)
        cache[0][:, :, p], cache[1][:, :, p] = k[:, :, 0], v[:, :, 0]
        o = attend(q, self.spread(cache[0][:, :, :p + 1]), self.spread(cache[1][:, :, :p + 1]), causal=False)
        return self.o_proj(o.transpose(1, 2).reshape(x.shape[0], 1, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c.width, c.ffn, bias=False)
        self.up_proj = nn.Linear(c.width, c.ffn, bias=False)
        self.down_proj = nn.Linear(c.ffn, c.width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c.width, c.eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.width, c.eps)
        self.mlp = Mlp(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))

    def step(self, x, cos, sin, cache, p):
        x = x + self.self_attn.step(self.input_layernorm(x), cos, sin, cache, p)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.residual_dtype = None   # training sets bfloat16 in addition to autocast
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c.vocab, c.width)
        self.model.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.model.norm = RMSNorm(c.width, c.eps)
        inv = 1.0 / (c.rope_theta ** (torch.arange(0, c.head_dim, 2).float() / c.head_dim))
        angle = torch.outer(torch.arange(c.context).float(), inv)
        self.register_buffer('cos', angle.cos(), persistent=False)
        self.register_buffer('sin', angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                small = name.endswith(('o_proj.weight', 'down_proj.weight'))
                nn.init.normal_(p, std=0.02 / (math.sqrt(2 * c.layers) if small else 1))

    def parameters_count(self):
        return sum(p.numel() for p in self.parameters())

    def hidden(self, ids):
        x = self.model.embed_tokens(ids)
        if self.residual_dtype is not None:
            x = x.to(self.residual_dtype)
        t = ids.shape[1]
        cos, sin = self.cos[:t].type_as(x), self.sin[:t].type_as(x)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return self.model.norm(x)

    def forward(self, ids):
        return F.linear(self.hidden(ids), self.model.embed_tokens.weight)

    def loss(self, ids, targets):
        """Mean over the targets that are not -100."""
        logits = self.forward(ids)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.reshape(-1), ignore_index=-100)

    def new_cache(self, batch):
        p = self.model.embed_tokens.weight
        shape = (batch, self.c.kv_heads, self.c.context, self.c.head_dim)
        return [(torch.zeros(shape, dtype=p.dtype, device=p.device), torch.zeros(shape, dtype=p.dtype, device=p.device))
                for _ in range(self.c.layers)]

    def step(self, ids, p, cache):
        """ids [batch] at position p -> logits [batch, vocab]."""
        x = self.model.embed_tokens(ids)[:, None]
        cos, sin = self.cos[p].type_as(x), self.sin[p].type_as(x)
        for layer, c in zip(self.model.layers, cache):
            x = layer.step(x, cos, sin, c, p)
        return F.linear(self.model.norm(x)[:, 0], self.model.embed_tokens.weight)


def choose(logits, temperature, min_p, generator=None):
    """Sampled ids [batch] and their natural log-probability at temperature 1. temperature 0 is greedy. min_p keeps
    tokens with at least that fraction of the top token's probability (after the temperature)."""
    logits = logits.float()
    log_z = logits.logsumexp(-1)
    if temperature == 0:
        ids = logits.argmax(-1)
    else:
        scaled = logits / temperature
        scaled = scaled.masked_fill(scaled < scaled.max(-1, keepdim=True).values + math.log(max(min_p, 1e-9)), float('-inf'))
        noise = torch.empty_like(scaled).exponential_(generator=generator).clamp_(min=1e-20).log_()
        ids = (scaled - noise).argmax(-1)
    return ids, logits.gather(-1, ids[:, None]).squeeze(-1) - log_z


@torch.no_grad()
def generate_raw(model, prompts, stop_ids, most_tokens, temperature, min_p, generator=None):
    """Continues all prompts (lists of ids) at once. Every row starts at position 0 and is fed its own prompt first, so
    rows need no padding. Returns ids and log-probabilities [rows, steps]; column p holds the token at position p + 1."""
    device = model.model.embed_tokens.weight.device
    n, longest = len(prompts), max(map(len, prompts))
    fed = torch.zeros(n, longest, dtype=torch.long)
    for i, p in enumerate(prompts):
        fed[i, :len(p)] = torch.tensor(p)
    fed, lens = fed.to(device), torch.tensor([len(p) for p in prompts], device=device)
    stop = torch.zeros(model.c.vocab, dtype=torch.bool, device=device)
    stop[torch.tensor(sorted(stop_ids), device=device)] = True
    cache, ids, done = model.new_cache(n), fed[:, 0], torch.zeros(n, dtype=torch.bool, device=device)
    seen, scores = [], []
    for p in range(min(model.c.context - 1, longest + most_tokens - 1)):
        new, logp = choose(model.step(ids, p, cache), temperature, min_p, generator)
        if p + 1 < longest:
            new = torch.where(lens > p + 1, fed[:, p + 1], new)
        done |= stop[new] & (lens <= p + 1)
        ids = new
        seen.append(new)
        scores.append(logp)
        if p % 16 == 15 and bool(done.all()):
            break
    return torch.stack(seen, 1).cpu(), torch.stack(scores, 1).cpu()


def cut_row(ids, logps, prompt_length, stop_ids, most_tokens):
    """One row of generate_raw -> (ids without the stop id, ended by itself, log-probabilities)."""
    row = ids[prompt_length - 1:prompt_length - 1 + most_tokens]
    for j, t in enumerate(row):
        if t in stop_ids:
            return row[:j], True, logps[prompt_length - 1:prompt_length + j]
    return row, False, logps[prompt_length - 1:prompt_length - 1 + len(row)]


def generate(model, prompts, stop_ids, most_tokens, temperature=0.8, min_p=0.05, generator=None):
    ids, logps = generate_raw(model, prompts, stop_ids, most_tokens, temperature, min_p, generator)
    return [cut_row(i, l, len(p), stop_ids, most_tokens) for i, l, p in zip(ids.tolist(), logps.tolist(), prompts)]


def from_gguf(path):
    """(Llama, metadata) of a GGUF file of the llama architecture with tied embeddings."""
    meta, tensors = gguf_file.read(path)
    g = lambda k: meta['llama.' + k]
    heads = g('attention.head_count')
    c = Config(vocab=len(meta['tokenizer.ggml.tokens']), width=g('embedding_length'), layers=g('block_count'), heads=heads,
               kv_heads=meta.get('llama.attention.head_count_kv', heads), head_dim=g('embedding_length') // heads,
               ffn=g('feed_forward_length'), context=g('context_length'), eps=g('attention.layer_norm_rms_epsilon'),
               rope_theta=meta.get('llama.rope.freq_base', 10000.0))
    if 'llama.attention.key_length' in meta:
        c.head_dim = meta['llama.attention.key_length']
    state = {'model.embed_tokens.weight': tensors['token_embd.weight'], 'model.norm.weight': tensors['output_norm.weight']}
    for i in range(c.layers):
        for ours, theirs in LAYER_TENSORS:
            w = tensors[f'blk.{i}.{theirs}.weight']
            if theirs in ('attn_q', 'attn_k'):
                w = gguf_file.unpermute_rope(w, c.heads if theirs == 'attn_q' else c.kv_heads)
            state[f'model.layers.{i}.{ours}.weight'] = w
    m = Llama(c)
    m.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in state.items()})
    return m.eval(), meta


LAYER_TENSORS = [('input_layernorm', 'attn_norm'), ('self_attn.q_proj', 'attn_q'), ('self_attn.k_proj', 'attn_k'),
                 ('self_attn.v_proj', 'attn_v'), ('self_attn.o_proj', 'attn_output'),
                 ('post_attention_layernorm', 'ffn_norm'), ('mlp.gate_proj', 'ffn_gate'), ('mlp.up_proj', 'ffn_up'),
                 ('mlp.down_proj', 'ffn_down')]
