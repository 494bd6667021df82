"""Contact sheets: the first pictures of a split, side by side."""

from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from soubench.builders.images import load_picture

SHEET_COLUMNS = 6
SHEET_ROWS = 3
SHEET_TILE_PX = 224
SHEET_GAP_PX = 4
SHEET_GREY = (120, 120, 120)


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
