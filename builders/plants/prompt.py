"""The words of the one question, read from a versioned file."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from soubench.builders.errors import FormatError
from soubench.builders.prompt_file import read_prompt_file

PROMPT_FILE = "prompt_v1.toml"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The words of one prompt file.

    Attributes:
        version: The file's own name of itself.
        digest: SHA-256 of the file's bytes, hexadecimal.
        question: What every row asks.
    """

    version: str
    digest: str
    question: str


def load_prompt(path: Path | None = None) -> Prompt:
    """Read a prompt file; without ``path``, the package's own.

    Raises:
        FormatError: The file is missing, no TOML, or has no question.
    """
    file = read_prompt_file(path or Path(str(files("soubench.builders.plants") / PROMPT_FILE)))
    question = file.table.get("question")
    if not isinstance(question, str) or not question.strip():
        raise FormatError(
            f"{file.source}: expected a text at question, found {question!r}. "
            f"Copy the package's {PROMPT_FILE} and change its text."
        )
    return Prompt(file.version, file.digest, question)
