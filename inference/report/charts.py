"""What a plot shows, before it is drawn in the page or into a PNG file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ChartKind = Literal["bars", "lines", "scatter"]


@dataclass(frozen=True, slots=True)
class Value:
    """A score with its 95 % interval.

    Attributes:
        value: The score.
        low: Lower end of the interval; the value itself where there is none.
        high: Upper end.
        n: Rows that it is made of; 0 where that makes no sense.
    """

    value: float
    low: float
    high: float
    n: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    """What a chart says of one run.

    Attributes:
        name: The run.
        color: Index of the run among those of its section, which decides the color.
        values: One per category; None where there is none.
        x: Places on the axis of a scatter plot, one per value.
    """

    name: str
    color: int
    values: tuple[Value | None, ...]
    x: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot.

    Attributes:
        name: For file names.
        kind: ``bars`` side by side per category, ``lines`` over ordered categories, or ``scatter``
            over a logarithmic axis.
        title: What is shown.
        note: What has to be known to read it.
        categories: Names of the bars' groups or of the places on the axis of ``lines``.
        series: One per run.
        top: End of the axis of values; it begins at 0.
        unit: Of the values.
        axis: What the other axis says, for ``lines`` and ``scatter``.
        reference: A value per category that is marked by a dashed line, such as chance.
    """

    name: str
    kind: ChartKind
    title: str
    note: str
    categories: tuple[str, ...]
    series: tuple[Series, ...]
    top: float = 100.0
    unit: str = "%"
    axis: str = ""
    reference: tuple[float | None, ...] = ()


def ticks(top: float, count: int = 5) -> Sequence[float]:
    """Return round numbers from 0 to ``top``, about ``count`` of them.

    >>> ticks(100)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    >>> ticks(3)
    [0.0, 1.0, 2.0, 3.0]
    """
    power = 1.0
    while power * 10 <= top / count:
        power *= 10
    while power > top / count:
        power /= 10
    step = next(s * power for s in (1, 2, 5, 10) if s * power * count >= top * 0.999 or s == 10)
    return [round(i * step, 10) for i in range(int(top / step * 1.000001) + 1)]


def round_up(value: float) -> float:
    """Return a round number not below a positive value: 1, 2, 3, 5 or 10 times a power of ten.

    >>> round_up(17.3), round_up(0.4)
    (20.0, 0.5)
    """
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(s * power for s in (1, 2, 3, 5, 10) if s * power >= value * 0.999999)
