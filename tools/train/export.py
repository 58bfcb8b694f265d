"""Exports a checkpoint: Hugging Face folder (safetensors, config, tokenizer, chat template) and GGUF Q8_0.

usage: export.py --checkpoint model.pt --tokenizer tokenizer.json --out DIR --name hearth-storyteller [--check]
Writes DIR/NAME/ (Hugging Face form) and DIR/NAME-Q8_0.gguf. --check loads the folder with transformers, compares logits
and token ids with ours, and fails when they differ.
"""
import argparse
import json
import os
import shutil
import struct

import numpy as np
import torch

import bpe
import gguf_file as gguf
import model as llama

# Without the first token: readers of the GGUF file add it themselves, because add_bos_token is set, and must not add it twice.
CHAT_TEMPLATE = ("{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] | trim + '<|end|>' }}"
                 "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")
# Transformers, on the other hand, adds nothing to a template's output.
FOLDER_TEMPLATE = '{{ bos_token }}' + CHAT_TEMPLATE
ABOUT = "Hearth's own small storyteller: short stories in simple English on request, and a little small talk."
ABOUT_TINY = "The storyteller's tiny companion with the same tokenizer, for tests and as a draft model; not for talking to."


def load(path):
    saved = torch.load(path, map_location='cpu')
    m = llama.Llama(llama.Config(**saved['config']))
    m.load_state_dict(saved['state'])
    return m.eval()


def write_safetensors(path, tensors):
    """{name: numpy array} as F32 or F16: 8 bytes of header length, JSON header, data."""
    header, at = {'__metadata__': {'format': 'pt'}}, 0
    for name, x in tensors.items():
        header[name] = {'dtype': {'float32': 'F32', 'float16': 'F16'}[str(x.dtype)], 'shape': list(x.shape),
                        'data_offsets': [at, at + x.nbytes]}
        at += x.nbytes
    raw = json.dumps(header).encode()
    raw += b' ' * (-len(raw) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(raw)) + raw)
        for x in tensors.values():
            f.write(np.ascontiguousarray(x).tobytes())


def write_folder(m, tokenizer, folder):
    c = m.c
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, 'model.safetensors'), {k: v.numpy().astype(np.float16) for k, v in m.state_dict().items()})
    dump = lambda name, value: json.dump(value, open(os.path.join(folder, name), 'w', encoding='utf-8'), indent=1, ensure_ascii=False)
    dump('config.json', {
        'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'vocab_size': c.vocab, 'hidden_size': c.width,
        'intermediate_size': c.ffn, 'num_hidden_layers': c.layers, 'num_attention_heads': c.heads,
        'num_key_value_heads': c.kv_heads, 'head_dim': c.head_dim, 'max_position_embeddings': c.context, 'rms_norm_eps': c.eps,
        'rope_theta': c.rope_theta, 'hidden_act': 'silu', 'attention_bias': False, 'mlp_bias': False, 'tie_word_embeddings': True,
        'bos_token_id': bpe.BOS, 'eos_token_id': bpe.END, 'pad_token_id': bpe.PAD, 'torch_dtype': 'float16'})
    dump('generation_config.json', {'bos_token_id': bpe.BOS, 'eos_token_id': bpe.END, 'pad_token_id': bpe.PAD,
                                    'do_sample': True, 'temperature': 0.7, 'min_p': 0.05})
    dump('tokenizer_config.json', {
        'tokenizer_class': 'PreTrainedTokenizerFast', 'bos_token': bpe.SPECIAL[bpe.BOS], 'eos_token': bpe.SPECIAL[bpe.END],
        'pad_token': bpe.SPECIAL[bpe.PAD], 'model_max_length': c.context, 'clean_up_tokenization_spaces': False,
        'chat_template': FOLDER_TEMPLATE})
    shutil.copy(tokenizer, os.path.join(folder, 'tokenizer.json'))


