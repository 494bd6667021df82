"""Check the rows of primitive-shapes against themselves, without decoding a picture.

The column ``shapes`` holds a whole configuration. Its hash, the attributes that a target says, the
target's text and the rules of the split follow from it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from soubench.builders.errors import FormatError
from soubench.builders.shapes.build import fingerprint
from soubench.builders.shapes.configuration import (
    CANVAS_PX,
    Configuration,
    clusters,
    from_dict,
)
from soubench.builders.shapes.sampler import SPLITS, SplitRule
from soubench.builders.shapes.targets import FORMATS, attributes, parse, target_order
from soubench.builders.verification import Problem, Row

_SAID = (
    "shape",
    "color",
    "quadrant",
    "center_xy",
    "relative_position",
    "rotation",
    "occluded",
)
"""Lists of the column ``shapes`` that a target says."""


def verify(
    configs: Mapping[str, Mapping[str, Iterable[Row]]],
    manifest: Mapping[str, Any],
    questions: Mapping[str, str] | None,
) -> Iterator[Problem]:
    """Yield every problem, config by config, then those of the dataset as a whole.

    Args:
        configs: Output format -> split -> its rows in their order, without ``image``.
        manifest: What the build says of itself, see ``soubench.builders.shapes.build.manifest``.
        questions: Output format -> the words of the question; None where they are not known.
    """
    md5s: dict[str, dict[str, list[str]]] = {}
    for name, splits in configs.items():
        seen: dict[str, str] = {}
        md5s[name] = {}
        for split, rows in splits.items():
            found = md5s[name].setdefault(split, [])
            for i, row in enumerate(rows):
                if row["id"] != f"{split}/{i:06d}":
                    yield Problem(row["id"], "id", f"expected '{split}/{i:06d}'")
                if questions is not None and row["question"] != questions[name]:
                    yield Problem(row["id"], "question", f"expected {questions[name]!r}")
                yield from _row_problems(row, name, SPLITS[split])
                twin = seen.setdefault(row["config_md5"], row["id"])
                if twin != row["id"]:
                    message = f"the same configuration as {twin}"
                    yield Problem(row["id"], "config_md5", message)
                found.append(row["config_md5"])
    sizes = {split: len(digests) for split, digests in manifest["pictures"].items()}
    for name, splits_of in md5s.items():
        if {split: len(found) for split, found in splits_of.items()} != sizes:
            yield Problem("", "config", f"{name} does not have the rows of the manifest: {sizes}")
            continue
        hashed = fingerprint(manifest["head"], splits_of, manifest["pictures"])
        if hashed != manifest["fingerprint"]:
            message = f"expected {manifest['fingerprint']}, the rows of {name} give {hashed}"
            yield Problem("", "fingerprint", message)


def _row_problems(row: Row, output_format: str, rule: SplitRule) -> Iterator[Problem]:
    try:
        configuration = _configuration(row["shapes"], CANVAS_PX * rule.canvas_scale)
    except (FormatError, ValueError, IndexError) as error:
        yield Problem(row["id"], "shapes", f"they are no configuration: {error}")
        return
    if configuration.md5() != row["config_md5"]:
        yield Problem(row["id"], "config_md5", f"the shapes give {configuration.md5()}")
    said = attributes(configuration)
    for name in _SAID:
        expected = [_plain(getattr(one, name)) for one in said]
        if row["shapes"][name] != expected:
            message = f"{name}: expected {expected}, got {row['shapes'][name]}"
            yield Problem(row["id"], "shapes", message)
    if row["shapes"]["depth"] != target_order(configuration):
        yield Problem(row["id"], "shapes", "the depths are not in the order of the target")
    try:
        read_back = parse(row["target"], output_format)
    except FormatError as error:
        yield Problem(row["id"], "target", str(error))
    else:
        if read_back != said or FORMATS[output_format](said) != row["target"]:
            yield Problem(row["id"], "target", "it does not say what the shapes are")
    yield from _rule_problems(row["id"], configuration, rule)


def _configuration(shapes: Mapping[str, Any], canvas_px: int) -> Configuration:
    """Put the columns back together, from bottom to top."""
    n = len(shapes["depth"])
    if sorted(shapes["depth"]) != list(range(n)) or any(len(v) != n for v in shapes.values()):
        raise ValueError("the lists differ in length, or the depths are not 0, 1, ..")
    order = sorted(range(n), key=lambda i: shapes["depth"][i])
    keys = ("color", "center_xy", "rotation", "half_long", "half_short")
    return from_dict(
        {
            "canvas_px": canvas_px,
            "shapes": [
                {"kind": shapes["shape"][i]} | {key: shapes[key][i] for key in keys} for i in order
            ],
        }
    )


def _plain(value: Any) -> Any:  # noqa: ANN401  # of several types
    return list(value) if isinstance(value, tuple) else value


def _rule_problems(row_id: str, configuration: Configuration, rule: SplitRule) -> Iterator[Problem]:
    n = len(configuration.shapes)
    if not rule.shapes[0] <= n <= rule.shapes[1]:
        yield Problem(row_id, "shapes", f"{n} shapes; the split has {rule.shapes}")
    largest = max(map(len, clusters(configuration)))
    if not rule.largest_cluster[0] <= largest <= rule.largest_cluster[1]:
        message = f"{largest} overlapping shapes; the split has {rule.largest_cluster}"
        yield Problem(row_id, "shapes", message)
    turned = {s.rotation for s in configuration.shapes if s.kind != "Circle"}
    if not turned <= set(rule.rotations):
        message = f"rotations {sorted(turned)}; the split has {rule.rotations}"
        yield Problem(row_id, "shapes", message)
