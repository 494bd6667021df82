"""Charts as SVG for the page: colors come from its style sheet, so they suit both schemes."""

from collections.abc import Callable
from html import escape
from math import floor, log10

from soubench.inference.report.charts import Chart, Series, Value, ticks

WIDTH = 360
RIGHT = 344
TOP = 8
BAR, BAR_GAP, GROUP_GAP = 9, 3, 9
PLOT_HEIGHT = 170
LEFT_OF_LINES = 42
CHARACTER_PX = 6.2
"""About how wide a character of 11 px is."""
RUN_COLORS = 8


def draw(chart: Chart) -> str:
    """Return a chart as an ``<svg>`` element with a text for screen readers."""
    body, height = _KINDS[chart.kind](chart)
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(_in_words(chart))}">{body}</svg>'
    )


def _bars(chart: Chart) -> tuple[str, int]:
    longest = max((len(name) for name in chart.categories), default=0)
    left = min(130, round(longest * CHARACTER_PX) + 10)
    scale = (RIGHT - left) / chart.top
    shown = max(1, len(chart.series))
    group = shown * (BAR + BAR_GAP) - BAR_GAP
    bottom = TOP + len(chart.categories) * (group + GROUP_GAP)
    parts = _value_grid(chart, left, bottom, scale)
    for i, name in enumerate(chart.categories):
        y = TOP + i * (group + GROUP_GAP) + GROUP_GAP / 2
        parts.append(_text(left - 6, y + group / 2 + 4, name, "end", limit=left - 8))
        for j, series in enumerate(chart.series):
            value = series.values[i]
            if value is not None:
                parts.append(_bar(chart, series, name, value, left, y + j * (BAR + BAR_GAP), scale))
        reference = chart.reference[i] if chart.reference else None
        if reference is not None:
            x = left + scale * min(reference, chart.top)
            parts.append(_line(x, y - 2, x, y + group + 2, "reference"))
    return "".join(parts), bottom + 20


def _bar(
    chart: Chart, series: Series, name: str, value: Value, left: float, y: float, scale: float
) -> str:
    low, high, length = (
        scale * min(max(v, 0), chart.top) for v in (value.low, value.high, value.value)
    )
    middle = y + BAR / 2
    bar = (
        f'<rect x="{left}" y="{y:g}" width="{length:.2f}" height="{BAR}" '
        f'fill="var(--run{series.color % RUN_COLORS})"/>'
    )
    whisker = (
        f'<path class="whisker" d="M{left + low:.2f},{middle:g}H{left + high:.2f}'
        f'M{left + low:.2f},{middle - 3:g}v6M{left + high:.2f},{middle - 3:g}v6"/>'
        if value.high > value.low
        else ""
    )
    return f"<g><title>{escape(_said(chart, series, name, value))}</title>{bar}{whisker}</g>"


def _lines(chart: Chart) -> tuple[str, int]:
    bottom = TOP + PLOT_HEIGHT
    step = (RIGHT - LEFT_OF_LINES) / max(1, len(chart.categories))
    scale = PLOT_HEIGHT / chart.top
    parts = _height_grid(chart, bottom, scale)
    for i, name in enumerate(chart.categories):
        parts.append(_text(LEFT_OF_LINES + (i + 0.5) * step, bottom + 14, name, limit=step))
    parts.append(_text((LEFT_OF_LINES + RIGHT) / 2, bottom + 29, chart.axis, kind="faint"))
    # Side by side, so that intervals do not lie on one another.
    apart = min(7.0, 0.7 * step / max(1, len(chart.series)))
    for j, series in enumerate(chart.series):
        shift = (j - (len(chart.series) - 1) / 2) * apart
        places = [
            (LEFT_OF_LINES + (i + 0.5) * step + shift, name, value)
            for i, (name, value) in enumerate(zip(chart.categories, series.values, strict=True))
            if value is not None
        ]
        parts.append(_points(chart, series, places, bottom, scale, joined=True))
    return "".join(parts), bottom + 36


