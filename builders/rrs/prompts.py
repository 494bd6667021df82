"""The words of the questions, read from one versioned file."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Formatter

from soubench.builders.errors import FormatError
from soubench.builders.prompt_file import read_prompt_file

PROMPT_FILE = "prompts_v1.toml"


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

    def question(self, key: str, **fields: str) -> str:
        """Return a question; ``key`` is its leaf task, with a suffix where it has several."""
        return self.texts["questions"][key].format(**fields).strip()

    def words(self, key: str, **fields: str) -> str:
        """Return a sentence or phrase that goes into questions."""
        return self.texts["words"][key].format(**fields)

    def expression(self, key: str, category: str) -> str:
        """Return a derived expression."""
        return self.texts["expressions"][key].format(category=category)


def load_prompts(path: Path | None = None) -> Prompts:
    """Read a prompt file; without ``path``, the package's own.

    Raises:
        FormatError: The file is missing, no TOML, or its texts are not those of the package's
            file: a key is missing, or a text uses other fields.
    """
    own = Path(str(files("soubench.builders.rrs") / PROMPT_FILE))
    file = read_prompt_file(path or own)
    texts: dict[str, dict[str, str]] = {}
    for name, expected in read_prompt_file(own).table.items():
        if not isinstance(expected, dict):
            continue
        given = file.table.get(name)
        texts[name] = {}
        for key, pattern in expected.items():
            allowed = _fields(pattern) or set()
            there = given.get(key) if isinstance(given, dict) else None
            text = file.text(f"[{name}] {key}", there, PROMPT_FILE)
            found = _fields(text)
            if found is None or found != allowed:
                listed = ", ".join(f"{{{f}}}" for f in sorted(allowed)) or "no field"
                raise FormatError(
                    f"{file.source}: [{name}] {key} must use {listed}, as the package's text does; "
                    f"found {text!r}."
                )
            texts[name][key] = text
    return Prompts(file.version, file.digest, texts)


def _fields(text: str) -> set[str] | None:
    """Return the fields of a format text; None if it is none, or has more than bare names."""
    try:
        parts = [(name, spec, turn) for _, name, spec, turn in Formatter().parse(text)]
    except ValueError:
        return None
    named = [part for part in parts if part[0] is not None]
    plain = all(
        name and name.isidentifier() and not spec and not turn for name, spec, turn in named
    )
    return {str(name) for name, _, _ in named} if plain else None
