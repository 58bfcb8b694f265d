"""Trains a llama-architecture model for a given time on one GPU.

usage: train.py --data DIR --tokenizer tokenizer.json --out model.pt --minutes 7 [--size storyteller|tiny|toy]
Writes the checkpoint, and next to it a loss curve (.csv) and a summary (.json). The learning rate follows the clock:
warm-up, level, then down to zero, so that the run ends well whatever the machine's speed; it ends sooner when the data has
been read --most-epochs times, since the validation loss rises after that. Hidden matrices are trained
with Muon (orthogonalized momentum), embeddings and norms with AdamW. Examples are packed whole into rows of the context
length; only the assistant's words and plain text count for the loss.
"""
import argparse
import csv
import json
import os
import random
import time
from multiprocessing import Pool

import numpy as np
import torch

import bpe
import model as llama


def encode_shard(task):
    """One .jsonl -> rows [n, context + 1] of ids and of the loss mask, saved next to it as .npz. Returns (path, bytes of text
    that count for the loss)."""
    path, tokenizer, context, seed, out = task
    tok, rng = bpe.Tokenizer.load(tokenizer), random.Random(seed)
    docs = []
    with open(path, encoding='utf-8') as f:
        for line in f:
            turns = json.loads(line)
            ids, mask = tok.plain(turns[0][1]) if turns[0][0] == 'text' else tok.chat(turns)
            x = rng.random()
            if x < 0.02:      # Some programs leave the first token out, some give it twice: be used to both.
                ids, mask = ids[1:], mask[1:]
            elif x < 0.04:
                ids, mask = [bpe.BOS] + ids, [0] + mask
            if len(ids) <= context + 1:
                docs.append((ids, mask))
    rng.shuffle(docs)
    rows, open_rows = [], []
    for d in docs:
        fits = [r for r in open_rows if r[0] + len(d[0]) <= context + 1]
        if fits:
            r = max(fits, key=lambda r: r[0])
        else:
            r = [0, []]
            open_rows.append(r)
            if len(open_rows) > 24:
                fullest = max(range(len(open_rows)), key=lambda i: open_rows[i][0])
                rows.append(open_rows.pop(fullest)[1])
        r[0] += len(d[0])
        r[1].append(d)
    rows += [r[1] for r in open_rows]
    ids = np.full((len(rows), context + 1), bpe.PAD, dtype=np.uint16)
    mask = np.zeros((len(rows), context + 1), dtype=np.uint8)
    for i, row in enumerate(rows):
        flat, keep = [t for d in row for t in d[0]], [t for d in row for t in d[1]]
        ids[i, :len(flat)], mask[i, :len(flat)] = flat, keep
    np.savez(out, ids=ids, mask=mask)
    return out


def load_rows(a, context):
    """Training and validation rows, encoded by all cores."""
    names = sorted(f for f in os.listdir(a.data) if f.endswith('.jsonl'))
    os.makedirs(a.cache, exist_ok=True)
    tasks = [(os.path.join(a.data, f), a.tokenizer, context, i, os.path.join(a.cache, f.replace('.jsonl', f'-{context}.npz')))
             for i, f in enumerate(names)]
    todo = [t for t in tasks if not os.path.exists(t[4]) or os.path.getmtime(t[4]) < os.path.getmtime(t[0])
            or os.path.getmtime(t[4]) < os.path.getmtime(a.tokenizer)]
    with Pool(a.jobs) as pool:
        pool.map(encode_shard, todo, chunksize=1)
    parts = {t[0]: np.load(t[4]) for t in tasks}
    train = [p for path, p in parts.items() if os.path.basename(path).startswith('train-')]
    valid = [p for path, p in parts.items() if os.path.basename(path) == 'valid.jsonl']
    join = lambda ps, key: torch.from_numpy(np.concatenate([p[key] for p in ps]).astype(np.int16 if key == 'ids' else np.uint8))
    return (join(train, 'ids'), join(train, 'mask')), (join(valid, 'ids'), join(valid, 'mask'))


