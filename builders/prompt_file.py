"""Prompt files: versioned TOML files with every word that a dataset puts before a model."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from string import Formatter
from typing import Any

from soubench.builders.errors import FormatError


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt file as it was read.

    Attributes:
        source: Where it lies.
        data: Its bytes, which its digest is made of.
        table: What it says.
    """

    source: Path
    data: bytes
    table: dict[str, Any]

    @property
    def version(self) -> str:
        """The file's own name of itself."""
        return str(self.table.get("version", self.source.stem))

    @property
    def digest(self) -> str:
        """SHA-256 of the file's bytes, hexadecimal."""
        return sha256(self.data).hexdigest()

    def text(
        self,
        where: str,
        value: object,
        own: str,
        fields: Iterable[str] | None = None,
        *,
        needed: Iterable[str] = (),
    ) -> str:
        """Check one text of the file.

        Args:
            where: Its place, such as ``[questions] CE``, for messages.
            value: What stands there.
            own: Name of the package's own file, to copy.
            fields: The fields that the text may use; None for a text that is used as it stands.
            needed: Those without which it would not ask what it should.

        Raises:
            FormatError: It is no text, uses another field, or lacks one.
        """
        if not isinstance(value, str):
            raise FormatError(
                f"{self.source}: expected a text at {where}, found {value!r}. "
                f"Copy the package's {own} and change its texts."
            )
        if fields is None:
            return value
        try:
            value.format(**dict.fromkeys(fields, ""))
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            allowed = ", ".join(f"{{{f}}}" for f in sorted(fields)) or "none"
            raise FormatError(
                f"{self.source}: {where} uses a field that it does not have ({error}). Fields "
                f"allowed there: {allowed}; a brace itself is written twice."
            ) from error
        used = {(name or "").partition(".")[0] for _, name, *_ in Formatter().parse(value)}
        if missing := sorted(set(needed) - used):
            raise FormatError(
                f"{self.source}: {where} has to use {', '.join(f'{{{f}}}' for f in missing)}; "
                f"found {value!r}."
            )
        return value


def read_prompt_file(path: Path) -> PromptFile:
    """Read a prompt file.

    Raises:
        FormatError: The file is missing or no TOML in UTF-8.
    """
    try:
        data = path.read_bytes()
        table = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise FormatError(
            f"{path}: the prompt file cannot be read ({error.strerror}). "
            "Pass the path of a TOML file to --prompt."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: expected a TOML file in UTF-8, but {error}.") from error
    return PromptFile(path, data, table)
