"""Find option texts in a cleaned reply: numbers, boxes and names, whole tokens only.

A leaf module (see ``reply.py``).
"""

import re
import unicodedata
from functools import cached_property, lru_cache
from typing import NamedTuple

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MIN_BOX_NUMBERS = 4


class TextMention(NamedTuple):
    """One place where a reply states an option's text.

    Attributes:
        start: First character.
        end: One past the last character.
        letter: The option's letter.
    """

    start: int
    end: int
    letter: str


class Quantity(NamedTuple):
    """A number with its unit, comparable across spellings.

    Attributes:
        value: In the base unit of its dimension, rounded to nine digits.
        raw: As written, before the unit was applied.
        dimension: "" for a bare number, else "length", "area", "percent", "angle" or "pixel".
        start: First character.
        end: One past the last character.
    """

    value: float
    raw: float
    dimension: str
    start: int
    end: int


_UNITS: dict[str, tuple[str, float]] = {}
for _dimension, _factor, _spellings in (
    ("length", 1.0, "m meter meters metre metres 米"),
    ("length", 1000.0, "km kilometer kilometers kilometre kilometres 公里 千米"),
    ("length", 0.01, "cm centimeter centimeters centimetre centimetres 厘米"),
    ("length", 0.001, "mm millimeter millimeters millimetre millimetres"),
    ("length", 0.3048, "ft foot feet"),
    ("length", 1609.344, "mi mile miles"),
    ("length", 0.9144, "yd yard yards"),
    ("area", 1.0, "m2 sqm m^2 squaremeters squaremetres squaremeter squaremetre sqmeters 平方米"),
    ("area", 1e6, "km2 km^2 sqkm squarekilometers squarekilometres 平方公里"),
    ("area", 1e4, "ha hectare hectares 公顷"),
    ("percent", 1.0, "% percent percentage pct"),
    ("angle", 1.0, "° deg degree degrees 度"),
    ("pixel", 1.0, "px pixel pixels 像素"),
):
    for _spelling in _spellings.split():
        _UNITS[_spelling] = (_dimension, _factor)
_UNIT = (
    r"(?:square\s(?:kilo)?met(?:er|re)s?|sq\.?\s?k?m(?:eters)?\b|(?:kilo|centi|milli)?met(?:er"
    r"|re)s?\b"
    r"|k?m(?:\^?2)(?!\d)|[kcm]?m\b|feet\b|foot\b|ft\b|miles?\b|mi\b|yards?\b|yd\b|hectares?\b"
    r"|ha\b|percent(?:age)?\b|pct\b|%"
    r"|°|deg(?:rees?)?\b|px\b|pixels?\b|平方公里|平方米|公里|千米|厘米|米|公顷|度|像素)"
)
_UNIT_AFTER = re.compile(rf"\s(?P<unit>{_UNIT})")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.À-ɏ])(?<![A-Za-z_]-)(?<!\$)(?P<number>[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)"
    r"|[-−]?\d{1,15}(?:\.\d{1,9})?)"
    rf"(?:[\s-]{{0,2}}(?P<unit>{_UNIT})|(?![A-Za-z0-9_]|,\d{{3}}(?!\d)|\.\d|\s?[x×]\s?\d"
    r"|-[A-Za-z]))",
)

