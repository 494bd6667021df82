"""Tables of the page and of model cards."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Cell:
    """A value and, smaller, what goes with it (its interval)."""

    text: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: a run's name (and its index, for the color), and a cell per column."""

    name: str
    cells: tuple[Cell, ...]
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table in blocks.

    Attributes:
        title: What is shown.
        note: What has to be known to read it.
        columns: Headings, without that of the first column.
        blocks: Heading of the block, such as a subset (may be empty), and its lines.
        first: Heading of the first column.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    blocks: tuple[tuple[str, tuple[Line, ...]], ...]
    first: str = "Model"


def to_html(table: Table) -> str:
    """Write a table that scrolls sideways on narrow screens."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    body = []
    for name, lines in table.blocks:
        title = (
            f'<tr><th scope="rowgroup" colspan="{len(table.columns) + 1}">{escape(name)}</th></tr>'
            if name
            else ""
        )
        body.append(f"<tbody>{title}{''.join(map(_line_html, lines))}</tbody>")
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f"<h3>{escape(table.title)}</h3>{note}"
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}">'
        f'<table><thead><tr><th class="text" scope="col">{escape(table.first)}</th>{head}</tr>'
        f"</thead>{''.join(body)}</table></div>"
    )


def _line_html(line: Line) -> str:
    color = (
        "" if line.run is None
        else f'<span class="swatch" style="background:var(--run{line.run % 8})"></span>'
    )
    cells = "".join(
        f"<td>{escape(cell.text)}{f'<small>{escape(cell.small)}</small>' if cell.small else ''}</td>"
        for cell in line.cells
    )
    return f'<tr><th scope="row">{color}{escape(line.name)}</th>{cells}</tr>'


def to_markdown(table: Table) -> str:
    """Write a table for a card: one line per run and block."""
    has_blocks = any(name for name, _ in table.blocks)
    several = len({line.name for _, lines in table.blocks for line in lines}) > 1
    heads = [*([" "] if has_blocks else []), *([table.first] if several or not has_blocks else [])]
    lines = [_row([*heads, *table.columns]), _row(["---"] * len(heads) + ["---:"] * len(table.columns))]
    for name, members in table.blocks:
        for line in members:
            first = [*([name] if has_blocks else []),
                     *([line.name] if several or not has_blocks else [])]
            cells = [f"{cell.text} ({cell.small})" if cell.small else cell.text for cell in line.cells]
            lines.append(_row([*first, *cells]))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
