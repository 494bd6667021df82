"""The card of a model that was run: what it scored, on which data, and how it was asked.

A card has the Hub's form: metadata with a ``model-index`` in front, which ``huggingface_hub``
reads back as ``EvalResult``s, then text for people. Every number comes from scored runs.
"""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from statistics import median

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from soubench.builders.errors import RunError
from soubench.inference.intervals import why_none
from soubench.inference.layouts import tables_of as score_tables
from soubench.inference.report.figures import MODEL, context_of, details_of, headline
from soubench.inference.report.page import described
from soubench.inference.report.runs import ScoredRun, Section
from soubench.inference.run_folder import RUN_FILE, Description, read_run
from soubench.inference.tables import Score, Table, render_markdown

TASK_TYPE = "visual-question-answering"
PIPELINE_TAG = "image-text-to-text"
LIMITS = (
    "Intervals say how much scores would move with other pictures of the same sets. They say "
    "nothing about other prompts, other decoding or other kinds of pictures.",
    "Replies that cannot be read and rows without a reply count as wrong; their shares stand "
    "beside the scores. No reply is guessed.",
    "Whether pictures or labels of the sources were among the model's training data is not known.",
    "Labels of the sources have errors of their own, which no model can answer right.",
)
LOCATION_LIMIT = (
    "Questions that state points or boxes measure the model's convention for coordinates, too: "
    "here they count {coords}."
)


def write_card(sections: Sequence[Section], out: Path) -> ModelCard:
    """Write the card of one model.

    Args:
        sections: Its runs by dataset.
        out: The Markdown file.

    Returns:
        The card, as the file holds it.

    Raises:
        RunError: The runs are of several models.
    """
    card = make_card(sections)
    save_card(card, out)
    return card


def save_card(card: ModelCard, out: Path) -> None:
    """Write a card to a file as a whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.incomplete")
    partial.write_text(str(card), encoding="utf-8")
    partial.replace(out)


def make_card(sections: Sequence[Section]) -> ModelCard:
    """Make the card of one model; reading it back gives the same results.

    Raises:
        RunError: The runs are of several models.
    """
    runs = [run for section in sections for run in section.runs]
    models = {(run.model, str(run.description["model"].get("revision"))) for run in runs}
    if len(models) > 1:
        said = ", ".join(f"{name} (revision {revision[:10]})" for name, revision in sorted(models))
        raise RunError(f"expected runs of one model for its card, got {said}.")
    model = runs[0].model
    results = [result for section in sections for result in _results(section)]
    uses_pipeline = any(run.description["model"].get("backend") == "pipeline" for run in runs)
    data = ModelCardData(
        model_name=model,
        language="en",
        library_name="transformers" if uses_pipeline else None,
        pipeline_tag=PIPELINE_TAG,
        tags=["soubench", *dict.fromkeys(section.dataset for section in sections)],
        datasets=sorted({name for s in sections if (name := _hub_id(s))}) or None,
        eval_results=results,
    )
    body = "\n".join(_body(model, sections))
    # Reading it checks the metadata, which is then known to survive a round trip.
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body}")


def _hub_id(section: Section) -> str | None:
    """Return the Hub's name of the dataset, if that is where the rows came from."""
    for part in section.parts.values():
        if part.source.count("/") == 1 and not Path(part.source).expanduser().exists():
            return part.source
    return None


def _score_tables(section: Section, run: ScoredRun) -> list[Table]:
    return score_tables(run.verdicts, context_of(section, run))


