"""Put the page together: what is shown, as little of it as fits, and nothing from the network."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from soubench.builders.errors import RunError
from soubench.inference.report.figures import Figures
from soubench.inference.report.html import table_html
from soubench.inference.report.pictures import (
    crop_name,
    data_url,
    describe,
    draw_rows,
    row_pictures,
    shares_of,
    write_beside,
)
from soubench.inference.report.rows import Listed, key_of, list_rows, section_data
from soubench.inference.report.runs import ScoredRun, Section
from soubench.inference.report.svg import RUN_COLORS, draw

MOST_PAGE_BYTES = 25_000_000
SPARE_BYTES = 10_000
"""For the note on pictures, which is written last."""
MOST_EMBEDDED = 300
REPLY_CHARACTERS = (4000, 1000, 300, 100)
"""Longer replies are cut in the page; to the next length where the page would become too large."""
HIDDEN = frozenset({"dataset.source", "machine.platform", "shard"})


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How a page is made.

    Attributes:
        out: The HTML file.
        title: Headline; by default from the models and datasets.
        pictures: Folder for the crops that the page does not hold; None leaves them out.
        embedded: Rows whose crops the page holds, at most.
        seed: Of their draw.
        workers: Processes for the crops; changes no byte.
    """

    out: Path
    title: str | None = None
    pictures: Path | None = None
    embedded: int = MOST_EMBEDDED
    seed: int = 0
    workers: int = 1


@dataclass(slots=True)
class Written:
    """What was written.

    Attributes:
        bytes: Size of the page.
        rows: Rows in it, each rotation counted.
        embedded: Rows whose crops are in it.
        beside: Rows whose crops lie beside it.
        unreadable: Rows whose pictures could not be read.
        cut_at: Characters that are left of a long reply; 0 where none was cut.
    """

    bytes: int = 0
    rows: int = 0
    embedded: int = 0
    beside: int = 0
    unreadable: int = 0
    cut_at: int = 0


def write_page(
    sections: Sequence[Section], figures: Sequence[Figures], options: PageOptions
) -> Written:
    """Write the page, and the crops beside it where asked for.

    The same runs, rows and options give the same bytes.

    Args:
        sections: The scored runs by dataset.
        figures: Tables and charts of each section.
        options: How.

    Raises:
        RunError: The page would be too large even with short replies and without pictures.
    """
    written = Written()
    listed = [list_rows(section) for section in sections]
    written.rows = sum(
        len({(*key_of(v), v.rotation) for run in s.runs for v in run.verdicts}) for s in sections
    )
    parts = _parts(sections, figures, options)
    frame_bytes = len(_filled(parts).encode())
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    data = _fitting_data(listed, frame_bytes, written)
    room = MOST_PAGE_BYTES - SPARE_BYTES - frame_bytes - len(_json(data))
    data["pictures"] = _add_pictures(listed, options, room, written)
    for part, rows in zip(data["sections"], listed, strict=True):
        part["views"] = rows.views
    parts["pictures_note"] = escape(_pictures_note(written, options))
    content = _filled(parts | {"data": _json(data)}).encode("utf-8", "replace")
    written.bytes = len(content)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    partial = options.out.with_name(f".{options.out.name}.incomplete")
    partial.write_bytes(content)
    partial.replace(options.out)
    return written


def _fitting_data(listed: Sequence[Listed], frame_bytes: int, written: Written) -> dict[str, Any]:
    """Return the page's data without pictures, with replies as long as the page has room for."""
    for characters in REPLY_CHARACTERS:
        sections = [section_data(rows, characters) for rows in listed]
        data = {"sections": sections, "pictures": {}}
        size = frame_bytes + len(_json(data))
        if size <= MOST_PAGE_BYTES - SPARE_BYTES:
            is_cut = any(
                len(verdict.reply or "") > characters
                for rows in listed
                for run in rows.section.runs
                for verdict in run.verdicts
            )
            written.cut_at = characters if is_cut else 0
            return data
    raise RunError(
        f"the page would have {size / 1e6:.0f} MB, with at most {MOST_PAGE_BYTES / 1e6:.0f} it "
        "opens anywhere. Report fewer runs at a time."
    )


def _add_pictures(
    listed: Sequence[Listed], options: PageOptions, room: int, written: Written
) -> dict[str, str]:
    """Make crops, put the first ones into the page and the others beside it.

    Returns:
        Name -> data URL of the crops in the page.
    """
    embedded: dict[str, str] = {}
    for rows, share in zip(listed, shares_of(listed, options.embedded), strict=True):
        inside = draw_rows(rows, share, options.seed)
        into_page = set(inside)
        beside = options.pictures is not None
        outside = [i for i in range(len(rows.questions)) if beside and i not in into_page]
        for place, made in row_pictures(rows, [*inside, *outside], options.workers):
            if made is None:
                written.unreadable += 1
                continue
            names = [crop_name(crop) for crop in made.crops]
            if place in into_page:
                urls = {
                    name: data_url(crop)
                    for name, crop in zip(names, made.crops, strict=True)
                    if name not in embedded
                }
                views = describe(made, names)
                size = len(_json(urls)) + len(_json({place: views}))
                if size <= room:
                    room -= size
                    embedded |= urls
                    rows.views[place] = views
                    written.embedded += 1
                    continue
            if options.pictures is not None:
                folder = options.pictures
                views = describe(
                    made, [write_beside(c, folder, options.out.parent) for c in made.crops]
                )
                # Marks of many thousand rows have to fit, too.
                size = len(_json({place: views}))
                if size <= room:
                    room -= size
                    rows.views[place] = views
                    written.beside += 1
    return embedded


