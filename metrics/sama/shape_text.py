"""Read the shapes that a reply describes, in sentence form, tuple form or both.

The templates are those of the primitive-shapes paper (A.2.1)::

    A {color} {shape} is located in the {quadrant} quadrant, centred at coordinates ({x}, {y}), with
    relative positions described as {relative position}, rotated by {rotation} degrees, and is
    {not }occluded.
    ({shape}, quadrant={quadrant}, center_coordinates=({x}, {y}), relative_position={relative
    position}, rotation={rotation}, occlusion={Yes|No}, color={color})

A reply is scanned once for marks: heads, which begin a shape, and attributes, which belong to the
last head. A head that is a pronoun or a part ("it is located", "its center is located") goes on
with the shape before; one that is no shape ("the image is located") takes its attributes along. So
order, line breaks and missing attributes do not matter, and the work is linear: runs of blanks are
cut down to one first, and every repetition below is bounded or stops at a blank.

A leaf module: the metric's script imports it and it imports nothing beside it, because `evaluate`
copies only the files that the script names.
"""

import re
import unicodedata
from typing import Literal, NamedTuple

Format = Literal["auto", "sentence", "tuple"]
FORMATS: tuple[Format, ...] = ("auto", "sentence", "tuple")
CATEGORICAL = ("shape", "color", "quadrant", "occlusion", "relative_position")


class Shape(NamedTuple):
    """One shape of a reply; an attribute that is missing or cannot be read is None.

    Attributes:
        text: Its own sentence or tuple, cut from the reply, in normal form: NFKC, one blank between
            words, lower case, without Markdown marks.
        shape: Name of the shape, in normal form like all strings here.
        color: Name of its color.
        quadrant: Such as ``top left``.
        occlusion: ``yes`` or ``no``.
        relative_position: Such as ``left of square``.
        center: x and y in pixels.
        rotation: Degrees, as written.
    """

    text: str
    shape: str | None = None
    color: str | None = None
    quadrant: str | None = None
    occlusion: str | None = None
    relative_position: str | None = None
    center: tuple[float, float] | None = None
    rotation: float | None = None


# How far back the bracket is sought that a bracket may stand in.
_LONGEST_SHAPE = 1000
# Unicode folding of one long word of combining marks is quadratic; no attribute is that long.
_LONGEST_FOLDED_WORD = 1024

_KEYS = {
    "shape": "shape",
    "type": "shape",
    "color": "color",
    "colour": "color",
    "quadrant": "quadrant",
    "center": "center",
    "centre": "center",
    "coordinates": "center",
    "center coordinates": "center",
    "centre coordinates": "center",
    "center coordinate": "center",
    "center point": "center",
    "relative position": "relative_position",
    "relative positions": "relative_position",
    "rotation": "rotation",
    "rotation angle": "rotation",
    "angle": "rotation",
    "occlusion": "occlusion",
    "occluded": "occlusion",
    "is occluded": "occlusion",
    "occlusion status": "occlusion",
}
_KEY_WORDS = "|".join(sorted(_KEYS, key=len, reverse=True)).replace(" ", r"[_\s]")
_KEY = rf"[\"']?(?:{_KEY_WORDS})[\"']?\s?[=:]"
# A number at the very end of a reply may be cut off, so it is none.
_NUMBER = r"[+-]?\d{1,9}(?:\.\d{0,20})?(?!\.?\d|\Z)"
_PAIR = rf"(?:[\"']?x[\"']?\s?[=:]\s?)?({_NUMBER})\s?,\s?(?:[\"']?y[\"']?\s?[=:]\s?)?({_NUMBER})"
_ARTICLE = r"(?:an?|the|one|another)\s"
_NAME = rf"((?:(?!{_ARTICLE})\w[\w-]*\s){{0,3}}?(?!{_ARTICLE})[^\W\d][\w-]*)"
# Where a shape may begin without an article: on a new line, after a bullet or a full stop.
_FRESH = r"(?:(?<![^\n])|(?<=[.:;)•-]\s))"
_PLACED = r"(?:located|positioned|placed|situated|centered|centred)\b"
_RELATION_END = (
    rf"(?=,?\s(?:and\s)?(?:it\s)?(?:is\s|has\s)?(?:an?\s)?(?:rotat|(?:not\s|un|\w+ly\s)?occlu|with\s)"
    rf"|\s?[.;]|\n(?:[-•\d]|{_ARTICLE})|,?\s?\Z)"
)

