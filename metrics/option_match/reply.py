"""Cut a reply down to the words that answer: no next turn, no markup.

A leaf module: ``option_match.py`` imports it and it imports nothing beside it, because `evaluate`
copies only the files that the main script names.
"""

import re
import unicodedata
from typing import NamedTuple

HEAD_CHARS = 4_000
TAIL_CHARS = 12_000

_FOLDED = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″«»「」『』", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("【〔〖", "["),
        **dict.fromkeys("】〕〗", "]"),
        **dict.fromkeys("。．", "."),
        **dict.fromkeys("✓✔✅☑", " yes "),
        **dict.fromkeys("✗✘❌✖☒", " no "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\xad\ufe0f", ""),
        "▁": " ",
        "Ġ": " ",
        "Ċ": "\n",
        "→": "->",
        "⇒": "->",
        "∴": "so ",
        "、": ",",
    }
)

_TURN_END = (
    r"<\|(?:im_end|endoftext|eot_id|end|end_of_text|end of sentence|return"
    r"|END_OF_TURN_TOKEN)\|>|</s>|<eos>|<end_of_turn>|<EOT>|<turn\|>"
)
_USER_TURN = (
    r"<\|im_start\|>\s?(?:user|system)|<\|start_header_id\|>\s?(?:user|system)|<start_of_turn>user"
    r"|<\|(?:user|system|human|User)\|>|\[INST\]"
    r"|(?:^|\n)[ \t#*]{0,8}(?:USER|User|Human|HUMAN|Instruction|Question|QUESTION|Next question"
    r"|New question|Problem|Q|问题|問題|题目|題目|質問|질문|Frage)"
    r"[ \t]{0,2}\d{0,3}[ \t*]{0,4}:"
    r"|(?:^|\n)[ \t]{0,8}(?:user|human)[ \t]{0,2}\n"
    r"|(?<=[\w.)]) (?:Question|USER|User|Human|Q)(?: ?\d{1,3})?:(?= ?[A-Z][a-z]+ )"
)
_ASSISTANT_TURN = (
    r"<\|im_start\|>\s?assistant|<\|start_header_id\|>\s?assistant\s?<\|end_header_id\|>"
    r"|<start_of_turn>model|<\|(?:assistant|Assistant)\|>|\[/INST\]|<\|start\|>assistant"
    r"|(?:^|\n)[ \t#*]{0,8}(?:ASSISTANT|Assistant|Response|Model)[ \t*]{0,4}:"
    r"|(?:^|\n)[ \t]{0,8}assistant[ \t]{0,2}\n"
    r"|(?<=\S) (?:ASSISTANT|Assistant):"
)
_TURN = re.compile(f"(?P<end>{_TURN_END})|(?P<user>{_USER_TURN})|(?P<assistant>{_ASSISTANT_TURN})")
_TURN_HINT = re.compile(
    r"<[|/sebtE]|\[/?INST|[Uu]ser|USER|[Hh]uman|HUMAN|nstruction|uestion|QUESTION|Problem"
    r"|Q ?\d{0,3}:|ssistant|ASSISTANT|Response|Model"
    r"|[问問题題质質질]|Frage"
)
_NEXT_QUIZ = re.compile(r"\?[^\n]{0,80}\n\s{0,8}\(?A[.:)]")
_LETTER_LINE = re.compile(
    r"\s*(?:answer|option|choice)?[\s:(*\"'`]{0,6}[a-z](?:[\s.)*\"'`]{0,6}(?:\n|$)"
    r"|[.):*]{1,3} [^\n]{1,80}\n\s*\n)",
    re.IGNORECASE,
)

_OPEN_TAG = re.compile(
    r"<\|?(answer|final_answer|final answer|final|choice|option|result|prediction|ans"
    r"|begin_of_box)\|?>"
    r"|\[(answer|final|final_answer)\]",
    re.IGNORECASE,
)
_JSON_ANSWER = re.compile(
    r"[\"'](?:(?:the_?)?(?:final|correct|selected|chosen|best|predicted|my)?[_ -]?"
    r"(?:answer|option|choice|letter)(?:[_ -]?(?:letter|choice|option|id|key))?"
    r"|selection|selected|prediction|pred|result|response|output|答案|选项|選項|정답"
    r"|答え)[\"']\s{0,4}"
    r":\s{0,4}(?:\"((?:[^\"\\\n]|\\.){0,400})\"|'((?:[^'\\\n]|\\.){0,400})'"
    r"|\[([^\[\]]{0,200})\]|(-?[\w.%]{1,40}))",
    re.IGNORECASE,
)
_BOXED = re.compile(r"[\\\x08]?f?b?oxed\s?\{")