def _scatter(chart: Chart) -> tuple[str, int]:
    bottom = TOP + PLOT_HEIGHT
    scale = PLOT_HEIGHT / chart.top
    xs = [log10(x) for series in chart.series for x in series.x]
    low, high = floor(min(xs)), floor(max(xs)) + 1
    along = (RIGHT - LEFT_OF_LINES) / (high - low)
    parts = _height_grid(chart, bottom, scale)
    for power in range(low, high + 1):
        x = LEFT_OF_LINES + (power - low) * along
        parts.append(_line(x, TOP, x, bottom, "grid"))
        parts.append(_text(x, bottom + 14, short_number(10.0**power)))
    parts.append(_text((LEFT_OF_LINES + RIGHT) / 2, bottom + 29, chart.axis, kind="faint"))
    for series in chart.series:
        places = [
            (LEFT_OF_LINES + (log10(x) - low) * along, short_number(x), value)
            for x, value in zip(series.x, series.values, strict=True)
            if value is not None
        ]
        parts.append(_points(chart, series, places, bottom, scale, joined=False))
    return "".join(parts), bottom + 36


def _points(
    chart: Chart,
    series: Series,
    places: list[tuple[float, str, Value]],
    bottom: float,
    scale: float,
    *,
    joined: bool,
) -> str:
    color = f"var(--run{series.color % RUN_COLORS})"
    parts = []
    if joined:
        way = "L".join(f"{x:.2f},{bottom - scale * v.value:.2f}" for x, _, v in places)
        parts.append(f'<path d="M{way}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    for x, name, v in places:
        low, high = (bottom - scale * min(max(end, 0), chart.top) for end in (v.low, v.high))
        parts.append(
            f"<g><title>{escape(_said(chart, series, name, v))}</title>"
            f'<path d="M{x:.2f},{low:.2f}V{high:.2f}" stroke="{color}" stroke-width="1.5"/>'
            f'<circle cx="{x:.2f}" cy="{bottom - scale * v.value:.2f}" r="3.5" fill="{color}"/></g>'
        )
    return "".join(parts) if places else ""


def _value_grid(chart: Chart, left: float, bottom: float, scale: float) -> list[str]:
    parts = []
    for tick in ticks(chart.top):
        x = left + scale * tick
        parts.append(_line(x, TOP, x, bottom, "grid"))
        unit = f" {chart.unit}" if tick == 0 else ""
        parts.append(_text(x, bottom + 14, f"{tick:g}{unit}", kind="faint"))
    return parts


def _height_grid(chart: Chart, bottom: float, scale: float) -> list[str]:
    parts = []
    for tick in ticks(chart.top):
        y = bottom - scale * tick
        parts.append(_line(LEFT_OF_LINES, y, RIGHT, y, "grid"))
        unit = f" {chart.unit}" if tick else ""
        parts.append(_text(LEFT_OF_LINES - 5, y + 4, f"{tick:g}{unit}", "end", kind="faint"))
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x1:.2f},{y1:.2f}L{x2:.2f},{y2:.2f}"/>'


def _text(
    x: float, y: float, text: str, anchor: str = "middle", *, kind: str = "", limit: float = 0
) -> str:
    room = int(limit / CHARACTER_PX) if limit else 0
    short = text if not room or len(text) <= room else f"{text[: max(1, room - 1)]}…"
    name = f' class="{kind}"' if kind else ""
    full = f"<title>{escape(text)}</title>" if short != text else ""
    return (
        f'<text{name} x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{full}{escape(short)}</text>'
    )


def _said(chart: Chart, series: Series, name: str, value: Value) -> str:
    text = f"{series.name}, {name}: {value.value:.1f} {chart.unit}"
    if value.high > value.low:
        text += f" ({value.low:.1f} to {value.high:.1f})"
    return text + (f", {value.n:,} rows" if value.n else "")


def _in_words(chart: Chart) -> str:
    said = [
        _said(chart, series, name, value)
        for series in chart.series
        for name, value in zip(
            chart.categories or map(short_number, series.x), series.values, strict=True
        )
        if value is not None
    ]
    return f"{chart.title}. {'; '.join(said)}"


def short_number(value: float) -> str:
    """Write a number of parameters or pixels in few characters.

    >>> short_number(7_600_000_000), short_number(256e6), short_number(10_000)
    ('7.6B', '256M', '10k')
    """
    for limit, sign in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{sign}"
    return f"{value:.3g}"


_KINDS: dict[str, Callable[[Chart], tuple[str, int]]] = {
    "bars": _bars,
    "lines": _lines,
    "scatter": _scatter,
}
