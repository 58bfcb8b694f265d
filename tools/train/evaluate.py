"""Judges an exported model (bits per byte compared with stories15M, fixed requests, small talk, follow-ups) and drafts the model card.

usage: evaluate.py --gguf MODEL.gguf --data DIR --out DIR [--tiny TINY.gguf] [--peer stories15M-Q8_0.gguf] [--curve model.csv]
Writes OUT/samples.md (everything the model said), OUT/evaluation.json and OUT/MODEL_CARD.md, a draft: a person reads the
samples and then writes its section "Read one by one". The weights judged are those of the GGUF file, after rounding to Q8_0.
"""
import argparse
import csv
import json
import math
import os
import re
import time
from collections import Counter

import torch
import torch.nn.functional as F

import bpe
import model as llama
import sentence_piece
import words
from words import HERE

TEMPERATURE, MIN_P, MOST = 0.7, 0.05, 480


def read_cases():
    out, part = {}, None
    for line in open(os.path.join(HERE, 'evaluation.txt'), encoding='utf-8'):
        line = line.rstrip('\n')
        if line.startswith('['):
            part = line.strip('[]')
            out[part] = []
        elif line and not line.startswith('#'):
            out[part].append(line.split('\t'))
    return out


def tokenizer_of(meta):
    return bpe.Tokenizer([tuple(x.split(' ')) for x in meta['tokenizer.ggml.merges']], len(meta['tokenizer.ggml.tokens']))


@torch.no_grad()
def bits_per_byte(m, encode, bos, texts, batch=32):
    """Returns (bits per byte, perplexity per token) over whole texts, each in a context of its own."""
    device = m.model.embed_tokens.weight.device
    nats = tokens = size = 0
    for i in range(0, len(texts), batch):
        part = [encode(t) for t in texts[i:i + batch]]
        n = max(map(len, part)) + 1
        x = torch.zeros(len(part), n, dtype=torch.long)
        y = torch.full((len(part), n), -100, dtype=torch.long)
        for j, ids in enumerate(part):
            x[j, :len(ids) + 1] = torch.tensor([bos] + ids)
            y[j, :len(ids)] = torch.tensor(ids)
        x, y = x.to(device), y.to(device)
        nats += F.cross_entropy(m(x).float().flatten(0, 1), y.flatten(), ignore_index=-100, reduction='sum').item()
        tokens += int((y != -100).sum())
        size += sum(len(t.encode()) for t in texts[i:i + batch])
    return nats / size / math.log(2), math.exp(nats / tokens)


def faults(text, ended, needed, known):
    """Lists what is wrong with an answer, as far as a program can tell."""
    out = []
    low = text.lower()
    for group in filter(None, needed.split(',')):
        if not any(re.search(r'\b' + re.escape(w.lower()) + r'(s|es)?\b', low) for w in group.split('/')):
            out.append('no ' + group)
    if not ended:
        out.append('does not end')
    elif not re.search(r'[.!?]["\']?$', text.strip()):
        out.append('cut')
    w = re.findall(r"[a-z']+", low)
    for n, most in ((4, 4), (6, 2), (10, 1)):
        grams = Counter(zip(*[w[i:] for i in range(n)]))
        if grams and max(grams.values()) > most:
            out.append('loops')
            break
    s = Counter(x.strip() for x in re.split(r'[.!?"\n]+', low) if x.count(' ') > 3)
    if s and max(s.values()) > 2 and 'loops' not in out:
        out.append('loops')
    if any(p.count('"') % 2 for p in text.split('\n')):
        out.append('quotes')
    if not 150 <= len(text) <= 1900:
        out.append('length')
    if known:
        strange = [x for x in re.findall(r"\b[a-z]+\b", text) if x not in known]
        if strange:
            out.append('unknown word ' + strange[0])
    return out


def known_words(data, most=6000):
    """Words that occur more than once in the training data; any other word is probably made up."""
    seen = Counter()
    for name in ('train-00.jsonl', 'train-01.jsonl', 'train-02.jsonl', 'train-03.jsonl', 'train-books.jsonl'):
        path = os.path.join(data, name)
        if os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                for i, line in enumerate(f):
                    if i >= most:
                        break
                    for _, t in json.loads(line):
                        seen.update(re.findall(r'\b[a-z]+\b', t))
    listed = re.findall(r'[a-z]+', ' '.join(words.KIND_NOUNS + words.THING_NOUNS).lower())
    return {w for w, n in seen.items() if n > 1} | set(listed)


def answer(m, tok, conversations, temperature, seed):
    device = m.model.embed_tokens.weight.device
    g = torch.Generator(device=device)
    g.manual_seed(seed)
    prompts = [tok.chat([(('user', 'assistant')[i % 2], t) for i, t in enumerate(turns)], open_reply=True)[0] for turns in conversations]
    rows = llama.generate(m, prompts, {bpe.END, bpe.BOS, bpe.USER}, MOST, temperature, MIN_P, g)
    return [(tok.decode(ids).strip(), ended) for ids, ended, _ in rows]


