"""From rows of a dataset to what a trainer takes, and the part that is held out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import datasets
from jinja2 import TemplateError

from soubench.builders.errors import TrainError, brief
from soubench.builders.keyed import keyed_hash
from soubench.inference.dataset_rows import open_rows
from soubench.inference.questions import PICTURE_COLUMNS
from soubench.inference.training.recipe import Recipe

GROUP_COLUMNS = ("group_id", "plant_id", "id")
ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """What is trained on and what is held out.

    Attributes:
        train: Rows with ``id``, ``image`` or ``images``, ``prompt`` and ``completion``.
        held_out: All columns of the rows that a checkpoint is chosen on, and the same.
        fingerprint: Of the dataset.
        source: As the recipe names it.
    """

    train: datasets.Dataset
    held_out: datasets.Dataset
    fingerprint: str
    source: str


def training_rows(recipe: Recipe, *, system_role: bool, seed: int = 0) -> TrainingRows:
    """Open a recipe's dataset and split it by groups.

    The groups with the smallest keyed hashes are held out: the same ones on every machine. Nothing
    of a test split is ever looked at.

    Args:
        recipe: Names the dataset, and the share of groups to hold out.
        system_role: The chat template has a system role; else its text goes before the user's.
        seed: Another seed holds out other groups.

    Raises:
        RunError: There is no such dataset, config or split.
        TrainError: Columns are missing, or too few groups are left.
    """
    loaded = open_rows(recipe.dataset, recipe.config, recipe.split)
    loaded.check_pictures()
    rows = _with_conversation(loaded.rows, recipe)
    if not system_role:
        rows = rows.map(_without_system, input_columns=["prompt"], desc="prompts")
    group = next(name for name in GROUP_COLUMNS if name in rows.column_names)
    # Of any type: numbers, lists.
    groups = list(map(str, rows[group][:]))
    ranked = sorted(set(groups), key=lambda g: (keyed_hash("held-out", seed, g), g))
    n = min(ceil(recipe.held_out * len(ranked)), len(ranked) - 1) if recipe.held_out else 0
    held = set(ranked[:n])
    picture = [name for name in PICTURE_COLUMNS if name in rows.column_names]
    train = rows.select([i for i, g in enumerate(groups) if g not in held])
    return TrainingRows(
        train=train.select_columns(["id", *picture, "prompt", "completion"]),
        held_out=rows.select([i for i, g in enumerate(groups) if g in held]),
        fingerprint=loaded.fingerprint,
        source=f"{recipe.dataset}, {recipe.config}, {recipe.split}",
    )


def _with_conversation(rows: datasets.Dataset, recipe: Recipe) -> datasets.Dataset:
    columns = set(rows.column_names)
    if not columns & set(PICTURE_COLUMNS):
        raise TrainError(
            f"{recipe.dataset}: expected a column image or images; there are "
            f"{', '.join(sorted(columns))}."
        )
    if columns >= set(PICTURE_COLUMNS):
        raise TrainError(
            f"{recipe.dataset}: expected a column image or images; there are both. Remove one: "
            "rows.remove_columns('image')."
        )
    for name in columns & set(PICTURE_COLUMNS):
        kind = rows.features[name]
        if not isinstance(getattr(kind, "feature", kind), datasets.Image):
            raise TrainError(
                f"{recipe.dataset}: expected the column {name} as datasets.Image, or a list of "
                f"them; got {kind}. Cast it: rows.cast_column({name!r}, datasets.Image())."
            )
    if not len(rows):
        raise TrainError(f"{recipe.dataset}, {recipe.config}, {recipe.split}: there are no rows.")
    if {"prompt", "completion"} <= columns:
        for row in rows.select_columns(["id", "prompt", "completion"]):
            _check_turns(f"{recipe.dataset}, row {row.pop('id')}", row)
        return rows
    if {"question", "target"} <= columns:
        for row in rows.select_columns(["id", "question", "target"]):
            where = f"{recipe.dataset}, row {row.pop('id')}"
            for name, text in row.items():
                if not isinstance(text, str) or not text.strip():
                    raise TrainError(
                        f"{where}: expected a text in the column {name}, got {text!r:.80}."
                    )
        return rows.map(_conversation, input_columns=["question", "target"], desc="conversations")
    raise TrainError(
        f"{recipe.dataset}: expected the columns prompt and completion, or question and target; "
        f"there are {', '.join(sorted(columns))}. Build sou-train rather than sou-vqa."
    )


def _check_turns(where: str, row: Mapping[str, Any]) -> None:
    for name, turns in row.items():
        if not turns or not isinstance(turns, list) or not all(map(_is_turn, turns)):
            raise TrainError(
                f"{where}: expected the column {name} as a list of turns with role (one of "
                f"{', '.join(ROLES)}) and content, both texts that are not empty; got "
                f"{turns!r:.120}."
            )
    asked = [turn["role"] for turn in row["prompt"]]
    said = [turn["role"] for turn in row["completion"]]
    turns = asked[1:] if asked[0] == "system" else asked
    # Templates and trainers drop or misread what does not alternate.
    alternating = ["user", *["assistant", "user"] * (len(turns) // 2)]
    if turns != alternating or said != ["assistant"]:
        raise TrainError(
            f"{where}: expected a prompt in which user and assistant take turns, the user first "
            "and last, after one turn of the system at most, and a completion of one turn of the "
            f"assistant; got {', '.join(asked)} and {', '.join(said)}."
        )


def _is_turn(turn: object) -> bool:
    if not isinstance(turn, dict) or not isinstance(turn.get("content"), str):
        return False
    # A dataset's system prompt may be empty.
    return turn.get("role") == "system" or (
        turn.get("role") in ROLES and bool(turn["content"].strip())
    )


def check_conversations(
    rows: datasets.Dataset,
    processor: Any,  # noqa: ANN401  # transformers: no types
    *,
    takes_turns: bool = True,
) -> None:
    """Check that a model's chat template can write every row.

    Args:
        rows: Rows with ``id``, ``prompt`` and ``completion``.
        processor: The model's processor, with a chat template.
        takes_turns: The template writes replies, too; else it writes prompts only.

    Raises:
        TrainError: Of the first row that it cannot write, or whose text has the model's own mark of
            where a picture goes: it would look for one more.
    """
    token = getattr(processor, "image_token", None)
    for row in rows.select_columns(["id", "prompt", "completion"]):
        where = f"row {row.pop('id')}"
        for name, turns in row.items():
            if token and any(token in turn["content"] for turn in turns):
                raise TrainError(
                    f"{where}: the column {name} has {token!r} in its text, which this model takes "
                    "for the place of a picture. Take it out: pictures go before the first text of "
                    "the user."
                )
        turns = [*row["prompt"], *(row["completion"] if takes_turns else [])]
        try:
            processor.apply_chat_template(_as_parts(turns, []), tokenize=False)
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            raise TrainError(
                f"{where} has turns that the model's chat template cannot write "
                f"({', '.join(turn['role'] for turn in turns)}): {brief(error, 200)}"
            ) from error


def chat_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row's prompt with its pictures, which go before the user's first text."""
    pictures = row["images"] if "images" in row else [row["image"]]
    return _as_parts(row["prompt"], [{"type": "image", "image": picture} for picture in pictures])


def _as_parts(
    turns: Iterable[Mapping[str, str]], pictures: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    chat = []
    for turn in turns:
        text = {"type": "text", "text": turn["content"]}
        content = [*pictures, text] if turn["role"] == "user" else [text]
        pictures = [] if turn["role"] == "user" else pictures
        chat.append({"role": turn["role"], "content": content})
    return chat


def _conversation(question: str, target: str) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": question}],
        "completion": [{"role": "assistant", "content": target}],
    }


def _without_system(prompt: list[Mapping[str, str]]) -> dict[str, Any]:
    """Put the system's text before the user's, for templates that have no such role."""
    system = [turn["content"] for turn in prompt if turn["role"] == "system"]
    turns = [dict(turn) for turn in prompt if turn["role"] != "system"]
    if system and system[0]:
        turns[0]["content"] = f"{system[0]}\n{turns[0]['content']}"
    return {"prompt": turns}
