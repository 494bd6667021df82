"""Write a dataset for another tool: the table of formats, and the one function behind it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from soubench.builders.errors import PictureError, PublishError
from soubench.builders.publishing.export_folder import MADE_BY, MANIFEST, replacing
from soubench.inference.dataset_rows import LoadedRows, open_rows
from soubench.inference.exports import (
    FORMATS,
    llamafactory,
    lmms_eval,
    ms_swift,
    trl,
    vlmevalkit,
)
from soubench.inference.exports.folder import Exported, kept, rights
from soubench.inference.exports.training import Training, prepare

TRAINING_SPLIT = "train"

EVALUATION: Mapping[str, Callable[[LoadedRows, Path], Exported]] = {
    "vlmevalkit": vlmevalkit.write,
    "lmms-eval": lmms_eval.write,
}
TRAINING: Mapping[str, Callable[[Training, Path], Exported]] = {
    "llamafactory": llamafactory.write,
    "ms-swift": ms_swift.write,
    "trl": trl.write,
}


def export_to(
    to: str,
    dataset: str,
    folder: Path,
    *,
    config: str | None = None,
    split: str | None = None,
    recipe: str | None = None,
) -> dict[str, Any]:
    """Write one split of one config for another tool.

    The folder appears as a whole or not at all; an earlier export there is replaced. It is for the
    caller's own use: pictures go in whatever their sources say, and the README names those that
    may not be passed on.

    Args:
        to: One of ``FORMATS``.
        dataset: Name of a built dataset, an exported folder, or a Hub id.
        folder: Where to write. Must be absent, empty or an earlier export.
        config: Name of the config; may be None where there is only one.
        split: Name of the split; None takes the only one, else ``test``, to train on ``train``.
        recipe: Name or file of a recipe, for trainers; None takes the one for this config.

    Returns:
        ``folder``, ``config``, ``split``, ``rows``, ``pictures``, ``files`` (those that a user of
        the tool names) and ``kept``: sources whose pictures may not be passed on.

    Raises:
        PublishError: No such format, a folder that cannot be written, or rows that the tool would
            misread.
        RunError: There is no such dataset, config or split, or rows came without pictures.
        PictureError: A picture cannot be decoded.
        TrainError: No recipe fits, or the tool cannot do what it asks.
    """
    if to not in FORMATS:
        raise PublishError(f"--to: expected one of {', '.join(FORMATS)}, got {to!r}.")
    if recipe is not None and to not in TRAINING:
        raise PublishError(f"--recipe is for {', '.join(TRAINING)}; {to} evaluates models.")
    folder = folder.expanduser().resolve()
    loaded = open_rows(dataset, config, split or (TRAINING_SPLIT if to in TRAINING else None))
    loaded.check_pictures()
    training = prepare(loaded, recipe) if to in TRAINING else None
    with replacing(folder) as target:
        try:
            if training is not None:
                done = TRAINING[to](training, target)
            else:
                done = EVALUATION[to](loaded, target)
        except PictureError:
            # It does not say whose it is.
            loaded.refuse_broken_pictures()
            raise
        # Known as ours, so that the next export may take its place.
        said = {"made_by": MADE_BY, "to": to, "dataset": loaded.name, "config": loaded.config}
        said |= {"split": loaded.split, "fingerprint": loaded.fingerprint}
        (target / MANIFEST).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return {
        "folder": str(folder),
        "config": loaded.config,
        "split": loaded.split,
        "rows": done.rows,
        "pictures": done.pictures,
        "files": list(done.files),
        "kept": kept(rights(loaded)),
    }
