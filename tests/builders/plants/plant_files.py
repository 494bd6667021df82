"""Tiny plant folders: leaves are rectangles, so their boxes are known by hand."""

import numpy as np
from PIL import Image

NAME = "ara2012_plant001"
RECTANGLES = {1: (4, 6, 13, 10), 3: (20, 2, 22, 30)}
"""Leaf id -> first and last column and row of its pixels (x1, y1, x2, y2), 0-based, inclusive."""


def rows_of(rectangles):
    """Write boxes as the set does: corners 1-based and inclusive, counter-clockwise."""
    return [
        f"{i},{x1 + 1},{y1 + 1},{x1 + 1},{y2 + 1},{x2 + 1},{y2 + 1},{x2 + 1},{y1 + 1}"
        for i, (x1, y1, x2, y2) in rectangles.items()
    ]


def label_of(rectangles, size_wh=(40, 36)):
    label = np.zeros(size_wh[::-1], dtype=np.uint8)
    for i, (x1, y1, x2, y2) in rectangles.items():
        label[y1 : y2 + 1, x1 : x2 + 1] = i
    return label


def save_label(label, path):
    picture = Image.fromarray(label)
    picture.putpalette([v for i in range(256) for v in (i, 255 - i, 7 * i % 256)])
    picture.save(path)


def write_plant(root, subset="Plant/Ara2012", name=NAME, *, rectangles=RECTANGLES, color=90):
    """Write one picture with all its files and return the subset's folder."""
    folder = root / subset
    folder.mkdir(parents=True, exist_ok=True)
    label = label_of(rectangles)
    Image.new("RGB", label.shape[::-1], (color, 120, 60)).save(folder / f"{name}_rgb.png")
    save_label(label, folder / f"{name}_label.png")
    (folder / f"{name}_bbox.csv").write_text("".join(f"{row}\n" for row in rows_of(rectangles)))
    return folder