_ONES = {
    word: value
    for value, words in enumerate(
        (
            "zero", "one eins", "two zwei dos deux", "three drei tres trois",
            "four vier cuatro quatre",
            "five fünf cinco cinq", "six sechs seis", "seven sieben siete sept",
            "eight acht ocho huit",
            "nine neun nueve neuf", "ten zehn diez", "eleven elf", "twelve zwölf", "thirteen",
            "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
        )
    )
    for word in words.split()
}  # fmt: skip
_TENS = dict(
    zip(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        range(20, 100, 10),
        strict=True,
    )
)
_SMALL = "|".join(sorted(_ONES, key=len, reverse=True))
_TEN = "|".join(_TENS)
_BELOW_HUNDRED = (
    rf"(?:(?:{_TEN})(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine))?|{_SMALL})"
)
_NUMBER_WORD = re.compile(
    rf"(?<![\w-])(?:(?P<dozen>(?:a|one|two|three|four|five|half\sa)\sdozen)\b(?!s)"
    r"|(?P<hundreds>(?:a|one|two|three|four|five|six|seven|eight|nine)\s(?:hundred"
    rf"|thousand)(?:\s(?:and\s)?{_BELOW_HUNDRED})?)\b"
    rf"|(?P<small>{_BELOW_HUNDRED}))(?![\w])(?!-[A-Za-z])",
)
_NOT_A_COUNT = re.compile(
    r"\b(?:the|this|that|which|no|any|each|every|some|another|only the|other|last|next|first|is"
    r"|was|correct|right)\s$"
)
_NOT_A_COUNT_AFTER = re.compile(r"\s(?:of|is|can|could|that|which|would|must|might|or)\b")
_CJK_NUMERAL = re.compile(
    r"(?<!第)([一二两三四五六七八九十]{1,3})(?=[个個辆輛艘架只隻种種类類台座条條名位匹つ種]|\W*$)"
)
_CJK_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"两": 2}
_NONE_PRESENT = re.compile(
    r"(?:\b(?:there (?:are|is)|i (?:can )?see|i count)|^\W*) ?no\s\w|\b(?:zero|none)\b"
)

_BRACKETED = re.compile(r"[\[(]\s?-?\d+(?:\.\d+)?(?:\s?,\s?-?\d+(?:\.\d+)?)+\s?[\])]")
_ENUMERATION = re.compile(r"^[ \t]{0,4}(\d{1,2})[.)](?=[ \t]+\S)", re.MULTILINE)
_APPROX = (
    r"(?:\s|\b(?:of|is|are|was|to|about|approximately|around|roughly|exactly|be|just|nearly"
    r"|almost|only|a|an|the|at|option|most|likely|probably|comes?|out|up)\b|[~≈:=\"'(-])*$"
)
_TOTAL_BEFORE = re.compile(
    r"(?:\b(?:totals?|totall?ing|altogether|overall|in all|sum|equals|makes?|making|gives|giving"
    r"|yields|so|therefore|thus|hence|adds? up to|combined|insgesamt|en total|au total)\b"
    rf"[^.;\n\d]{{0,30}}?|=|->|≈|共有?|总共|總共|合計|一共|총)\s?{_APPROX}",
)
_TOTAL_AFTER = re.compile(
    r" ?(?:[\w-]{1,20} ){0,5}?(?:in total|total\b|altogether|in all\b|overall|combined"
    r"|insgesamt|en total|au total)"
)
_STATED_BEFORE = re.compile(
    r"\b(?:there (?:are|is|'s)|there's|i (?:can )?(?:see|count|counted|estimate)|count(?: is"
    rf"| of)?|number (?:of [\w\s-]{{1,60}}? )?(?:is|:)|contains?|shows?|approximately|about"
    r"|around|roughly|estimate(?:d at| is)?|length (?:is|of)|distance (?:is|of)"
    rf"|measures?)\s{_APPROX}",
)
_STATED_AFTER = re.compile(
    r"\s(?:[\w-]{1,20}\s){0,3}?(?:objects?|targets?|categories|instances|items)\b"
)
_PART_AFTER = re.compile(r"\s(?:\w+\s){0,2}?(?:of (?:them|which|whom|these|those)|more|others?)\b")
_PART_BEFORE = re.compile(r"\b(?:of (?:which|them|whom)|including|another|plus)\s$|±\s?$")
_BOUND_BEFORE = re.compile(
    r"\b(?:at (?:least|most)|under|below|above|over|beyond|up to|exceeds|(?:minimum|maximum) of"
    r"|than)\s$|[<>≤≥]=?\s?$"
)
_BOUND_AFTER = re.compile(r"\+(?!\s?\d)|\s(?:or|and)\s(?:more|fewer|less|over|above|below|under)\b")
_PLACE_AFTER = re.compile(r"\s(?:are\s|is\s)?(?:on|in|at|near|under|behind|of)\b")
_LISTED_BETWEEN = re.compile(
    r"\s?(?:[\w-]{1,20}\s?){0,5}(?:,|\band\b|\bplus\b|\+|&|;)[\s,]{0,3}(?:and\s|another\s|plus\s"
    r"|then\s)?"
)
_OPTION_BEFORE = re.compile(r"\b(?:option|choice|no\.) $")
_YEAR_BEFORE = re.compile(r"\bin $")

