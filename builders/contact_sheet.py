"""Contact sheets: pictures of a split side by side, plain or with their labels drawn."""

import colorsys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, hypot
from pathlib import Path
from typing import Final, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from soubench.builders.errors import PictureError
from soubench.builders.images import MAX_PICTURE_PX, load_picture
from soubench.builders.scene import Box, Scene, SceneObject

SHEET_COLUMNS = 6
SHEET_ROWS = 3
SHEET_TILE_PX = 224
SHEET_GAP_PX = 4
SHEET_GREY = (120, 120, 120)

Rgb = tuple[int, int, int]
Point = tuple[float, float]

CROPS: Final = 3
CROP_PX: Final = 240
OVERVIEW_WH: Final = (360, 240)
ZOOMS: Final = (8, 6, 4, 3, 2, 1)
"""Whole numbers that divide `CROP_PX`, so that a pixel of the picture is a square of the sheet."""
OBJECT_SHARE: Final = 0.55
"""The most of an enlarged crop's side that its object takes; the rest shows where it stands."""

_CARD_COLUMNS = 2
_MARGIN, _GAP, _CARD_GAP = 20, 6, 22
_TITLE_PX, _TEXT_PX, _SMALL_PX = 20, 14, 12
_LINE_PX, _CAPTION_PX = 22, 18
_SWATCH_WH = (18, 12)
_LEGEND_NAME_PX = 240
_DASH_PX = 4
_CARD_WIDTH = OVERVIEW_WH[0] + CROPS * (_GAP + CROP_PX)
_CARD_HEIGHT = _LINE_PX + CROP_PX + _CAPTION_PX
_BACKGROUND, _EMPTY = (24, 26, 30), (38, 41, 47)
_TEXT, _FAINT = (232, 234, 237), (154, 160, 168)
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_NOT_COUNTED = (222, 222, 222)
_PALETTE: tuple[Rgb, ...] = (
    (255, 82, 82),
    (64, 196, 255),
    (255, 221, 51),
    (92, 240, 110),
    (255, 150, 30),
    (222, 96, 255),
    (0, 232, 205),
    (255, 140, 200),
    (140, 150, 255),
    (200, 255, 80),
    (214, 160, 110),
    (160, 205, 190),
)
_GOLDEN = 0.618034


