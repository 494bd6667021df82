"""What a build did: plain data for a file, and text for a person."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from statistics import fmean, median
from typing import Any

import PIL

from soubench.builders.sou.blind import Baseline, blind_baselines
from soubench.builders.sou.build import SouBuild, SubsetBuild, explain_empty
from soubench.builders.sou.picture import SouPicture
from soubench.builders.sou.prompts import load_prompts
from soubench.builders.sou.questions import (
    LETTERS,
    Asked,
    Candidate,
    Key,
    ask,
    assign_letters,
    candidate,
    tasks_for,
)
from soubench.builders.sou.subsets import Task
from soubench.builders.sou.tasks import MODES, Mode

SIDE_BOUNDS_PX = (8, 16, 24)
"""Where small objects are cut by size, as sides of squares of their area: AI-TOD's bounds of very
tiny and tiny, and one more between that and 32."""


def report(result: SouBuild) -> dict[str, Any]:
    """Describe a build as plain data.

    Returns:
        ``dataset``, ``version``, ``fingerprint``, ``seed``, ``mode``, ``prompts``, ``pillow``;
        ``subsets``: per subset what was read, dropped and left out by reason, pictures wanted and
        taken, rows per sub-task, letters, and the blind baselines of both modes on the sampled
        pictures; ``empty``: subsets without a row, and why.
    """
    return {
        "dataset": result.dataset,
        "version": result.key.version,
        "fingerprint": result.fingerprint,
        "seed": result.key.seed,
        "mode": result.options.mode,
        "prompts": {
            "version": result.options.prompts.version,
            "sha256": result.options.prompts.digest,
            "of_the_package": result.options.prompts.digest == load_prompts().digest,
        },
        "pillow": PIL.__version__,
        "subsets": {
            b.subset.name: _subset(b, letters, result)
            for b, letters in zip(result.subsets, result.letters, strict=True)
        },
        "empty": {name: explain_empty((name, why)) for name, why in result.empty.items()},
        "shared_pictures": _shared_pictures(result),
    }


def _shared_pictures(result: SouBuild) -> dict[str, int]:
    """Count pictures of a subset whose file or group (of one source) is in another: leaks."""

    def shared(a: SubsetBuild, b: SubsetBuild) -> int:
        files = {rendered.digest for rendered in b.rendered.values()}
        groups = {c.picture.group_id for c in b.candidates if a.subset.source == b.subset.source}
        return sum(
            c.picture.group_id in groups or a.rendered[c.picture.image_id].digest in files
            for c in a.candidates
        )

    pairs = {
        f"{a.subset.name} and {b.subset.name}": shared(a, b)
        for a, b in combinations(result.subsets, 2)
    }
    return {pair: n for pair, n in pairs.items() if n}


def _subset(b: SubsetBuild, letters: Any, result: SouBuild) -> dict[str, Any]:  # noqa: ANN401
    return {
        "scenario": b.subset.scenario,
        "split": b.split,
        "read": b.read.as_dict(),
        "left_out": dict(sorted(b.left_out.counts.items())),
        "left_out_examples": dict(sorted(b.left_out.examples.items())),
        "pictures_wanted": b.wanted,
        "pictures": len(b.candidates),
        **_measures([c.picture for c in b.candidates]),
        "cannot_be_asked": [
            task.value for task in Task if task not in tasks_for(b.read.categories)
        ],
        "rows": {task.value: len(rows) for task, rows in b.asked.questions.items()},
        "thinned": {task.value: n for task, n in b.asked.thinned.items()},
        "unbalanced": [task.value for task in b.asked.unbalanced],
        "letters": {task.value: letter_counts(chosen.values()) for task, chosen in letters.items()},
        "statistics": b.asked.statistics.as_dict(),
        "blind_baselines": {
            mode: {
                task.value: {line.name: [round(line.right, 6), line.n] for line in lines}
                for task, lines in baselines_of(b, result, mode).items()
            }
            for mode in MODES
        },
    }


def _measures(pictures: Sequence[SouPicture]) -> dict[str, Any]:
    """Measure what Table 1 tells of a subset, and the sizes of its small objects.

    Returns:
        ``smallest_wh`` and ``largest_wh``: sides in px of the smallest and the largest picture, as
        asked about; ``small_objects``: their number; ``objects_a_picture``: fewest, median, mean
        and most; ``categories``: number of those that small objects have, and
        ``category_names``; ``sides_px``: small objects by the root of their area, up to 8, 16,
        24 px and above.
    """
    counts = sorted(len(p.categories) for p in pictures)
    names = sorted({category for p in pictures for category in p.categories})
    by_area = sorted((p.width * p.height, p.width, p.height) for p in pictures)
    sides = [area**0.5 for p in pictures for area in p.areas_px.tolist()]
    below = [sum(side <= bound for side in sides) for bound in SIDE_BOUNDS_PX]
    return {
        "smallest_wh": list(by_area[0][1:]),
        "largest_wh": list(by_area[-1][1:]),
        "small_objects": len(sides),
        "objects_a_picture": [counts[0], median(counts), round(fmean(counts), 1), counts[-1]],
        "categories": len(names),
        "category_names": names,
        "sides_px": [b - a for a, b in pairwise([0, *below, len(sides)])],
    }


def letter_counts(letters: Iterable[int]) -> dict[str, int]:
    """Count right options per letter."""
    counts = Counter(letters)
    return {letter: counts[i] for i, letter in enumerate(LETTERS)}


def baselines_of(b: SubsetBuild, result: SouBuild, mode: Mode) -> dict[Task, list[Baseline]]:
    """Measure the blind baselines of one subset, asked in ``mode``.

    For the mode that was not built, the same pictures are asked anew; those that cannot be asked
    in it are left out.
    """
    key = result.key
    if mode == result.options.mode:
        asked = b.asked
    else:
        other = _asked_in(mode, b.candidates, b.read.categories, key, b.subset.small_area_px)
        if other is None:
            return {}
        asked = other
    (letters,) = assign_letters([asked.questions], key)
    return {
        task: blind_baselines(rows, [letters[task][q.picture.image_id] for q in rows])
        for task, rows in asked.questions.items()
        if rows
    }


def _asked_in(
    mode: Mode,
    candidates: Sequence[Candidate],
    categories: tuple[str, ...],
    key: Key,
    small_area_px: float,
) -> Asked | None:
    again = [candidate(c.picture, mode, key, c.targets) for c in candidates]
    able = [c for c in again if isinstance(c, Candidate)]
    return ask(able, categories, mode, key, small_area_px=small_area_px) if able else None


def warnings_of(data: dict[str, Any]) -> list[str]:
    """Return what a user must not overlook: subsets without rows, splits that share pictures."""
    empty = [
        f"warning: {why} Configs of {name} alone are taken away."
        for name, why in data["empty"].items()
    ]
    shared = [
        f"warning: {n} pictures lie in both {pair}, by their file, name or group."
        for pair, n in data["shared_pictures"].items()
    ]
    return empty + shared


def report_text(data: dict[str, Any]) -> str:
    """Write a report for a person: what was read, dropped and asked, and the blind baselines."""
    lines = [
        f"{data['dataset']} {data['version']}  seed {data['seed']}  distractors {data['mode']}  "
        f"fingerprint {data['fingerprint'][:16]}"
    ]
    for name, subset in data["subsets"].items():
        lines += ["", *_subset_text(name, subset)]
    lines += ["", *data["empty"].values()] if data["empty"] else []
    lines += ["", *_baseline_table(data)]
    return "\n".join(lines)


def _subset_text(name: str, subset: dict[str, Any]) -> list[str]:
    read = subset["read"]
    rows = sum(subset["rows"].values())
    lines = [
        f"{name}: {subset['pictures']} pictures, {rows} rows, from {read['source']} "
        f"({subset['split']}): {read['pictures']} pictures, {read['objects']} objects read"
    ]
    wanted = subset["pictures_wanted"]
    if wanted is not None and subset["pictures"] < wanted:
        lines.append(f"  {wanted} pictures were wanted; no more can take part")
    for label, counts in _counted(subset):
        if counts:
            listed = ", ".join(f"{reason} {n}" for reason, n in counts.items())
            lines.append(f"  {label}: {listed}")
    return lines + [f"  {note}" for note in _task_notes(subset)]


def _task_notes(subset: dict[str, Any]) -> list[str]:
    """Say which sub-tasks a subset lacks, and which are not balanced."""
    notes = []
    if subset["cannot_be_asked"]:
        tasks = ", ".join(subset["cannot_be_asked"])
        n = len(subset["read"]["categories"])
        notes.append(f"left out, since the labels have too few categories ({n}): {tasks}")
    if subset["unbalanced"]:
        tasks = ", ".join(subset["unbalanced"])
        notes.append(f"not balanced, fewer than four different answers occur: {tasks}")
    return notes


def card_sections(data: dict[str, Any], configs: Sequence[str]) -> str:
    """Write what a build did as Markdown, for the card.

    Args:
        data: See `report`.
        configs: Names that can be loaded.
    """
    bounds = {subset["statistics"]["small_area_px"] for subset in data["subsets"].values()}
    prompts = data["prompts"]
    others = "" if prompts["of_the_package"] else ", not the ones of the package"
    built = (
        f"Version {data['version']}, seed {data['seed']}, **{data['mode']}** distractors, prompts "
        f"`{prompts['version']}` (SHA-256 `{prompts['sha256'][:16]}`{others}), "
        f"Pillow {data['pillow']}; fingerprint "
        f"`{data['fingerprint']}`. Small is what has at most "
        f"{' or '.join(f'{bound:g}' for bound in sorted(bounds))} px². Configs: "
        f"{', '.join(f'`{config}`' for config in configs)}."
    )
    notes = [
        f"`{name}`: {note}."
        for name, subset in data["subsets"].items()
        for note in _task_notes(subset)
    ]
    left_out = [*(line for note in notes for line in (note, "")), *_markdown(_left_out_table(data))]
    tables = [
        ["### Subsets", *_markdown(_subsets_table(data))],
        ["### Rows", *_markdown(_rows_table(data))],
        ["### Shares of the rows, in %", *_markdown(_shares_table(data))],
        ["### Small objects of a picture", *_markdown(_counts_table(data))],
        ["### Small objects by the root of their area", *_markdown(_sides_table(data))],
        ["### Letters of the right options", *_markdown(_letters_table(data))],
        ["### What was left out", *(left_out or ["Nothing."])],
    ]
    tables += [
        [
            f"### Blind baselines, `{mode}` distractors{_is_built(data, mode)}, accuracy in %",
            *_markdown(_with_numbers(data, mode)),
        ]
        for mode in sorted(MODES, key=lambda mode: mode != data["mode"])
    ]
    parts = [built, *("\n\n".join((head, "\n".join(lines))) for head, *lines in tables)]
    return "\n\n".join([*parts, *data["empty"].values()])


def _is_built(data: dict[str, Any], mode: Mode) -> str:
    return " (this build's)" if mode == data["mode"] else ""


def _markdown(rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + "---|" * len(rows[0]), *body]


def _subsets_table(data: dict[str, Any]) -> list[list[str]]:
    """Return the figures of the paper's Table 1."""
    rows = [
        ["subset", "source", "split", "pictures", "sizes in px", "rows", "categories", "% of rows"]
    ]
    subsets = data["subsets"].values()
    total = sum(sum(subset["rows"].values()) for subset in subsets)
    for name, subset in data["subsets"].items():
        n = sum(subset["rows"].values())
        small, large = ("×".join(map(str, subset[k])) for k in ("smallest_wh", "largest_wh"))
        rows.append(
            [
                f"`{name}`",
                subset["read"]["source"],
                subset["split"],
                str(subset["pictures"]),
                small if small == large else f"{small} to {large}",
                str(n),
                str(subset["categories"]),
                f"{100 * n / total:.2f}",
            ]
        )
    if len(rows) > 2:
        pictures = sum(subset["pictures"] for subset in subsets)
        categories = {name for subset in subsets for name in subset["category_names"]}
        sums = (str(pictures), "", str(total), f"{len(categories)} different", "100.00")
        rows.append(["all", "", "", *sums])
    return rows


