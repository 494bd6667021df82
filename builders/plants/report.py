"""What a build of the plant set did: plain data for a file, and text for a person."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, median_low
from typing import Any

import PIL

from soubench.builders.plants.build import SPLITS, PlantBuild, PlantRow


def report(result: PlantBuild) -> dict[str, Any]:
    """Describe a build as plain data.

    Returns:
        ``dataset``, ``version``, ``fingerprint``, ``seed``, ``prompt``, ``pillow``; ``read``: what
        the reader met; ``left_out``: pictures that take no part, by reason; ``test_groups``;
        ``splits``: per split the pictures per subset, plants (groups that surely hold all of a
        plant's pictures of the subset), leaves, range of leaf counts and of picture sizes, and
        ``blind_count_rmse``, the RMSE of always answering the median count of ``train``;
        ``empty_splits``.
    """
    by_split = {split: [r for r in result.rows if r.split == split] for split in result.splits}
    guess = median_low(len(row.picture.leaves) for row in by_split.get("train", result.rows))
    return {
        "dataset": "plant-leaves",
        "version": result.version,
        "fingerprint": result.fingerprint,
        "seed": result.seed,
        "prompt": {"version": result.prompt.version, "sha256": result.prompt.digest},
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
    pictures = [row.picture for row in rows]
    subsets = sorted({picture.subset.value for picture in pictures})
    return {
        "pictures": len(rows),
        "subsets": {s: sum(picture.subset == s for picture in pictures) for s in subsets},
        "plants": len({picture.plant_id for picture in pictures}),
        "leaves": sum(counts),
        "leaves_per_picture": {"min": min(counts), "mean": fmean(counts), "max": max(counts)},
        "longer_side_px": {
            "min": min(max(picture.width, picture.height) for picture in pictures),
            "max": max(max(picture.width, picture.height) for picture in pictures),
        },
        "blind_count_rmse": sqrt(fmean((count - guess) ** 2 for count in counts)),
    }


def _range(ends: Mapping[str, float]) -> str:
    return f"{ends['min']}-{ends['max']}"


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
        subsets = ", ".join(f"{subset} {n}" for subset, n in split["subsets"].items())
        lines.append(
            f"{name:<16}{split['pictures']:>9}{split['leaves']:>8}{_range(per):>13}{_range(side):>13}"
            f"{split['blind_count_rmse']:>12.2f}  {subsets}"
        )
    lines.append(
        f"tested on: {', '.join(data['test_groups']) or 'none'}; blind RMSE: of the leaf count, "
        f"always answering {data['blind_count']}"
    )
    for label, counts in (
        ("left out", data["left_out"]),
        ("dropped by the reader", read["dropped"]),
        ("kept with a notice", read["repaired"]),
    ):
        if counts:
            lines.append(f"{label}: " + ", ".join(f"{reason} {n}" for reason, n in counts.items()))
    if data["empty_splits"]:
        lines.append(f"splits without a picture: {', '.join(data['empty_splits'])}")
    return "\n".join(lines)