class Muon:
    """Momentum, then the orthogonal matrix nearest to it (five Newton-Schulz steps), for matrices of the same shape at once."""

    def __init__(self, params, momentum=0.95, weight_decay=0.01):
        self.momentum, self.weight_decay = momentum, weight_decay
        self.groups = {}
        for p in params:
            self.groups.setdefault(tuple(p.shape), []).append(p)
        self.state = {k: torch.zeros(len(ps), *k, device=ps[0].device) for k, ps in self.groups.items()}

    @staticmethod
    def orthogonalize(g):
        x = g.bfloat16() if g.is_cuda else g.float()
        tall = x.shape[-2] > x.shape[-1]
        if tall:
            x = x.transpose(-1, -2)
        x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
        for _ in range(5):
            s = x @ x.transpose(-1, -2)
            x = 3.4445 * x + (-4.7750 * s + 2.0315 * (s @ s)) @ x
        return x.transpose(-1, -2) if tall else x

    @torch.no_grad()
    def step(self, lr):
        for shape, ps in self.groups.items():
            g = torch.stack([p.grad for p in ps])
            m = self.state[shape]
            m.lerp_(g, 1 - self.momentum)
            update = self.orthogonalize(g.lerp(m, self.momentum)).to(m.dtype)
            scale = lr * max(1.0, shape[0] / shape[1]) ** 0.5
            for p, u in zip(ps, update):
                p.mul_(1 - lr * self.weight_decay).add_(u, alpha=-scale)


