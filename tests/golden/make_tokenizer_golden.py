#!/usr/bin/env python3
"""Makes tests/golden/tokenizer/: small tokenizers and the ids that Hugging Face `tokenizers` gives for nasty texts.

    python3 tests/golden/make_tokenizer_golden.py        (needs the package tokenizers; made with 0.23)

gpt2.json    ByteLevel with the built-in pattern, merges as strings, no normaliser
prefix.json  the same with add_prefix_space, merges as pairs, ignore_merges, TemplateProcessing
qwen.json    NFC, Split with Qwen's pattern, added tokens of every supported kind
deep.json    several Splits one after the other as in DeepSeek's files, a String pattern among them
tiny.tiktoken  ranks; read as kind "qwen3", expected ids from the tokenizer that tools/compare_tokenizer.py builds
cases.json   for each of them [{"text": hex of the bytes, "ids": [...], "as_text": [...]}]; as_text: special tokens
             taken as plain text. Invalid UTF-8 was decoded with errors="replace".
"""
import base64
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "tokenizer"
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import compare_tokenizer  # noqa: E402

CORPUS = [
    "The layout of a run says which rank holds which part of every tensor. It doesn't change what is computed.",
    "A window holds seq_length + 1 tokens, and it shares its last token with the next one; we've counted the rest.",
    "int main() {\n    for (int i = 0; i < 128; ++i) {\n        total += values[i];\n    }\n    return 0;\n}\n",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. L'été, le garçon naïf mange à la crêperie.",
    "В чащах юга жил бы цитрус? Да, но фальшивый экземпляр! Η γρήγορη αλεπού πηδάει πάνω από τον σκύλο.",
    "模型的布局不会改变计算结果。並行訓練需要很多顯示卡。いろはにほへと ちりぬるを。 안녕하세요 세계",
    "I'm sure you'll say they're right, we'd agree, and it's what she's said: don't, can't, won't, I've, HE'LL.",
    "1 22 333 4444 55555 3.14159 1,000,000 0x1F 2024-05-17 12:30:45\t\ttabs\r\nlines\r\n\r\nand   runs    of spaces",
    "👍🏽 👩‍👩‍👧‍👦 🇫🇷 ¡Hola! «guillemets» — dashes – and … dots; naïve café e\u0301te\u0301 नमस्ते สวัสดี שלום مرحبا",
] * 3

TEXTS = [
    "",
    " ",
    "Hello, world! It's 2024 and we've counted 1234567 tokens.",
    "I'M SURE THEY'LL say it'S what you'Ve done; ſ'ſ 'ſ",
    "e\u0301 \u00e9 A\u030a \u212b \u1e9b\u0323 q\u0323\u0307 q\u0307\u0323 \u0344 \u2126 \u2000\u2001 \uf900",
    "\u1100\u1161\u11a8 \u1100\u1161 \uac00\u11a8 한글 각",
    "a\u0345\u07fd \u0a3c\u07fd\ua674 \U00011935\U00011930 e\u08ca\u0301 e\u0301\u1dfa",
    "a\u0301\u0302\u0303\u0304\u0316\u0317\u0301\u0300 \u0301leading",
    "👍🏽 👩‍👩‍👧‍👦 🇫🇷🇩🇪 ☃️ ☃ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "模型的布局不会改变计算结果。いろはにほへと ㌀ ｱｲｳ ｶﾞ 가나다 かﾞ か\u3099",
    "  leading and trailing   ",
    "a  b   c    d\te\t\tf\n\ng\n \n h\r\ni\r\n\r\n  j\n   ",
    "\u00a0nbsp\u2003em\u200bzero\u180emvs\u3000ideographic\u2028line\u2029para\u0085nel\x1c\x1d\x1e\x1f\x0b\x0cff",
    "1 12 123 1234 ١٢٣ ௧௨ Ⅷ ½ ² ① 𝟘𝟙 12ab34 a1b2",
    "don't can't y'all'd've 'tis 'Twas l'été rock'n'roll ''' 's't're",
    "int main(){return a[i]->b<<2!=~c;} // ??? ##hash @at $5.00 100% ^_^ {} \\ | `x`",
    "https://example.org/a_b?c=d&e=f#g user@host.com C++ F# .NET",
    "नमस्ते दुनिया สวัสดีชาวโลก שָׁלוֹם مَرْحَبًا Ελλάδα Привет",
    "\x00\x01\x7f nul and controls",
    "\ufeffbom inside \ufeff and \ufffd replacement \uffff \U0010ffff \ue000 private",
    "<|endoftext|>",
    "one<|endoftext|>two <|im_start|>user\nhi<|im_end|>\n<think> a </think>",
    "<|endoftext|><|endoftext|> <|endoftext <|im_end|>|> <|im_<|im_end|>",
    "<tool_call>{\"a\": 1}</tool_call> <tool_cal> <tool_response></tool_response>",
    "cafe\u0301-token and café-token and CAFÉ-TOKEN",
    "aab <long><longer> <longer <long>er xyx|yx xyxyx",
    "||double||bar|single",
    "a.\u180e.b \u180e\u180e! x\u180e\n\u180e a   \u180eb  \u180e\n\n",
    "end<｜end▁of▁sentence｜>of <｜end of sentence｜> sentence",
    "a" * 300 + " " + "ab" * 200 + "." * 150 + " " * 90 + "x" + "\n" * 70 + "é" * 100,
    "the" * 120 + "E" * 70 + "的" * 60,
]
BYTES = [
    b"bad \xff byte \xc3 cut \xe2\x82 euro \xf0\x9f\x91 thumb",
    b"\xed\xa0\x80 surrogate \xc0\xaf overlong \xe0\x80\x80 \xf4\x90\x80\x80 \xf8\x88",
    b"\x80\x80\xbf tail \xe2",
    b"ok \xe2\x28\xa1 \xf0\x90\x28\xbc",
]


