"""Fine-tuning recipes: what the papers fix, as data."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any, get_args, get_origin

from soubench.builders.errors import TrainError
from soubench.inference.training.lora_targets import KINDS

RECIPES_FILE = "recipes.toml"
SCHEDULERS = (
    *("linear", "cosine", "cosine_with_restarts", "polynomial", "inverse_sqrt"),
    *("constant", "constant_with_warmup"),
)
"""Schedules of ``transformers`` that need no settings of their own."""
TEST_SPLIT = re.compile(r"(^|[-_.]|dev|mini)test|^od_", re.IGNORECASE)
"""Names of splits that models are tested on, out of distribution or not."""
PARTS = ("vision", "language", "both")
"""What an ablation may train (001, Table S1)."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One fine-tuning recipe.

    Attributes:
        name: What users type.
        dataset: Name of a built dataset, an exported folder, or a Hub id.
        config: Its config.
        split: Its split to train on.
        model: Hub id or folder.
        metric: The metric that chooses the checkpoint.
        vision: Kinds of layers of the vision part that get a LoRA, see ``lora_targets.KINDS``.
        language: The same of the language part.
        lora_rank: Rank r.
        lora_alpha: Scale alpha.
        lora_dropout: Dropout on the LoRA's input, 0 to 1.
        learning_rate: Highest learning rate.
        scheduler: Name of the schedule, as in ``transformers``.
        warmup: Share of the steps that the learning rate rises in, 0 to 1.
        adam_beta2: AdamW's second beta.
        weight_decay: AdamW's weight decay.
        epochs: Passes over the data, where ``max_steps`` is None.
        max_steps: Steps, where ``epochs`` is None.
        effective_batch: Rows of a step, over all devices.
        per_device_batch: Rows that a device takes at a time; the rest is accumulated.
        precision: ``bfloat16`` or ``float32``.
        max_pixels: Larger pictures are scaled down, in px; None leaves it to the processor.
        numeric_scale: Factor on the loss of numeric tokens (001, Sec. 3.6).
        held_out: Share of the groups that is kept from training, to choose a checkpoint on.
        max_new_tokens: Longest reply when a checkpoint is judged.
        substitute_for: The paper's model, where ``model`` stands in for it.
        not_in_paper: Setting -> why it is what it is.
    """

    name: str
    dataset: str
    config: str
    split: str
    model: str
    metric: str
    vision: tuple[str, ...]
    language: tuple[str, ...]
    lora_rank: int
    lora_alpha: int
    lora_dropout: float
    learning_rate: float
    scheduler: str
    warmup: float
    adam_beta2: float
    weight_decay: float
    effective_batch: int
    per_device_batch: int
    precision: str
    numeric_scale: float
    held_out: float
    max_new_tokens: int
    epochs: float | None = None
    max_steps: int | None = None
    max_pixels: int | None = None
    substitute_for: str = ""
    not_in_paper: Mapping[str, str] | None = None

    def changed(self, **settings: Any) -> "Recipe":  # noqa: ANN401  # any setting
        """Return the recipe with other settings, those that are not None, marked as such.

        Raises:
            TrainError: A value is out of its range.
        """
        changes = {
            key: value
            for key, value in settings.items()
            if value is not None and value != getattr(self, key)
        }
        reasons = dict(self.not_in_paper or {}) | dict.fromkeys(changes, "set for this run")
        if "max_steps" in changes:
            changes["epochs"] = None
        if "model" in changes:
            changes["substitute_for"] = ""
        if changes:
            changes["not_in_paper"] = reasons
        recipe = replace(self, **changes)
        _check_ranges(recipe)
        return recipe

    def training(self, parts: str) -> "Recipe":
        """Return the recipe with only some parts trained (001, Table S1).

        Raises:
            TrainError: No such parts, or the recipe trains nothing there.
        """
        if parts not in PARTS:
            raise TrainError(f"parts: expected one of {', '.join(PARTS)}, got {parts!r}.")
        vision = self.vision or ("attention",)
        language = self.language or ("attention",)
        found = replace(
            self,
            vision=vision if parts != "language" else (),
            language=language if parts != "vision" else (),
        )
        changed = [k for k in ("vision", "language") if getattr(found, k) != getattr(self, k)]
        reasons = dict.fromkeys(changed, f"set for this run: trained is {parts}")
        if not reasons:
            return found
        return replace(found, not_in_paper=dict(self.not_in_paper or {}) | reasons)


def recipe_names() -> list[str]:
    """Return the names of the package's recipes, in the order of their file."""
    return list(_tables(None)["recipes"])


def unavailable() -> dict[str, str]:
    """Return the papers' models that cannot be trained here -> why, and what to do."""
    found: dict[str, str] = _tables(None)["unavailable"]
    return found


def load_recipe(name: str) -> Recipe:
    """Return a recipe by its name, or read one from a TOML file.

    A file holds the settings of one recipe at its top level, with ``extends`` naming one of the
    package's to take all others from.

    Raises:
        TrainError: No such recipe, or a setting is unknown, missing, or of another type.
    """
    tables = _tables(None)
    path = Path(name).expanduser()
    if path.suffix == ".toml":
        given = _tables(path)
        own = {k: f"set in {path.name}" for k in given if k not in ("extends", "not_in_paper")}
        if isinstance(reasons := given.get("not_in_paper", {}), dict):
            given["not_in_paper"] = own | reasons
        return _recipe(path.stem, {"bases": tables["bases"] | tables["recipes"]}, given)
    if name not in tables["recipes"]:
        near = get_close_matches(name, tables["recipes"], n=3)
        raise TrainError(
            f"There is no recipe {name!r}"
            + (f"; did you mean {' or '.join(near)}?" if near else ".")
            + " soubench train --list names them; a file of your own ends in .toml."
        )
    return _recipe(name, tables, tables["recipes"][name])


