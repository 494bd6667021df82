"""The card of a trained model: what it was made of and how, and what that changed.

It takes the place of the one that TRL writes. Every number is read from the run's own files.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from soubench.inference.model_card import PIPELINE_TAG, TASK_TYPE, cell
from soubench.inference.scores import SCORINGS, Measure
from soubench.inference.training.lora_targets import part_of

MEASURES: Mapping[str, Measure] = {m.name: m for s in SCORINGS.values() for m in s.measures}
LEFT_OUT = ("name", "not_in_paper", "substitute_for")
"""What the table of settings does not show."""


def make_training_card(settings: Mapping[str, Any], result: Mapping[str, Any]) -> ModelCard:
    """Make the card of a trained model; reading it back gives the same results.

    Args:
        settings: What ``training.json`` holds.
        result: What ``result.json`` holds.
    """
    recipe = settings["recipe"]
    base, dataset = Path(recipe["model"]), recipe["dataset"]
    measures = _after(result)
    data = ModelCardData(
        model_name=f"{base.name} {recipe['name']}",
        # The Hub links the card to its base, which has to be there.
        base_model=None if base.is_dir() else recipe["model"],
        language="en",
        library_name="transformers",
        pipeline_tag=PIPELINE_TAG,
        tags=["soubench", "lora", Path(dataset).name],
        datasets=[dataset] if _is_hub_id(dataset) else None,
        eval_results=[
            EvalResult(
                task_type=TASK_TYPE,
                dataset_type=dataset if _is_hub_id(dataset) else Path(dataset).name,
                dataset_name=Path(dataset).name,
                dataset_config=recipe["config"],
                dataset_split=recipe["split"],
                dataset_revision=settings["dataset"]["fingerprint"],
                metric_type=name,
                metric_name=f"{name}, held-out rows",
                metric_value=round(value, 6),
            )
            for name, value in measures.items()
            if name in MEASURES and value is not None
        ]
        or None,
    )
    body = "\n".join(_body(settings, result))
    # Reading it checks the metadata, which is then known to survive a round trip.
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body}\n")


def _is_hub_id(name: str) -> bool:
    return name.count("/") == 1 and not Path(name).expanduser().exists()


def _after(result: Mapping[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = _judged(result).get(result["chosen"], {})
    return found


def _judged(result: Mapping[str, Any]) -> dict[int, Any]:
    return {int(step): measures for step, measures in result["held_out"].items()}


def _body(settings: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    recipe, libraries = settings["recipe"], settings["libraries"]
    base = Path(recipe["model"]).name
    yield f"# {base}, fine-tuned: {recipe['name']}\n"
    yield (
        f"{base}, fine-tuned with LoRA by `soubench train`. Every number is written by code from "
        "the run."
    )
    if recipe["substitute_for"]:
        yield f"It stands in for the paper's {recipe['substitute_for']}."
    yield ""
    if result["held_out"]:
        yield from _before_and_after(result)
    yield "## Data\n"
    rows = settings["rows"]
    yield "| dataset | config | split | rows trained on | rows held out | fingerprint |"
    yield "|---|---|---|--:|--:|---|"
    yield (
        f"| {cell(Path(recipe['dataset']).name)} | {recipe['config']} | {recipe['split']} "
        f"| {rows['train']:,} | {rows['held_out']:,} | `{settings['dataset']['fingerprint']}` |\n"
    )
    yield "Equal fingerprints mean equal rows. Groups of rows are held out as a whole.\n"
    yield "## Settings\n"
    yield "| setting | value | from |\n|---|---|---|"
    reasons = recipe["not_in_paper"]
    for name, value in recipe.items():
        if name in LEFT_OUT or value is None or value == "":
            continue
        shown = (", ".join(value) or "none") if isinstance(value, list) else str(value)
        # Not everybody's folders.
        shown = Path(shown).name if name in ("model", "dataset") else shown
        why = f"not in the paper: {reasons[name]}" if name in reasons else "the paper"
        yield f"| {name} | {cell(shown)} | {cell(why)} |"
    for name, value in result["defaults"].items():
        yield f"| {name} | {cell(str(value))} | the default of transformers |"
    yield f"| seed | {settings['seed']} | this run |"
    for name in ("steps", "dtype", "processes"):
        yield f"| {name} | {result[name]} | this run |"
    for name, number in libraries.items():
        yield f"| {name} | {number} | this run |"
    yield "\n## Layers with a LoRA\n"
    yield "Numbers of layers are written N.\n"
    yield "| part | layer | how many |\n|---|---|--:|"
    targets = settings["lora_targets"]
    shapes = Counter((part_of(name), re.sub(r"\d+", "N", name)) for name in targets)
    yield from (f"| {part} | `{shape}` | {n} |" for (part, shape), n in shapes.items())
    yield f"| all | | {len(targets)} |\n"
    yield "## Limits\n"
    yield (
        "- The checkpoint was chosen on the held-out rows, so that what it scores on them is a "
        "little too good. `soubench predict` and `soubench score` on a test split tell more."
    )
    yield "- The data's labels have errors of their own, which the model may have learnt."


def _before_and_after(result: Mapping[str, Any]) -> Iterator[str]:
    judged, chosen = _judged(result), result["chosen"]
    before, after = judged.get(0, {}), _after(result)
    yield "## Before and after\n"
    yield (
        f"{result['held_out_rows']:,} held-out rows of the training split, none of them trained "
        f"on, answered greedily by the base model and by checkpoint {chosen:,}.\n"
    )
    yield "| measure | unit | better is | before | after |\n|---|---|---|--:|--:|"
    for name in after or before:
        measure = MEASURES.get(name)
        unit = measure.unit if measure else "share"
        better = "lower" if measure is None or measure.is_error else "higher"
        mark = " (chooses)" if name == result["measure"] else ""
        yield (
            f"| {name}{mark} | {unit} | {better} | {_shown(before.get(name))} "
            f"| {_shown(after.get(name))} |"
        )
    yield f"\n| step | {result['measure']} |\n|--:|--:|"
    for step, measures in sorted(judged.items()):
        mark = " (chosen)" if step == chosen else ""
        yield f"| {step:,}{mark} | {_shown(measures[result['measure']])} |"
    yield ""


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