def random_texts():
    pieces = [" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "don't", "the", "The", "layout", "é", "e\u0301", "ö", "的", "模型",
              "👍", "🏽", "\u200d", "1", "23", "4567", "½", ".", ",", "!?", "--", "_", "(", "<|im_end|>", "<think>", "<long>",
              "\u0301", "\u3000", "\u00a0", "한", "\u1161", "ß", "ſ", "K", "نم", "א", "||", "xyx", "\x00", "A", "ZZ"]
    rng = random.Random(7)
    return ["".join(rng.choice(pieces) for _ in range(rng.randint(5, 60))) for _ in range(30)]


def train(pre_tokenizer, normalizer, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def split(pattern):
    return pre_tokenizers.Split(pattern, behavior="isolated", invert=False)


def make_gpt2():
    tokenizer = train(pre_tokenizers.ByteLevel(add_prefix_space=False), None, 560)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=False, special=True)])
    return tokenizer


def make_prefix():
    tokenizer = train(pre_tokenizers.ByteLevel(add_prefix_space=True), None, 520)
    tokenizer.add_special_tokens([AddedToken("<s>", special=True), AddedToken("<|im_end|>", special=True)])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]),
    ])
    return tokenizer


def make_qwen():
    tokenizer = train(
        pre_tokenizers.Sequence([
            split(Regex(compare_tokenizer.QWEN_PATTERN)),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]),
        normalizers.NFC(), 640,
    )
    tokenizer.add_special_tokens(
        [AddedToken(t, normalized=False, special=True) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in ("<think>", "</think>", "<long>", "<longer>", "xy", "xyx")])
    tokenizer.add_tokens([AddedToken("cafe\u0301-token", normalized=True), AddedToken("\u212b", normalized=True)])
    return tokenizer


def make_deep():
    tokenizer = train(
        pre_tokenizers.Sequence([
            split("||"),
            split(Regex(r"\p{N}{1,3}")),
            split(Regex("[一-龥\u3040-ゟ゠-ヿ]+")),
            split(Regex(
                "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]),
        normalizers.Sequence([]), 560,
    )
    tokenizer.add_special_tokens([AddedToken("<｜end▁of▁sentence｜>", normalized=False, special=True)])
    return tokenizer


def write_json(name, tokenizer, change=lambda data: None):
    data = json.loads(tokenizer.to_str())
    change(data)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
    return Tokenizer.from_file(str(path))


def merges_as_strings(data):
    data["model"]["merges"] = [" ".join(pair) if isinstance(pair, list) else pair for pair in data["model"]["merges"]]


def ignore_merges(data):
    data["model"]["ignore_merges"] = True
    data["model"]["merges"] = data["model"]["merges"][: len(data["model"]["merges"]) // 2]  # so that it matters


def write_tiktoken(tokenizer):
    letters = {c: b for b, c in compare_tokenizer.byte_alphabet().items()}
    model = json.loads(tokenizer.to_str())["model"]
    bytes_of = [bytes(letters[c] for c in token) for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    path = OUT / "tiny.tiktoken"
    path.write_text("".join(f"{base64.b64encode(t).decode()} {rank}\n" for rank, t in enumerate(bytes_of)))
    return compare_tokenizer.qwen_from_tiktoken(str(path))


def cases(tokenizer):
    out = []
    for raw in [text.encode("utf-8") for text in TEXTS + random_texts()] + BYTES:
        text = raw.decode("utf-8", "replace")
        tokenizer.encode_special_tokens = False
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = True
        as_text = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        case = {"text": raw.hex(), "ids": ids}
        if as_text != ids:
            case["as_text"] = as_text
        out.append(case)
    return out


def main():
    OUT.mkdir(exist_ok=True)
    plain = train(
        pre_tokenizers.Sequence([
            split(Regex(compare_tokenizer.QWEN_PATTERN)),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]),
        normalizers.NFC(), 480,
    )
    tokenizers = {
        "gpt2": write_json("gpt2", make_gpt2(), merges_as_strings),
        "prefix": write_json("prefix", make_prefix(), ignore_merges),
        "qwen": write_json("qwen", make_qwen()),
        "deep": write_json("deep", make_deep()),
        "tiny": write_tiktoken(plain),
    }
    lines = []
    for name, tokenizer in tokenizers.items():
        rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases(tokenizer))
        lines.append(f'"{name}": [\n{rows}\n]')
    (OUT / "cases.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