_BRACKET = rf"(?P<bracket>[(\[{{]\s?(?:[\"']?{_NAME}[\"']?\s?[,;]\s?)?(?={_KEY}))"
_CALL = rf"(?P<call>(?:{_ARTICLE}|{_FRESH}|(?<=[\[,])|(?<=,\s)){_NAME}\s?[(\[{{]\s?(?={_KEY}))"
_KEYED = rf"(?P<key>{_KEY}\s?)"
_LINE = rf"(?P<line>{_FRESH}{_NAME}(?:\s?[,:]\s?|\n)(?:[-•]\s)?(?={_KEY}))"
_VERB = r"(?:is|are)\s(?:\w+ly\s|also\s)?"
# What may stand between the name and the verb; it holds attributes, but no other head.
_ASIDE = (
    r"(?P<aside>,?\s(?:with|having|of|that|which)\b[^.;:\n]{0,80}?,?"
    rf"|,\s(?!{_ARTICLE})[^.;:\n]{{1,80}}?,)\s"
)
_HEAD = (
    rf"(?P<sentence>(?:{_ARTICLE}|{_FRESH}){_NAME}(?:"
    rf"[,:]?\s(?:-\s)?(?:{_VERB})?{_PLACED}"
    rf"|\s{_VERB}(?:found\b|(?=in\s|at\s))"
    rf"|(?=\s(?:in\sthe\s(?:top|bottom)\b|at\s[(\[]))"
    rf"|(?={_ASIDE}{_VERB}{_PLACED})))"
)
_QUADRANT = (
    r"(?P<quadrant>(?:in|at|within|inside)\s(?:the\s|its\s)?"
    r"(?:([a-z]+(?:[\s-][a-z]+)?)[\s-]quadrant|((?:top|bottom)[\s-](?:left|right))\b))"
)
_CENTER = rf"(?P<center>(?:[(\[]\s?|(?<!\w)coordinates:?\s){_PAIR}(?:\s?[)\]])?)"
_RELATION = (
    rf"(?P<relative_position>(?:described|given|stated)\sas:?\s[\"']?([^.;]{{1,100}}?)[\"']?"
    rf"{_RELATION_END}"
    r"|((?:(?:left|right)\sof|above|below)\s(?:the\s|an?\s)?[\w-]{1,100}))"
)
_ROTATION = (
    r"(?P<rotation>(?:not\s|un)rotated|no\srotation|rotat(?:ed|ion)"
    r"(?:\s(?:angle|by|of|at|is|to|an?|about|approximately|counter-?clockwise|clockwise)){0,4}"
    rf"\s?({_NUMBER})(?:\s?(?:degrees?|deg|°))?)"
)
_OCCLUSION = (
    r"(?P<occlusion>(?:(?:not|isn't|never|un|non)[\s-]?(?:\w{1,20}\s)?)?occluded\b"
    r"|(?:no|without)\socclusion\b)"
)
_TUPLE_MARKS = (_CALL, _KEYED, _LINE)
_SENTENCE_MARKS = (_HEAD, _QUADRANT, _RELATION, _ROTATION, _OCCLUSION)


def _marks(bracketed: tuple[str, ...], worded: tuple[str, ...]) -> re.Pattern[str]:
    """Join patterns; those that begin with a word are tried only where a word begins."""
    return re.compile("|".join((*bracketed, rf"(?<![\w-])(?:{'|'.join(worded)})")))


