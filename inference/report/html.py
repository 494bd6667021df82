"""Tables of scores as HTML."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

from soubench.inference.report.svg import RUN_COLORS
from soubench.inference.tables import Line, Table


def table_html(table: Table, runs: Sequence[str]) -> str:
    """Write a table that scrolls sideways in a box of its own, with its title and notes.

    What several lines are about stands over them, so that only the last label takes up width; it
    stays in sight while the numbers are scrolled.

    Args:
        table: The table.
        runs: Names of the runs, whose colors stand beside them.
    """
    head = f'<th class="text" scope="col">{escape(" / ".join(table.heads))}</th>'
    head += "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    blocks = groupby(table.lines, key=lambda line: line.labels[:-1])
    body = "".join(_block(table, labels, list(lines), runs) for labels, lines in blocks)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    title = escape(table.title)
    return (
        f'<h3>{title}</h3><p class="more" hidden>More columns: scroll the table sideways →</p>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{title}">'
        f"<table><thead><tr>{head}</tr></thead>{body}</table></div>{notes}"
    )


def _block(table: Table, labels: Sequence[str], lines: Sequence[Line], runs: Sequence[str]) -> str:
    """Write lines that are about the same; ``labels`` say about what, if there are several."""
    written = []
    if labels:
        inner = ' class="inner"' if labels[0].startswith(" ") else ""
        text = escape(" / ".join(label.strip() for label in labels))
        span = 1 + len(table.columns)
        written.append(
            f'<tr><th scope="rowgroup" colspan="{span}"{inner}><span>{text}</span></th></tr>'
        )
    for line in lines:
        label = line.labels[-1]
        # Names of models are long words; they may break where their parts end.
        name = re.sub(r"([:/_-])(?=.)", r"\1<wbr>", escape(label))
        cells = f'<th scope="row">{_swatch(label, runs)}{name}</th>'
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