def rate(progress):
    """1 in the middle; warm-up over the first 2 %, down to zero over the last 45 %."""
    return min(1.0, progress / 0.02 + 0.02, max(0.0, (1 - progress) / 0.45))


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument('--data', required=True)
    a.add_argument('--tokenizer', required=True)
    a.add_argument('--out', required=True)
    a.add_argument('--size', default='storyteller', choices=sorted(llama.SIZES))
    a.add_argument('--minutes', type=float, default=7.0, help='all in all, reading data and compiling included')
    a.add_argument('--most-epochs', type=float, default=4.0, help='end sooner rather than read the data more often than that')
    a.add_argument('--rows', type=int, default=128, help='rows of a batch')
    a.add_argument('--matrix-lr', type=float, default=0.02)
    a.add_argument('--adam-lr', type=float, default=0.003)
    a.add_argument('--cache', default=None, help='folder for encoded rows; default DATA/encoded')
    a.add_argument('--jobs', type=int, default=os.cpu_count())
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--no-compile', action='store_true')
    a.add_argument('--encode-only', action='store_true', help='only write the encoded rows, for two runs side by side to share')
    a = a.parse_args()
    begin = time.time()
    a.cache = a.cache or os.path.join(a.data, 'encoded')
    cuda = torch.cuda.is_available()
    device = 'cuda' if cuda else 'cpu'
    c = llama.SIZES[a.size]
    c.vocab = len(bpe.Tokenizer.load(a.tokenizer).tokens)
    (ids, mask), (valid_ids, valid_mask) = load_rows(a, c.context)
    print(f'rows: {len(ids)} of {c.context}, {mask.float().mean():.2f} of the tokens count, {time.time() - begin:.0f} s', flush=True)
    if a.encode_only:
        return
    torch.manual_seed(a.seed)
    m = llama.Llama(c).to(device)
    print(f'{a.size}: {m.parameters_count() / 1e6:.2f} M parameters', flush=True)
    if cuda:
        torch.set_float32_matmul_precision('high')
        m.residual_dtype = torch.bfloat16
    ids, mask, valid_ids, valid_mask = (x.to(device) for x in (ids, mask, valid_ids, valid_mask))
    matrices = [p for n, p in m.named_parameters() if p.dim() == 2 and 'layers' in n]
    rest = [p for n, p in m.named_parameters() if not (p.dim() == 2 and 'layers' in n)]
    muon = Muon(matrices)
    adam = torch.optim.AdamW(rest, lr=a.adam_lr, betas=(0.9, 0.95), weight_decay=0.0, **({'fused': True} if cuda else {}))
    loss_of = m.loss
    if cuda and not a.no_compile:
        loss_of = torch.compile(m.loss, dynamic=False)

    def batch(all_ids, all_mask, index):
        x = all_ids[index].long()
        keep = all_mask[index][:, 1:].bool()
        return x[:, :-1].contiguous(), x[:, 1:].masked_fill(~keep, -100).contiguous()

    def forward(x, y, fn):
        with torch.autocast(device, dtype=torch.bfloat16, enabled=cuda):
            return fn(x, y)

    @torch.no_grad()
    def validate():
        # Not the compiled function: without gradients it would be compiled a second time.
        total, n = 0.0, 0
        most = len(valid_ids) if cuda else min(len(valid_ids), 2 * a.rows)
        for i in range(0, max(1, most - a.rows + 1), a.rows):
            index = torch.arange(i, i + a.rows, device=device) % len(valid_ids)
            total += forward(*batch(valid_ids, valid_mask, index), m.loss).item()
            n += 1
        return total / n

    curve, step, order, at = [], 0, None, 0
    end = begin + a.minutes * 60
    next_report, running, start = 0.0, None, None
    while True:
        if order is None or at + a.rows > len(order):
            order, at = torch.randperm(max(len(ids), a.rows), device=device) % len(ids), 0
        x, y = batch(ids, mask, order[at:at + a.rows])
        at += a.rows
        try:
            loss = forward(x, y, loss_of)
            loss.backward()
        except Exception as e:
            if start is not None or loss_of == m.loss:
                raise
            print(f'not compiled, because: {str(e)[:300]}', flush=True)
            loss_of = m.loss
            continue
        if start is None:   # The first step compiles; the schedule starts after it.
            loss.item()
            start = time.time()
            next_report = start
            print(f'first step after {start - begin:.0f} s', flush=True)
        progress = max((time.time() - start) / max(1e-9, end - start), step * a.rows / (a.most_epochs * len(ids)))
        k = rate(min(1.0, progress))
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        for g in adam.param_groups:
            g['lr'] = a.adam_lr * k
        adam.step()
        muon.step(a.matrix_lr * k)
        for p in m.parameters():
            p.grad = None
        step += 1
        running = loss.detach() if running is None else running.lerp(loss.detach(), 0.02)
        last = progress >= 1.0
        if step % 10 == 0:
            torch.cuda.synchronize() if cuda else None   # Keeps the clock honest: the queue is never long.
        if time.time() >= next_report or last:
            v = validate()
            now = time.time()
            tokens = step * a.rows * c.context
            curve.append([round(now - start, 1), step, tokens, round(k, 4), round(running.item(), 4), round(v, 4)])
            print(f'{now - start:6.0f} s  step {step:6d}  {tokens / 1e6:8.1f} M tokens  {tokens / max(1e-9, now - start) / 1e3:7.0f} k/s  '
                  f'rate {k:.3f}  train {running.item():.4f}  valid {v:.4f}', flush=True)
            next_report = now + max(2.0, (end - start) / 24)
        if last:
            break
    torch.save({'config': vars(c), 'state': {k: v.float().cpu() for k, v in m.state_dict().items()}}, a.out)
    base = os.path.splitext(a.out)[0]
    with open(base + '.csv', 'w', newline='') as f:
        w = csv.writer(f)
        w.writerow(['seconds', 'step', 'tokens', 'rate', 'train_loss', 'valid_loss'])
        w.writerows(curve)
    seconds = time.time() - start
    summary = {'size': a.size, 'parameters': m.parameters_count(), 'config': vars(c), 'steps': step, 'tokens': step * a.rows * c.context,
               'epochs': round(step * a.rows / len(ids), 2), 'tokens_per_s': round(step * a.rows * c.context / seconds),
               'train_seconds': round(seconds, 1), 'all_seconds': round(time.time() - begin, 1), 'train_loss': curve[-1][4],
               'valid_loss': curve[-1][5], 'rows_of_a_batch': a.rows, 'matrix_lr': a.matrix_lr, 'adam_lr': a.adam_lr,
               'device': torch.cuda.get_device_name() if cuda else 'cpu', 'rows': len(ids)}
    with open(base + '.json', 'w') as f:
        json.dump(summary, f, indent=1)
    print(json.dumps(summary))


if __name__ == '__main__':
    main()