def _results(section: Section) -> Iterator[EvalResult]:
    """Yield every score of the section's tables for the metadata, each under a name of its own."""
    name = section.name
    if section.distractors:
        name += f", {section.distractors} distractors"
    named: set[str] = set()
    for run in section.runs:
        for table in _score_tables(section, run):
            model_at = table.heads.index(MODEL)
            for line in table.lines:
                about = [x.strip() for i, x in enumerate(line.labels) if i != model_at]
                if line.labels[model_at] != run.name:
                    # A rotation, or a format of the output.
                    about.append(line.labels[model_at].removeprefix(run.name).strip(" ,()"))
                for column, cell in zip(table.columns, line.cells, strict=True):
                    if not isinstance(cell, Score) or cell.value is None:
                        continue
                    words = [cell.measure, *about, column, *run.marks]
                    title = ", ".join(dict.fromkeys(word for word in words if word))
                    if title in named:
                        title = f"{title} [{run.path.name}]"
                    named.add(title)
                    yield EvalResult(
                        task_type=TASK_TYPE,
                        dataset_type=_hub_id(section) or section.dataset,
                        dataset_name=name,
                        dataset_config="+".join(dict.fromkeys(c for c, _ in section.parts)),
                        dataset_split="+".join(dict.fromkeys(s for _, s in section.parts)),
                        dataset_revision="+".join(section.fingerprints),
                        metric_type=cell.measure,
                        metric_name=title,
                        metric_value=round(cell.value, 6),
                        metric_args=_metric_args(cell, run),
                    )


def _metric_args(cell: Score, run: ScoredRun) -> dict[str, object]:
    known: dict[str, object | None] = {
        "metric": cell.metric,
        "unit": cell.unit,
        "low": None if cell.low is None else round(cell.low, 6),
        "high": None if cell.high is None else round(cell.high, 6),
        "n": cell.n,
        "clusters": cell.clusters,
        "average": cell.average,
        "unparsed_rate": round(cell.unparsed_rate, 6),
        "error_rate": round(cell.error_rate, 6),
        "coords": run.description.get("coords"),
        "blind": run.description.get("blind"),
    }
    return {key: value for key, value in known.items() if value is not None}


def _body(model: str, sections: Sequence[Section]) -> Iterator[str]:
    names = ", ".join(f"`{section.name}`" for section in sections)
    yield f"# {model}\n"
    yield (
        f"What {model} scored on {names}, measured with soubench {version('soubench')}. This card "
        "tells what was run; it is no description of the model, which its makers give. Every "
        "number is written by code from the runs.\n"
    )
    yield from _in_short(sections)
    yield "## Scores\n"
    for section in sections:
        for run in section.runs:
            for table in (*_score_tables(section, run), *details_of(section, run)):
                yield render_markdown(table)
    yield "## Data\n"
    yield "| dataset | rows | distractors | fingerprint |\n|---|--:|---|---|"
    for section in sections:
        rows = sum(len(part.rows) for part in section.parts.values())
        fingerprints = ", ".join(f"`{f}`" for f in section.fingerprints)
        yield f"| {section.name} | {rows:,} | {section.distractors or '-'} | {fingerprints} |"
    yield (
        "\nThe fingerprint stands for everything that decides the rows: sources, version, seed, "
        "options. Equal fingerprints mean equal questions.\n"
    )
    yield "## How it was run\n"
    for section in sections:
        for run in section.runs:
            yield f"### {run.name} on {section.name}\n"
            yield "| setting | value |\n|---|---|"
            for key, value in (*described(run), *_fed(run)):
                yield f"| {key} | {cell(value)} |"
            yield f"\nThe same again:\n\n```bash\n{_commands(run)}\n```\n"
    yield "## Limits\n"
    yield from (f"- {limit}" for limit in LIMITS)
    frames = sorted({str(run.description.get("coords")) for s in sections for run in s.runs})
    yield f"- {LOCATION_LIMIT.format(coords=' or '.join(frames))}"
    if any(run.description.get("limit") is not None for s in sections for run in s.runs):
        yield "- Only a part of the rows was asked (`limit`), drawn evenly over the sub-tasks."
    if any(run.description.get("blind") for s in sections for run in s.runs):
        yield "- Runs marked blind were asked without pictures: they measure guessing."
    if any(run.description["model"].get("backend") == "openai" for s in sections for run in s.runs):
        yield (
            "- The model was asked through a server: which weights and which picture size it used "
            "is what the server says, and cannot be checked."
        )


