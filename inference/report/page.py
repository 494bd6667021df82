"""Put the page together: what is shown, as little of it as fits, and nothing from the network."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any
from urllib.parse import quote

from soubench.builders.errors import RunError
from soubench.builders.parallel import in_order
from soubench.inference.chat import pictures_of
from soubench.inference.dataset_rows import LoadedRows
from soubench.inference.predict import COLUMNS_READ, choose_rows
from soubench.inference.questions import Question, question_of, stratum_of
from soubench.inference.report.crops import Crop, RowJob, RowPictures, make_crops
from soubench.inference.report.figures import Figures, values_text
from soubench.inference.report.html import table_html
from soubench.inference.report.marks import Mark, Numbers, marks_of, shapes_in
from soubench.inference.report.runs import ScoredRun, Section
from soubench.inference.report.svg import RUN_COLORS, draw
from soubench.inference.scores import Verdict

MOST_PAGE_BYTES = 25_000_000
SPARE_BYTES = 10_000
"""For the note on pictures, which is written last."""
MOST_EMBEDDED = 300
REPLY_CHARACTERS = (4000, 1000, 300, 100)
"""Longer replies are cut in the page; to the next length where the page would become too large."""
JOBS_PER_WORKER = 400
"""A process is started for so many crops; for fewer it would take longer than the work."""
HIDDEN = frozenset({"dataset.source", "machine.platform", "shard"})
STATES = ("wrong", "right", "partly", "unparsed", "error")


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


Key = tuple[str, str]
"""Id of a row, and the hash of its question: configs of one dataset may ask differently."""


def _key(verdict: Verdict) -> Key:
    return verdict.id, verdict.question_sha256


@dataclass(slots=True)
class _Listed:
    """The rows of a section that some run answered.

    Attributes:
        section: The section.
        sources: Where each comes from: the rows of its config and split, and its index there.
        questions: Of each, as it stands in the row.
        facts: Of each, a verdict, which says its task and subset.
        place: Key -> place in the list.
        strata: What each is an example of.
        views: Place -> pictures of the row, for the page's data.
    """

    section: Section
    sources: list[tuple[LoadedRows, int]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    facts: list[Verdict] = field(default_factory=list)
    place: dict[Key, int] = field(default_factory=dict)
    strata: list[tuple[str, ...]] = field(default_factory=list)
    views: dict[int, list[dict[str, Any]]] = field(default_factory=dict)


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
    listed = [_listed(section) for section in sections]
    written.rows = sum(
        len({(*_key(v), v.rotation) for run in s.runs for v in run.verdicts}) for s in sections
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


def _listed(section: Section) -> _Listed:
    """Find the rows of all verdicts, in the order of the datasets."""
    wanted: dict[tuple[str, str], dict[str, Verdict]] = {}
    for run in section.runs:
        for verdict in run.verdicts:
            wanted.setdefault((verdict.config, verdict.split), {})[verdict.id] = verdict
    found = _Listed(section)
    for part, verdicts in wanted.items():
        loaded = section.parts[part]
        names = [name for name in COLUMNS_READ if name in loaded.rows.column_names]
        for i, row in enumerate(loaded.rows.select_columns(names).to_list()):
            if row["id"] not in verdicts:
                continue
            verdict = verdicts.pop(row["id"])
            if _key(verdict) in found.place:
                continue
            found.place[_key(verdict)] = len(found.questions)
            found.sources.append((loaded, i))
            found.questions.append(question_of(row))
            found.facts.append(verdict)
            found.strata.append(stratum_of(row))
        if verdicts:
            raise RunError(
                f"{section.name}: {len(verdicts):,} scored rows are not in the dataset, such as "
                f"{min(verdicts)}. Score the run again."
            )
    return found


def _fitting_data(listed: Sequence[_Listed], frame_bytes: int, written: Written) -> dict[str, Any]:
    """Return the page's data without pictures, with replies as long as the page has room for."""
    for characters in REPLY_CHARACTERS:
        sections = [_section_data(rows, characters) for rows in listed]
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


