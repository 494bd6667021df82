"""Grounding accuracy from reply texts or boxes, in the format that the caller declares."""