_TOKEN = re.compile(r"[^\W_]+")
_GLUED_BEFORE = re.compile(r"[^\W_][-_]\w")
_GLUED_AFTER = re.compile(r"[-_][^\W_]|(?<=\d)[.,]\d")
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_INTEGER = re.compile(r"(?<![A-Za-z0-9_.])-?\d{1,9}(?:\.\d{1,6})?(?![A-Za-z0-9_])")
_RUN_GAP = re.compile(r"[\s,;:()\[\]{}<>|\"'-]*")
_NONE_OF = re.compile(
    r"\bnone\s(?:of|are|is|fits?|matche?s?|apply|applies)\b|^\W*(?:none|neither)\W*$"
    r"|\bno(?:ne)?\s(?:correct|right|suitable)\s(?:option|answer|choice)\b|\b(?:answer|option"
    r"|choice)\s(?:is\s)?none\b|以上都不|都不是",
    re.IGNORECASE,
)
_NONE_OPTION = re.compile(
    r"^\W*(?:none|neither|no correct (?:option|answer)|以上都不|都不是)", re.IGNORECASE
)
_POLAR = {
    **dict.fromkeys(("yes", "yeah", "yep", "yup", "是", "是的", "有", "ja", "sí", "oui"), "yes"),
    **dict.fromkeys(("no", "nope", "nah", "否", "不是", "没有", "沒有", "nein", "non"), "no"),
    **dict.fromkeys(("true", "correct"), "yes"),
    **dict.fromkeys(("false", "incorrect", "untrue"), "no"),
}
_LEADING_POLAR = re.compile(
    r"^[\W_]*(?:answer\s?[:=]\s?)?(yes|yeah|yep|yup|no|nope|nah|true|false|是的?|否|不是|没有|沒有|有|ja"
    r"|nein|oui|non|sí)(?![\w-])(?!\.?\s?\d|\s(?:idea|clue|answer|comment|information|image|picture"
    r"|option|way|one\b|doubt|problem|red\b|text))",
    re.IGNORECASE,
)
_CLOSING_POLAR = re.compile(
    r"(?:\b(?:answer|say|so|therefore|thus|hence|conclude|conclusion|wait|actually)\b[^.;\n]{0,25}?"
    r"|答案)[\s:,是\"'(]{0,3}(?<![A-Za-z])(yes|no)(?![\w-])(?=[\"')]?\s?(?:[.,;!\n]|$))",
    re.IGNORECASE,
)
_OTHER_POLAR = re.compile(r"\W{0,3}(?:or|and|/)\W{0,3}(?:yes|no)\b", re.IGNORECASE)
_NO_SUCH = re.compile(
    r"\bthere (?:is|are)(?:n't| not|\sno(?!\s(?:doubt|question|way)))\b|\bno\W*$|没有|沒有",
    re.IGNORECASE,
)
_POLAR_WORD = re.compile(
    r"(?<![\w-])(yes|no)(?![\w-])(?!\s(?:longer|doubt|idea|way|matter|need|clue))", re.IGNORECASE
)
_TRUTH = re.compile(
    r"(\bnot\s|n't\s)?(?:\w+\s)?\b(true|correct|false|incorrect|untrue)\b", re.IGNORECASE
)


