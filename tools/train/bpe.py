"""Byte-level BPE as in GPT-2, with the pre-tokenizer of Qwen 2 (digits one by one): training, encoding, tokenizer.json.

Plain Python on purpose: words repeat, so a cache makes it fast enough, and nothing has to be installed. The training
text is ASCII; for it the pattern below splits exactly as QWEN2_PATTERN does (export.py checks that where the
`tokenizers` package is installed).
"""
import heapq
import json
import re
from collections import Counter, defaultdict

SPECIAL = ['<|bos|>', '<|end|>', '<|system|>', '<|user|>', '<|assistant|>', '<|pad|>']
BOS, END, SYSTEM, USER, ASSISTANT, PAD = range(6)
ROLE_IDS = {'system': SYSTEM, 'user': USER, 'assistant': ASSISTANT}
QWEN2_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
                 r"\s+(?!\S)|\s+")
ASCII_PATTERN = re.compile(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\na-zA-Z0-9]?[a-zA-Z]+|[0-9]| ?[^\sa-zA-Z0-9]+[\r\n]*|"
                           r"\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_letters():
    """GPT-2's printable letter for each of the 256 bytes."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, extra = {}, 0
    for b in range(256):
        if b in keep:
            table[b] = chr(b)
        else:
            table[b] = chr(256 + extra)
            extra += 1
    return table


LETTERS = byte_letters()
BYTES = {c: b for b, c in LETTERS.items()}


def to_letters(word):
    return ''.join(LETTERS[b] for b in word.encode('utf-8'))


def count_words(texts):
    counts = Counter()
    for t in texts:
        counts.update(ASCII_PATTERN.findall(t))
    return counts


def train(word_counts, size):
    """Merges [(left, right), ...] so that special tokens, bytes and merges together are `size` entries."""
    words = [(list(to_letters(w)), n) for w, n in sorted(word_counts.items()) if n > 1]
    pairs, where = Counter(), defaultdict(set)
    for i, (parts, n) in enumerate(words):
        for p in zip(parts, parts[1:]):
            pairs[p] += n
            where[p].add(i)
    heap = [(-n, p) for p, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while heap and len(merges) < size - len(SPECIAL) - 256:
        n, pair = heapq.heappop(heap)
        if pairs.get(pair, 0) != -n:
            continue
        merges.append(pair)
        joined, changed = pair[0] + pair[1], set()
        for i in where.pop(pair):
            parts, count = words[i]
            for p in zip(parts, parts[1:]):
                pairs[p] -= count
                changed.add(p)
            at = 0
            while at < len(parts) - 1:
                if parts[at] == pair[0] and parts[at + 1] == pair[1]:
                    parts[at:at + 2] = [joined]
                at += 1
            for p in zip(parts, parts[1:]):
                pairs[p] += count
                where[p].add(i)
                changed.add(p)
        for p in changed:
            if pairs[p] > 0:
                heapq.heappush(heap, (-pairs[p], p))
        pairs.pop(pair, None)
    return merges


class Tokenizer:
    def __init__(self, merges, size=None):
        """size pads the vocabulary with unused entries, for training texts too small to fill it."""
        self.merges = [tuple(m) for m in merges]
        self.tokens = SPECIAL + [LETTERS[b] for b in range(256)] + [a + b for a, b in self.merges]
        while size and len(self.tokens) < size:
            self.tokens.append(f'<|unused{len(self.tokens)}|>')
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.cache = {}

    @staticmethod
    def load(path):
        with open(path, encoding='utf-8') as f:
            j = json.load(f)
        merges = [tuple(m) if isinstance(m, list) else tuple(m.split(' ')) for m in j['model']['merges']]
        return Tokenizer(merges, len(j['model']['vocab']))

    def word(self, text):
        parts = list(to_letters(text))
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda i: self.rank.get((parts[i], parts[i + 1]), 1 << 30))
            if (parts[best], parts[best + 1]) not in self.rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        return [self.ids[p] for p in parts]

    def encode(self, text):
        out, cache = [], self.cache
        for w in ASCII_PATTERN.findall(text):
            ids = cache.get(w)
            if ids is None:
                ids = cache[w] = self.word(w)
            out += ids
        return out

    def decode(self, ids):
        out = bytearray()
        for i in ids:
            t = self.tokens[i]
            out += t.encode() if i < len(SPECIAL) else bytes(BYTES[c] for c in t if c in BYTES)
        return out.decode('utf-8', errors='replace')

    def chat(self, turns, open_reply=False):
        """[(role, text), ...] -> (ids, mask), where mask is 1 for tokens that count for the loss: the assistant's words and end tokens."""
        ids, mask = [BOS], [0]
        for role, text in turns:
            body = self.encode(text) + [END]
            ids += [ROLE_IDS[role]] + body
            mask += [0] + [int(role == 'assistant')] * len(body)
        if open_reply:
            ids.append(ASSISTANT)
            mask.append(0)
        return ids, mask

    def plain(self, text):
        ids = [BOS] + self.encode(text) + [END]
        return ids, [0] + [1] * (len(ids) - 1)

    def to_json(self):
        """Hugging Face's tokenizer.json."""
        added = [{'id': i, 'content': t, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False,
                  'special': True} for i, t in enumerate(self.tokens) if i < len(SPECIAL) or t.startswith('<|unused')]
        return {
            'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': added, 'normalizer': None,
            'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [
                {'type': 'Split', 'pattern': {'Regex': QWEN2_PATTERN}, 'behavior': 'Isolated', 'invert': False},
                {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': False, 'use_regex': False}]},
            'post_processor': {'type': 'TemplateProcessing',
                               'single': [{'SpecialToken': {'id': SPECIAL[BOS], 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}],
                               'pair': [{'SpecialToken': {'id': SPECIAL[BOS], 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}},
                                        {'Sequence': {'id': 'B', 'type_id': 1}}],
                               'special_tokens': {SPECIAL[BOS]: {'id': SPECIAL[BOS], 'ids': [BOS], 'tokens': [SPECIAL[BOS]]}}},
            'decoder': {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': True, 'use_regex': True},
            'model': {'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': None,
                      'end_of_word_suffix': None, 'fuse_unk': False, 'byte_fallback': False, 'ignore_merges': False,
                      'vocab': self.ids, 'merges': [list(m) for m in self.merges]},
        }
