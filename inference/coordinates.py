"""Points and boxes of a question in the frame that a model thinks in.

Rows state them in pixels of their picture. A model that counts in thousandths, or in pixels of the
picture it was resized to, is measured on its conventions unless it is asked in them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from soubench.builders.errors import RunError

Coords = Literal["pixel", "model-pixel", "norm1000", "unit"]
COORDS: tuple[Coords, ...] = get_args(Coords)

DECIMALS = {"model-pixel": 0, "norm1000": 0, "unit": 3}
MORE_DECIMALS = 3
"""Decimals that may be added where options would become equal."""

BOX_FORMATS: dict[Coords, str] = {
    "pixel": "pixel_xyxy",
    "model-pixel": "qwen2_5_vl",
    "norm1000": "permille_xyxy",
    "unit": "unit_xyxy",
}
"""The name that the ``acc_at_iou`` metric has for boxes asked for in a frame. ``qwen2_5_vl`` is
the plain x1, y1, x2, y2 in pixels of the resized picture."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What coordinates count.

    Attributes:
        coords: ``pixel`` of the row's picture, ``model-pixel`` of the picture as the processor
            feeds it, ``norm1000`` or ``unit`` of the sides.
        picture_wh: Width and height of the row's picture in px; needed by all but ``pixel``.
        model_wh: Width and height that the processor feeds in px; needed by ``model-pixel``.
    """

    coords: Coords = "pixel"
    picture_wh: tuple[int, int] | None = None
    model_wh: tuple[int, int] | None = None

    def scales(self) -> tuple[float, float]:
        """Return what x and y are multiplied by.

        Raises:
            RunError: A size is not known.
        """
        if self.coords == "pixel":
            return 1.0, 1.0
        if self.picture_wh is None or (self.coords == "model-pixel" and self.model_wh is None):
            of_model = self.coords == "model-pixel"
            raise RunError(
                f"--coords {self.coords} needs the size of every picture"
                f"{' as the model is fed it, whole' if of_model else ''}, and that of this one is "
                "not known"
                f"{': its processor cuts or pads it, or a server hides it' if of_model else ''}. "
                "Use --coords norm1000, unit or pixel."
            )
        whole = (1000, 1000) if self.coords == "norm1000" else (1, 1)
        if self.coords == "model-pixel" and self.model_wh is not None:
            whole = self.model_wh
        return whole[0] / self.picture_wh[0], whole[1] / self.picture_wh[1]


PIXELS = Frame()


def convert_numbers(numbers: Sequence[float], frame: Frame, *, decimals: int) -> str:
    """Write x, y, x, y, .. of pixels as ``[x,y,..]`` of a frame.

    >>> convert_numbers([10, 20], Frame("norm1000", (2000, 500)), decimals=0)
    '[5,40]'
    """
    scales = frame.scales()
    scaled = (value * scales[i % 2] for i, value in enumerate(numbers))
    return f"[{','.join(f'{value:.{decimals}f}' for value in scaled)}]"


def convert_options(options: Sequence[str], frame: Frame) -> tuple[str, ...]:
    """Write options that are boxes, quads or points of pixels in a frame; leave others alone.

    Where rounding would make two options equal, all of them get more decimals.

    Raises:
        RunError: Options stay equal.
    """
    numbers = [read_numbers(option) for option in options]
    if frame.coords == "pixel" or any(found is None for found in numbers):
        return tuple(options)
    return _distinct(
        lambda decimals: tuple(
            convert_numbers(found, frame, decimals=decimals) for found in numbers if found
        ),
        frame,
    )


def convert_point(question: str, point_xy: Sequence[int], frame: Frame) -> str:
    """Write the point that a question asks about, ``[x,y]``, in a frame.

    Raises:
        RunError: The question does not say the point in this form.
    """
    if frame.coords == "pixel":
        return question
    said = f"[{point_xy[0]},{point_xy[1]}]"
    if said not in question:
        raise RunError(
            f"--coords {frame.coords}: expected the point as {said} in the question "
            f"{question[:80]!r}. Ask in pixels (--coords pixel)."
        )
    point = convert_numbers(point_xy, frame, decimals=DECIMALS[frame.coords])
    return question.replace(said, point)


def _distinct(write: Callable[[int], tuple[str, ...]], frame: Frame) -> tuple[str, ...]:
    first = DECIMALS[frame.coords]
    for decimals in range(first, first + MORE_DECIMALS + 1):
        options = write(decimals)
        if len(set(options)) == len(options):
            return options
    raise RunError(
        f"--coords {frame.coords}: options become equal, such as {options[0]}. "
        "Ask in pixels (--coords pixel)."
    )


def read_numbers(option: str) -> list[float] | None:
    """Read ``[1,2,3,4]``: a point, a box or a quad; None if a text is something else."""
    text = option.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        numbers = [float(part) for part in text[1:-1].split(",")]
    except ValueError:
        return None
    return numbers if len(numbers) in (2, 4, 8) and all(map(isfinite, numbers)) else None