def _parts(
    sections: Sequence[Section], figures: Sequence[Figures], options: PageOptions
) -> dict[str, str]:
    """Return what goes into the template, but for the data and the note on pictures."""
    texts = {name: _template(f"page.{name}") for name in ("css", "js")}
    title = options.title or _title(sections)
    parts, links = [], []
    for i, (section, drawn) in enumerate(zip(sections, figures, strict=True)):
        links.append(f'<a href="#section-{i}">{escape(section.name)}</a>')
        parts.append(_section_html(section, drawn, i))
    links.append('<a href="#rows">Rows</a>')
    script = texts["js"].rstrip()
    # The hash lets this script run and no other, whatever a reply might smuggle in.
    digest = b64encode(sha256(f"\n{script}\n".encode()).digest()).decode("ascii")
    policy = (
        "default-src 'none'; img-src data: 'self' file:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return {
        "policy": policy,
        "version": escape(version("soubench")),
        "title": escape(title),
        "style": texts["css"].rstrip(),
        "links": "".join(links),
        "sections": "\n".join(parts),
        "script": script,
    }


def _filled(parts: Mapping[str, str]) -> str:
    # In one pass: what is put in may hold braces of its own.
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts.get(m[1], ""), _template("page.html"))


def _template(name: str) -> str:
    return (files("soubench.inference.report") / name).read_text(encoding="utf-8")


def _title(sections: Sequence[Section]) -> str:
    models = list(dict.fromkeys(run.model for s in sections for run in s.runs))
    shown = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if len(models) > 3 else "")
    return f"{shown} on {', '.join(section.name for section in sections)}"


def _section_html(section: Section, figures: Figures, number: int) -> str:
    names = [run.name for run in section.runs]
    parts = [
        f'<section id="section-{number}" aria-labelledby="section-{number}-title">',
        f'<h2 id="section-{number}-title">{escape(section.name)}</h2>',
        _facts(section),
        table_html(figures.runs, names),
    ]
    if section.rows_differ:
        parts.append(
            '<p class="note">The runs were asked different rows, so their scores do not compare; '
            "<code>soubench compare</code> takes the rows that both were asked.</p>"
        )
    parts += [_settings(run) for run in section.runs]
    parts += [table_html(table, names) for table in figures.scores]
    if figures.charts:
        parts += ["<h3>Plots</h3>", _legend(section), '<div class="plots">']
        for chart in figures.charts:
            note = f"<small>{escape(chart.note)}</small>" if chart.note else ""
            caption = f"<figcaption>{escape(chart.title)}{note}</figcaption>"
            parts.append(f"<figure>{caption}{draw(chart)}</figure>")
        parts.append("</div>")
    parts += [table_html(table, names) for table in figures.details]
    return "\n".join([*parts, "</section>"])


def _settings(run: ScoredRun) -> str:
    """Write everything that ``run.json`` says, folded away."""
    entries = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in described(run)
    )
    return (
        f"<details><summary>Settings of {escape(run.name)}</summary>"
        f'<dl class="facts">{entries}</dl></details>'
    )


def described(run: ScoredRun) -> list[tuple[str, str]]:
    """Return name and value of everything that was set in a run.

    Where it was made says nothing about its scores, and may say something about a person.
    """
    told = {key: value for key, value in flat(run.description) if key not in HIDDEN}
    return list((told | {"model.name": run.model}).items())


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and text of everything in nested values that is not empty.

    >>> list(flat({"model": {"name": "m", "revision": None}, "seed": 0}))
    [('model.name', 'm'), ('seed', '0')]
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)


def _legend(section: Section) -> str:
    entries = (
        f'<li><span class="swatch" style="background:var(--run{i % RUN_COLORS})"></span>'
        f"{escape(run.name)}</li>"
        for i, run in enumerate(section.runs)
    )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _facts(section: Section) -> str:
    facts = [
        ("dataset", section.dataset),
        ("rows", ", ".join(f"{c} {s}: {len(p.rows):,}" for (c, s), p in section.parts.items())),
        ("fingerprint", ", ".join(section.fingerprints)),
        ("distractors", section.distractors),
    ]
    entries = (f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts if v)
    return f'<dl class="facts">{"".join(entries)}</dl>'


def _pictures_note(written: Written, options: PageOptions) -> str:
    note = (
        f"Pictures of {written.embedded:,} rows are in the page: rows that some model missed "
        f"first, drawn with seed {options.seed}, evenly over the sub-tasks."
    )
    if written.beside:
        note += f" Those of {written.beside:,} more are files beside it."
    if written.unreadable:
        note += f" The pictures of {written.unreadable:,} rows could not be read."
    if written.cut_at:
        note += f" Replies are cut after {written.cut_at:,} characters."
    return note


def _json(data: Any) -> str:  # noqa: ANN401  # any JSON value
    """Write JSON that may stand inside of a script element: ASCII, and no tag can begin in it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
