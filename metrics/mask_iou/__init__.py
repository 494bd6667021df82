"""Intersection over union of masks; see README.md."""
