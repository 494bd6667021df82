r"""Find the boxes that a reply writes down, as numbers of whatever scale it uses.

Nothing here knows pictures or scales. Every pattern is bounded or possessive, so that the cost
grows no faster than the text, whatever it holds. A leaf module (see ``formats.py``).
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_CHARS = 200_000
_MAX_PART_CHARS = 240
_MAX_GAP_CHARS = 24
_PATCHES = 32

_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,4})?"
_UNIT = r"(?:\s?(?:%|px\b|pixels?\b))?"
_QUOTED = rf"[\"'`]?{_NUMBER}{_UNIT}[\"'`]?"

_WIDE = str.maketrans(
    "（）［］｛｝，、；：＝－−．％" + "０１２３４５６７８９", "()[]{},,;:=--.%0123456789"
)

_PAIRS = {
    "<answer>": "</answer>",
    "<box>": "</box>",
    "<bbox>": "</bbox>",
    "<bounding_box>": "</bounding_box>",
    "<|box_start|>": "<|box_end|>",
    "<quad>": "</quad>",
    "<|quad_start|>": "<|quad_end|>",
    "<|det|>": "<|/det|>",
    "<|begin_of_box|>": "<|end_of_box|>",
}
_ANSWER = re.compile(r"<answer>")
_BOX_OPEN = re.compile("|".join(re.escape(opener) for opener in list(_PAIRS)[1:]))

_NEXT_TURN = re.compile(r"(?<=\S)\s{1,3}(?:USER|User|HUMAN|Human):")

_TOKENS = {
    "loc4": re.compile(r"<loc(\d{4})>"),
    "loc": re.compile(r"<loc_(\d{1,4})>"),
    "patch": re.compile(r"<patch_index_(\d{4})>"),
}
_ANGLE_BOX = re.compile(
    rf"<({_NUMBER})>\s?<({_NUMBER})>\s?<({_NUMBER})>\s?<({_NUMBER})>(?:\s?\|\s?<({_NUMBER})>|(?=\s?\}}))"
)

_GROUP = re.compile(r"[\[({]([^\[\](){}]*+)([\])}]|\Z)")
_PART = re.compile(rf"\s*+{_QUOTED}(?:(?:\s*+,\s*+|\s++){_QUOTED}){{0,15}}\s*+,?\s*+")
_ONE = re.compile(_NUMBER)
_JOINT = r"[\s,;:=()\[\]{}*`]*+"
_GAP = re.compile(rf"{_JOINT}(?:(?:to|and|through|until|x|-+>?|[–—→]){_JOINT})?")
_KEY = re.compile(r"[\"']?([A-Za-z]\w{0,40})[\"']?\s{0,4}[:=][\s\[({\"']{0,12}$")
_BOX_KEY = re.compile(r"box|bound|coord|rect|roi", re.IGNORECASE)
_OPEN_END = r"[(\[{][\s\d,.+-]*+"
_CUT_END = re.compile(rf"\s*+(?:[,;:][\s,;:]*+(?:{_OPEN_END})?|{_OPEN_END})")
_FOUR = rf"{_NUMBER}{_UNIT}(?:(?:[ \t]{{0,3}},[ \t]{{0,3}}|[ \t]{{1,3}}){_NUMBER}{_UNIT}){{3}}"
_BARE = re.compile(
    rf"(?:\A(?:```\w{{0,8}})?[\s\"']{{0,8}}|\b(?:b?box|coord\w{{0,8}}|region|area|location|located|answer|at)\b"
    rf"[^\d\n+.-]{{0,30}})({_FOUR})[ \t*`\"'.]{{0,6}}$",
    re.MULTILINE | re.IGNORECASE,
)

_FILL = r"[^\d]{0,40}?"
_SPAN = r"\s{0,3}(?:to|and|through|until|-+>?|–|—|→|,|\.\.+)\s{0,3}"
_CORNER_NAME = (
    r"(?:top|upper|bottom|lower)[\s_-]?(?:left|right)|(?:left|right)[\s_-]?(?:top|upper|bottom|lower)"
    r"|cent(?:er|re)(?:ed)?"
)
_AXIS_NAME = (
    r"(?:(?:top|upper|bottom|lower)[\s_-]?(?:left|right)[\s_-]?[xy]"
    r"|[xy][_-]?(?:min|max|cent(?:er|re)|start|end|left|right|top|bottom|[012c])"
    r"|(?:min|max|cent(?:er|re)|start|end)[_-]?[xy]|c[xy]|[xy]"
    r"|left|right|top|bottom|width|height|[wh])"
)
# What says that the numbers after a corner's name are its place.
_AT = r"(?:[:=({\[>]|\b(?:is|are|at|corner|point|coord\w{0,8})\b)"
_NAMED = re.compile(
    rf"\b(?:x(?:[ _-](?:range|axis|coord\w{{0,8}}))?|horizontal\w{{0,4}})(?!\w){_FILL}"
    rf"(?P<xa>{_NUMBER}){_UNIT}{_SPAN}(?P<xb>{_NUMBER}){_UNIT}"
    rf"{_FILL}\b(?:y(?:[ _-](?:range|axis|coord\w{{0,8}}))?|vertical\w{{0,4}})(?!\w){_FILL}"
    rf"(?P<ya>{_NUMBER}){_UNIT}{_SPAN}(?P<yb>{_NUMBER})"
    rf"|\b(?P<corner>{_CORNER_NAME}){_FILL}{_AT}{_FILL}(?P<cx>{_NUMBER}){_UNIT}"
    rf"(?:[\s,;:=\"'`*]|\b[xy]\b|\band\b){{1,12}}?"
    rf"(?P<cy>{_NUMBER})(?![\d.])(?!{_UNIT}\s{{0,3}},?\s{{0,3}}[\d.+-])"
    rf"|(?<![A-Za-z0-9])(?<!image[ _])(?<!img[ _])(?P<name>{_AXIS_NAME})"
    rf"(?:[ _](?:edge|side|border|boundary))?[\"'`*)\]]{{0,3}}\s{{0,3}}"
    rf"(?:(?P<sign>[:=>]|is(?: at)?\b|->)|of\b|\s)\s{{0,3}}[\"'`*(\[]{{0,3}}"
    rf"(?P<value>{_NUMBER})(?P<unit>{_UNIT})"
    rf"|(?<![\w.])(?P<length>{_NUMBER}){_UNIT}\s(?P<side>wide|high|tall)\b",
    re.IGNORECASE,
)
# After "left: 2" or "left 2%": no thing is counted.
_SIDES = frozenset({"left", "right", "top", "bottom"})
_COUNTED = re.compile(
    r"[ \t]{1,2}(?!(?:and|or|to|while|with|for|in|on|from|percent|left|right|top|bottom|width"
    r"|height)\b)[A-Za-z]{2,}",
    re.IGNORECASE,
)
_LIST_END = re.compile(r"\s{0,3}(?:[,;.)\]}\n]|and\b|\Z)")
_SEPARATOR = r"\s{0,3}[,\s]\s{0,3}"
_ASSIGNED = re.compile(
    rf"[\[(]?\s?(?<![A-Za-z0-9])(?P<names>{_AXIS_NAME}\s?,\s?{_AXIS_NAME})\s?[\])]?"
    rf"\s{{0,3}}(?:[:=]|is\b|->)\s{{0,3}}[\[(]?(?P<two>{_NUMBER}{_UNIT}{_SEPARATOR}{_NUMBER}{_UNIT})"
    rf"(?![\d.]|\s{{0,3}},?\s{{0,3}}[\d.+-])[\])]?"
    rf"|[\[(]?\s?(?<![A-Za-z0-9])(?P<four_names>{_AXIS_NAME}(?:\s?,\s?{_AXIS_NAME}){{3}})\s?[\])]?"
    rf"\s{{0,3}}(?:[:=]|are\b|->)\s{{0,3}}(?P<four>{_FOUR})(?![\d.]|\s?,\s?\d)",
    re.IGNORECASE,
)
_ANGLED = re.compile(rf"<({_FOUR})>")
_LABELED = re.compile(
    r"([\[({])\s?((?:[A-Za-z]{1,12}[ _-])?(?:b?box\w{0,8}|coord\w{0,8}|rect\w{0,8}|roi)\s?[:=]\s?)"
    r"(?=[\d.+-])",
    re.IGNORECASE,
)
_QUOTED_BOX = re.compile(
    rf"([\"']\w{{0,20}}(?:box|coord|rect|roi)\w{{0,20}}[\"']\s{{0,3}}:\s{{0,3}})"
    rf"([\"'])\s?({_FOUR})\s?\2",
    re.IGNORECASE,
)
_LEGEND = re.compile(
    rf"[\[(]?\s?(?<![A-Za-z0-9])({_AXIS_NAME})\s?,\s?({_AXIS_NAME})"
    rf"(?:\s?,\s?({_AXIS_NAME})\s?,\s?({_AXIS_NAME}))?(?![A-Za-z0-9])\s?[\])]?",
    re.IGNORECASE,
)
_COLUMN = re.compile(_AXIS_NAME, re.IGNORECASE)
_LEFT, _TOP, _RIGHT, _BOTTOM = "x1", "y1", "x2", "y2"
_AXIS_SLOTS = {
    **dict.fromkeys(("xmin", "minx", "x1", "xstart", "startx", "xleft", "left"), _LEFT),
    **dict.fromkeys(("ymin", "miny", "y1", "ystart", "starty", "ytop", "top"), _TOP),
    **dict.fromkeys(("xmax", "maxx", "x2", "xend", "endx", "xright", "right"), _RIGHT),
    **dict.fromkeys(("ymax", "maxy", "y2", "yend", "endy", "ybottom", "bottom"), _BOTTOM),
    **dict.fromkeys(("cx", "xc", "xcenter", "xcentre", "centerx", "centrex"), "cx"),
    **dict.fromkeys(("cy", "yc", "ycenter", "ycentre", "centery", "centrey"), "cy"),
    **{"x": "x", "y": "y", "x0": "x0", "y0": "y0"},
    **{"w": "w", "width": "w", "h": "h", "height": "h"},
}
_ORDERS: dict[tuple[str, ...], str] = {
    (_LEFT, _TOP, _RIGHT, _BOTTOM): "xyxy",
    (_TOP, _LEFT, _BOTTOM, _RIGHT): "yxyx",
    ("x0", "y0", "x1", "y1"): "xyxy",
    ("y0", "x0", "y1", "x1"): "yxyx",
    ("x", "y", "w", "h"): "xywh",
    (_LEFT, _TOP, "w", "h"): "xywh",
    ("cx", "cy", "w", "h"): "cxcywh",
}


class RawBox(NamedTuple):
    """A box as a reply writes it.

    Attributes:
        values: Its 4 numbers, or the 8 of a quad, in the reply's own scale.
        order: What names in the reply say about their order: ``xyxy``, ``yxyx``, ``xywh`` or
            ``cxcywh``; "" where nothing is said.
        degrees: The angle that comes with it, or None.
        has_point: Whether one of the numbers is written with a decimal point.
    """

    values: tuple[float, ...]
    order: str = ""
    degrees: float | None = None
    has_point: bool = False


class _Group(NamedTuple):
    """The numbers of one pair of brackets, or of one part between semicolons."""

    numbers: tuple[str, ...]
    start: int
    end: int


class _Segment(NamedTuple):
    """A stretch of the reply; one that is not closed may have been cut off.

    Attributes:
        text: What it holds.
        opener: The box tag before it, "" if there is none.
        is_closed: Whether a tag ends it.
    """

    text: str
    opener: str = ""
    is_closed: bool = False


def _box(numbers: tuple[str, ...], order: str = "") -> RawBox:
    return RawBox(
        tuple(float(number) for number in numbers),
        order,
        has_point=any("." in number for number in numbers),
    )


def _segments(segment: _Segment, opener: re.Pattern[str]) -> list[_Segment]:
    """Return what lies inside the wrappers, the segment itself where none holds a digit."""
    found = []
    position = 0
    while match := opener.search(segment.text, position):
        end = segment.text.find(_PAIRS[match.group()], match.end())
        is_closed = end >= 0
        position = end if is_closed else len(segment.text)
        inner = segment.text[match.end() : position]
        found.append(_Segment(inner, match.group(), is_closed or segment.is_closed))
    if any(char.isdigit() for inner in found for char in inner.text):
        return found
    return [segment]


def _slot(name: str) -> str:
    """Return the coordinate that a name stands for."""
    folded = re.sub(r"[\s_-]", "", name.lower())
    if folded in _AXIS_SLOTS:
        return _AXIS_SLOTS[folded]
    if folded.endswith("x"):
        return _LEFT if "left" in folded else _RIGHT
    return _TOP if folded[0] in "tu" else _BOTTOM


def _corner_slots(name: str) -> tuple[str, str]:
    name = name.lower()
    if name.startswith("cent"):
        return "cx", "cy"
    return (
        _LEFT if "left" in name else _RIGHT,
        _TOP if "top" in name or "upper" in name else _BOTTOM,
    )


def _is_assigned(match: re.Match[str]) -> bool:
    """Tell whether a number is said to be a name's value; in prose it may count things."""
    name = match["name"].lower()
    if match["sign"]:
        return name not in _SIDES or not _COUNTED.match(match.string, match.end())
    if name in ("width", "height"):
        return True
    return bool(match["unit"]) and _LIST_END.match(match.string, match.end()) is not None