def _fold_option(text: str) -> str:
    folded = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return folded.strip().lower()


def _word_value(found: re.Match[str]) -> int:
    words = re.split(r"[\s-]+", found.group().lower())
    if found["dozen"]:
        return 6 if words[0] == "half" else 12 * (1 if words[0] == "a" else _ONES[words[0]])
    total = 0
    for word in words:
        if word in ("hundred", "thousand"):
            total = max(total, 1) * (100 if word == "hundred" else 1000)
        elif word in _TENS:
            total += _TENS[word]
        elif word in _ONES:
            total += _ONES[word]
    return total


def _cjk_value(numeral: str) -> int:
    if "十" not in numeral:
        return int("".join(str(_CJK_DIGITS[digit]) for digit in numeral))
    tens, _, ones = numeral.partition("十")
    return 10 * _CJK_DIGITS.get(tens, 1) + _CJK_DIGITS.get(ones, 0)


def find_quantities(text: str) -> list[Quantity]:
    """Return the numbers of a text that can be an amount, digits and words alike (R5, R16, R20)."""
    quantities: list[Quantity] = []
    for found in _NUMBER.finditer(text):
        number = found["number"].replace(",", "").replace("−", "-")
        start, end = found.span()
        if number[0] == "-" and start and text[start - 1] not in " \t\n([:=":
            number = number[1:]
        raw = float(number)
        unit = re.sub(r"[\s.]", "", (found["unit"] or "").lower())
        dimension, factor = _UNITS.get(unit, ("", 1.0))
        quantities.append(Quantity(round(raw * factor, 9), raw, dimension, start, end))
    for found in _NUMBER_WORD.finditer(text):
        if found.group() == "one" and (
            _NOT_A_COUNT.search(text[max(0, found.start() - 12) : found.start()])
            or _NOT_A_COUNT_AFTER.match(text, found.end())
        ):
            continue
        raw = float(_word_value(found))
        unit_found = _UNIT_AFTER.match(text, found.end())
        unit = re.sub(r"[\s.]", "", unit_found["unit"].lower()) if unit_found else ""
        dimension, factor = _UNITS.get(unit, ("", 1.0))
        quantities.append(
            Quantity(round(raw * factor, 9), raw, dimension, found.start(), found.end())
        )
    for found in _CJK_NUMERAL.finditer(text):
        value = float(_cjk_value(found.group(1)))
        quantities.append(Quantity(value, value, "", found.start(), found.end()))
    quantities.sort(key=lambda quantity: quantity.start)
    return quantities


def _option_quantity(text: str) -> Quantity | None:
    quantities = find_quantities(text)
    if len(quantities) != 1:
        return None
    quantity = quantities[0]
    around = (text[: quantity.start] + text[quantity.end :]).strip(" \t.~≈")
    return (
        quantity if around.lower() in ("", "about", "approximately", "around", "个", "個") else None
    )


def _plural_forms(name: str) -> set[str]:
    """Return the plural and singular spellings of a name; person and people stay apart (R5)."""
    forms = {name}
    if name.isascii() and name.isalpha() and len(name) > 2:
        forms |= {name + "s", name + "es"}
        if name.endswith("y"):
            forms.add(name[:-1] + "ies")
        if name.endswith("s") and not name.endswith(("ss", "us", "is")):
            forms.add(name[:-1])
    return forms