# The templates to the letter are read ten times faster; a test compares the two ways.
_SENTENCE_TEMPLATE = re.compile(
    r"an? (?P<color>[a-z]+) (?P<shape>[a-z]+) is located in the (?P<quadrant>[a-z]+ [a-z]+)"
    r" quadrant, centred at coordinates \((?P<x>\d{1,9}), (?P<y>\d{1,9})\), with relative positions"
    r" described as (?P<relation>(?:left of|right of|above|below) [a-z]+), rotated by"
    r" (?P<rotation>\d{1,9}) degrees, and is (?P<occlusion>not )?occluded\."
)
_TUPLE_TEMPLATE = re.compile(
    r"\((?P<shape>[a-z]+), quadrant=(?P<quadrant>[a-z]+ [a-z]+),"
    r" center_coordinates=\((?P<x>\d{1,9}), (?P<y>\d{1,9})\),"
    r" relative_position=(?P<relation>(?:left of|right of|above|below) [a-z]+),"
    r" rotation=(?P<rotation>\d{1,9}), occlusion=(?P<occlusion>yes|no), color=(?P<color>[a-z]+)\)"
)
_SEPARATOR = re.compile(r"[\s,]{0,3}")
_TEMPLATES = {
    "auto": (_SENTENCE_TEMPLATE, _TUPLE_TEMPLATE),
    "sentence": (_SENTENCE_TEMPLATE,),
    "tuple": (_TUPLE_TEMPLATE,),
}
_PATTERNS = {
    "auto": _marks((_BRACKET, _CENTER), _TUPLE_MARKS + _SENTENCE_MARKS),
    "sentence": _marks((_CENTER,), _SENTENCE_MARKS),
    "tuple": _marks((_BRACKET,), _TUPLE_MARKS),
}
_HEADS = frozenset({"bracket", "call", "line", "sentence"})

_DEFINITE = ("the ", "this ", "that ")
_PARTS = (
    "it|its|this|that|these|those|they|them|both|each|which|center|centre|centroid|midpoint|outline"
    "|border|edge|orientation|position|location|attributes|properties|details"
)
_ORDINALS = "first|second|third|fourth|fifth|sixth|last|next|other|former|latter"
# Names that go on with the shape before: "it", "its center", "a black outline", "this shape".
_CONTINUING = re.compile(
    rf"(?:.*\s)?(?:{_PARTS})|(?:(?:the|this|that|its|same)\s)*(?:shape|object|figure)", re.DOTALL
)
# Names of no shape: "the shapes", "the image", "the second shape", "a red shape".
_NO_KIND = re.compile(
    rf"(?:.*\s)?(?:{_PARTS}|{_ORDINALS}|shapes|objects?|figures?|images?|pictures?|photo|canvas"
    r"|scene|background|foreground|answer|total|rest|quadrant|corner|middle|left|right|top|bottom"
    r"|side|is|are|here|nothing|all|none|everything|something|following)|there(?:\s.*)?"
    rf"|(?:(?:.*\s)?(?:{_ORDINALS}|only|single|this|that|same|orange|red|blue|green|yellow|magenta"
    r"|cyan|purple|pink|brown|black|white|gr[ae]y|large|small)\s)?shape",
    re.DOTALL,
)

_TEXT_VALUE = re.compile(
    r"[\[(]?\s?(?:\"([^\"\n]{0,120})\"|'([^'\n]{0,120})'|([^\"',;)\]}\n]{0,120}))"
)
_CENTER_VALUE = re.compile(rf"[\"'(\[{{]{{0,2}}\s?{_PAIR}\s?[\"')\]}}]{{0,2}}")
_ROTATION_VALUE = re.compile(rf"[\"'(\[]?\s?({_NUMBER})(?:\s?(?:degrees?|deg|°))?[\"']?")
_TAILS = {
    # The rest of the tuple or sentence, where it is complete.
    "bracket": re.compile(r"[^()\[\]{}]{0,200}[)\]}]"),
    "sentence": re.compile(r"[^.!\n]{0,200}[.!](?!\d)"),
}
_FILLERS = re.compile(r"\b(?:to\sthe|the|an?)\s")
_YES = frozenset({"yes", "true", "1", "occluded", "partially occluded", "partial", "partially"})
_NO = frozenset({"no", "false", "0", "not occluded", "unoccluded", "none", "visible"})
_UNREAD = frozenset({"", "null", "none", "n/a", "na", "unknown", "?"})


def check_format(value: object) -> Format:
    """Return the name of a form if it is one.

    Raises:
        ValueError: It is none; the message lists them.
    """
    for known in FORMATS:
        if value == known:
            return known
    msg = f"format: expected one of {', '.join(map(repr, FORMATS))}, got {value!r}"
    raise ValueError(msg)


def normal_form(text: str) -> str:
    """Return a text in NFKC and lower case, blanks cut down to one, lines kept."""
    if not text.isascii():
        text = "\n".join(
            " ".join(
                unicodedata.normalize("NFKC", word) if len(word) <= _LONGEST_FOLDED_WORD else word
                for word in line.split()
            )
            for line in text.splitlines()
        )
    lines = (" ".join(line.split()) for line in text.lower().splitlines())
    return "\n".join(line for line in lines if line)


