"""One hash over everything that a SOU build emits, made when building and again when verifying."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

Picture = tuple[str, str]
"""Subset and image id."""


def fingerprint(
    head: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], digests: Mapping[Picture, str]
) -> str:
    """Hash options, statistics, the bytes of the source pictures, and every row.

    Paths are left out, so that the same data elsewhere on disk has the same fingerprint.

    Args:
        head: Dataset, version, seed, mode, digest of the prompts, Pillow, statistics per subset.
        rows: All rows in their order; ``answer`` as a letter.
        digests: SHA-256 of each source picture.

    Returns:
        64 hexadecimal digits.

    Raises:
        KeyError: A picture has no digest.
    """
    digest = sha256(canonical(head))
    previous = None
    for row in rows:
        picture = (row["subset"], row["image_id"])
        if picture != previous:
            digest.update(canonical({"objects": row["objects"], "picture": digests[picture]}))
            previous = picture
        said = {k: v for k, v in row.items() if k not in ("image", "objects")}
        digest.update(canonical(said))
    return digest.hexdigest()


def objects_digest(objects: Mapping[str, Any]) -> str:
    """Hash one picture's ``objects`` column."""
    return sha256(canonical(objects)).hexdigest()


def canonical(value: Mapping[str, Any]) -> bytes:
    """Return plain data as JSON that is the same everywhere."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
