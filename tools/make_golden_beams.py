#!/usr/bin/env python3
"""Writes tests/models/golden/beams.json: what transformers' beam search finds on the golden models.

    tools/make_golden_beams.py GOLDEN_FOLDER OUTPUT_FILE

Needs PyTorch and transformers 5; runs on the CPU in about a minute. Every model is searched with
four beams from two of its prompts, with each length penalty and each kind of early stopping, and
all four texts are kept with their scores. A dozen token ids of the vocabulary count as end tokens,
so that texts of random models end, too.

Two continuations may be so close that rounding decides between them. So every search is repeated
with noise on the log-probabilities, many times what rounding does, and a search whose ids then
differ is left out. The file says how many were.
"""
import argparse
import json
import pathlib
import sys
import traceback
import warnings

import torch
import transformers
from transformers import AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList

BEAMS = 4
MAX_NEW_TOKENS = 16
END_TOKENS = list(range(10, 130, 10))
PROMPTS = (1, 2)  # of golden.json; short enough for every context
LENGTH_PENALTIES = (1.0, 0.5)
EARLY_STOPPING = (False, True, "never")
NOISE, NOISY_RUNS = 2e-4, 3


class Noise(LogitsProcessor):
    """Adds a little to every log-probability."""

    def __init__(self, seed):
        self.random = torch.Generator().manual_seed(seed)

    def __call__(self, input_ids, scores):
        return scores + NOISE * torch.randn(scores.shape, generator=self.random, dtype=scores.dtype)


@torch.no_grad()
def search(model, prompt, penalty, stopping, use_cache, noise_seed=None):
    """The texts, the best first: ids up to an end token, and the score."""
    processors = LogitsProcessorList([] if noise_seed is None else [Noise(noise_seed)])
    ids = torch.tensor([prompt])
    found = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, num_beams=BEAMS,
        num_return_sequences=BEAMS, length_penalty=penalty, early_stopping=stopping,
        max_new_tokens=MAX_NEW_TOKENS, eos_token_id=END_TOKENS, pad_token_id=0,
        use_cache=use_cache, logits_processor=processors, return_dict_in_generate=True,
        output_scores=True)
    texts = []
    for sequence, score in zip(found.sequences.tolist(), found.sequences_scores.tolist()):
        new = sequence[len(prompt):]
        end = next((i for i, token in enumerate(new) if token in END_TOKENS), len(new) - 1)
        texts.append({"ids": new[:end + 1], "score": round(score, 6)})
    return texts


def same_ids(some, others):
    return [text["ids"] for text in some] == [text["ids"] for text in others]


def stable_search(model, prompt, penalty, stopping):
    """None if rounding could decide the search."""
    texts = search(model, prompt, penalty, stopping, use_cache=False)
    if not same_ids(texts, search(model, prompt, penalty, stopping, use_cache=True)):
        return None
    for seed in range(NOISY_RUNS):
        noisy = search(model, prompt, penalty, stopping, use_cache=False, noise_seed=seed)
        if not same_ids(texts, noisy):
            return None
    return texts


def search_model(folder):
    golden = json.loads((folder / "golden.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    found, left_out = [], 0
    for prompt in PROMPTS:
        for penalty in LENGTH_PENALTIES:
            for stopping in EARLY_STOPPING:
                texts = stable_search(model, golden["prompts"][prompt], penalty, stopping)
                if texts is None:
                    left_out += 1
                    continue
                found.append({"model": folder.name, "prompt": prompt, "length_penalty": penalty,
                              "early_stopping": stopping, "texts": texts})
    ended = sum(text["ids"][-1] in END_TOKENS for one in found for text in one["texts"])
    print(f"  {folder.name:14} {len(found)} searches, {left_out} left out, {ended} texts ended early")
    return found, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()

    torch.set_num_threads(min(torch.get_num_threads(), 4))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.filterwarnings("ignore")

    searches, left_out, failed = [], 0, []
    for folder in sorted(path.parent for path in options.golden.glob("*/golden.json")):
        try:
            found, unstable = search_model(folder)
        except Exception:  # One broken model must not lose the others.
            traceback.print_exc(limit=-5)
            failed.append(folder.name)
            continue
        searches += found
        left_out += unstable
    head = {"made_by": f"transformers {transformers.__version__}, torch {torch.__version__}",
            "beams": BEAMS, "max_new_tokens": MAX_NEW_TOKENS, "end_tokens": END_TOKENS,
            "left_out": left_out}
    lines = [f' "{key}": {json.dumps(value)},' for key, value in head.items()]
    rows = ",\n".join("  " + json.dumps(one, separators=(",", ":")) for one in searches)
    options.output.write_text("{\n" + "\n".join(lines) + '\n "searches": [\n' + rows + "\n ]\n}\n")
    print(f"{head['made_by']}: {len(searches)} searches, {left_out} left out")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