def _named_values(text: str) -> Iterator[tuple[str, str]]:
    for match in _NAMED.finditer(text):
        if match["name"]:
            if _is_assigned(match):
                yield _slot(match["name"]), match["value"]
        elif match["corner"]:
            x, y = _corner_slots(match["corner"])
            yield x, match["cx"]
            yield y, match["cy"]
        elif match["side"]:
            yield "w" if match["side"].lower() == "wide" else "h", match["length"]
        else:
            yield from ((_LEFT, match["xa"]), (_RIGHT, match["xb"]))
            yield from ((_TOP, match["ya"]), (_BOTTOM, match["yb"]))


def _assemble(slots: dict[str, str]) -> RawBox | None:
    """Return the box that named coordinates make, None if one is missing."""
    if "x0" in slots or "y0" in slots:
        renamed = {"x0": _LEFT, "y0": _TOP, "x1": _RIGHT, "y1": _BOTTOM}
        slots = {renamed.get(slot, slot): value for slot, value in slots.items()}
    starts = {"x": slots.get("x"), "y": slots.get("y")}
    left, top = slots.get(_LEFT, starts["x"]), slots.get(_TOP, starts["y"])
    for keys, order in (
        ((left, top, slots.get(_RIGHT), slots.get(_BOTTOM)), "xyxy"),
        ((left, top, slots.get("w"), slots.get("h")), "xywh"),
        ((slots.get("cx"), slots.get("cy"), slots.get("w"), slots.get("h")), "cxcywh"),
    ):
        numbers = tuple(key for key in keys if key is not None)
        if len(numbers) == 4:
            return _box(numbers, order)
    return None