class OptionTable:
    """The options of one row; each way to look for them is prepared when it is first needed."""

    def __init__(self, options: tuple[str, ...]) -> None:
        """Fold the option texts the way replies are folded.

        Args:
            options: The option texts in the order of their letters.
        """
        self.folded = tuple(_fold_option(option) for option in options)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """One amount per option if all options are amounts, else none."""
        found = [_option_quantity(option) for option in self.folded]
        quantities = tuple(quantity for quantity in found if quantity is not None)
        return quantities if len(quantities) == len(found) else ()

    @cached_property
    def boxes(self) -> tuple[tuple[int, ...], ...]:
        """The integers of each option if all options are boxes, else none."""
        boxes = tuple(
            tuple(int(float(number)) for number in _INTEGER.findall(option))
            for option in self.folded
        )
        are_boxes = all(len(box) >= MIN_BOX_NUMBERS for box in boxes)
        return boxes if are_boxes else ()

    @cached_property
    def names(self) -> dict[str, set[int]]:
        """Indices of the options by spelling, without hyphens and blanks."""
        spaced = [
            "" if self.is_unspaced(option) else "".join(_TOKEN.findall(option))
            for option in self.folded
        ]
        names: dict[str, set[int]] = {}
        for index, name in enumerate(spaced):
            for form in _plural_forms(name) if name else ():
                if form == name or form not in spaced:
                    names.setdefault(form, set()).add(index)
        return names

    @cached_property
    def longest_name(self) -> int:
        """How many words a name may take in a reply: "north east" is one option "northeast"."""
        return 1 + max(len(_TOKEN.findall(option)) for option in self.folded)

    @staticmethod
    def is_unspaced(option: str) -> bool:
        """Tell whether an option is in a script without spaces; one sign is read as a word."""
        return len(option) > 1 and _CJK.search(option) is not None

    @cached_property
    def polar(self) -> dict[str, str]:
        """Letters of "yes" and "no" if each is one option, else nothing."""
        words = [_POLAR.get(option.strip(" .!"), "") for option in self.folded]
        if words.count("yes") != 1 or words.count("no") != 1:
            return {}
        return {word: ALPHABET[words.index(word)] for word in ("yes", "no")}

    @cached_property
    def none_letter(self) -> str:
        """Letter of the option "none of the above", "" if there is not exactly one."""
        indices = [i for i, option in enumerate(self.folded) if _NONE_OPTION.match(option)]
        return ALPHABET[indices[0]] if len(indices) == 1 else ""

    @cached_property
    def unspaced(self) -> list[tuple[str, int]]:
        """Options in a script without spaces, as (text, index), longest first."""
        unspaced = [
            (option, index) for index, option in enumerate(self.folded) if self.is_unspaced(option)
        ]
        return sorted(unspaced, key=lambda entry: -len(entry[0]))


option_table = lru_cache(maxsize=4096)(OptionTable)


def match_none_of(text: str, table: OptionTable) -> str:
    """Return the letter of "none of the above" if the reply says so and it is offered (R10)."""
    return table.none_letter if table.none_letter and _NONE_OF.search(text) else ""


def match_polar(text: str, table: OptionTable, *, is_plain: bool) -> str:
    """Return the letter of a yes or a no (R1, R5, R9).

    Args:
        text: The cleaned reply.
        table: Options that are a yes and a no.
        is_plain: Take only a word that opens or concludes the reply; else the only one in it.
    """
    if is_plain:
        concluding = _CLOSING_POLAR.findall(text)
        if concluding:
            return table.polar[concluding[-1].lower()]
        leading = _LEADING_POLAR.match(text)
        if leading is None or _OTHER_POLAR.match(text, leading.end()):
            return ""
        return table.polar[_POLAR[leading.group(1).lower()]]
    verdicts = {found.group(1).lower() for found in _POLAR_WORD.finditer(text)}
    if "yes" not in verdicts:
        verdicts = {"no"} if _NO_SUCH.search(text) else set()
    if "true" in table.folded or "correct" in table.folded:
        found_words = [
            (bool(denied), _POLAR[word.lower()]) for denied, word in _TRUTH.findall(text)
        ]
        verdicts = {"no" if denied == (word == "yes") else "yes" for denied, word in found_words}
    return table.polar[verdicts.pop()] if len(verdicts) == 1 else ""


