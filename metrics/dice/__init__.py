"""Dice coefficient of masks; see README.md."""