def _named_boxes(text: str) -> list[RawBox]:
    """Return the boxes whose coordinates have names; a name that comes again starts the next."""
    boxes = []
    slots: dict[str, str] = {}
    for slot, value in _named_values(text):
        if slot in slots:
            boxes.append(_assemble(slots))
            slots = {}
        slots[slot] = value
    boxes.append(_assemble(slots))
    return [box for box in boxes if box is not None]


def _numbers(part: str) -> tuple[str, ...]:
    if len(part) > _MAX_PART_CHARS or not _PART.fullmatch(part):
        return ()
    return tuple(_ONE.findall(part))


def _groups(segment: _Segment) -> list[_Group]:
    """Return the bracketed groups of numbers; the last part of an unclosed bracket is none."""
    groups = []
    for match in _GROUP.finditer(segment.text):
        parts = match[1].split(";")
        if not match[2]:
            parts = parts[:-1]
        for part in parts:
            numbers = _numbers(part)
            if numbers:
                groups.append(_Group(numbers, match.start(), match.end()))
    return groups


def _is_gap(text: str, start: int, end: int) -> bool:
    return (
        end - start <= _MAX_GAP_CHARS and _GAP.fullmatch(text, start, max(start, end)) is not None
    )


def _under_box_keys(text: str, groups: list[_Group]) -> list[_Group]:
    """Return the groups under keys such as ``bbox_2d``."""
    kept = []
    is_under = False
    previous_end = -1
    for group in groups:
        key = _KEY.search(text, max(0, group.start - 60), group.start)
        if key:
            is_under = _BOX_KEY.search(key[1]) is not None
        elif previous_end < 0 or not _is_gap(text, previous_end, group.start):
            is_under = False
        if is_under:
            kept.append(group)
        previous_end = group.end
    return kept


