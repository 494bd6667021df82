"""Publish a metric as a Space on the Hub, where ``evaluate.load("org/name")`` finds it."""

import re
from dataclasses import dataclass
from pathlib import Path

from soubench.builders.errors import PublishError
from soubench.builders.publishing.card_merge import merge_cards
from soubench.builders.publishing.hub import (
    Change,
    Content,
    Repository,
    Target,
    check_tag_name,
)
from soubench.builders.publishing.metric_cache import metric_folders

CARD = "README.md"
SPACE_KEYS = ("sdk", "sdk_version", "app_file")
"""Of the card's head: what makes the app start, so ours whatever the Space says."""
PYTHON_BLOCK = re.compile(r"^```python\n.*?^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PushedMetric:
    """What a push did, or would do: the files, and the commit (empty for a dry run)."""

    changes: list[Change]
    commit: str = ""


def push_metric(
    name: str,
    repo_id: str,
    *,
    private: bool = False,
    tag: str | None = None,
    dry_run: bool = False,
) -> PushedMetric:
    """Send a metric's folder to a Space in one commit, and name it.

    Args:
        name: One of our metrics.
        repo_id: ``org/name``, with the metric's own name: `evaluate` looks for ``<name>.py``.
        private: Make a private Space.
        tag: Name of the commit afterwards, such as ``v0.1.0``.
        dry_run: Only say what would be sent.

    Raises:
        PublishError: No such metric, another name, or a Space that may not be written.
    """
    folders = metric_folders()
    if name not in folders:
        raise PublishError(f"{name!r}: expected one of the metrics {', '.join(sorted(folders))}.")
    space = Repository(repo_id, "space")
    namespace, _, last = repo_id.partition("/")
    if last != name:
        raise PublishError(
            f"{repo_id}: evaluate.load looks for {last}.py there, and the metric is {name}.py. "
            f"Call the Space {namespace}/{name}."
        )
    check_tag_name(tag)
    if dry_run:
        space.look()
    else:
        space.check_token()
        space.prepare(private=private, space_sdk="gradio")
    target = _target(space, folders[name])
    space.check_tag(tag, target)
    changes = space.changes(target)
    if dry_run:
        return PushedMetric(changes)
    commit = space.commit(f"soubench push-metric {name}", lambda: _target(space, folders[name]))
    if tag is not None:
        space.tag(tag, commit)
    wrong = space.differences(commit, _target(space, folders[name]).files)
    if wrong:
        raise PublishError(
            f"{repo_id}: the Hub has other content than was sent in {', '.join(wrong[:3])}. Run "
            "the command again."
        )
    return PushedMetric(changes, commit)


def _target(space: Repository, folder: Path) -> Target:
    """Say what the Space should have; a card that is there keeps what others wrote into it."""
    files: dict[str, Content] = {
        path.name: path for path in sorted(folder.iterdir()) if path.is_file()
    }
    ours = (folder / CARD).read_text(encoding="utf-8")
    # Whoever reads the Space loads the metric from there.
    called, here = f'evaluate.load("{folder.name}")', f'evaluate.load("{space.id}")'
    ours = PYTHON_BLOCK.sub(lambda block: block[0].replace(called, here), ours)
    theirs = space.read(CARD).decode("utf-8") if CARD in space.files else ""
    files[CARD] = merge_cards(ours, theirs, computed=SPACE_KEYS).encode("utf-8")
    return Target(files)
