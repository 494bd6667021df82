"""The words of the one question, read from a versioned file."""

import tomllib
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from soubench.builders.errors import FormatError

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
    source = path or Path(str(files("soubench.builders.plants") / PROMPT_FILE))
    try:
        data = source.read_bytes()
        table = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise FormatError(
            f"{source}: the prompt file cannot be read ({error.strerror}). "
            "Pass the path of a TOML file to --prompt."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{source}: expected a TOML file in UTF-8, but {error}.") from error
    question = table.get("question")
    if not isinstance(question, str) or not question.strip():
        raise FormatError(
            f"{source}: expected a text at question, found {question!r}. "
            f"Copy the package's {PROMPT_FILE} and change its text."
        )
    return Prompt(str(table.get("version", source.stem)), sha256(data).hexdigest(), question)
