"""One hash over everything that a SOU build emits, made when building and again when verifying."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

Picture = tuple[str, str]
"""Subset and image id."""

PINNED = ("file_name", "sha256", "as_is", "width", "height", "group_id")
"""What is hashed of a picture: the source's file, and the size that it is asked about in."""


def fingerprint(
    head: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    pictures: Mapping[Picture, Mapping[str, Any]],
) -> str:
    """Hash options, statistics, the source pictures, and every row.

    Paths are left out, so that the same data elsewhere on disk has the same fingerprint.

    Args:
        head: Dataset, version, seed, mode, digest of the prompts, Pillow, statistics per subset.
        rows: All rows in their order; ``answer`` as a letter.
        pictures: ``PINNED`` of each picture, and more that is not hashed.

    Returns:
        64 hexadecimal digits.

    Raises:
        KeyError: A picture is not among them.
    """
    digest = sha256(canonical(head))
    previous = None
    for row in rows:
        picture = (row["subset"], row["image_id"])
        if picture != previous:
            pinned = {name: pictures[picture][name] for name in PINNED}
            digest.update(canonical({"objects": row["objects"], "picture": pinned}))
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
