"""What ``soubench demo`` does: the whole way from labels to a scored table, without a download."""

import shutil
from pathlib import Path
from shlex import quote

import datasets
import evaluate

from soubench.builders.demo_plants import write_demo_plants
from soubench.builders.demo_rrs import write_demo_records
from soubench.builders.demo_scenes import write_demo_sources
from soubench.builders.publishing.metric_cache import install_metrics
from soubench.builders.rrs.build import RrsOptions
from soubench.builders.rrs.taxonomy import SUB_DIMENSIONS
from soubench.builders.shapes.build import ShapesOptions
from soubench.builders.shapes.sampler import SPLITS
from soubench.builders.sou.build import BuildOptions
from soubench.builders.sou.report import report_text
from soubench.dataset_scripts.plant_leaves.plant_leaves import build_plant_leaves
from soubench.dataset_scripts.plant_leaves.plant_leaves import report_text as plants_text
from soubench.dataset_scripts.primitive_shapes.primitive_shapes import build_primitive_shapes
from soubench.dataset_scripts.primitive_shapes.primitive_shapes import report_text as shapes_text
from soubench.dataset_scripts.rrs.rrs import build_rrs_dataset
from soubench.dataset_scripts.rrs.rrs import report_text as rrs_text
from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa
from soubench.inference.backends.baselines import BASELINES
from soubench.inference.dataset_rows import open_rows
from soubench.inference.layouts import SOU_COLUMNS, sou_lines
from soubench.inference.run_folder import Reply
from soubench.inference.score import score_replies
from soubench.inference.tables import Table, render_text


def demo_sou_vqa(out: Path, *, pictures: int, workers: int) -> None:
    """Draw scenes, write them as the five sources do, build, load, answer, score, print.

    Args:
        out: Folder for sources and caches.
        pictures: Pictures per source.
        workers: Processes for the pictures.
    """
    datasets.utils.logging.set_verbosity_error()
    evaluate.utils.logging.set_verbosity_error()
    print(f"Drawing {pictures} scenes for each of five sources, in their own formats ..")
    sources = out / "demo-sources"
    shutil.rmtree(sources, ignore_errors=True)
    roots = write_demo_sources(sources, pictures=pictures)
    report = build_sou_vqa("all", roots, BuildOptions(pictures="all", workers=workers))
    print(report_text(report))

    rows = datasets.load_dataset("sou-vqa", "all", split="test")
    example = rows[0]
    print(f'\nload_dataset("sou-vqa", "all"): {len(rows)} rows, such as {example["id"]}:')
    print(f"  {example['question']}")
    for letter, option in zip("ABCD", example["options"], strict=True):
        print(f"  {letter}: {option}")
    loaded = open_rows("sou-vqa", "all", "test")
    # Scoring needs no picture, and decoding every one of them would be most of the time.
    columns = rows.select_columns(["id", "options", "answer"]).to_list()
    verdicts = {
        name: score_replies(
            [Reply(row["id"], reply=reply(row)) for row in columns], loaded, model=name
        ).verdicts
        for name, reply in BASELINES.items()
    }
    title = (
        f'Accuracy in %, {report["mode"]} distractors, scored with evaluate.load("option_match"):'
    )
    lines = sou_lines(verdicts, rates=False)
    table = Table("demo", title, ("Subset", "Model"), SOU_COLUMNS, lines)
    print(f"\n{table.title}\n\n{render_text(table, intervals=False)}")
    print(
        "\nLook at it yourself:\n"
        f"  HF_HUB_OFFLINE=1 HF_DATASETS_CACHE={quote(str(out / 'datasets'))} python -c "
        "\"from datasets import load_dataset; print(load_dataset('sou-vqa', 'aerial-ol'))\""
    )


def _metric(name: str) -> evaluate.EvaluationModule | None:
    """Load a metric, or say what it needs that the base install does not have."""
    install_metrics([name])
    try:
        return evaluate.load(name)
    except ImportError as error:
        print(
            f"\nScoring with {name} needs more than the base install: "
            f'pip install "soubench[metrics]". ({error})'
        )
        return None


