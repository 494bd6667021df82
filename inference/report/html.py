"""Tables of scores as HTML."""

from collections.abc import Sequence
from html import escape

from soubench.inference.report.svg import RUN_COLORS
from soubench.inference.tables import Line, Table


def table_html(table: Table, runs: Sequence[str]) -> str:
    """Write a table that scrolls sideways on narrow screens, with its title and notes.

    Args:
        table: The table.
        runs: Names of the runs, whose colors stand beside them.
    """
    head = "".join(f'<th class="text" scope="col">{escape(name)}</th>' for name in table.heads)
    head += "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    body = "".join(_line(table, line, runs, last) for line, last in _with_last(table))
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    title = escape(table.title)
    return (
        f'<h3>{title}</h3><div class="scroll" role="region" tabindex="0" aria-label="{title}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _with_last(table: Table) -> list[tuple[Line, bool]]:
    """Pair each line with whether the next one is about something else."""
    firsts = [line.labels[0] for line in table.lines]
    nexts = [*firsts[1:], None]
    return [
        (line, len(table.heads) > 1 and first != following)
        for line, first, following in zip(table.lines, firsts, nexts, strict=True)
    ]


def _line(table: Table, line: Line, runs: Sequence[str], is_last: bool) -> str:
    cells = "".join(
        f'<th scope="row">{_swatch(label, runs)}{escape(label)}</th>' for label in line.labels
    )
    for cell in line.cells:
        small = table.interval(cell, "–")
        below = f"<small>{escape(small)}</small>" if small else ""
        cells += f"<td>{escape(table.text(cell))}{below}</td>"
    names = [name for name, on in (("last", is_last), ("reference", line.is_reference)) if on]
    return f'<tr class="{" ".join(names)}">{cells}</tr>' if names else f"<tr>{cells}</tr>"


def _swatch(label: str, runs: Sequence[str]) -> str:
    """Return the color of the run that a label is, if it is one."""
    if label not in runs:
        return ""
    color = runs.index(label) % RUN_COLORS
    return f'<span class="swatch" style="background:var(--run{color})"></span>'
