"""Charts as PNG files, for papers and slides."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from soubench.builders.errors import RunError
from soubench.inference.report.charts import Chart

COLORS = ("#0b62b8", "#b34700", "#00705a", "#9c2f7a", "#5b4bc4", "#6b5900", "#8c2f2f", "#475569")
DPI = 150


def write_plots(
    charts: Iterable[tuple[int, str, Chart]], folder: Path, *, numbered: bool = False
) -> list[Path]:
    """Write one PNG per chart.

    Args:
        charts: Number and name of the section (a dataset), and the chart.
        folder: Made if need be.
        numbered: Put the section's number into the file's name.

    Returns:
        The files.

    Raises:
        RunError: Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RunError('PNG plots need matplotlib: pip install "soubench[plots]".') from error
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, subject, chart in charts:
        figure = Figure(figsize=(8, 4.8), layout="constrained")
        ax = figure.subplots()
        places = range(len(chart.categories))
        share = 0.8 / max(1, len(chart.series))
        for j, series in enumerate(chart.series):
            color = COLORS[series.color % len(COLORS)]
            shift = (j - (len(chart.series) - 1) / 2) * share
            at = series.x or [i + shift for i in places]
            drawn = [(x, v) for x, v in zip(at, series.values, strict=True) if v is not None]
            if not drawn:
                continue
            xs, values = [x for x, _ in drawn], [v for _, v in drawn]
            errors = [
                # Rounding may put a bound past the value by a hair.
                [max(0.0, v.value - v.low) for v in values],
                [max(0.0, v.high - v.value) for v in values],
            ]
            heights = [v.value for v in values]
            if chart.kind == "bars":
                ax.bar(xs, heights, share * 0.92, color=color, label=series.name)
                ax.errorbar(xs, heights, errors, fmt="none", ecolor="#222222", capsize=2, lw=1)
            else:
                style = "-o" if chart.kind == "lines" else "o"
                ax.errorbar(xs, heights, errors, fmt=style, color=color, label=series.name)
        for i, reference in enumerate(chart.reference):
            if reference is not None:
                ax.hlines(reference, i - 0.45, i + 0.45, colors="#222222", linestyles="dashed")
        if chart.kind == "scatter":
            ax.set_xscale("log")
        else:
            ax.set_xticks(list(places), _wrapped(chart.categories))
        ax.set_title(f"{chart.title}\n{subject}", fontsize=11)
        ax.set_xlabel(chart.axis)
        ax.set_ylabel(chart.unit)
        ax.set_ylim(0, chart.top)
        ax.grid(axis="y", color="#d0d7de", linewidth=0.8)
        ax.set_axisbelow(True)
        figure.legend(loc="outside lower center", ncols=min(3, len(chart.series)), frameon=False)
        name = f"{number + 1}-{chart.name}" if numbered else chart.name
        path = folder / f"{name}.png"
        # Without the version and the time, so that the same scores give the same bytes.
        figure.savefig(path, dpi=DPI, metadata={"Software": None})
        written.append(path)
    return written


def _wrapped(names: Sequence[str]) -> list[str]:
    return [name.replace(" ", "\n", 1) if len(name) > 10 else name for name in names]
