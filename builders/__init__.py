"""The importable core: annotation files in, questions and pictures out.

Imports libraries only; touches neither the network nor torch at import time.
"""
