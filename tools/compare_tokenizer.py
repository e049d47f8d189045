#!/usr/bin/env python3
"""Compares the ids of penteract with those of Hugging Face `tokenizers` on whole files.

    tools/compare_tokenizer.py --penteract build/bin/penteract --tokenizer qwen.tiktoken --kind qwen3 play.txt …

Needs the Python packages tokenizers and (for .tiktoken) nothing else. Exit code 1 at the first file that differs.
A .tiktoken file becomes the Hugging Face tokenizer of Qwen: its merges are recovered from the ranks as
transformers' converters do, and pattern, NFC and added tokens are those of the published tokenizer.json.
"""
import argparse
import base64
import json
import subprocess
import sys
import time

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_SPECIAL = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
    "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>"
).split()
QWEN_OTHER = (
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> "
    "<tool_response> </tool_response> <think> </think>"
).split()


def byte_alphabet():
    """The printable character of every byte (GPT-2's bytes_to_unicode)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(other)}}


def parts_below(ranks, token, limit):
    """The pieces that byte-pair merges of ranks below `limit` leave of `token`."""
    parts = [bytes([b]) for b in token]
    while True:
        best = min(
            ((ranks[a + b], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in ranks), default=None
        )
        if best is None or best[0] >= limit:
            return parts
        i = best[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def qwen_from_tiktoken(path):
    ranks = {}
    with open(path, "rb") as file:
        for line in file:
            if line.strip():
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
    letters = byte_alphabet()

    def spell(token):
        return "".join(letters[b] for b in token)

    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1:
            left, right = parts_below(ranks, token, rank)
            merges.append((spell(left), spell(right)))
    tokenizer = Tokenizer(models.BPE(vocab={spell(t): r for t, r in ranks.items()}, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_PATTERN), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in QWEN_SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in QWEN_OTHER])
    return tokenizer


def load(path):
    return qwen_from_tiktoken(path) if path.endswith(".tiktoken") else Tokenizer.from_file(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--penteract", required=True, help="the program to compare")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json or .tiktoken")
    parser.add_argument("--kind", default="", help="kind of a .tiktoken file, for example qwen3")
    parser.add_argument("--save", help="also write the Hugging Face tokenizer to this tokenizer.json")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()

    reference = load(arguments.tokenizer)
    if arguments.save:
        reference.save(arguments.save)
    texts = []
    for name in arguments.files:
        with open(name, "rb") as file:
            texts.append(file.read().decode("utf-8", "replace"))
    command = [arguments.penteract, "data", "tokenize", "--tokenizer", arguments.tokenizer]
    if arguments.kind:
        command += ["--kind", arguments.kind]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    start = time.monotonic()
    run = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=False)
    ours_seconds = time.monotonic() - start
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {run.returncode}")
    ours = [json.loads(line) for line in run.stdout.splitlines()]
    if len(ours) != len(texts):
        sys.exit(f"{len(ours)} lines came back for {len(texts)} files")

    total, theirs_seconds = 0, 0.0
    for name, text, ids in zip(arguments.files, texts, ours):
        start = time.monotonic()
        expected = reference.encode(text, add_special_tokens=False).ids
        theirs_seconds += time.monotonic() - start
        total += len(expected)
        if ids != expected:
            at = next((i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), min(len(ids), len(expected)))
            sys.exit(
                f"{name}: token {at} of {len(ids)} is {ids[at : at + 5]}, Hugging Face has {expected[at : at + 5]} "
                f"of {len(expected)}, behind {reference.decode(expected[max(0, at - 12) : at])!r}"
            )
    print(
        f"equal: {len(texts)} files, {total} tokens; penteract {total / ours_seconds / 1e6:.2f} M tokens/s with start "
        f"and JSON, tokenizers {total / theirs_seconds / 1e6:.2f} M tokens/s"
    )


if __name__ == "__main__":
    main()