def find_amounts(
    text: str, table: OptionTable, name_before: re.Pattern[str]
) -> list[tuple[TextMention, int]]:
    """Return each amount of the reply with a rank: 0 a part, 1 plain, 2 stated, 3 a total (R16).

    An amount beside the options has the letter "?": it is never replaced by the nearest one.

    Args:
        text: The cleaned reply in lower case.
        table: Options that are amounts.
        name_before: What stands before a number that is part of a name.
    """
    quantities = _amounts(text, table, name_before)
    mentions = []
    ranks = []
    since = 0
    for quantity in quantities:
        start, end = quantity.start, quantity.end
        before = re.split(r"[.;!?]\s|\n\s*\n", text[max(since, start - 80) : start])[-1]
        ranks.append(_rank(text, quantity, before))
        # "in total" belongs to the amount before it, not to the one after.
        total = _TOTAL_AFTER.match(text, end)
        since = total.end() if total else end
        is_bound = _BOUND_AFTER.match(text, end) or _BOUND_BEFORE.search(before)
        letter = "" if is_bound else _letter_of_quantity(quantity, table)
        mentions.append(TextMention(start, end, letter or "?"))
    if not mentions and _NONE_PRESENT.search(text):
        zero = _letter_of_quantity(Quantity(0.0, 0.0, "", 0, 0), table)
        return [(TextMention(0, 0, zero), 1)] if zero else []
    return list(zip(mentions, _rank_lists(text, quantities, ranks), strict=True))


def _rank(text: str, quantity: Quantity, before: str) -> int:
    start, end = quantity.start, quantity.end
    is_aside = text.rfind("(", 0, start) > text.rfind(")", 0, start)
    if is_aside or _PART_AFTER.match(text, end) or _PART_BEFORE.search(before):
        return 0
    if _TOTAL_AFTER.match(text, end) or _TOTAL_BEFORE.search(before):
        return 3
    return 2 if _STATED_BEFORE.search(before) or _STATED_AFTER.match(text, end) else 1


def _rank_lists(text: str, quantities: list[Quantity], ranks: list[int]) -> list[int]:
    """Return the ranks, listed amounts at most plain, unless the first is the sum of the others.

    "21 objects, 7 on the left and 14 on the right" counts to 21; "2 cars, 1 van and 1 bus" does not
    count to 2.
    """
    ranked = ranks[:]
    first = 0
    for last, quantity in enumerate(quantities):
        following = quantities[last + 1].start if last + 1 < len(quantities) else len(text)
        if last + 1 < len(quantities) and _LISTED_BETWEEN.fullmatch(text, quantity.end, following):
            continue
        whole, parts = quantities[first], quantities[first + 1 : last + 1]
        is_sum = sum(part.value for part in parts) == whole.value and (
            _STATED_AFTER.match(text, whole.end)
            or all(_PLACE_AFTER.match(text, part.end) for part in parts)
        )
        for i in range(first, last + 1) if parts else ():
            ranked[i] = ranks[i] if ranks[i] == 3 else min(ranks[i], 1)
        if parts and is_sum:
            ranked[first] = 3
        first = last + 1
    return ranked


def _amounts(text: str, table: OptionTable, name_before: re.Pattern[str]) -> list[Quantity]:
    dimension = table.quantities[0].dimension
    brackets = [found.span() for found in _BRACKETED.finditer(text)]
    enumerated = [found.span(1) for found in _ENUMERATION.finditer(text)]
    skipped = {start for start, _ in enumerated} if len(enumerated) > 1 else set()
    amounts = []
    cursor = 0
    for quantity in find_quantities(text):
        while cursor < len(brackets) and brackets[cursor][1] <= quantity.start:
            cursor += 1
        if cursor < len(brackets) and brackets[cursor][0] <= quantity.start:
            continue
        before = text[max(0, quantity.start - 36) : quantity.start]
        if (
            quantity.start in skipped
            or quantity.dimension not in ("", dimension)
            or name_before.search(before)
            or _OPTION_BEFORE.search(before)
            or (1900 < quantity.value < 2100 and _YEAR_BEFORE.search(before))
        ):
            continue
        amounts.append(quantity)
    return amounts[:200] + amounts[200:][-200:]


