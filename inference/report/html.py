"""Tables of scores as HTML."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

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
    body = "".join(_block(table, lines, runs) for lines in _blocks(table))
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    title = escape(table.title)
    return (
        f'<h3>{title}</h3><div class="scroll" role="region" tabindex="0" aria-label="{title}">'
        f"<table><thead><tr>{head}</tr></thead>{body}</table></div>{notes}"
    )


def _blocks(table: Table) -> Iterator[list[Line]]:
    """Yield lines that are about the same, where there is more than one head."""
    if len(table.heads) == 1:
        yield list(table.lines)
        return
    for _, lines in groupby(table.lines, key=lambda line: line.labels[0]):
        yield list(lines)


def _block(table: Table, lines: Sequence[Line], runs: Sequence[str]) -> str:
    """Write lines; what the first label says of all of them is said once."""
    is_joined = len(table.heads) > 1
    written = []
    for i, line in enumerate(lines):
        cells = ""
        labels = list(line.labels)
        if is_joined:
            first = labels.pop(0)
            if i == 0:
                inner = ' class="inner"' if first.startswith(" ") else ""
                cells = (
                    f'<th scope="rowgroup" rowspan="{len(lines)}"{inner}>{escape(first.strip())}'
                    "</th>"
                )
        cells += "".join(
            f'<th scope="row">{_swatch(label, runs)}{escape(label)}</th>' for label in labels
        )
        for cell in line.cells:
            small = table.interval(cell, "–")
            below = f"<small>{escape(small)}</small>" if small else ""
            cells += f"<td>{escape(table.text(cell))}{below}</td>"
        kind = ' class="reference"' if line.is_reference else ""
        written.append(f"<tr{kind}>{cells}</tr>")
    return f"<tbody>{''.join(written)}</tbody>"


def _swatch(label: str, runs: Sequence[str]) -> str:
    """Return the color of the run that a label is, if it is one."""
    if label not in runs:
        return ""
    color = runs.index(label) % RUN_COLORS
    return f'<span class="swatch" style="background:var(--run{color})"></span>'