def _tables(path: Path | None) -> dict[str, Any]:
    source = path or Path(str(files("soubench.inference.training") / RECIPES_FILE))
    try:
        return tomllib.loads(source.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TrainError(f"{source}: the recipe cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TrainError(f"{source}: expected a recipe in TOML, but {error}.") from error


def _recipe(name: str, tables: Mapping[str, Any], given: Mapping[str, Any]) -> Recipe:
    settings = _extended(name, tables, given, ())
    known = {f.name: f.type for f in fields(Recipe) if f.name != "name"}
    unknown = sorted(set(settings) - set(known))
    if unknown:
        near = get_close_matches(unknown[0], known, n=1)
        raise TrainError(
            f"recipe {name}: there is no setting {unknown[0]!r}"
            + (f"; did you mean {near[0]}?" if near else f". There are {', '.join(known)}.")
        )
    if ("epochs" in settings) == ("max_steps" in settings):
        raise TrainError(f"recipe {name}: expected either epochs or max_steps.")
    checked = {key: _checked(name, key, value, known[key]) for key, value in settings.items()}
    try:
        recipe = Recipe(name=name, **checked)
    except TypeError as error:
        missing = sorted(
            f.name for f in fields(Recipe) if f.name not in checked and f.name in str(error)
        )
        raise TrainError(f"recipe {name}: the setting {', '.join(missing)} is missing.") from error
    _check_ranges(recipe)
    return recipe


def _extended(
    name: str, tables: Mapping[str, Any], given: Mapping[str, Any], seen: tuple[str, ...]
) -> dict[str, Any]:
    own = {key: value for key, value in given.items() if key != "extends"}
    base = given.get("extends")
    if base is None:
        return own
    if not isinstance(base, str) or base not in tables["bases"] or base in seen:
        raise TrainError(
            f"recipe {name}: it extends {base!r}, which is not there. Expected one of "
            f"{', '.join(tables['bases'])}."
        )
    inherited = _extended(name, tables, tables["bases"][base], (*seen, base))
    # What is no table stays as it is, to be refused with the other wrong values.
    reasons = own.get("not_in_paper", {})
    if isinstance(reasons, dict):
        reasons = inherited.get("not_in_paper", {}) | reasons
    # A length given anew takes the place of the other way to give it.
    if "epochs" in own:
        inherited.pop("max_steps", None)
    if "max_steps" in own:
        inherited.pop("epochs", None)
    return inherited | own | ({"not_in_paper": reasons} if reasons else {})


def _checked(name: str, key: str, value: Any, kind: Any) -> Any:  # noqa: ANN401  # any setting
    allowed = [a for a in get_args(kind) if a is not type(None)] or [kind]
    if get_origin(kind) is tuple:
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(value)
        raise TrainError(f"recipe {name}: {key}: expected a list of texts, got {value!r}.")
    if key == "not_in_paper":
        if isinstance(value, dict) and all(isinstance(reason, str) for reason in value.values()):
            return value
        raise TrainError(f"recipe {name}: {key}: expected setting = reason, got {value!r}.")
    (wanted,) = allowed
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise TrainError(
            f"recipe {name}: {key}: expected {wanted.__name__}, got {value!r}. Correct the recipe."
        )
    return value


def refuse_test_split(name: str, split: str) -> None:
    """Refuse to train on what models are tested on.

    Raises:
        TrainError: It is such a split.
    """
    if TEST_SPLIT.search(split):
        raise TrainError(
            f"{name}: split: expected one to train on, got {split!r}: models are tested on that."
        )


def _check_ranges(recipe: Recipe) -> None:
    def refuse(key: str, expected: str) -> None:
        raise TrainError(
            f"recipe {recipe.name}: {key}: expected {expected}, got {getattr(recipe, key)!r}."
        )

    for key in (
        *("lora_rank", "lora_alpha", "effective_batch", "per_device_batch"),
        *("max_new_tokens", "max_steps", "max_pixels"),
    ):
        value = getattr(recipe, key)
        if value is not None and value < 1:
            refuse(key, "at least 1")
    for key in ("lora_dropout", "warmup", "held_out", "adam_beta2"):
        if not 0 <= getattr(recipe, key) < 1:
            refuse(key, "a number from 0 to below 1")
    for key in ("learning_rate", "numeric_scale", "epochs"):
        value = getattr(recipe, key)
        if value is not None and not 0 < value < inf:
            refuse(key, "a number above 0")
    if not 0 <= recipe.weight_decay < inf:
        refuse("weight_decay", "0 or more")
    if recipe.scheduler not in SCHEDULERS:
        refuse("scheduler", f"one of {', '.join(SCHEDULERS)}")
    refuse_test_split(recipe.name, recipe.split)
    if recipe.precision not in ("bfloat16", "float32"):
        refuse("precision", "bfloat16 or float32")
    for key in ("vision", "language"):
        if not set(getattr(recipe, key)) <= set(KINDS):
            refuse(key, f"kinds of layers of {', '.join(KINDS)}")
    if not recipe.vision and not recipe.language:
        raise TrainError(f"recipe {recipe.name}: neither vision nor language is trained.")
