"""Precision, recall and F1 of attribute frequencies; see README.md."""