def _shares_table(data: dict[str, Any]) -> list[list[str]]:
    """Return the figures of the paper's Fig. 5: shares of scenarios and of their sub-tasks."""
    counts: dict[str, Counter[str]] = {}
    for subset in data["subsets"].values():
        counts.setdefault(subset["scenario"], Counter()).update(subset["rows"])
    total = sum(sum(c.values()) for c in counts.values())
    rows = [["scenario", *(task.value for task in Task), "all"]]
    for scenario, of in counts.items():
        numbers = [*(of[task.value] for task in Task), sum(of.values())]
        rows.append([scenario, *(f"{100 * n / total:.2f}" for n in numbers)])
    return rows


def _sides_table(data: dict[str, Any]) -> list[list[str]]:
    bounds = [f"up to {bound} px" for bound in SIDE_BOUNDS_PX]
    rows = [["subset", "objects", *bounds, "above"]]
    for name, subset in data["subsets"].items():
        shares = [f"{100 * n / subset['small_objects']:.1f} %" for n in subset["sides_px"]]
        rows.append([f"`{name}`", str(subset["small_objects"]), *shares])
    return rows


def _rows_table(data: dict[str, Any]) -> list[list[str]]:
    codes = [task.value for task in Task]
    rows = [["subset", *codes]]
    for name, subset in data["subsets"].items():
        rows.append([f"`{name}`", *(str(subset["rows"].get(code, 0)) for code in codes)])
    return rows