def contact_sheet(pictures: Iterable[Path]) -> Image.Image:
    """Put the first pictures side by side, each scaled down to fit its tile."""
    step = SHEET_TILE_PX + SHEET_GAP_PX
    paths = [path for path, _ in zip(pictures, range(SHEET_COLUMNS * SHEET_ROWS), strict=False)]
    lines = -(-len(paths) // SHEET_COLUMNS)
    sheet = Image.new(
        "RGB", (SHEET_COLUMNS * step + SHEET_GAP_PX, lines * step + SHEET_GAP_PX), SHEET_GREY
    )
    for i, path in enumerate(paths):
        tile = load_picture(path)
        tile.thumbnail((SHEET_TILE_PX, SHEET_TILE_PX))
        x = i % SHEET_COLUMNS * step + SHEET_GAP_PX + (SHEET_TILE_PX - tile.width) // 2
        y = i // SHEET_COLUMNS * step + SHEET_GAP_PX + (SHEET_TILE_PX - tile.height) // 2
        sheet.paste(tile, (x, y))
    return sheet


@dataclass(frozen=True, slots=True)
class LabelCard:
    """One picture of a label sheet.

    Attributes:
        scene: The picture and its labels.
        note: What the caption says behind the picture's name.
        enlarged: Objects to show in enlarged crops, at most `CROPS`.
    """

    scene: Scene
    note: str
    enlarged: tuple[SceneObject, ...]


class LabelSheet(NamedTuple):
    """A drawn sheet, and why a picture is missing on it: image id -> reason."""

    image: Image.Image
    unreadable: dict[str, str]


class Window(NamedTuple):
    """A square cut-out of a picture: its corner and side in px, and its scale on the sheet."""

    x: int
    y: int
    side: int
    scale: float

    def holds(self, box: Box) -> bool:
        """Say whether a box lies inside."""
        x1, y1, x2, y2 = box
        right, bottom = self.x + self.side, self.y + self.side
        return x1 >= self.x and y1 >= self.y and x2 <= right and y2 <= bottom


def window_of(box: Box, size_wh: tuple[int, int]) -> Window:
    """Choose the cut-out that shows a box with its surroundings.

    It is enlarged by the largest of `ZOOMS` that leaves the object room, and an object too large
    for the picture's own scale is shown smaller. Near an edge the cut-out moves inside.
    """
    longest = max(box.x2 - box.x1, box.y2 - box.y1)
    room = CROP_PX * OBJECT_SHARE
    zoom = next((zoom for zoom in ZOOMS if longest * zoom <= room), None)
    side = CROP_PX // zoom if zoom else ceil(longest / OBJECT_SHARE)
    x, y = (
        _start((low + high) / 2, side, length)
        for low, high, length in ((box.x1, box.x2, size_wh[0]), (box.y1, box.y2, size_wh[1]))
    )
    return Window(x, y, side, CROP_PX / side)


def _start(center: float, side: int, length: int) -> int:
    if side >= length:
        return -((side - length) // 2)
    return min(max(floor(center - side / 2), 0), length - side)


def class_color(index: int) -> Rgb:
    """Return the color of a category by its place in the source's list."""
    if index < len(_PALETTE):
        return _PALETTE[index]
    rgb = colorsys.hsv_to_rgb(index * _GOLDEN % 1, 0.55 + index % 3 * 0.2, 1.0)
    red, green, blue = (round(255 * value) for value in rgb)
    return red, green, blue


def card_place(i: int) -> tuple[int, int]:
    """Return where card ``i`` lies, in px below and right of the first one's corner."""
    row, column = divmod(i, _CARD_COLUMNS)
    return column * (_CARD_WIDTH + _CARD_GAP), row * (_CARD_HEIGHT + _CARD_GAP)


def label_sheet(
    cards: Sequence[LabelCard],
    *,
    title: str,
    categories: Sequence[str],
    counts: Mapping[str, int],
    max_pixels: int = MAX_PICTURE_PX,
) -> LabelSheet:
    """Draw pictures with their labels so that a person sees whether the boxes fit.

    Each picture is shown whole, beside enlarged crops of a few of its objects. Lines lie just
    outside of the boxes, one color per category, dashed gray for objects that do not count. White
    numbered frames in the whole picture say where the crops are.

    Args:
        cards: What to show, in order; the pictures are loaded one at a time.
        title: The headline.
        categories: All category names; the place of a name decides its color.
        counts: The number that the legend gives behind the name of a category.
        max_pixels: Largest width × height accepted, in px.

    Returns:
        The sheet; the same bytes for the same input under the same Pillow version.
    """
    colors = {name: class_color(i) for i, name in enumerate(categories)}
    columns = _CARD_COLUMNS if len(cards) > 1 else 1
    width = 2 * _MARGIN + columns * _CARD_WIDTH + (columns - 1) * _CARD_GAP
    present = {made.category for card in cards for made in card.scene.objects}
    entries: list[tuple[Rgb | None, str]] = [
        (color, f"{_shorten(name, _LEGEND_NAME_PX)} {counts.get(name, 0):,}")
        for name, color in colors.items()
        if name in present
    ]
    entries.append((None, "dashed: not counted"))
    entries.append((_WHITE, "1 to 3: enlarged on the right; lines lie just outside of the boxes"))
    legend = _legend(entries, width)
    top = legend[-1].place[1] + _LINE_PX + 16
    rows = -(-len(cards) // _CARD_COLUMNS) or 1
    height = top + rows * (_CARD_HEIGHT + _CARD_GAP)
    sheet = Image.new("RGB", (width, height), _BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    _write(draw, (_MARGIN, _MARGIN - 4), title, size=_TITLE_PX)
    for key in legend:
        _draw_key(draw, key)
    unreadable = {}
    for i, card in enumerate(cards):
        x, y = card_place(i)
        reason = _draw_card(sheet, (_MARGIN + x, top + y), card, colors, max_pixels)
        if reason:
            unreadable[card.scene.image_id] = reason
    if not cards:
        _write(draw, (_MARGIN, top + _LINE_PX), "There is no picture to show.", fill=_FAINT)
    return LabelSheet(sheet, unreadable)


class _Key(NamedTuple):
    """One entry of the legend; the color None stands for dashed."""

    place: tuple[int, int]
    color: Rgb | None
    text: str


def _legend(entries: Iterable[tuple[Rgb | None, str]], width: int) -> list[_Key]:
    x, y = _MARGIN, _MARGIN + _TITLE_PX + 14
    keys = []
    for color, text in entries:
        length = _SWATCH_WH[0] + 7 + ceil(_font(_TEXT_PX).getlength(_printable(text))) + 20
        if x > _MARGIN and x + length > width - _MARGIN:
            x, y = _MARGIN, y + _LINE_PX
        keys.append(_Key((x, y), color, text))
        x += length
    return keys


def _draw_key(draw: ImageDraw.ImageDraw, key: _Key) -> None:
    x, y = key.place
    swatch = Box(x, y + 2, x + _SWATCH_WH[0], y + 2 + _SWATCH_WH[1])
    if key.color is None:
        _dash(draw, _corners(swatch))
    else:
        draw.rectangle(swatch, outline=key.color, width=1 if key.color == _WHITE else 3)
    _write(draw, (x + _SWATCH_WH[0] + 7, y), key.text)


def _draw_card(
    sheet: Image.Image,
    corner: tuple[int, int],
    card: LabelCard,
    colors: Mapping[str, Rgb],
    max_pixels: int,
) -> str | None:
    """Draw one card; return why its picture cannot be read, or None."""
    (x, y), scene = corner, card.scene
    draw = ImageDraw.Draw(sheet)
    note_width = ceil(_font(_TEXT_PX).getlength(_printable(card.note)))
    name = _shorten(scene.image_id, _CARD_WIDTH - note_width - 24)
    _write(draw, (x, y), name)
    _write(draw, (x + _CARD_WIDTH - note_width, y), card.note, fill=_FAINT)
    y += _LINE_PX
    draw.rectangle((x, y, x + OVERVIEW_WH[0] - 1, y + OVERVIEW_WH[1] - 1), fill=_EMPTY)
    try:
        picture = load_picture(scene.image_path, max_pixels=max_pixels)
    except PictureError as error:
        _write(draw, (x + 10, y + 10), error.reason, fill=_PALETTE[0])
        return error.reason
    windows = [window_of(made.box_xyxy, picture.size) for made in card.enlarged]
    # From the back to the front, whatever the order in the label file.
    objects = sorted(scene.objects, key=_back_to_front)
    overview = _draw_overview(picture, objects, windows, colors)
    left, top = ((a - b) // 2 for a, b in zip(OVERVIEW_WH, overview.size, strict=True))
    sheet.paste(overview, (x + left, y + top))
    x += OVERVIEW_WH[0] + _GAP
    for i, (made, window) in enumerate(zip(card.enlarged, windows, strict=True), start=1):
        sheet.paste(_draw_crop(picture, objects, made, window, colors), (x, y))
        _caption(draw, (x, y + CROP_PX + 2), i, made, window, colors)
        x += CROP_PX + _GAP
    return None


def _caption(
    draw: ImageDraw.ImageDraw,
    place: tuple[int, int],
    number: int,
    made: SceneObject,
    window: Window,
    colors: Mapping[str, Rgb],
) -> None:
    scale = f"{window.scale:.0f}" if window.scale >= 1 else f"1/{1 / window.scale:.1f}"
    width, height = _sides(made)
    rest = f"  {round(width, 1):g} x {round(height, 1):g} px, scale {scale}"
    font = _font(_SMALL_PX)
    room = CROP_PX - font.getlength(f"{number}  {rest}")
    name = _shorten(made.category, room, size=_SMALL_PX)
    x, y = place
    for text, fill in (
        (f"{number}  ", _WHITE),
        (name, _NOT_COUNTED if made.ignore else colors.get(made.category, _NOT_COUNTED)),
        (rest, _FAINT),
    ):
        _write(draw, (x, y), text, size=_SMALL_PX, fill=fill)
        x += round(font.getlength(_printable(text)))


def _sides(made: SceneObject) -> Point:
    if made.quad_xy8 is None:
        x1, y1, x2, y2 = made.box_xyxy
        return x2 - x1, y2 - y1
    x1, y1, x2, y2, x3, y3, *_ = made.quad_xy8
    return hypot(x2 - x1, y2 - y1), hypot(x3 - x2, y3 - y2)


def _draw_overview(
    picture: Image.Image,
    objects: Sequence[SceneObject],
    windows: Sequence[Window],
    colors: Mapping[str, Rgb],
) -> Image.Image:
    scale = min(OVERVIEW_WH[0] / picture.width, OVERVIEW_WH[1] / picture.height)
    if scale >= 1:
        scale = int(scale)
    width, height = (max(1, round(side * scale)) for side in picture.size)
    filter_ = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.LANCZOS
    tile = picture.resize((width, height), filter_, reducing_gap=3.0)
    draw = ImageDraw.Draw(tile)
    for made in objects:
        _outline(draw, made, Window(0, 0, 0, scale), colors, width=1, halo=False)
    for i, window in enumerate(windows, start=1):
        x1, y1 = round(window.x * scale), round(window.y * scale)
        x2, y2 = (round((start + window.side) * scale) for start in (window.x, window.y))
        x1, y1, x2, y2 = max(x1, 0), max(y1, 0), min(x2, width - 1), min(y2, height - 1)
        draw.rectangle((x1 - 1, y1 - 1, x2 + 1, y2 + 1), outline=_BLACK)
        draw.rectangle((x1, y1, x2, y2), outline=_WHITE)
        # Above its frame, or below where there is no room.
        above = y1 - 14 if y1 >= 14 else min(y2 + 1, height - 14)
        left = min(x1, width - 11)
        draw.rectangle((left, above, left + 10, above + 13), fill=_WHITE)
        _write(draw, (left + 2, above), str(i), size=_SMALL_PX, fill=_BLACK)
    return tile


def _draw_crop(
    picture: Image.Image,
    objects: Sequence[SceneObject],
    shown: SceneObject,
    window: Window,
    colors: Mapping[str, Rgb],
) -> Image.Image:
    x, y, side, scale = window
    cut = picture.crop((x, y, x + side, y + side))
    # Enlarged pixels stay squares: what is smoothed shows no borders.
    filter_ = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.LANCZOS
    tile = cut.resize((CROP_PX, CROP_PX), filter_)
    draw = ImageDraw.Draw(tile)
    for made in objects:
        if made is not shown:
            _outline(draw, made, window, colors, width=1, halo=True)
    _outline(draw, shown, window, colors, width=2, halo=True)
    return tile


def _outline(
    draw: ImageDraw.ImageDraw,
    made: SceneObject,
    window: Window,
    colors: Mapping[str, Rgb],
    *,
    width: int,
    halo: bool,
) -> None:
    """Draw a box or quad from its first pixel outside on outwards."""
    color = colors.get(made.category, _NOT_COUNTED)
    x1, y1, x2, y2 = made.box_xyxy
    place = [round((v - window.x) * window.scale) for v in (x1, x2)]
    place += [round((v - window.y) * window.scale) for v in (y1, y2)]
    left, right, top, bottom = place
    if right < -width or bottom < -width or left > draw.im.size[0] or top > draw.im.size[1]:
        return
    if made.quad_xy8 is None:
        rings = [Box(left - i, top - i, right + i - 1, bottom + i - 1) for i in range(1, width + 2)]
        if made.ignore:
            _dash(draw, _corners(rings[0]))
            return
        if halo:
            draw.rectangle(rings[-1], outline=_BLACK)
        for ring in rings[:-1]:
            draw.rectangle(ring, outline=color)
        return
    quad = made.quad_xy8
    corners = [
        ((x - window.x) * window.scale, (y - window.y) * window.scale)
        for x, y in zip(quad[0::2], quad[1::2], strict=True)
    ]
    if made.ignore:
        _dash(draw, _widen(corners, 1))
        return
    if halo:
        _close(draw, _widen(corners, width + 0.5), _BLACK, 1)
    _close(draw, _widen(corners, width / 2), color, width)


def _widen(corners: Sequence[Point], by: float) -> list[Point]:
    """Move each side of a rectangle outwards; other quads come out about as much wider."""
    wider = []
    for i, (x, y) in enumerate(corners):
        for px, py in (corners[i - 1], corners[(i + 1) % len(corners)]):
            length = hypot(corners[i][0] - px, corners[i][1] - py)
            if length > 0:
                x += by * (corners[i][0] - px) / length
                y += by * (corners[i][1] - py) / length
        wider.append((x - 0.5, y - 0.5))
    return wider


def _close(draw: ImageDraw.ImageDraw, corners: Sequence[Point], color: Rgb, width: int) -> None:
    draw.line([*corners, corners[0], corners[1]], fill=color, width=width, joint="curve")


def _dash(draw: ImageDraw.ImageDraw, corners: Sequence[Point]) -> None:
    """Draw a dashed outline, light and dark in turn so that any ground shows it."""
    for (x1, y1), (x2, y2) in pairwise([*corners, corners[0]]):
        dashes = max(1, round(hypot(x2 - x1, y2 - y1) / _DASH_PX))
        points = [
            (x1 + (x2 - x1) * i / dashes, y1 + (y2 - y1) * i / dashes) for i in range(dashes + 1)
        ]
        for i, (start, end) in enumerate(pairwise(points)):
            draw.line([start, end], fill=_BLACK if i % 2 else _NOT_COUNTED)


def _corners(box: Box) -> list[Point]:
    return [(box.x1, box.y1), (box.x2, box.y1), (box.x2, box.y2), (box.x1, box.y2)]


def _back_to_front(made: SceneObject) -> tuple[bool, float, str, Box]:
    return not made.ignore, -made.area_px, made.category, made.box_xyxy


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _printable(text: str) -> str:
    """Write letters that the built-in font lacks as escapes."""
    return "".join(
        letter
        if " " <= letter <= "~" or letter in "·…"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _shorten(text: str, room: float, *, size: int = _TEXT_PX) -> str:
    """Take out the middle of a text that is too long."""
    font, text = _font(size), _printable(text)
    short, keep = text, len(text)
    while font.getlength(short) > room and keep > 2:
        keep -= 1
        short = f"{text[: (keep + 1) // 2]}…{text[len(text) - keep // 2 :]}"
    return short


def _write(
    draw: ImageDraw.ImageDraw,
    place: tuple[int, int],
    text: str,
    *,
    size: int = _TEXT_PX,
    fill: Rgb = _TEXT,
) -> None:
    draw.text(place, _printable(text), fill=fill, font=_font(size))
