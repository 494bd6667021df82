"""Histograms of what was drawn."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from soubench.builders.errors import BuildError
from soubench.builders.shapes.configuration import (
    COLORS,
    KINDS,
    Configuration,
    Shape,
    clusters,
)

QUADRANTS = ("top left", "top right", "bottom left", "bottom right")


def count(shapes: Iterable[Mapping[str, Any]], canvases: Iterable[int]) -> dict[str, Any]:
    """Count what the rows of one split show.

    Args:
        shapes: The ``shapes`` column.
        canvases: Side of each picture's canvas in px.

    Returns:
        Counters ``shape``, ``color``, ``quadrant``, ``rotation`` (circles apart), ``occlusion``,
        ``shapes per picture``, ``largest cluster``, and ``centers``, a list of (x, y) as shares of
        the canvas.
    """
    found: dict[str, Any] = {
        name: Counter()
        for name in (
            *("shape", "color", "quadrant", "rotation", "occlusion"),
            *("shapes per picture", "largest cluster"),
        )
    }
    found["centers"] = []
    for row, canvas in zip(shapes, canvases, strict=True):
        found["shape"].update(row["shape"])
        found["color"].update(row["color"])
        found["quadrant"].update(row["quadrant"])
        found["occlusion"].update("occluded" if o else "not occluded" for o in row["occluded"])
        found["rotation"].update(
            r for r, kind in zip(row["rotation"], row["shape"], strict=True) if kind != "Circle"
        )
        found["shapes per picture"][len(row["shape"])] += 1
        groups = clusters(configuration_of(row, canvas))
        found["largest cluster"][max(map(len, groups))] += 1
        found["centers"] += [(x / canvas, y / canvas) for x, y in row["center_xy"]]
    return found


def configuration_of(row: Mapping[str, Any], canvas_px: int) -> Configuration:
    """Put a ``shapes`` column back together; the inverse of what a row says of it."""
    columns = ("shape", "color", "center_xy", "rotation", "half_long", "half_short", "depth")
    found = [
        (depth, Shape(kind, color, center[0], center[1], rotation, long, short))
        for kind, color, center, rotation, long, short, depth in zip(
            *(row[name] for name in columns), strict=True
        )
    ]
    return Configuration(canvas_px, tuple(shape for _, shape in sorted(found, key=lambda f: f[0])))


def draw_histograms(counts: Mapping[str, Any], path: Path, title: str) -> None:
    """Write one PNG with a histogram per attribute and a map of the centers.

    Raises:
        BuildError: Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BuildError('Histograms need matplotlib: pip install "soubench[plots]".') from error
    figure = Figure(figsize=(14, 7), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(2, 4).flat
    fixed: Mapping[str, Sequence[Any]] = {
        "shape": KINDS,
        "color": tuple(COLORS),
        "quadrant": QUADRANTS,
        "occlusion": ("not occluded", "occluded"),
    }
    for ax, (name, counter) in zip(axes, counts.items(), strict=True):
        ax.set_title(name)
        if name == "centers":
            xs, ys = zip(*counter, strict=True)
            ax.hist2d(xs, ys, bins=28, range=((0, 1), (0, 1)), cmap="viridis")
            ax.set_aspect("equal")
            ax.invert_yaxis()
            continue
        values = fixed.get(name, sorted(counter))
        bars = ax.bar([str(v) for v in values], [counter[v] for v in values], color="#4477aa")
        ax.bar_label(bars, fontsize=8)
        ax.tick_params(axis="x", labelrotation=30 if len(values) > 3 else 0)
    figure.savefig(path, dpi=100)