def _goes_round(numbers: Sequence[str]) -> bool:
    """Tell whether four points are the corners of one quad, and not of two boxes.

    Sides that face each other run in opposite directions around a quad; the diagonals of two
    boxes run the same way. Without direction: two boxes that are both flat are one box by rows.
    """
    x1, y1, x2, y2, x3, y3, x4, y4 = map(float, numbers)
    first, second = (x2 - x1, y2 - y1), (x4 - x3, y4 - y3)
    along = first[0] * second[0] + first[1] * second[1]
    return along < 0 or (along > 0 and 0 in first and 0 in second)


def _run_boxes(points: list[_Group], segment: _Segment, quads: bool) -> list[RawBox]:
    """Pair up neighboring points; an odd one is forgiven only where the reply was cut off."""
    numbers = tuple(number for point in points for number in point.numbers)
    size = 4
    if len(points) % 4 == 0 and (
        quads
        or "quad" in segment.opener
        or all(_goes_round(numbers[start : start + 8]) for start in range(0, len(numbers), 8))
    ):
        size = 8
    if len(numbers) % size:
        rest = segment.text[points[-1].end :][: _MAX_PART_CHARS + 1]
        ends_early = bool(segment.opener and not rest.strip()) or _CUT_END.fullmatch(rest)
        if segment.is_closed or not ends_early:
            return []
    return [
        _box(numbers[start : start + size]) for start in range(0, len(numbers) - size + 1, size)
    ]


