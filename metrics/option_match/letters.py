"""Find the option letters that a cleaned reply names, and nothing that only looks like one.

A leaf module (see ``reply.py``).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_ORDINALS = {
    "first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3,
    "fifth": 4, "5th": 4, "sixth": 5, "6th": 5, "seventh": 6, "7th": 6, "eighth": 7, "8th": 7,
    "last": -1, "final": -1,
    "第一": 0, "第二": 1, "第三": 2, "第四": 3, "第五": 4, "第1": 0, "第2": 1, "第3": 2, "第4": 3,
    "第5": 4, "最后一": -1, "最後一": -1,
}  # fmt: skip
_ORDINAL_WORD = r"first|second|third|fourth|fifth|sixth|seventh|eighth|last|[1-8](?:st|nd|rd|th)"
_ORDINAL = re.compile(
    rf"(?<!\ba\s)\b(?:the\s)?({_ORDINAL_WORD}|final)\s(?:answer\s)?(?:option|choice|alternative"
    r"|candidate)\b(?!s)"
    rf"|\b(?:the\s)({_ORDINAL_WORD})\s(?:one|answer)(?=\s?(?:[.!,;\n]|$|is\s(?:correct"
    r"|right|the)))"
    rf"|^\W{{0,4}}(?:(?:it's|it\sis|i\schoose|i\spick)\s)?(?:the\s)?({_ORDINAL_WORD})\W{{0,4}}$"
    rf"|\b(?:choose|pick|select|say|go\swith|is)\s(?:the\s)?({_ORDINAL_WORD})(?=\s?(?:[.!\n]|$))"
    r"|(第[一二三四五1-5]|最[后後]一)\s?[个個]?(?:选项|選項|项|項|個|个)?(?:选项|選項)?",
    re.IGNORECASE,
)
_ORDINAL_HINT = re.compile(
    r"first|second|third|fourth|fifth|sixth|seventh|eighth|last|final|[1-8](?:st|nd|rd|th)\b|[第最]"
)
_NUMBERED_OPTION = re.compile(
    r"\b(?:option|choice|alternative)\s(?:number\s|no\.?\s|#\s?)?"
    r"([1-9]|one|two|three|four|five|six)\b(?![.,]\d)",
    re.IGNORECASE,
)
_CARDINALS = {"one": 0, "two": 1, "three": 2, "four": 3, "five": 4, "six": 5}

# A lower-case letter is an option only where nothing else can be meant (R8).
_LOWER = re.compile(
    r"^[\s\"'(\[]{0,4}([a-z])[\s\"'\]]{0,3}(?:[.):](?![\w.])|, (?:because|since|as)\b|$)"
    r"|(?<!\w)\(([a-z])\)"
    r"|\b(?:option|choice|letter|alternative|buchstabe|opción|opção"
    r"|opzione)\s?[\"'(:]{0,2}\s?([a-z])(?![\w'])"
    r"|\b(?:answer|ans|choice|option|antwort|respuesta|réponse|resposta|risposta)\b(?:\s(?:is"
    r"|would\sbe|ist|est|es|é|è)|'s|\s?[:=]){1,2}\s?[\"'(\[]{0,2}"
    r"([a-z])(?=[\"')\]]{0,2}\s?(?:[.,;:!)\n]|$))(?!\.\w)"
    r"|\b(?:choose|select|pick|go\swith|go\sfor|say|guess|so"
    r"|is)\s[\"'(]{0,2}([b-hj-z])(?=[\"')]{0,2}\s?(?:[.,;!\n]|$))(?!\.\w)",
    re.IGNORECASE | re.MULTILINE,
)
# A lone letter that is not an article; most replies have none, and _LOWER is slow.
_LOWER_HINT = re.compile(
    r"(?<![\w'.])[a-z](?![\w'])"
    r"(?:(?<!a)|(?! [\w\[])|(?<=[Oo]ption a)|(?<=[Cc]hoice a)|(?<=etter a))"
)
_JOINED_LETTERS = re.compile(
    r"(?:\b(?:answers?|options?|choices?|choose|select|pick)\b(?: is| are|\s?[:=])?\s?[\"'(\[]?"
    r"|^\W*)([A-Z]{2,6})(?=\W*$|[.,;\n])",
    re.IGNORECASE | re.MULTILINE,
)

_LETTER = re.compile(
    r"(?<![A-Za-z0-9_°À-ɏ])(?<![A-Za-z0-9]-)(?<![A-Za-z]')(?<![A-Z]\.)(?<![A-Za-z]&)"
    r"([A-Z])"
    r"(?![A-Za-z0-9_+#°À-ɏ]|'[A-Za-z]|-[A-Za-z0-9]|\.[A-Za-z]\.)"
)
# "A" and "I" are words: before another word they are letters only if that word says so (R20).
_WORD_AFTER = re.compile(r"[ \t]{1,3}(?![B-Z]\b)(?:[A-Za-z0-9]|['\"]?[a-z])")
_VERB_AFTER = re.compile(
    r"[ \t]{1,3}(?:is|was|are|isn't|seems|appears|looks|because|since|as|and|or|nor|but|not|for|due"
    r"|given|fits|matches|would|should|could|can(?:not|'t)?|will|has|does(?:n't)?|must|may|might"
    r"|over|here|rather|instead|than|to|until|by|with|which|where|then|too|yes|no|undercounts"
    r"|overcounts|misses|und|oder|ou|et|ist|est|es)\b",
    re.IGNORECASE,
)
_NOUN_BEFORE = re.compile(r"\b(?:options?|choices?|letters?|alternatives?)\s?[\"'(:]{0,3}\s?$")
_BEFORE_A_NAME = tuple(" \"'")
_STRONG_AFTER = re.compile(r"[\"'\]]{0,2}\s?(?:[.):]|$|\n)")


class LetterMention(NamedTuple):
    """One place where a letter stands for an option.

    Attributes:
        start: First character.
        end: One past the last character, the option's own text included where it follows.
        letter: The letter, which may lie outside the row's options.
        is_listed: Whether it is written as in a list of options, ``B.``, ``(B)``, ``B:``.
    """

    start: int
    end: int
    letter: str
    is_listed: bool


def _ordinal_letter(found: re.Match[str], n_options: int) -> str:
    word = next(group for group in found.groups() if group)
    index = _ORDINALS[word.lower()]
    index = n_options - 1 if index < 0 else index
    verb = re.match(r"(?:choose|pick|select|say|go\swith|is)\s", found.group(), re.IGNORECASE)
    return f"{verb.group() if verb else ''}option {ALPHABET[index]}"


def promote(text: str, n_options: int) -> str:
    """Rewrite ordinals, lower-case options and joined letters as plain capitals (R8, R12, R15).

    Args:
        text: The cleaned reply.
        n_options: How many options the row has.
    """
    if _ORDINAL_HINT.search(text.lower()):
        text = _ORDINAL.sub(lambda found: _ordinal_letter(found, n_options), text)
    if _LOWER_HINT.search(text):
        text = _LOWER.sub(_capitalized, text)
    valid = ALPHABET[:n_options]
    return _JOINED_LETTERS.sub(lambda found: _spelled(found, valid), text)


def _spelled(found: re.Match[str], valid: str) -> str:
    letters = found.group(1)
    if len(set(letters)) < len(letters) or not set(letters) <= set(valid):
        return found.group()
    return found.group()[: -len(letters)] + " and ".join(letters)


def has_numbered_option(text: str) -> bool:
    """Tell whether the text says "option 2" or the like."""
    return _NUMBERED_OPTION.search(text) is not None


def promote_numbered(text: str) -> str:
    """Rewrite "option 2" as "option B"; for options that are numbers it may mean the text (R15)."""
    return _NUMBERED_OPTION.sub(_numbered_letter, text)


def _numbered_letter(found: re.Match[str]) -> str:
    number = found.group(1).lower()
    index = _CARDINALS[number] if number in _CARDINALS else int(number) - 1
    return f"option {ALPHABET[index]}"


def _capitalized(found: re.Match[str]) -> str:
    position = found.start(found.lastindex or 0) - found.start()
    whole = found.group()
    return whole[:position] + whole[position].upper() + whole[position + 1 :]


def find_letters(
    text: str, folded_options: Sequence[str], name_before: re.Pattern[str]
) -> list[LetterMention]:
    """Return every letter of the text that names an option, in order (R11, R20).

    Args:
        text: The promoted reply.
        folded_options: The option texts in lower case, to take "B (rider)" as one mention.
        name_before: What stands before a letter that is part of a name.
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    mentions: list[LetterMention] = []
    for found in _LETTER.finditer(text):
        start, end = found.span()
        letter = found.group()
        index = ord(letter) - ord("A")
        before = lowered[max(0, start - 36) : start]
        after = end
        while after < len(text) and after < end + 6 and text[after] in " \t:.)(\"'],-=":
            after += 1
        own_text = folded_options[index] if index < len(folded_options) else ""
        has_own_text = (
            bool(own_text)
            and lowered.startswith(own_text, after)
            and not (text[after + len(own_text) : after + len(own_text) + 1].isalnum())
        )
        has_noun = bool(before) and _NOUN_BEFORE.search(before) is not None
        if before[-1:] in _BEFORE_A_NAME and name_before.search(before):
            continue
        if (
            letter in "AI"
            and not (has_noun or (has_own_text and text[end] != " "))
            and _WORD_AFTER.match(text, end)
            and (letter == "I" or not _VERB_AFTER.match(text, end))
        ):
            continue
        is_listed = text[end : end + 1] in (".", ")", ":") or before.endswith("(")
        if index >= len(folded_options) and not (has_noun or _STRONG_AFTER.match(text, end)):
            continue
        if has_own_text:
            end = after + len(own_text)
            if text[end : end + 1] == ")":
                end += 1
        mentions.append(LetterMention(start, end, letter, is_listed))
    return mentions
