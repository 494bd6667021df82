"""What a build did: plain data for a file, text for a person, Markdown for the card."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import PIL

from soubench.builders.rrs.blind import blind_baselines
from soubench.builders.rrs.build import LETTERS, Row, RrsBuild
from soubench.builders.rrs.taxonomy import LEAF_TASKS, SCORINGS, SUB_DIMENSIONS, Task

TERMS_SHOWN = 20
MESSAGES_SHOWN = 10
ANSWER_SHOWN = 100
EXAMPLES_HEADING = "### Examples"
"""Heads the examples without pictures, which an export replaces."""
STOP_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        "a about above along an and any are as at be below by clockwise does far following from "
        "give has have how i image images in is it its least left lie lies m many most much not "
        "of on one or really right same seen show shows than that the them there these they this "
        "time to top two what where which with ",
    )
)
"""Words of the sentences themselves, which say nothing of what is asked about."""

REASONS: Mapping[str, str] = {
    "annotation_of_pair": "a record of two pictures has annotations of a single one",
    "bearing_near_the_border_of_two_axes": "the structure lies between two compass axes",
    "box_outside": "a box leaves its picture",
    "change_without_pair": "a change needs two pictures",
    "contradiction": "two annotations exclude each other",
    "duplicate_id": "the id is that of an earlier record",
    "empty_box": "a box without area, or with swapped corners",
    "every_direction_near_a_border": "no two objects lie clearly in one direction",
    "expression_target": "an expression refers to nothing, or to two things",
    "gsd_not_given": "nobody said how large a pixel is on the ground",
    "malformed_record": "the record is not as record.schema.json says",
    "mask_empty": "a mask without pixels",
    "mask_malformed": "a mask that is no mask",
    "mask_off_its_box": "a mask reaches out of its box",
    "mask_outside": "a mask leaves its picture",
    "mask_size": "a mask of another size than the picture",
    "measurement_reference": "a distance without its other end, or another measure with one",
    "no_attribute_of_an_object_that_words_refer_to_alone": "no attribute can be asked for",
    "no_caption": "no caption",
    "no_category_labelled_completely": "no count is known",
    "no_clean_row": "no question to make a corrupted one of",
    "no_facility_attribute": "nothing said of military, civilian or the like",
    "no_mask": "no mask",
    "no_object_that_words_refer_to_alone": "no expression picks out exactly one object",
    "no_question_of_the_other_answer": "nothing else is known to pair it off with",
    "no_scene_label": "no type of scene said",
    "no_scene_subtype": "no subtype of the scene said",
    "no_structure_with_a_clear_axis": "no elongated object lies clearly along an axis",
    "no_temporal_fact": "nothing said of the time",
    "no_two_objects_that_words_refer_to": "no two objects that words refer to alone",
    "no_usage": "no use said",
    "north_not_declared": "nobody said where north is",
    "not_json": "the line is no JSON object",
    "nothing_known_to_be_absent": "nothing is known to be absent",
    "nothing_known_to_be_there": "nothing is known to be there",
    "nothing_to_measure": "nothing whose length or area is known",
    "object_id": "two objects have one id",
    "occlusion_would_hide_the_evidence": "what the answer rests on would be hidden, or is unknown",
    "pair_same_picture": "the two pictures are the same file",
    "pair_sizes_differ": "the two pictures differ in size",
    "picture_empty": "a picture file without bytes",
    "picture_missing": "there is no such picture file",
    "picture_mode_unsupported": "a picture whose pixels have no fixed way to 8-bit RGB",
    "picture_too_large": "a picture over the limit of pixels",
    "picture_truncated": "a picture file that is cut short",
    "picture_unreadable": "no picture, or a damaged one",
    "pool_has_no_other_word": "no other word in the build to be a wrong option",
    "quad_outside": "an oriented box leaves its picture",
    "unknown_task": "a task that the taxonomy does not have",
}
"""What each reason means, in words."""


def report(result: RrsBuild) -> dict[str, Any]:
    """Describe a build as plain data for JSON.

    Returns:
        ``dataset``, ``version``, ``fingerprint``, ``seed``, ``distractors``, ``ways``; ``clip``,
        the model or null; ``records``: read, used, left out by reason, and ``bad``, each with its
        record, reason and message; ``sources``: the reports of label sets; ``tasks``: per leaf task
        rows, answer types and what could not be asked, by reason; ``answers``: letters and yes or
        no; ``blind_baselines``: leaf task -> baseline -> expected right answers and rows, empty
        where none is measured; ``formats``, ``terms``, ``lengths``: the statistics of the paper's
        Fig. 2; ``corruptions``: kind -> severity -> rows; ``distractor_counts``; ``pools``;
        ``human_verified`` rows; ``licenses`` and ``origins`` of pictures, and
        ``source_licenses``: origin -> licence (empty where none is stated) -> records;
        ``examples``: leaf task -> its first row's ``id``, ``question``, ``options`` and ``answer``.
    """
    rows = result.rows
    by_task: dict[Task, list[Row]] = {task: [] for task in Task}
    for row in rows:
        by_task[row.task].append(row)
    records = [site.record for site in result.sites]
    choices = result.choices
    return {
        "dataset": "rrs",
        "version": result.version,
        "fingerprint": result.fingerprint,
        "seed": result.options.seed,
        "distractors": result.options.distractors,
        "clip": result.similarities.model if result.similarities is not None else None,
        "ways": result.options.ways,
        "prompts": {"version": result.options.prompts.version},
        "pillow": PIL.__version__,
        "rows": len(rows),
        "pictures": sum(len(site.pictures) for site in result.sites),
        "records": {
            "read": result.records_read,
            "used": len(records),
            "left_out": _counted(r.reason for r in result.refused),
            "bad": [
                {"record": r.record, "reason": r.reason, "message": r.message}
                for r in result.refused
            ],
        },
        "sources": [read.as_dict() for read in result.reads],
        "tasks": {
            task.value: {
                "rows": len(by_task[task]),
                "answer_types": _counted(row.draft.answer_type for row in by_task[task]),
                "not_asked": {
                    reason: n for (t, reason), n in sorted(result.unable.items()) if t is task
                },
            }
            for task in Task
        },
        "answers": {
            "letters": _counted(row.answer for row in rows if row.options),
            "yes_no": _counted(row.answer for row in rows if row.draft.answer_type == "yes_no"),
        },
        "blind_baselines": {
            task.value: {b.name: [b.right, b.n] for b in blind_baselines(of)}
            for task, of in by_task.items()
            if of
        },
        "formats": _formats(rows),
        "terms": _terms(rows),
        "lengths": _lengths(rows),
        "corruptions": _corruptions(rows),
        "distractor_counts": {
            "filtered": sum(choices.filtered.values()),
            "cut_smaller_than_the_rule": {
                t.value: n for t, n in sorted(choices.shrunk.items()) if n
            },
            "fewer_options": {t.value: n for t, n in sorted(choices.fewer.items()) if n},
        },
        "pools": result.pools.as_dict(),
        "human_verified": sum(row.draft.evidence.human_verified for row in rows),
        "licenses": _counted(record.license or "not stated" for record in records),
        "origins": _counted(record.source for record in records),
        "source_licenses": {
            source: _counted(r.license.strip() for r in records if r.source == source)
            for source in sorted({record.source for record in records})
        },
        "examples": {
            task.value: {
                "id": of[0].id,
                "question": of[0].draft.question,
                "options": list(of[0].options),
                "answer": of[0].answer,
            }
            for task, of in by_task.items()
            if of
        },
    }


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _formats(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many rows have which format of answer (Fig. 2b)."""
    names = (
        f"{len(row.options)}-way" if row.options else row.draft.answer_type.replace("_", "/")
        for row in rows
    )
    return _counted(names)


