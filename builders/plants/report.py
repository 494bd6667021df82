"""What a build of the plant set did: plain data for a file, and text for a person."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, median_low
from typing import Any

import PIL

from soubench.builders.plants.build import SPLITS, PlantBuild, PlantRow
from soubench.builders.plants.targets import FORMATS

REASONS: Mapping[str, str] = {
    "alpha_dropped": "the picture had an alpha channel; it is converted without it",
    "bbox_missing": "no _bbox.csv",
    "box_not_rectangle": "a leaf's box has no right angles",
    "box_off_its_leaf": "a leaf reaches out of its box",
    "box_too_large": "a leaf's box is not the smallest one around it",
    "box_without_area": "row of a _bbox.csv whose corners lie on a line",
    "center_points_differ": "_centers.png has more or fewer points than there are leaves",
    "centers_unreadable": "_centers.png is broken; only the check against it falls away",
    "counted_plant_without_files": "line of a Leaf_counts.csv for a plant whose files are not "
    "here, as in a partial copy",
    "duplicate_picture": "the same picture file as an earlier one",
    "label_and_boxes_disagree": "_label.png and _bbox.csv have different leaves",
    "label_empty": "_label.png has no bytes",
    "label_missing": "no _label.png",
    "label_size_differs": "_label.png has another size than the picture",
    "label_too_large": "_label.png has more pixels than allowed",
    "label_truncated": "_label.png is cut short",
    "label_unreadable": "_label.png is broken",
    "leaf_counts_disagree": "Leaf_counts.csv has another number of leaves",
    "leaf_id_repeated": "row of a _bbox.csv with the id of an earlier row",
    "picture_converted": "the picture was not 8-bit RGB; it is converted",
    "picture_empty": "_rgb.png has no bytes",
    "picture_missing": "labels without a picture: no _rgb.png",
    "picture_mode_unsupported": "_rgb.png has a color mode without a rule for it",
    "picture_too_large": "_rgb.png has more pixels than allowed",
    "picture_truncated": "_rgb.png is cut short",
    "picture_turned": "EXIF turns _rgb.png away from its labels",
    "picture_unreadable": "_rgb.png is broken",
    "plant_without_genotype": "Metadata.csv has no line for the picture",
    "row_not_9_columns": "row of a _bbox.csv without 9 columns",
    "row_not_numbers": "row of a _bbox.csv with something else than numbers, or a bad id",
    "row_of_tray_plant": "row of a _bbox.csv with 8 columns, as for the plants of a tray",
    "row_out_of_range": "row of a _bbox.csv with numbers that no picture reaches",
    "rpi_picture_without_labels": "picture of the RPi camera; it has no labels",
    "stack_may_show_a_train_plant": "picture of a stack of Ara2013, which may show a plant of "
    "another split",
    "tray_picture": "picture of a whole tray; its leaves have no labels",
}
"""What each reason in a report means, in words."""


def report(result: PlantBuild) -> dict[str, Any]:
    """Describe a build as plain data.

    Returns:
        ``dataset``, ``version``, ``fingerprint``, ``seed``, ``prompt``, ``pillow``; ``read``: what
        the reader met; ``left_out``: pictures that take no part, by reason; ``test_groups``;
        ``blind_count``: the median count of ``train``; ``splits``: per split the pictures, plants
        (groups that surely hold all of a plant's pictures of the subset), leaves, range of leaf
        counts and of picture sizes, the same per subset under ``subsets``, ``blind_count_rmse``,
        the RMSE of always answering ``blind_count``, and ``example``: the first row's id and its
        target in each format; ``empty_splits``.
    """
    by_split = {split: [r for r in result.rows if r.split == split] for split in result.splits}
    guess = median_low(len(row.picture.leaves) for row in by_split.get("train", result.rows))
    return {
        "dataset": "plant-leaves",
        "version": result.version,
        "fingerprint": result.fingerprint,
        "seed": result.seed,
        "prompt": {
            "version": result.prompt.version,
            "sha256": result.prompt.digest,
            "question": result.prompt.question,
        },
        "pillow": PIL.__version__,
        "read": result.read.as_dict(),
        "left_out": dict(result.left_out),
        "test_groups": list(result.test_groups),
        "blind_count": guess,
        "splits": {split: _split(rows, guess) for split, rows in by_split.items()},
        "empty_splits": [split for split in SPLITS if split not in by_split],
    }


def _split(rows: Sequence[PlantRow], guess: int) -> dict[str, Any]:
    counts = [len(row.picture.leaves) for row in rows]
    subsets = sorted({row.picture.subset.value for row in rows})
    return {
        **_numbers(rows),
        "subsets": {s: _numbers([r for r in rows if r.picture.subset == s]) for s in subsets},
        "blind_count_rmse": sqrt(fmean((count - guess) ** 2 for count in counts)),
        "example": {
            "id": f"{rows[0].picture.subset}/{rows[0].picture.name}",
            **{name: write(rows[0].centers) for name, write in FORMATS.items()},
        },
    }


def _numbers(rows: Sequence[PlantRow]) -> dict[str, Any]:
    pictures = [row.picture for row in rows]
    counts = [len(picture.leaves) for picture in pictures]
    longer = [max(picture.width, picture.height) for picture in pictures]
    return {
        "pictures": len(rows),
        "plants": len({picture.plant_id for picture in pictures}),
        "leaves": sum(counts),
        "leaves_per_picture": {"min": min(counts), "mean": fmean(counts), "max": max(counts)},
        "longer_side_px": {"min": min(longer), "max": max(longer)},
    }


def _range(ends: Mapping[str, float]) -> str:
    return f"{ends['min']}-{ends['max']}"


def _counted(data: dict[str, Any]) -> list[tuple[str, Mapping[str, int]]]:
    """Return what did not go its usual way, by kind: reason -> how often."""
    read = data["read"]
    return [
        ("left out", data["left_out"]),
        ("dropped by the reader", read["dropped"]),
        ("kept with a notice", read["repaired"]),
    ]


def report_text(data: dict[str, Any]) -> str:
    """Describe a build for a person; ``data`` is what `report` returns."""
    read = data["read"]
    lines = [
        f"plant-leaves {data['version']}, seed {data['seed']}: {read['pictures']} pictures, "
        f"{read['objects']} leaves",
        f"{'split':<16}{'pictures':>9}{'leaves':>8}{'per picture':>13}{'longer side':>13}"
        f"{'blind RMSE':>12}  subsets",
    ]
    for name, split in data["splits"].items():
        per, side = split["leaves_per_picture"], split["longer_side_px"]
        subsets = ", ".join(f"{s} {numbers['pictures']}" for s, numbers in split["subsets"].items())
        lines.append(
            f"{name:<16}{split['pictures']:>9}{split['leaves']:>8}{_range(per):>13}{_range(side):>13}"
            f"{split['blind_count_rmse']:>12.2f}  {subsets}"
        )
    lines.append(
        f"tested on: {', '.join(data['test_groups']) or 'none'}; blind RMSE: of the leaf count, "
        f"always answering {data['blind_count']}"
    )
    for label, counts in _counted(data):
        if counts:
            lines.append(f"{label}:")
        for reason, n in counts.items():
            places = ", ".join(read["examples"].get(reason, ()))
            such = f" (such as {places})" if places else ""
            lines.append(f"  {n} × {reason}: {REASONS.get(reason, 'see the code')}{such}")
    if data["empty_splits"]:
        lines.append(f"splits without a picture: {', '.join(data['empty_splits'])}")
    return "\n".join(lines)


def card_text(data: dict[str, Any]) -> str:
    """Describe a build in Markdown for its card; ``data`` is what `report` returns."""
    held_out = ", ".join(f"`{group}`" for group in data["test_groups"]) or "nothing"
    lines = [
        f"Built as version {data['version']} with seed {data['seed']}, prompt "
        f"`{data['prompt']['version']}` and Pillow {data['pillow']}; fingerprint "
        f"`{data['fingerprint']}`. Held out for `test`: {held_out}.",
        "",
        "| split | subset | pictures | plants, as far as known | leaves | leaves a picture "
        "| mean | longer side, px |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, split in data["splits"].items():
        for subset, n in split["subsets"].items():
            per = n["leaves_per_picture"]
            lines.append(
                f"| `{name}` | `{subset}` | {n['pictures']} | {n['plants']} | {n['leaves']} "
                f"| {_range(per)} | {per['mean']:.1f} | {_range(n['longer_side_px'])} |"
            )
    if data["empty_splits"]:
        empty = ", ".join(f"`{split}`" for split in data["empty_splits"])
        lines += ["", f"Without a picture in this build: {empty}."]
    lines += ["", "What did not go its usual way:", ""]
    lines += ["| what | number | reason |", "|---|---|---|"]
    for label, counts in _counted(data):
        for reason, n in counts.items():
            lines.append(f"| {label} | {n} | `{reason}`: {REASONS.get(reason, 'see the code')} |")
    if not any(counts for _, counts in _counted(data)):
        lines.append("| nothing | 0 | |")
    lines += [
        "",
        f"Blind baseline, the RMSE of the leaf count for always answering {data['blind_count']}, "
        "the median count of `train` (of everything, if there is no `train`): "
        + ", ".join(f"`{s}` {split['blind_count_rmse']:.2f}" for s, split in data["splits"].items())
        + ".",
    ]
    name, split = next(iter(data["splits"].items()))
    example = split["example"]
    lines += ["", f"Every row asks: `{data['prompt']['question']}`", ""]
    lines += [f"The target of `{example['id']}`, the first row of `{name}`, in each format:", ""]
    lines += [f"- `{output_format}`: `{example[output_format]}`" for output_format in FORMATS]
    return "\n".join(lines)
