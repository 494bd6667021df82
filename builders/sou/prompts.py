"""The words of the SOU questions, read from one versioned file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from soubench.builders.errors import FormatError
from soubench.builders.prompt_file import PromptFile, read_prompt_file
from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.subsets import Task
from soubench.builders.sou.tasks import Mode, Target

PROMPT_FILE = "prompts_v1.toml"

_FIELDS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "questions": {
        "CE": frozenset(),
        "OC": frozenset(),
        "CR": frozenset({"x", "y"}),
        "OL": frozenset(),
        "OL_region": frozenset(),
        "SCC": frozenset({"category"}),
        "POI": frozenset({"direction"}),
    },
    "choices": {"option": frozenset({"letter", "text"}), "request": frozenset()},
    "system": {
        "small": frozenset({"area", "box_format"}),
        "categories": frozenset({"categories"}),
        "box_format": frozenset(),
        "quad_format": frozenset(),
    },
}
"""Table -> key -> the fields its text may use, and has to but for ``_OPTIONAL``."""

_OPTIONAL = frozenset({"area", "box_format"})
"""What a system prompt may leave unsaid."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The words of one prompt file.

    Attributes:
        version: The file's own name of itself.
        digest: SHA-256 of the file's bytes, hexadecimal.
        texts: Table -> key -> text.
    """

    version: str
    digest: str
    texts: Mapping[str, Mapping[str, str]]

    def question(self, task: Task, target: Target, mode: Mode) -> str:
        """Return the question alone, without options."""
        key = "OL_region" if task is Task.OL and mode == "balanced" else task.value
        x, y = target.point_xy or (0, 0)
        return self.texts["questions"][key].format(
            x=x, y=y, category=target.category, direction=target.direction
        )

    def multiple_choice(self, question: str, options: Sequence[str]) -> str:
        """Return the user's text: the question, one line per option, the request for a letter."""
        option = self.texts["choices"]["option"]
        lines = [option.format(letter=a, text=b) for a, b in zip(LETTERS, options, strict=True)]
        return "\n".join([question, *lines, self.texts["choices"]["request"]])

    def system(
        self, source: str, categories: Sequence[str], *, oriented: bool, small_area_px: float
    ) -> str:
        """Return P1 + P2 of one subset: what is small, and which categories count."""
        words = self.texts["system"]
        box_format = words["quad_format" if oriented else "box_format"]
        parts = [
            words["small"].format(area=f"{small_area_px:g}", box_format=box_format),
            words["categories"].format(categories=", ".join(categories)),
        ]
        note = self.texts["notes"].get(source)
        return " ".join([*parts, note] if note else parts)


def load_prompts(path: Path | None = None) -> Prompts:
    """Read a prompt file; without ``path``, the package's own.

    Raises:
        FormatError: The file is missing, no TOML, or lacks or misuses an entry.
    """
    file = read_prompt_file(path or Path(str(files("soubench.builders.sou") / PROMPT_FILE)))
    return Prompts(version=file.version, digest=file.digest, texts=_checked(file))


def _checked(file: PromptFile) -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = {}
    for name, keys in _FIELDS.items():
        given = file.table.get(name)
        texts[name] = {
            key: file.text(
                f"[{name}] {key}",
                given.get(key) if isinstance(given, dict) else None,
                PROMPT_FILE,
                fields,
                needed=fields - _OPTIONAL,
            )
            for key, fields in keys.items()
        }
    notes = file.table.get("notes", {})
    if not isinstance(notes, dict) or not all(isinstance(v, str) for v in notes.values()):
        raise FormatError(f"{file.source}: [notes] must map sources to texts, found {notes!r}.")
    texts["notes"] = dict(notes)
    return texts