def _placed_boxes(groups: list[_Group], segment: _Segment, quads: bool) -> list[RawBox]:
    """Return the boxes that brackets mark, whose numbers have their meaning by position."""
    boxes: list[RawBox] = []
    run: list[_Group] = []
    for group in groups:
        if run and (len(group.numbers) != 2 or not _is_gap(segment.text, run[-1].end, group.start)):
            boxes += _run_boxes(run, segment, quads)
            run = []
        if len(group.numbers) == 2:
            run.append(group)
        elif len(group.numbers) == 4 or _is_quad(group.numbers, segment, quads):
            boxes.append(_box(group.numbers))
    return boxes + (_run_boxes(run, segment, quads) if run else [])


def _is_quad(numbers: Sequence[str], segment: _Segment, quads: bool) -> bool:
    return len(numbers) == 8 and (quads or "quad" in segment.opener or _goes_round(numbers))


def _bare_boxes(segment: _Segment, quads: bool) -> list[RawBox]:
    """Return four numbers that stand alone: in a closed wrapper, or at the end of a line."""
    if segment.opener:
        numbers = _numbers(segment.text) if segment.is_closed else ()
        is_whole = len(numbers) == 4 or _is_quad(numbers, segment, quads)
        return [_box(numbers)] if is_whole else []
    return [_box(tuple(_ONE.findall(match[1]))) for match in _BARE.finditer(segment.text)]


def _spell_pairs(match: re.Match[str]) -> str:
    """Write ``x1, y1 = 3, 4`` as ``x1=3, y1=4``; plain ``x, y`` may be of any corner and stays."""
    names = (match["names"] or match["four_names"]).replace(" ", "").split(",")
    if [name.lower() for name in names] == ["x", "y"]:
        return match.group()
    values = _ONE.findall(match["two"] or match["four"])
    return " " + ", ".join(f"{n}={v}" for n, v in zip(names, values, strict=True)) + " "


def _spell_tables(text: str) -> str:
    """Write the rows of a markdown table with columns such as ``x1 | y1`` as ``x1=3, y1=4``."""
    names: list[str] = []
    lines = []
    for line in text.split("\n"):
        cells = [cell.strip(" \t*`") for cell in line.strip().strip("|").split("|")]
        header = [name if _COLUMN.fullmatch(name) else "" for name in cells]
        if len(cells) < 4:
            names = []
        elif sum(map(bool, header)) >= 4:
            names, line = header, ""
        elif len(cells) == len(names):
            pairs = zip(names, cells, strict=True)
            line = ", ".join(f"{name}={cell}" for name, cell in pairs if name)
        lines.append(line)
    return "\n".join(lines)