class _Draft:
    """A shape whose attributes are still being collected."""

    __slots__ = ("end", "goes_back", "kind", "n_marks", "start", "values")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.goes_back = False
        self.n_marks = 0
        self.values: dict[str, object] = {}

    def call(self, name: str) -> None:
        """Take kind and color from a name such as ``red circle``."""
        words = name.split()
        if len(words) > 1 and words[-1] == "shape":
            del words[-1]
        self.values["shape"] = words[-1]
        if len(words) > 1 and words[-2] not in ("this", "that"):
            self.values["color"] = words[-2].removesuffix("-colored").removesuffix("-coloured")

    def is_more_of(self, other: "_Draft") -> bool:
        """Tell whether this is "the circle" that the draft before began to describe."""
        shared = self.values.keys() & other.values.keys()
        return (
            self.goes_back
            and "shape" in shared
            and shared <= {"shape", "color"}
            and all(self.values[name] == other.values[name] for name in shared)
        )

    def add(self, attribute: str, value: object, end: int) -> None:
        """Keep the first value of each attribute."""
        if value is not None and attribute not in self.values:
            self.values[attribute] = value
            self.end = end
            self.n_marks += 1

    def extend(self, other: "_Draft") -> None:
        """Take over what another says of the same shape."""
        self.values |= other.values
        self.n_marks += other.n_marks
        self.end = other.end

    def holds(self, text: str, start: int) -> bool:
        """Tell whether a bracket at ``start`` is a value inside this one's."""
        own = text[max(self.start, start - _LONGEST_SHAPE) : start]
        depth = sum(map(own.count, "([{")) - sum(map(own.count, ")]}"))
        return self.kind == "bracket" and depth > 0 and own.rstrip().endswith((":", "="))

    def finish(self, text: str, limit: int) -> Shape:
        """Cut the text, which ends before the next shape."""
        tail = _TAILS.get(self.kind)
        found = tail.match(text, self.end, limit) if tail else None
        own = text[self.start : found.end() if found else self.end]
        return Shape(own.replace("\n", " ").strip(), **self.values)  # type: ignore[arg-type]


def _point(x: str, y: str) -> tuple[float, float]:
    return float(x), float(y)


def _text_value(attribute: str, raw: str) -> str | None:
    value = raw.replace("_", " ").strip(" .\n")
    if attribute == "occlusion":
        return "yes" if value in _YES else "no" if value in _NO else None
    if attribute == "quadrant":
        value = value.replace("-", " ").removesuffix(" quadrant")
    if attribute == "relative_position":
        return _FILLERS.sub("", value) or None
    return None if value in _UNREAD else value


def _key_value(text: str, attribute: str, start: int) -> tuple[object, int]:
    """Read the value after a key; None and the start if there is none to read."""
    if attribute == "center":
        pair = _CENTER_VALUE.match(text, start)
        return (_point(pair[1], pair[2]), pair.end()) if pair else (None, start)
    if attribute == "rotation":
        number = _ROTATION_VALUE.match(text, start)
        return (float(number[1]), number.end()) if number else (None, start)
    found = _TEXT_VALUE.match(text, start)
    if found is None or found.lastindex is None:
        return None, start
    return _text_value(attribute, found[found.lastindex]), found.end()


def _worded_value(attribute: str, mark: re.Match[str]) -> object:
    """Read the value of an attribute of the sentence form."""
    words = mark[0]
    # The groups inside the mark's own: only the branch that matched has one.
    inner = [group for group in mark.groups()[mark.re.groupindex[attribute] :] if group is not None]
    if attribute == "center":
        return _point(inner[0], inner[1])
    if attribute == "rotation":
        return float(inner[0]) if inner else 0.0
    if attribute == "occlusion":
        return "yes" if words == "occluded" else "no"
    return _text_value(attribute, inner[0].replace("\n", " "))