def _letters_table(data: dict[str, Any]) -> list[list[str]]:
    rows = [["subset", *LETTERS]]
    for name, subset in data["subsets"].items():
        total: Counter[str] = Counter()
        for counts in subset["letters"].values():
            total.update(counts)
        rows.append([f"`{name}`", *(str(total[letter]) for letter in LETTERS)])
    return rows


def _left_out_table(data: dict[str, Any]) -> list[list[str]]:
    rows = [["subset", "what", "reason", "number"]]
    for name, subset in data["subsets"].items():
        for label, counts in _counted(subset):
            rows += [[f"`{name}`", label, reason, str(n)] for reason, n in counts.items()]
    return rows if len(rows) > 1 else []


def _counts_table(data: dict[str, Any]) -> list[list[str]]:
    rows = [["subset", "small objects", "fewest–most", "median", "mean", "of one category"]]
    for name, subset in data["subsets"].items():
        fewest, middle, mean, most = subset["objects_a_picture"]
        low, high = subset["statistics"]["category_counts"]
        counts = (f"{fewest}–{most}", f"{middle:g}", str(mean), f"{low}–{high}")
        rows.append([f"`{name}`", str(subset["small_objects"]), *counts])
    return rows


def _baselines_of_mode(data: dict[str, Any], mode: Mode) -> list[list[str]]:
    codes = [task.value for task in Task]
    rows = [["baseline", *codes]]
    for (of, name), counts in _pooled(data).items():
        if of == mode:
            rows.append([name, *(_percent(counts, code) for code in codes)])
    return rows