def demo_primitive_shapes(out: Path, *, pictures: int, workers: int) -> None:
    """Draw a few pictures of every split, load them by name, print what is said of one.

    Args:
        out: Folder for the caches.
        pictures: Pictures per split.
        workers: Processes for the pictures.
    """
    datasets.utils.logging.set_verbosity_error()
    evaluate.utils.logging.set_verbosity_error()
    options = ShapesOptions(pictures=dict.fromkeys(SPLITS, pictures), workers=workers)
    report = build_primitive_shapes(options)
    print(shapes_text(report))
    sama = _metric("sama")
    for output_format in ("sentence", "tuple"):
        rows = datasets.load_dataset("primitive-shapes", output_format, split="test")
        targets = rows["target"][:]
        print(f'\nload_dataset("primitive-shapes", "{output_format}"): {rows[0]["question"]}')
        print(f"  {targets[0]}")
        if sama is None:
            continue
        own = sama.compute(predictions=targets, references=targets)["sama"]
        other = sama.compute(predictions=targets[1:] + targets[:1], references=targets)["sama"]
        print(f'  evaluate.load("sama"): {own:.3f} for the targets, {other:.3f} for another\'s')
    print(f"\nCard with contact sheets: {report['folder']}/README.md")


def demo_plant_leaves(out: Path, *, pictures: int, workers: int) -> None:
    """Draw plants in the folders of the plant set, build, load, score two simple answers.

    Args:
        out: Folder for sources and caches.
        pictures: Not used: the folders hold a fixed number of plants.
        workers: Processes for the pictures.
    """
    datasets.utils.logging.set_verbosity_error()
    evaluate.utils.logging.set_verbosity_error()
    sources = out / "demo-plants"
    shutil.rmtree(sources, ignore_errors=True)
    print("Drawing plants in the folders of the plant set ..")
    report = build_plant_leaves(write_demo_plants(sources), workers=workers)
    print(plants_text(report))
    metric = _metric("matched_rmse")
    splits = datasets.load_dataset("plant-leaves", "sentence")
    print(f'\nload_dataset("plant-leaves", "sentence"): {splits["test"][0]["question"]}')
    print(f"  {splits['test'][0]['target']}\n")
    always = splits["train"][0]["target"]
    for name, rows in splits.items():
        if metric is None:
            break
        targets = rows["target"][:]
        for who, replies in (("oracle", targets), ("one answer", [always] * len(targets))):
            result = metric.compute(predictions=replies, references=targets)
            print(
                f"{name:<15} {who:<11} count RMSE {result['count_rmse']:6.2f}  "
                f"center RMSE {result['center_rmse']:7.2f}"
            )
    print(f"\nCard with contact sheets: {report['folder']}/README.md")


def demo_rrs(out: Path, *, pictures: int, workers: int) -> None:
    """Draw sites with all facts about them, build all 20 tasks of rrs, load, print an example each.

    Args:
        out: Folder for records and caches.
        pictures: Half the number of single pictures; pairs come on top.
        workers: Processes for the pictures.
    """
    datasets.utils.logging.set_verbosity_error()
    evaluate.utils.logging.set_verbosity_error()
    sources = out / "demo-rrs"
    shutil.rmtree(sources, ignore_errors=True)
    print("Drawing ports, airports, radar facilities, launch sites, barracks, training grounds ..")
    records = write_demo_records(sources, sites=2 * pictures, pairs=max(1, pictures // 2))
    # No CLIP model comes with the package.
    options = RrsOptions(distractors="random", workers=workers)
    report = build_rrs_dataset(records, {}, options)
    print(rrs_text(report))
    for name in (config for config in SUB_DIMENSIONS if config in report["configs"]):
        rows = datasets.load_dataset("rrs", name, split="test").remove_columns("images")
        row = rows[0]
        print(f'\nload_dataset("rrs", "{name}"): {len(rows)} rows, such as {row["id"]}:')
        print(f"  {row['question']}")
        for letter, option in zip("ABCDE", row["options"], strict=False):
            print(f"  {letter}: {option}")
        print(f"  -> {row['answer'][:70]}")
    print(f"\nRecords: {records}\nCard with a contact sheet: {report['folder']}/README.md")