def _spell_out(text: str) -> str:
    """Bring rarer ways to write a box into brackets and ``name=value``."""
    if "|" in text and "\n" in text:
        text = _spell_tables(text)
    text = _ANGLED.sub(r"[\1]", text)
    text = _LABELED.sub(r"\2\1", text)
    text = _QUOTED_BOX.sub(r"\1[\3]", text)
    return _ASSIGNED.sub(_spell_pairs, text)


def _read_segment(segment: _Segment, *, quads: bool) -> list[RawBox]:
    text = _spell_out(segment.text)
    legends = {
        _ORDERS.get(tuple(_slot(name) for name in match.groups()), "")
        for match in _LEGEND.finditer(text)
        if match[3]
    }
    segment = segment._replace(text=_LEGEND.sub(" ", text))
    groups = _groups(segment)
    keyed = _under_box_keys(segment.text, groups)
    boxes = _placed_boxes(keyed, segment, quads)
    if not boxes:
        named = _named_boxes(segment.text)
        if named:
            return named
        boxes = _placed_boxes([] if keyed else groups, segment, quads)
    boxes = boxes or _bare_boxes(segment, quads)
    order = legends.pop() if len(legends) == 1 else ""
    return [box._replace(order=order) for box in boxes]


def _cells(upper: int, lower: int) -> tuple[float, ...]:
    """Return two patches as a box, in cells: their centers, or whole cells in one row or column."""
    y1, x1 = divmod(upper, _PATCHES)
    y2, x2 = divmod(lower, _PATCHES)
    if x1 == x2 or y1 == y2:
        return x1, y1, x2 + 1, y2 + 1
    return x1 + 0.5, y1 + 0.5, x2 + 0.5, y2 + 0.5


def _token_boxes(text: str, wrapper: str, quads: bool) -> list[RawBox]:
    """Return the boxes of location tokens; an odd run counts only where the reply was cut off."""
    runs: list[list[int]] = []
    end = -1
    for match in _TOKENS[wrapper].finditer(text):
        if end < 0 or text[end : match.start()].strip(" ,\n"):
            runs.append([])
        runs[-1].append(int(match[1]))
        end = match.end()
    boxes = []
    for i, run in enumerate(runs):
        size = 2 if wrapper == "patch" else 8 if quads and len(run) % 8 == 0 else 4
        is_cut = i == len(runs) - 1 and re.fullmatch(r"\s*(?:<[\w]{0,12})?", text[end:][:20])
        if len(run) % size and not is_cut:
            continue
        for start in range(0, len(run) - size + 1, size):
            values = run[start : start + size]
            if wrapper != "patch":
                boxes.append(RawBox(tuple(values)))
            elif max(values) < _PATCHES**2:
                boxes.append(RawBox(_cells(*values)))
    return boxes


def find_boxes(text: str, *, wrapper: str = "text", quads: bool = False) -> list[RawBox]:
    """Return the whole boxes of a reply, in order, in the reply's own numbers.

    A reply of more than 200,000 characters is read as if it had been cut there.

    Args:
        text: The reply, thoughts removed.
        wrapper: How the format writes numbers (``Format.wrapper``).
        quads: Whether 8 numbers are always one quad. If not, they are one in ``<quad>``, and where
            they go round it; else 4 points are two boxes, and 8 numbers in a bracket none.
    """
    text = _NEXT_TURN.split(text[:MAX_CHARS], maxsplit=1)[0]
    if not text.isascii():
        text = text.translate(_WIDE)
    if not any(digit in text for digit in "0123456789"):
        return []
    if wrapper in _TOKENS:
        return _token_boxes(text, wrapper, quads)
    if wrapper == "angle":
        turned = [
            _box(match.groups()[:4])._replace(degrees=float(match[5]) if match[5] else None)
            for match in _ANGLE_BOX.finditer(text)
        ]
        if turned:
            return turned
    boxes = []
    for answer in _segments(_Segment(text), _ANSWER):
        for segment in _segments(answer._replace(opener=""), _BOX_OPEN):
            boxes += _read_segment(segment, quads=quads)
    return boxes
