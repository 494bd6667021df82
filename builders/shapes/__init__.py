"""Drawn pictures of a few primitive shapes, their attributes known (001, Sec. 3.2, A.2.1)."""