def _section_data(rows: _Listed, reply_characters: int) -> dict[str, Any]:
    """Return a section as plain lists; texts that come again and again are numbers."""
    subsets, tasks, questions = _Numbers(), _Numbers(), _Numbers()
    table = []
    for question, fact in zip(rows.questions, rows.facts, strict=True):
        area = fact.object_area_px
        table.append(
            [
                question.id,
                subsets.of(fact.subset),
                tasks.of(fact.task),
                questions.of(question.question),
                list(question.options),
                question.answer,
                fact.group_id,
                None if area is None else round(area),
            ]
        )
    return {
        "name": rows.section.name,
        "runs": [{"name": run.name} for run in rows.section.runs],
        "subsets": subsets.texts,
        "tasks": tasks.texts,
        "questions": questions.texts,
        "rows": table,
        "verdicts": [
            [_verdict_data(v, rows.place[_key(v)], reply_characters) for v in run.verdicts]
            for run in rows.section.runs
        ],
        "views": {},
    }


def _verdict_data(verdict: Verdict, place: int, reply_characters: int) -> list[Any]:
    reply = verdict.reply
    if reply is not None and len(reply) > reply_characters:
        reply = f"{reply[:reply_characters]} [.. {len(reply) - reply_characters:,} more characters]"
    # What was read from a text is the text.
    parsed = verdict.parsed if verdict.kind in ("mcq", "yes_no", "box") else ""
    state = state_of(verdict)
    right = round(verdict.right, 4) if state == "partly" else 0
    error, values = verdict.error, values_text(verdict)
    data = [place, verdict.rotation, reply, parsed, right, STATES.index(state), error, values]
    while data[-1] in (None, ""):
        data.pop()
    return data


def state_of(verdict: Verdict) -> str:
    """Return how a verdict is called: wrong, right, partly, unparsed or error."""
    if verdict.error is not None:
        return "error"
    if verdict.unparsed:
        return "unparsed"
    if verdict.right >= 1:
        return "right"
    return "partly" if verdict.right > 0 else "wrong"