_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
_UNTICKED = re.compile(r"^[^\w\n]*\[ \][^\n]*$|\[[xX]\]", re.MULTILINE)
_LATEX_FONT = re.compile(r"\\[A-Za-z]{2,14}(?=\s?\{)|\\(?:bf|rm|it|left|right|quad)(?![A-Za-z])")
_LATEX_MARK = re.compile(r"\\[()\[\],;:! ]|\$|\\(?=[{}%#_&])")
_SINGLE_LETTER_TAG = re.compile(r"<([A-Z])>(?![^<]{0,200}</\1>)")
_TAG = re.compile(
    r"</?[A-Za-z][^<>\n]{0,60}>|<\|[^<>\n]{1,40}\|>|\[/?(?:INST|answer)\]", re.IGNORECASE
)
_MARKDOWN = re.compile(r"\*+|`+|(?<!\w)_+|_+(?!\w)|#{2,}|^[ \t]*(?:#|>+(?!\s?\d))", re.MULTILINE)


class Answered(NamedTuple):
    """What a reply says once it is cleaned.

    Attributes:
        text: The prose, without markup.
        values: Contents of answer tags and of JSON answer keys, in order (R3).
    """

    text: str
    values: list[str]


def fold(text: str) -> str:
    """Fold full-width and styled letters, quotes, dashes and ticks to plain ones (R21)."""
    return (
        text
        if text.isascii()
        else unicodedata.normalize("NFKC", text.translate(_FOLDED)).translate(_FOLDED)
    )


def first_turn(text: str) -> str:
    """Keep the first answer: drop an echoed prompt before it and new turns after it (R23, R24)."""
    if _TURN_HINT.search(text):
        text = _cut_turns(text)
    letter_line = _LETTER_LINE.match(text)
    if letter_line and _NEXT_QUIZ.search(text, letter_line.end()):
        return letter_line.group()
    return text


def _cut_turns(text: str) -> str:
    start = 0
    is_prompt = False
    for found in _TURN.finditer(text):
        has_words = bool(text[start : found.start()].strip(" \t\r\n*#"))
        kind = found.lastgroup
        closes_prompt = found.group() == "[/INST]" and not text.endswith("[/INST]")
        if kind == "assistant" and (is_prompt or not has_words or closes_prompt):
            start, is_prompt = found.end(), False
        elif kind == "user" and not has_words:
            # A plain "Question:" may be followed by the answer itself, without a turn of its own.
            start, is_prompt = found.end(), True
        elif has_words and not (is_prompt and kind == "end"):
            return text[start : found.start()]
    return text[start:]


def tagged_values(text: str) -> list[str]:
    """Return the contents of answer tags and JSON answer keys, the deciding one last (R3)."""
    values: list[str] = []
    if "<" in text or "[" in text:
        for found in _OPEN_TAG.finditer(text):
            name = (found.group(1) or found.group(2)).lower()
            closing = "end_of_box" if name == "begin_of_box" else name
            rest = text[found.end() : found.end() + 2_000]
            end = re.search(rf"[<\[]\|?/?{re.escape(closing)}\|?[>\]]", rest, re.IGNORECASE)
            values.append(rest[: end.start()] if end else rest)
            if len(values) > 20:
                del values[0]
    if not values and ("{" in text or '":' in text):
        for found in _JSON_ANSWER.finditer(text):
            values.append(next((group for group in found.groups() if group is not None), ""))
    return values


def plain(text: str) -> str:
    """Remove markdown, LaTeX, HTML and special tokens, keeping the words (R21, R22, R23)."""
    if "[ ]" in text and "[x]" in text.lower():
        text = _UNTICKED.sub("", text)
    if "~~" in text:
        text = _STRUCK.sub(" ", text)
    if "\\" in text or "$" in text or "{" in text:
        text = _LATEX_MARK.sub(" ", _LATEX_FONT.sub("", _BOXED.sub(" answer: {", text)))
        text = text.replace("{", " ").replace("}", " ")
    if "<" in text or "[/" in text or "[I" in text:
        text = _TAG.sub(" ", _SINGLE_LETTER_TAG.sub(r"(\1)", text))
    if "*" in text or "_" in text or "`" in text or "#" in text or ">" in text:
        text = _MARKDOWN.sub("", text)
    if "|" in text:
        text = text.replace("|", " ")
    return text.strip()


def read_reply(reply: str) -> Answered:
    """Clean a reply without thoughts; work is linear in its length.

    Only its first 4,000 and last 12,000 characters are read: no answer hides in the middle of a
    megabyte, and Unicode folding of a hostile one is quadratic.
    """
    if len(reply) > HEAD_CHARS + TAIL_CHARS:
        reply = f"{reply[:HEAD_CHARS]}\n{reply[-TAIL_CHARS:]}"
    text = first_turn(fold(reply).strip())
    return Answered(plain(text), tagged_values(text))
