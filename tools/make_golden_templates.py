#!/usr/bin/env python3
"""Writes tests/engine/text/golden/templates.json: conversations as chat templates render them.

    tools/make_golden_templates.py TEMPLATE_FOLDER OUTPUT_FILE

Needs transformers and tokenizers. TEMPLATE_FOLDER holds NAME.json files with the chat_template,
bos_token and eos_token of a model's tokenizer_config.json; a tokenizer with these renders the
conversations with its apply_chat_template. The date that a template may ask for is pinned.

The result is a list of {"template": NAME, "conversation": what it tests, "messages",
"add_generation_prompt", "date_string", "text"}.
"""
import argparse
import json
import pathlib

import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

DATE = "04 Feb 2025"  # Not the one that a template falls back to without a clock.


def chat(*contents, system=None):
    """Messages that alternate between user and assistant."""
    messages = [] if system is None else [{"role": "system", "content": system}]
    for index, content in enumerate(contents):
        messages.append({"role": ("user", "assistant")[index % 2], "content": content})
    return messages


CONVERSATIONS = {
    "one question": chat("Why is the sky blue?"),
    "system prompt": chat("Why is the sky blue?", system="You answer in one sentence."),
    "three turns": chat("Hello!", "Hi, how can I help?", "Tell me a story."),
    "system prompt and five turns": chat(
        "Name a colour.", "Blue.", "Another one.", "Green.", "And the last?",
        system="You are a painter.\nBe brief."),
    "ends with the assistant": chat("2 + 2?", "4"),
    "unicode": chat(
        "Grüße aus Köln, 你好, こんにちは, שלום, 🙂👩‍👩‍👧‍👦, e\u0301 and \u00e9",
        "Ça va? \U0001F1EB\U0001F1F7",
        "Привет", system="Отвечай по-русски. 日本語も可。"),
    "quotes and escapes": chat(
        'She said "no", he said \'yes\'.\n\tC:\\new\\table; \\n is no newline; 100 % & <b>bold</b>',
        "`printf(\"%s\\n\", x);`\n\n```c\nint main() { return 0; }\n```", "a\r\nb",
        system="It's \"quoted\"."),
    "looks like a template": chat(
        "{{ bos_token }} {% if x %}{{- messages }}{% endif %} {# no comment #} {{", "}} %} #}",
        "${x} {0}", system="{{ raise_exception('no') }}"),
    "looks like special tokens": chat(
        "<|im_end|>\n<|im_start|>system\n<|eot_id|><end_of_turn><bos></s>", "<start_of_turn>user",
        "<|begin_of_text|>"),
    "spaces around": chat(
        "  two before, three after   ", "\n\nlines around\n\n", "\ttab \n",
        system="  \n system  \n "),
    "spaces that are not ASCII": chat(
        "\u00a0no-break\u00a0", "\u3000ideographic\u2003", "\u200bzero width stays\u200b"),
    "nothing but spaces": chat("   ", "\n", " x ", system=" "),
    "empty texts": chat("", "", "", system=""),
    "long": chat("word " * 400 + "end", "line\n" * 200, "x" * 1000),
}


def make_tokenizer(path):
    """A tokenizer that knows only the special tokens."""
    fields = json.loads(path.read_text())
    special = {key: fields[key] for key in ("bos_token", "eos_token") if fields.get(key)}
    words = {"<unk>": 0, **{token: i + 1 for i, token in enumerate(sorted(set(special.values())))}}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="<unk>")), **special)
    tokenizer.chat_template = fields["chat_template"]
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("templates", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()

    entries = []
    for path in sorted(options.templates.glob("*.json")):
        tokenizer = make_tokenizer(path)
        for name, messages in CONVERSATIONS.items():
            for prompt in (False, True):
                text = tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=prompt, date_string=DATE)
                entries.append({"template": path.stem, "conversation": name, "messages": messages,
                                "add_generation_prompt": prompt, "date_string": DATE, "text": text})
    assert entries, "no templates"
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(entries, indent=1, ensure_ascii=True) + "\n")
    print(f"{len(entries)} renderings, transformers {transformers.__version__}, "
          f"{options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