def read_shapes(reply: str, output_format: Format = "auto") -> list[Shape]:
    """Return the shapes that a reply describes, in its order.

    A shape is a head (``A red circle is located``, ``(circle, quadrant=``, ``shape: circle``) with
    at least one attribute besides; so prose around the shapes, and a last shape that is cut off
    before its first attribute, give none.

    Args:
        reply: What was said, without thoughts.
        output_format: Which forms are read: ``sentence``, ``tuple``, or ``auto`` for both.

    >>> [shape.color for shape in read_shapes("(Circle, rotation=0, color=Red), (Square, colo")]
    ['red']
    """
    text = normal_form(reply.replace("*", "").replace("`", "").replace("\\_", "_"))
    if reply[-1:].isspace():
        text += "\n"  # A number before it is whole.
    for template in _TEMPLATES[output_format]:
        shapes, start = _read_template(text, template)
        if shapes:
            return shapes + _read_marks(text, _PATTERNS[output_format], start)
    return _read_marks(text, _PATTERNS[output_format], 0)


def read_reference(text: str, row: int) -> list[Shape]:
    """Read a target text in either form.

    Raises:
        ValueError: It says something, but no shape.
    """
    shapes = read_shapes(text)
    if not shapes and says_something(text):
        shown = repr(text if len(text) <= 60 else f"{text[:60]}...")
        msg = (
            f"row {row}: references: expected shapes in sentence form ('A Red Circle is located in "
            f"...') or tuple form ('(Circle, quadrant=...)'), got {shown}; a picture without "
            "shapes has the empty string ''"
        )
        raise ValueError(msg)
    return shapes


def says_something(text: str) -> bool:
    """Tell whether a text holds a letter or digit."""
    return any(char.isalnum() for char in text)


def _read_template(text: str, template: re.Pattern[str]) -> tuple[list[Shape], int]:
    """Read the shapes at the start that follow a template; return them and where they end."""
    shapes = []
    end = 0
    found = template.match(text)
    while found:
        end = found.end()
        shapes.append(
            Shape(
                found[0],
                found["shape"],
                found["color"],
                found["quadrant"],
                "no" if found["occlusion"] in ("not ", "no") else "yes",
                found["relation"],
                _point(found["x"], found["y"]),
                float(found["rotation"]),
            )
        )
        separator = _SEPARATOR.match(text, end)
        found = template.match(text, separator.end() if separator else end)
    return shapes, end


def _read_marks(text: str, pattern: re.Pattern[str], start: int) -> list[Shape]:
    """Read the shapes from ``start`` on, mark by mark."""
    drafts: list[_Draft] = []
    current: _Draft | None = None
    aside_end = 0
    mark = pattern.search(text, start)
    while mark:
        kind = mark.lastgroup or ""
        end = mark.end()
        if kind == "sentence" and mark.start() < aside_end:
            pass
        elif kind in _HEADS:
            group = mark.re.groupindex[kind] + 1
            name = mark[group] or ""
            is_bracket = kind in ("bracket", "call")
            if is_bracket:
                continues = not name and current is not None and current.holds(text, mark.start())
            else:
                continues = bool(_CONTINUING.fullmatch(text, mark.start(), mark.end(group)))
            if not continues:
                current = _Draft("bracket" if is_bracket else kind, mark.start(), end)
                current.goes_back = mark[0].startswith(_DEFINITE)
                drafts.append(current)
                if name and not _NO_KIND.fullmatch(name):
                    current.call(name)
                    aside_end = mark.end("aside") if kind == "sentence" else 0
        elif kind == "key":
            attribute = _KEYS[" ".join(mark[0].strip("\"' =:\n").replace("_", " ").split())]
            value, end = _key_value(text, attribute, end)
            is_new = (
                current is None
                or current.kind == "sentence"
                or (current.kind != "bracket" and "shape" in current.values)
            )
            if attribute == "shape" and is_new and isinstance(value, str):
                current = _Draft("key", mark.start(), end)
                current.call(value)
                drafts.append(current)
            elif current is not None:
                current.add(attribute, value, end)
        elif current is not None:
            current.add(kind, _worded_value(kind, mark), end)
        mark = pattern.search(text, end)
    whole: list[_Draft] = []
    for draft in drafts:
        if whole and draft.is_more_of(whole[-1]):
            whole[-1].extend(draft)
        else:
            whole.append(draft)
    limits = [draft.start for draft in whole[1:]] + [len(text)]
    return [
        draft.finish(text, limit)
        for draft, limit in zip(whole, limits, strict=False)
        # A sentence has a name, unless that is none of a shape.
        if draft.n_marks and ("shape" in draft.values or draft.kind == "bracket")
    ]