def _in_short(sections: Sequence[Section]) -> Iterator[str]:
    yield "| dataset | run | score | value | 95 % interval | rows | unparsed | errors |"
    yield "|---|---|---|--:|:-:|--:|--:|--:|"
    for section in sections:
        for run in section.runs:
            for _, score in headline(run):
                scale, unit = (100, " %") if score.unit == "share" else (1, f" {score.unit}")
                interval = why_none(score.clusters)
                if score.low is not None and score.high is not None:
                    interval = f"{scale * score.low:.1f}–{scale * score.high:.1f}"
                value = "-" if score.value is None else f"{scale * score.value:.2f}{unit}"
                yield (
                    f"| {section.name} | {run.name} | {score.measure} | {value} | {interval} "
                    f"| {score.n:,} | {100 * score.unparsed_rate:.2f} % "
                    f"| {100 * score.error_rate:.2f} % |"
                )
    yield ""


def _fed(run: ScoredRun) -> Iterator[tuple[str, str]]:
    """Say what pictures the model was fed and how long replies were, where the run tells."""
    if not (run.path / RUN_FILE).exists():
        return
    _, replies = read_run(run.path)
    sizes = sorted({size for reply in replies for size in reply.picture_wh or ()})
    if sizes:
        areas = sorted(sizes, key=lambda size: size[0] * size[1])
        small, large = areas[0], areas[-1]
        said = f"{small[0]}×{small[1]} px"
        if small != large:
            said += f" to {large[0]}×{large[1]} px, {len(sizes):,} different sizes"
        yield "pictures as fed", said
    tokens = [r.output_tokens for r in replies if r.output_tokens is not None]
    if tokens:
        yield "tokens of a reply", f"median {median(tokens):g}, at most {max(tokens):,}"
    cut = sum(reply.finish_reason == "length" for reply in replies)
    if cut:
        yield "replies cut at max_new_tokens", f"{cut:,} of {len(replies):,}"


def _commands(run: ScoredRun) -> str:
    """Write the commands of a run, as far as ``run.json`` says them."""
    asked = run.scores["runs"]
    if asked[0]["model"].get("backend") == "file":
        dataset = asked[0]["dataset"]
        return (
            f"soubench score --dataset {quote(dataset['name'])} --config {dataset['config']} "
            f"--split {dataset['split']} --predictions FILE"
        )
    folders = ["RUN"] if len(asked) == 1 else [f"RUN-{i}" for i in range(1, len(asked) + 1)]
    lines = [_command(run.model, said, out) for said, out in zip(asked, folders, strict=True)]
    out = "" if len(asked) == 1 else " --out SCORES"
    return "\n".join([*lines, f"soubench score {' '.join(folders)}{out}"])


def _command(name: str, said: Description, out: str) -> str:
    dataset, model, decoding = said["dataset"], said["model"], said.get("decoding") or {}
    context = model.get("context") or {}
    options = {
        "split": dataset["split"],
        "max-new-tokens": decoding.get("max_new_tokens"),
        "limit": said.get("limit"),
        "seed": said["seed"] or None,
        "coords": said["coords"] if said.get("coords", "pixel") != "pixel" else None,
        "backend": "openai --base-url URL" if model.get("backend") == "openai" else None,
        "dtype": model.get("dtype"),
        "max-pixels": context.get("max_pixels"),
        "out": out,
    }
    words = [f"--{option} {value}" for option, value in options.items() if value is not None]
    words += [f"--{flag}" for flag in ("circular", "blind") if said.get(flag)]
    if context.get("system_role") is False:
        words.append("--no-system-role")
    start = f"soubench predict {quote(dataset['name'])} {dataset['config']} --model {quote(name)}"
    return " ".join([start, *words])


def cell(value: str) -> str:
    """Write a text in a cell of a Markdown table."""
    return " ".join(value.replace("|", "\\|").split())


def check_card(path: Path) -> list[EvalResult]:
    """Read a card from a file and return its results.

    Raises:
        RunError: The metadata is missing or damaged.
    """
    try:
        card = ModelCard.load(path)
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: expected a model card with metadata ({error}).") from error
    return list(card.data.eval_results or [])