def write_gguf(m, tok, path, name):
    c = m.c
    s, u, f = gguf.STRING, gguf.U32, gguf.FLOAT
    kinds = [3 if i < len(bpe.SPECIAL) else 5 if t.startswith('<|unused') else 1 for i, t in enumerate(tok.tokens)]
    meta = [
        ('general.architecture', s, 'llama'), ('general.type', s, 'model'), ('general.name', s, name),
        ('general.description', s, ABOUT if m.parameters_count() > 5e6 else ABOUT_TINY), ('general.license', s, 'mit'), ('general.size_label', s, f'{m.parameters_count() / 1e6:.1f}M'),
        ('general.file_type', u, 7), ('general.quantization_version', u, 2),
        ('llama.context_length', u, c.context), ('llama.embedding_length', u, c.width), ('llama.block_count', u, c.layers),
        ('llama.feed_forward_length', u, c.ffn), ('llama.attention.head_count', u, c.heads),
        ('llama.attention.head_count_kv', u, c.kv_heads), ('llama.attention.key_length', u, c.head_dim),
        ('llama.attention.value_length', u, c.head_dim), ('llama.attention.layer_norm_rms_epsilon', f, c.eps),
        ('llama.rope.dimension_count', u, c.head_dim), ('llama.rope.freq_base', f, c.rope_theta), ('llama.vocab_size', u, c.vocab),
        ('tokenizer.ggml.model', s, 'gpt2'), ('tokenizer.ggml.pre', s, 'qwen2'),
        ('tokenizer.ggml.tokens', (gguf.ARRAY, s), tok.tokens), ('tokenizer.ggml.token_type', (gguf.ARRAY, gguf.I32), kinds),
        ('tokenizer.ggml.merges', (gguf.ARRAY, s), [a + ' ' + b for a, b in tok.merges]),
        ('tokenizer.ggml.bos_token_id', u, bpe.BOS), ('tokenizer.ggml.eos_token_id', u, bpe.END),
        ('tokenizer.ggml.padding_token_id', u, bpe.PAD), ('tokenizer.ggml.add_bos_token', gguf.BOOL, True),
        ('tokenizer.ggml.add_eos_token', gguf.BOOL, False), ('tokenizer.chat_template', s, CHAT_TEMPLATE),
    ]
    w = {k: v.numpy() for k, v in m.state_dict().items()}
    tensors = [('token_embd.weight', w['model.embed_tokens.weight'], gguf.Q8_0), ('output_norm.weight', w['model.norm.weight'], gguf.F32)]
    for i in range(c.layers):
        for ours, theirs in llama.LAYER_TENSORS:
            x = w[f'model.layers.{i}.{ours}.weight']
            if theirs in ('attn_q', 'attn_k'):
                x = gguf.permute_rope(x, c.heads if theirs == 'attn_q' else c.kv_heads)
            tensors.append((f'blk.{i}.{theirs}.weight', x, gguf.F32 if x.ndim == 1 else gguf.Q8_0))
    gguf.write(path, meta, tensors)


def check_gguf(m, path):
    """Checks that the file, read back, gives nearly the same logits; they differ only by the rounding to Q8_0."""
    back, _ = llama.from_gguf(path)
    ids = torch.arange(6, 70)[None] % m.c.vocab
    with torch.no_grad():
        a, b = m(ids), back(ids)
    error = ((a - b).pow(2).mean() / a.pow(2).mean()).item()
    print(f'gguf against checkpoint: normalized mean square error of the logits {error:.1e}')
    if not error < 2e-3:
        raise SystemExit('export: the GGUF file does not compute what the checkpoint computes')


def check_folder(m, tok, folder):
    """Checks the same with transformers, and compares its tokenizer and template with ours."""
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        print('transformers is not installed: the Hugging Face folder is written but not checked')
        return
    theirs = AutoTokenizer.from_pretrained(folder)
    texts = ['Once upon a time, there was a fox named Lily.', '"Don\'t!" said Tom. "It\'s 12:45 o\'clock."\n\nThey\'LL go.',
             'Tell me a story about a dragon who lost her key', 'x  y   z\n a1b22', 'We\'ve seen 1,234 stars -- wow!\n']
    for t in texts:
        if theirs.encode(t, add_special_tokens=False) != tok.encode(t):
            raise SystemExit(f'export: tokenizer.json and ours differ on {t!r}')
    turns = [('user', 'Hi!'), ('assistant', 'Hello!'), ('user', 'A story, please.')]
    text = theirs.apply_chat_template([{'role': r, 'content': t} for r, t in turns], tokenize=False, add_generation_prompt=True)
    if theirs.encode(text, add_special_tokens=False) != tok.chat(turns, open_reply=True)[0]:
        raise SystemExit(f'export: the chat template gives something else than the training saw: {text!r}')
    hf = AutoModelForCausalLM.from_pretrained(folder).float().eval()
    ids = torch.tensor([tok.encode(texts[0] * 8)[:64]])
    with torch.no_grad():
        a, b = m(ids), hf(ids).logits
    error = ((a - b).pow(2).mean() / a.pow(2).mean()).item()
    print(f'transformers against ours: normalized mean square error of the logits {error:.1e}')
    if not error < 1e-4:
        raise SystemExit('export: transformers computes something else')


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument('--checkpoint', required=True)
    a.add_argument('--tokenizer', required=True)
    a.add_argument('--out', required=True)
    a.add_argument('--name', required=True)
    a.add_argument('--check', action='store_true')
    a = a.parse_args()
    m, tok = load(a.checkpoint), bpe.Tokenizer.load(a.tokenizer)
    folder, path = os.path.join(a.out, a.name), os.path.join(a.out, a.name + '-Q8_0.gguf')
    write_folder(m, a.tokenizer, folder)
    write_gguf(m, tok, path, a.name)
    print(f'{path}: {os.path.getsize(path) / 1e6:.1f} MB, {m.parameters_count() / 1e6:.2f} M parameters')
    check_gguf(m, path)
    if a.check:
        check_folder(m, tok, folder)


if __name__ == '__main__':
    main()
