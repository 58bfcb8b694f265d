"""Text to ids and back for a GGUF's SentencePiece vocabulary (stories15M), word by word with a cache."""


class SentencePiece:
    def __init__(self, meta):
        self.tokens, self.scores = meta['tokenizer.ggml.tokens'], meta['tokenizer.ggml.scores']
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.bytes = {i: int(t[3:5], 16) for i, t in enumerate(self.tokens) if len(t) == 6 and t.startswith('<0x')}
        self.byte_id = {b: i for i, b in self.bytes.items()}
        self.cache = {}

    def word(self, text):
        """Joins the best-scored neighbours until none is in the vocabulary."""
        parts = list(text)
        while len(parts) > 1:
            best, at = None, -1
            for i in range(len(parts) - 1):
                k = self.ids.get(parts[i] + parts[i + 1])
                if k is not None and (best is None or self.scores[k] > best):
                    best, at = self.scores[k], i
            if at < 0:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        out = []
        for p in parts:
            k = self.ids.get(p)
            out += [k] if k is not None else [self.byte_id[b] for b in p.encode('utf-8')]
        return out

    def encode(self, text):
        out = []
        for w in (' ' + text).replace(' ', ' \u2581').split(' ')[1:]:
            if w not in self.cache:
                self.cache[w] = self.word(w)
            out += self.cache[w]
        return out

    def decode(self, ids):
        out = bytearray()
        for i in ids:
            out += bytes([self.bytes[i]]) if i in self.bytes else self.tokens[i].replace('\u2581', ' ').encode('utf-8')
        return out.decode('utf-8', errors='replace').lstrip(' ')
