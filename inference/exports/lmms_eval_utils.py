"""The questions of this folder, word for word as soubench asks them. For lmms-eval.

Written by `soubench export --to lmms-eval`; it needs Pillow alone, which lmms-eval has.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image, ImageOps

Row = Mapping[str, Any]


def _pictures(doc: Row) -> list[Image.Image]:
    value = doc.get("images") if doc.get("images") is not None else doc.get("image")
    return value if isinstance(value, list) else [doc["image"]]


def _system_role(lmms_eval_specific_kwargs: Row | None) -> bool:
    return bool((lmms_eval_specific_kwargs or {}).get("system_role", True))


def doc_to_visual(doc: Row) -> list[Image.Image]:
    """Return the pictures of a row in order: upright RGB."""
    return [ImageOps.exif_transpose(picture).convert("RGB") for picture in _pictures(doc)]


def doc_to_text(doc: Row, lmms_eval_specific_kwargs: Row | None = None) -> str:
    """Return the question with its system prompt before it, for models that take one text."""
    system, text = str(doc["asked_system"]), str(doc["asked_text"])
    return f"{system}\n{text}" if system else text


def doc_to_messages(doc: Row, lmms_eval_specific_kwargs: Row | None = None) -> list[dict[str, Any]]:
    """Return a chat: the system prompt in its role, then the pictures, then the question."""
    pictures = [{"type": "image", "url": picture} for picture in doc_to_visual(doc)]
    if doc["asked_system"] and _system_role(lmms_eval_specific_kwargs):
        return [
            {"role": "system", "content": [{"type": "text", "text": doc["asked_system"]}]},
            {"role": "user", "content": [*pictures, {"type": "text", "text": doc["asked_text"]}]},
        ]
    return [{"role": "user", "content": [*pictures, {"type": "text", "text": doc_to_text(doc)}]}]


def doc_to_target(doc: Row) -> str:
    """Return the right answer: a letter, yes or no, or a text."""
    return str(doc["right_answer"])


def process_results(doc: Row, results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Judge a reply roughly; `soubench score` reads whole sentences, boxes and outlines.

    Args:
        doc: The row.
        results: The reply.

    Returns:
        The id of the row, which `soubench score` knows it by; its group; and a score of 0 or 1:
        the reply is the right letter, `yes` or `no` and nothing else; for other answers, there is
        one.
    """
    reply = (results[0] or "").strip()
    if doc["asked_type"] in ("mcq", "yes_no"):
        right = reply.strip("().:*` ").lower() == doc["right_answer"].lower()
    else:
        right = bool(reply)
    judged = {"id": doc["id"], "score": float(right)}
    for column in ("group_id", "plant_id", "image_id"):
        if doc.get(column):
            judged["group"] = doc[column]
            break
    return {"soubench": judged}


def mean_score(items: Sequence[Row]) -> float:
    """Return the mean of the scores."""
    return float(sum(item["score"] for item in items) / max(1, len(items)))