def _letter_of_quantity(quantity: Quantity, table: OptionTable) -> str:
    """Return the letter of the equal option; without a unit, or among equals, as it is written."""
    equal = [
        index
        for index, option in enumerate(table.quantities)
        if option.value == quantity.value or not quantity.dimension
    ]
    written = [index for index in equal if table.quantities[index].raw == quantity.raw]
    chosen = written if len(equal) > 1 else equal
    return ALPHABET[chosen[0]] if len(chosen) == 1 else ""


def find_boxes(text: str, table: OptionTable) -> list[TextMention]:
    """Return each option box that the reply writes out, whatever the brackets (R6).

    Numbers that only punctuation separates form one run, which must equal the option's numbers as a
    whole; short runs ("x1=4, y1=5 ...", "(4,5) to (6,7)") are read on end to end.
    """
    numbers = [
        (int(float(found.group())), found.start(), found.end()) for found in _INTEGER.finditer(text)
    ]
    runs: list[list[tuple[int, int, int]]] = []
    for number in numbers:
        if runs and _RUN_GAP.fullmatch(text, runs[-1][-1][2], number[1]):
            runs[-1].append(number)
        else:
            runs.append([number])
    merged: list[list[tuple[int, int, int]]] = []
    for run in runs:
        is_short = len(run) <= 2
        if (
            merged
            and is_short
            and merged[-1][-1][2] + 40 > run[0][1]
            and len(merged[-1]) < 16
            and (len(merged[-1]) < MIN_BOX_NUMBERS or len(merged[-1]) % 2 == 0)
            and len(merged[-1]) + len(run) <= len(table.boxes[0])
        ):
            merged[-1] = merged[-1] + run
        else:
            merged.append(run)
    mentions = []
    for run in runs + [run for run in merged if run not in runs]:
        indices = [
            index for index, box in enumerate(table.boxes) if box == tuple(n for n, _, _ in run)
        ]
        if len(indices) == 1:
            mentions.append(TextMention(run[0][1], run[-1][2], ALPHABET[indices[0]]))
    return sorted(mentions)


def find_names(text: str, table: OptionTable) -> list[TextMention]:
    """Return each option name that stands in the reply as whole tokens, the longest first (R5).

    Hyphen, underscore and space are one; a name that is a part of a longer hyphenated word is not
    found ("tricycle" in "awning-tricycle").
    """
    lowered = text.lower()
    mentions = _find_unspaced(lowered, table)
    tokens = [(found.group(), found.start(), found.end()) for found in _TOKEN.finditer(lowered)]
    position = 0
    while position < len(tokens):
        start = tokens[position][1]
        length = min(table.longest_name, len(tokens) - position)
        while length:
            end = tokens[position + length - 1][2]
            indices = table.names.get(
                "".join(token[0] for token in tokens[position : position + length])
            )
            is_glued = _GLUED_BEFORE.match(lowered, max(0, start - 2)) or _GLUED_AFTER.match(
                lowered, end
            )
            if indices and not is_glued:
                if len(indices) == 1:
                    mentions.append(TextMention(start, end, ALPHABET[min(indices)]))
                break
            length -= 1
        position += max(1, length)
    return sorted(mentions)


def _find_unspaced(text: str, table: OptionTable) -> list[TextMention]:
    mentions = []
    taken = bytearray(len(text))
    for option, index in table.unspaced:
        start = text.find(option)
        while start >= 0:
            end = start + len(option)
            if not any(taken[start:end]):
                mentions.append(TextMention(start, end, ALPHABET[index]))
                taken[start:end] = b"\x01" * len(option)
            start = text.find(option, end)
    return sorted(mentions)