def curve_table(path):
    rows = list(csv.DictReader(open(path)))
    keep = rows[::max(1, len(rows) // 8)]
    if keep[-1] is not rows[-1]:
        keep.append(rows[-1])
    return '\n'.join(['| seconds | tokens (M) | training loss | validation loss |', '|---|---|---|---|'] + [
        f"| {float(r['seconds']):.0f} | {float(r['tokens']) / 1e6:.0f} | {r['train_loss']} | {r['valid_loss']} |" for r in keep])


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument('--gguf', required=True)
    a.add_argument('--data', required=True)
    a.add_argument('--out', required=True)
    a.add_argument('--tiny')
    a.add_argument('--peer')
    a.add_argument('--curve', help="train.py's .csv; its .json must be in the same folder")
    a.add_argument('--tiny-curve')
    a.add_argument('--seeds', type=int, default=4)
    a.add_argument('--limit', type=int, default=None, help='use only the first N requests and held-out stories, for a trial')
    a = a.parse_args()
    start = time.time()
    os.makedirs(a.out, exist_ok=True)
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    m, meta = llama.from_gguf(a.gguf)
    tok, m = tokenizer_of(meta), m.to(device)
    cases = read_cases()
    if a.limit:
        cases = {k: v[:a.limit] for k, v in cases.items()}
    result = {'model': os.path.basename(a.gguf), 'parameters': m.parameters_count(), 'bytes': os.path.getsize(a.gguf)}

    # Held-out stories, each in a context of its own; only those that fit into the peer's context of 256 tokens.
    judged = {'storyteller': (m, tok.encode, bpe.BOS)}
    if a.peer:
        peer, peer_meta = llama.from_gguf(a.peer)
        sp = sentence_piece.SentencePiece(peer_meta)
        judged['stories15M'] = (peer.to(device), sp.encode, 1)
    if a.tiny:
        tiny = llama.from_gguf(a.tiny)[0].to(device)
        judged['tiny'] = (tiny, tok.encode, bpe.BOS)
        result['tiny parameters'], result['tiny bytes'] = tiny.parameters_count(), os.path.getsize(a.tiny)
    result['bits per byte'], result['perplexity per token'], result['held-out stories'] = {}, {}, {}
    for kind, name in (('sampled', 'held_out.txt'), ('told', 'held_out_told.txt')):
        texts = open(os.path.join(a.data, name), encoding='utf-8').read().split('\n<|story|>\n')[:a.limit]
        if a.peer:
            texts = [t for t in texts if len(sp.encode(t)) < peer.c.context - 1]
        loss = {k: bits_per_byte(*v, texts) for k, v in judged.items()} if texts else {}
        result['held-out stories'][kind] = len(texts)
        result['bits per byte'][kind] = {k: round(v[0], 4) for k, v in loss.items()}
        result['perplexity per token'][kind] = {k: round(v[1], 3) for k, v in loss.items()}

    known = known_words(a.data)

    def judge(part):
        """Returns passes by seed, greedy passes, faults over all seeds, and the answers with seed 1."""
        requests = [(x[0], x[1] if len(x) > 1 else '') for x in cases[part]]
        said, passes, found = [], [], Counter()
        for seed in range(1, a.seeds + 1):
            good = 0
            for (request, needed), (text, ended) in zip(requests, answer(m, tok, [[r] for r, _ in requests], TEMPERATURE, seed)):
                bad = faults(text, ended, needed, known)
                good += not bad
                found.update(re.sub(r'^(no|unknown word) .*', r'\1', b) for b in bad)
                if seed == 1:
                    said += [f'**{request}** ' + (f'({"; ".join(bad)})' if bad else ''), '', '> ' + text.replace('\n', '\n>\n> '), '']
            passes.append(good)
        greedy = sum(not faults(t, e, n, known) for (_, n), (t, e) in zip(requests, answer(m, tok, [[r] for r, _ in requests], 0, 1)))
        return {'requests': len(requests), 'pass by seed': passes, 'pass greedy': greedy, 'faults over all seeds': dict(found)}, said

    md = ['# What the model said', '', f'Temperature {TEMPERATURE}, min-p {MIN_P}, seed 1, weights of `{os.path.basename(a.gguf)}`.', '']
    for part, title in (('stories', 'fixed requests'), ('unseen', 'requests the recipe was not made for')):
        verdict, said = judge(part)
        md += [f"## {verdict['requests']} {title}", ''] + said
        if part == 'stories':
            result.update(verdict)
        else:
            result[part] = verdict

    md += ['## Small talk', '']
    for (u,), (text, ended) in zip(cases['talk'], answer(m, tok, [list(x) for x in cases['talk']], TEMPERATURE, 1)):
        md += [f'**{u}** ' + ('' if ended else '(does not end)'), '', '> ' + text.replace('\n', '\n>\n> '), '']
    md += ['## Follow-ups', '']
    first = answer(m, tok, [[x[0]] for x in cases['follow']], TEMPERATURE, 1)
    second = answer(m, tok, [[x[0], f[0], x[1]] for x, f in zip(cases['follow'], first)], TEMPERATURE, 1)
    for (u, u2), (t, _), (t2, _) in zip(cases['follow'], first, second):
        md += [f'**{u}**', '', '> ' + t.replace('\n', '\n>\n> '), '', f'**{u2}**', '', '> ' + t2.replace('\n', '\n>\n> '), '']
    plain = llama.generate(m, [[bpe.BOS] + tok.encode('Once upon a time')], {bpe.END}, MOST, TEMPERATURE, MIN_P)[0]
    md += ['## Plain continuation', '', '> Once upon a time' + tok.decode(plain[0]).replace('\n', '\n>\n> '), '']
    if a.tiny:
        md += ['## The tiny model', '']
        asked = [x[0] for x in cases['stories'][:4]]
        for request, (text, _) in zip(asked, answer(tiny, tok, [[r] for r in asked], TEMPERATURE, 1)):
            md += [f'**{request}**', '', '> ' + text.replace('\n', '\n>\n> '), '']
    result['seconds'] = round(time.time() - start, 1)
    open(os.path.join(a.out, 'samples.md'), 'w', encoding='utf-8').write('\n'.join(md))
    json.dump(result, open(os.path.join(a.out, 'evaluation.json'), 'w'), indent=1)
    write_card(a, result)
    print(json.dumps(result))


def write_card(a, result):
    def summary(path):
        return json.load(open(os.path.splitext(path)[0] + '.json')) if path else {}
    main_run, tiny_run = summary(a.curve), summary(a.tiny_curve)
    stats_path = os.path.join(a.data, 'stats.json')
    stats = json.load(open(stats_path)) if os.path.exists(stats_path) else {}
    reasons = stats.get('reasons', {})
    bpb, ppl = result['bits per byte'], result['perplexity per token']
    values = {
        'PARAMETERS': f"{result['parameters'] / 1e6:.1f} M", 'BYTES': f"{result['bytes'] / 1e6:.1f} MB",
        'TINY_PARAMETERS': f"{result.get('tiny parameters', 0) / 1e6:.2f} M", 'TINY_BYTES': f"{result.get('tiny bytes', 0) / 1e6:.2f} MB",
        'STORIES': f"{stats.get('stories kept', 0):,}", 'PLOT_STORIES': f"{stats.get('plot stories', 0):,}",
        'AFRICAN': str(stats.get('african storybook', 0)), 'FAIRY': str(stats.get('fairy tale pieces', 0)),
        'READ': f"{sum(reasons.get(k, 0) for k in reasons if k not in ('near duplicate', 'rare word', 'unlikely')):,}",
        'REASONS': ', '.join(f'{k} {v:,}' for k, v in reasons.items() if not k.startswith('kept')),
        'ODD': f"{stats.get('of these odd', 0):,}",
        'EXAMPLES': f"{stats.get('examples', {}).get('examples', 0):,}",
        'CONFIG': json.dumps(main_run.get('config', {})), 'TINY_CONFIG': json.dumps(tiny_run.get('config', {})),
        'TOKENS': f"{main_run.get('tokens', 0) / 1e6:.0f} M", 'EPOCHS': str(main_run.get('epochs', '')),
        'SECONDS': f"{main_run.get('train_seconds', 0):.0f}", 'TOKENS_PER_S': f"{main_run.get('tokens_per_s', 0):,}",
        'DEVICE': str(main_run.get('device', '')), 'TINY_SECONDS': f"{tiny_run.get('train_seconds', 0):.0f}",
        'TINY_VALID': str(tiny_run.get('valid_loss', '')), 'VALID': str(main_run.get('valid_loss', '')),
        'CURVE': curve_table(a.curve) if a.curve else '',
        'HELD_OUT': str(result['held-out stories']['sampled']), 'HELD_OUT_TOLD': str(result['held-out stories']['told']),
        'BPB_TABLE': '\n'.join(['| stories | model | bits per byte | perplexity per token of its own |', '|---|---|---|---|'] +
                               [f'| {kind} | {k} | {v} | {ppl[kind][k]} |' for kind in bpb for k, v in bpb[kind].items()]),
        'PASS': ', '.join(map(str, result['pass by seed'])), 'PASS_FIRST': str(result['pass by seed'][0]), 'REQUESTS': str(result['requests']),
        'PASS_GREEDY': str(result['pass greedy']), 'UNSEEN': str(result['unseen']['requests']),
        'PASS_UNSEEN': ', '.join(map(str, result['unseen']['pass by seed'])),
        'FAULTS': ', '.join(f'{k}: {v}' for k, v in result['faults over all seeds'].items()) or 'none',
    }
    text = open(os.path.join(HERE, 'MODEL_CARD.template.md'), encoding='utf-8').read()
    for k, v in values.items():
        text = text.replace('{{' + k + '}}', v)
    left = re.findall(r'\{\{[A-Z_]+\}\}', text)
    if left:
        raise SystemExit(f'evaluate: these slots of the card template have no value: {left}')
    open(os.path.join(a.out, 'MODEL_CARD.md'), 'w', encoding='utf-8').write(text)


if __name__ == '__main__':
    main()
