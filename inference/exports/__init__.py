"""Built datasets in the files of other tools: two that evaluate models, three that train them.

One module per tool writes its files; ``export.py`` has the table of them.
"""

FORMATS = ("vlmevalkit", "lmms-eval", "llamafactory", "ms-swift", "trl")
"""What ``soubench export --to`` takes; the first two evaluate, the others train."""