class _Numbers:
    """Texts, each once, by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._number: dict[str, int] = {}

    def of(self, text: str) -> int:
        if text not in self._number:
            self._number[text] = len(self.texts)
            self.texts.append(text)
        return self._number[text]


def _add_pictures(
    listed: Sequence[_Listed], options: PageOptions, room: int, written: Written
) -> dict[str, str]:
    """Make crops, put the first ones into the page and the others beside it.

    Returns:
        Name -> data URL of the crops in the page.
    """
    embedded: dict[str, str] = {}
    for rows, share in zip(listed, _shares(listed, options.embedded), strict=True):
        inside = _draw(rows, share, options.seed)
        into_page = set(inside)
        beside = options.pictures is not None
        outside = [i for i in range(len(rows.questions)) if beside and i not in into_page]
        for place, made in _views(rows, [*inside, *outside], options.workers):
            if made is None:
                written.unreadable += 1
                continue
            names = [_crop_name(crop) for crop in made.crops]
            if place in into_page:
                urls = {
                    name: _data_url(crop)
                    for name, crop in zip(names, made.crops, strict=True)
                    if name not in embedded
                }
                views = _described(made, names)
                size = len(_json(urls)) + len(_json({place: views}))
                if size <= room:
                    room -= size
                    embedded |= urls
                    rows.views[place] = views
                    written.embedded += 1
                    continue
            if options.pictures is not None:
                folder = options.pictures
                views = _described(made, [_write_beside(c, options, folder) for c in made.crops])
                # Marks of many thousand rows have to fit, too.
                size = len(_json({place: views}))
                if size <= room:
                    room -= size
                    rows.views[place] = views
                    written.beside += 1
    return embedded


def _described(made: RowPictures, pictures: Sequence[str]) -> list[dict[str, Any]]:
    return [
        _view(crop, made.marks if i == 0 else (), picture)
        for i, (crop, picture) in enumerate(zip(made.crops, pictures, strict=True))
    ]


def _shares(listed: Sequence[_Listed], most: int) -> list[int]:
    """Divide the rows with pictures among the sections as evenly as these allow."""
    shares = [0] * len(listed)
    left = most
    for rank, i in enumerate(sorted(range(len(listed)), key=lambda i: len(listed[i].questions))):
        shares[i] = min(len(listed[i].questions), left // (len(listed) - rank))
        left -= shares[i]
    return shares


def _draw(rows: _Listed, count: int, seed: int) -> list[int]:
    """Choose rows for pictures: those that some run got wrong first, evenly over the sub-tasks."""
    missed = {
        rows.place[_key(verdict)]
        for run in rows.section.runs
        for verdict in run.verdicts
        if state_of(verdict) != "right"
    }
    everything = range(len(rows.questions))
    wrong = [i for i in everything if i in missed]
    right = [i for i in everything if i not in missed]
    chosen = _choose(rows, wrong, count, seed)
    return chosen + _choose(rows, right, count - len(chosen), seed)


def _choose(rows: _Listed, places: Sequence[int], count: int, seed: int) -> list[int]:
    if count <= 0 or not places:
        return []
    asked = [{"id": rows.questions[i].id, "task": "\x1f".join(rows.strata[i])} for i in places]
    return [places[i] for i in choose_rows(asked, count, seed)]


def _views(
    rows: _Listed, chosen: Sequence[int], workers: int
) -> Iterator[tuple[int, RowPictures | None]]:
    """Yield place and pictures of each chosen row, in order; None where one cannot be read."""
    said: dict[Key, list[Verdict]] = {}
    for run in rows.section.runs:
        for verdict in run.verdicts:
            said.setdefault(_key(verdict), []).append(verdict)
    stored: dict[int, Any] = {}

    def jobs() -> Iterator[RowJob]:
        for place in chosen:
            loaded, index = rows.sources[place]
            if id(loaded) not in stored:
                stored[id(loaded)] = loaded.undecoded()
            row = stored[id(loaded)][index]
            columns = loaded.picture_columns
            there = bool(columns) and all(row[name] is not None for name in columns)
            yield RowJob(
                pictures_of(row, columns) if there else (),
                marks_of(row),
                _answer_shapes(rows.questions[place], said[_key(rows.facts[place])]),
            )

    processes = max(1, min(workers, len(chosen) // JOBS_PER_WORKER))
    return zip(chosen, in_order(make_crops, jobs(), workers=processes), strict=True)


def _answer_shapes(question: Question, verdicts: Iterable[Verdict]) -> tuple[Numbers, ...]:
    """Return the boxes and points that are right or were answered, to be seen in the crop."""
    if not question.options:
        return tuple(shape for v in verdicts if v.kind == "box" for shape in shapes_in(v.parsed))
    n = len(question.options)
    letters = [(question.answer, 0), *((v.parsed, v.rotation) for v in verdicts if v.parsed)]
    chosen = {(LETTERS.index(letter) + rotation) % n for letter, rotation in letters}
    return tuple(shape for i in sorted(chosen) for shape in shapes_in(question.options[i]))


def _crop_name(crop: Crop) -> str:
    """Name a crop by its bytes: rows about the same part of a picture share it."""
    return blake2b(crop.data, digest_size=8).hexdigest()


def _view(crop: Crop, marks: Sequence[Mark], picture: str) -> dict[str, Any]:
    return {
        "picture": picture,
        "frame": list(crop.window),
        "marks": [{"role": m.role, "label": m.label, "shapes": _plain(m.shapes)} for m in marks],
    }


def _plain(shapes: Iterable[Numbers]) -> list[list[float]]:
    return [[int(x) if x == int(x) else x for x in shape] for shape in shapes]


def _data_url(crop: Crop) -> str:
    return f"data:image/webp;base64,{b64encode(crop.data).decode('ascii')}"


def _write_beside(crop: Crop, options: PageOptions, folder: Path) -> str:
    """Write a crop into the folder of pictures; return its address as seen from the page."""
    file = folder / f"{_crop_name(crop)}.webp"
    if not file.exists():
        partial = file.with_name(f".{file.name}.incomplete")
        partial.write_bytes(crop.data)
        partial.replace(file)
    return quote(Path(os.path.relpath(file, options.out.parent)).as_posix())


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