def _with_numbers(data: dict[str, Any], mode: Mode) -> list[list[str]]:
    """Return the baselines, and how many rows they were measured on."""
    pooled = _pooled(data)
    numbers = [
        max(
            (counts[f"{task.value} n"] for (of, _), counts in pooled.items() if of == mode),
            default=0,
        )
        for task in Task
    ]
    return [*_baselines_of_mode(data, mode), ["rows", *(f"{n:.0f}" if n else "" for n in numbers)]]


def _percent(counts: Counter[str], code: str) -> str:
    n = counts[f"{code} n"]
    return f"{100 * counts[f'{code} right'] / n:.1f}" if n else ""


def _pooled(data: dict[str, Any]) -> dict[tuple[str, str], Counter[str]]:
    """Pool the baselines over the subsets: (mode, name) -> "<task> right" and "<task> n"."""
    pooled: dict[tuple[str, str], Counter[str]] = {}
    for subset in data["subsets"].values():
        for mode, tasks in subset["blind_baselines"].items():
            for task, baselines in tasks.items():
                for name, (right, n) in baselines.items():
                    counts = pooled.setdefault((mode, name), Counter())
                    counts[f"{task} right"] += right
                    counts[f"{task} n"] += n
    return pooled


def _counted(subset: dict[str, Any]) -> list[tuple[str, dict[str, int]]]:
    read = subset["read"]
    return [
        ("dropped by the reader", read["dropped"]),
        ("not counted", read["ignored"]),
        ("kept with a notice", read["repaired"]),
        ("pictures left out", subset["left_out"]),
        ("rows thinned out", subset["thinned"]),
    ]


def _baseline_table(data: dict[str, Any]) -> list[str]:
    """Return the blind baselines, pooled over the subsets, in percent."""
    pooled = _pooled(data)
    width = max(len(name) for _, name in pooled)
    most = max(n for counts in pooled.values() for cell, n in counts.items() if cell.endswith(" n"))
    lines = [
        f"Blind baselines, accuracy in % on at most {most:.0f} rows a sub-task (25 is chance):"
    ]
    for mode in MODES:
        (_, *head), *rows = _baselines_of_mode(data, mode)
        lines.append(f"{mode:<{width}}" + "".join(f"{cell:>7}" for cell in head))
        lines += [f"{name:<{width}}" + "".join(f"{cell:>7}" for cell in row) for name, *row in rows]
    return lines