def _terms(rows: Sequence[Row]) -> dict[str, int]:
    """Return the most frequent words of questions (Fig. 2c)."""
    words: Counter[str] = Counter()
    for row in rows:
        words.update(
            w for w in re.findall(r"[a-z]+", row.draft.question.lower()) if w not in STOP_WORDS
        )
    return dict(sorted(words.items(), key=lambda item: (-item[1], item[0]))[:TERMS_SHOWN])


def _lengths(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return words per question and per evidence text, where there is one (Fig. 2d)."""
    texts = {
        "question": [row.draft.question for row in rows],
        "evidence": [row.draft.evidence.text for row in rows if row.draft.evidence.text],
    }
    found = {}
    for name, some in texts.items():
        counts = [len(text.split()) for text in some]
        if counts:
            found[name] = {
                "texts": len(counts),
                "mean": round(fmean(counts), 2),
                "median": median(counts),
                "max": max(counts),
            }
    return found


def _corruptions(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row.corruption is not None:
            found.setdefault(row.corruption.kind, Counter())[str(row.corruption.severity)] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(found.items())}


def report_text(data: Mapping[str, Any]) -> str:
    """Describe a build for a person; ``data`` is what `report` returns."""
    records = data["records"]
    filtered = f"{data['distractors']} distractors"
    if data["clip"]:
        filtered += f" by {data['clip']}"
    lines = [
        f"rrs {data['version']}  seed {data['seed']}  {filtered}  {data['ways']}-way  fingerprint "
        f"{data['fingerprint'][:16]}",
        f"{data['rows']} rows about {data['pictures']} pictures of {records['used']} records; "
        f"{records['read']} read",
        f"{'sub-dimension':<22}{'task':<6}{'rows':>6}  not asked, by reason",
    ]
    for task, leaf in LEAF_TASKS.items():
        told = data["tasks"][task.value]
        reasons = ", ".join(f"{reason} {n}" for reason, n in told["not_asked"].items())
        line = f"{leaf.sub_dimension.name:<22}{task.value:<6}{told['rows']:>6}  {reasons}"
        lines.append(line.rstrip())
    letters = "  ".join(f"{k} {n}" for k, n in data["answers"]["letters"].items())
    yes_no = "  ".join(f"{k} {n}" for k, n in data["answers"]["yes_no"].items())
    lines.append(f"right answers: {letters}  {yes_no}".rstrip())
    lines.append("blind baselines, accuracy in % (VG: IoU above 0.5):")
    for code, baselines in data["blind_baselines"].items():
        of = data["tasks"][code]["rows"]
        cells = [f"{name} {_accuracy(counts, of)}" for name, counts in baselines.items()]
        lines.append(f"{code:<6}{'  '.join(cells) or 'not measured'}")
    for said, counts in (
        ("smaller cuts than the rule, for want of options", "cut_smaller_than_the_rule"),
        (f"fewer than {data['ways']} options", "fewer_options"),
    ):
        found = data["distractor_counts"][counts]
        if found:
            lines.append(f"{said}: " + ", ".join(f"{t} {n}" for t, n in found.items()))
    for reason, n in records["left_out"].items():
        lines.append(f"left out, {reason}: {n} record(s); {REASONS.get(reason, 'see below')}")
    lines += [f"  {bad['message']}" for bad in records["bad"][:MESSAGES_SHOWN]]
    if len(records["bad"]) > MESSAGES_SHOWN:
        lines.append(f"  .. {len(records['bad']) - MESSAGES_SHOWN} more in report.json")
    for read in data["sources"]:
        for kind in ("dropped", "ignored", "repaired"):
            for reason, n in read[kind].items():
                lines.append(f"{read['source']} ({read['split']}), {kind}: {n} × {reason}")
    return "\n".join(lines)


def card_text(data: Mapping[str, Any]) -> str:
    """Describe a build in Markdown for its card; ``data`` is what `report` returns."""
    records, counts = data["records"], data["distractor_counts"]
    lines = [
        f"Built as version {data['version']} with seed {data['seed']}, prompts "
        f"`{data['prompts']['version']}` and Pillow {data['pillow']}; fingerprint "
        f"`{data['fingerprint']}`. {data['rows']} rows about {data['pictures']} pictures of "
        f"{records['used']} records; {data['human_verified']} rows rest on annotations that a "
        "person has checked.",
        "",
        "### Taxonomy",
        "",
        "```",
        *_tree(data),
        "```",
        "",
        "### Answers",
        "",
        "| format | rows |",
        "|---|---|",
        *(f"| {name} | {n} |" for name, n in data["formats"].items()),
        "",
        "Right answers: "
        + ", ".join(
            f"{k} {n}" for part in ("letters", "yes_no") for k, n in data["answers"][part].items()
        )
        + ".",
        "",
        _distractors_text(data),
        "",
        *_baseline_table(data),
        "",
        "### Questions",
        "",
        "| words per | texts | mean | median | most |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {n['texts']} | {n['mean']} | {n['median']:g} | {n['max']} |"
            for name, n in data["lengths"].items()
        ),
        "",
        "Most frequent terms: " + ", ".join(f"{w} {n}" for w, n in data["terms"].items()) + ".",
        "",
        EXAMPLES_HEADING,
        "",
        "| task | row | question | options | answer |",
        "|---|---|---|---|---|",
        *(_example_line(task, shown) for task, shown in data["examples"].items()),
        "",
    ]
    if data["corruptions"]:
        lines += [
            "### Corruptions",
            "",
            "| corruption | 1 | 2 | 3 | 4 | 5 |",
            "|---|---|---|---|---|---|",
            *(
                f"| {kind} | " + " | ".join(str(of.get(str(s), 0)) for s in range(1, 6)) + " |"
                for kind, of in data["corruptions"].items()
            ),
            "",
        ]
    lines += [
        "### Pictures",
        "",
        "| source | records |",
        "|---|---|",
        *(f"| {name} | {n} |" for name, n in data["origins"].items()),
        "",
        "| licence of the pictures | records |",
        "|---|---|",
        *(f"| {name} | {n} |" for name, n in data["licenses"].items()),
        "",
        "### What is not asked, or left out",
        "",
        "| task | reason | number |",
        "|---|---|---|",
    ]
    for task, told in data["tasks"].items():
        for reason, n in told["not_asked"].items():
            lines.append(f"| {task} | `{reason}`: {REASONS.get(reason, 'see the report')} | {n} |")
    for reason, n in records["left_out"].items():
        lines.append(f"| record | `{reason}`: {REASONS.get(reason, 'see the report')} | {n} |")
    if counts["fewer_options"]:
        told = ", ".join(f"{t} {n}" for t, n in counts["fewer_options"].items())
        lines += ["", f"With fewer than {data['ways']} options, as their pools are small: {told}."]
    return "\n".join(lines)


def _baseline_table(data: Mapping[str, Any]) -> list[str]:
    """Return what can be scored without looking, as Markdown."""
    measured = {task: found for task, found in data["blind_baselines"].items() if found}
    names = list(dict.fromkeys(name for found in measured.values() for name in found))
    lines = ["### Blind baselines, accuracy in %"]
    if measured:
        lines += ["", f"| task | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for task, found in measured.items():
        rows = data["tasks"][task]["rows"]
        cells = (_accuracy(found[name], rows) if name in found else "" for name in names)
        lines.append(f"| {task} | {' | '.join(cells)} |")
    lines += [
        "",
        "What can be scored without looking: the most frequent letter, the longest option, the "
        "most common right answer of the task, of numbers the smallest, the one nearest to the "
        "median right answer and the largest, and for VG a box over the middle half of the "
        "picture, right above an IoU of 0.5. Ties count as chance. Where a baseline can answer "
        "only some rows of a task, their number stands behind it.",
    ]
    without = [task for task in data["blind_baselines"] if task not in measured]
    if without:
        lines += ["", f"Not measured: {', '.join(without)}, whose answers are texts or masks."]
    return lines


def _accuracy(counts: Sequence[float], rows: int) -> str:
    """Return the share of right answers in %, and of how many rows unless of all."""
    right, n = counts
    return f"{100 * right / n:.1f}" + (f" of {n}" if n != rows else "")


def _example_line(task: str, shown: Mapping[str, Any]) -> str:
    answer = shown["answer"]
    cells = (
        task,
        f"`{shown['id']}`",
        shown["question"],
        ", ".join(f"{letter}: {o}" for letter, o in zip(LETTERS, shown["options"], strict=False)),
        answer if len(answer) <= ANSWER_SHOWN else f"{answer[:ANSWER_SHOWN]}..",
    )
    # Texts are the records' own.
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def _distractors_text(data: Mapping[str, Any]) -> str:
    if data["distractors"] != "sdfs":
        return "Wrong options that are words are random draws from their pools: SDFS was not used."
    counts = data["distractor_counts"]
    shrunk = ", ".join(f"{t} {n}" for t, n in counts["cut_smaller_than_the_rule"].items()) or "none"
    return (
        f"Wrong options that are words were filtered by SDFS with `{data['clip']}` in "
        f"{counts['filtered']} rows; with a smaller cut than a quarter at either end, for want of "
        f"options: {shrunk}. The cosines are kept in `manifest.json`."
    )


def _tree(data: Mapping[str, Any]) -> list[str]:
    """Return dimensions, sub-dimensions and leaf tasks with their numbers of rows."""
    tasks = data["tasks"]
    lines = [f"rrs: {data['rows']}"]
    for dimension in dict.fromkeys(sub.dimension for sub in SUB_DIMENSIONS.values()):
        subs = [sub for sub in SUB_DIMENSIONS.values() if sub.dimension == dimension]
        of = {
            sub.name: [leaf for leaf in LEAF_TASKS.values() if leaf.sub_dimension is sub]
            for sub in subs
        }
        total = sum(tasks[leaf.task.value]["rows"] for found in of.values() for leaf in found)
        lines.append(f"  {dimension}: {total}")
        for sub in subs:
            n = sum(tasks[leaf.task.value]["rows"] for leaf in of[sub.name])
            lines.append(f"    {sub.title} ({sub.name}): {n}")
            for leaf in of[sub.name]:
                rows = tasks[leaf.task.value]["rows"]
                lines.append(f"      {leaf.task.value} {leaf.title}: {rows}")
    return lines


def task_table() -> list[str]:
    """Return the leaf tasks as a Markdown table: code, what is asked, answer and metric."""
    lines = ["| config | task | asks for | answer | metric |", "|---|---|---|---|---|"]
    for leaf in LEAF_TASKS.values():
        kinds = " or ".join(kind.replace("_", "/") for kind in leaf.answer_types)
        found = dict.fromkeys(SCORINGS[kind] for kind in leaf.answer_types)
        metrics = ", ".join(f"`{s.metric}` {s.measure}" for s in found)
        lines.append(f"| `{leaf.config}` | {leaf.title} | {leaf.asks} | {kinds} | {metrics} |")
    return lines
