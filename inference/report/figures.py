"""Tables and charts of a section: what was run, scores, what was not understood, where it fails."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import ascii_uppercase as LETTERS

import numpy as np

from soubench.builders.sou.subsets import GROUPS, SUBSETS, Task
from soubench.inference.intervals import cluster_sums, combined, score_interval
from soubench.inference.report.charts import Chart, Series, Value, round_up
from soubench.inference.report.runs import ScoredRun, Section, Verdict
from soubench.inference.report.svg import short_number
from soubench.inference.report.tables import Cell, Line, Table
from soubench.inference.sou_table import AVERAGE, TABLE_GROUPS

SIZE_BOUNDS_PX2 = (64, 144, 256, 400, 576, 784, 1024)
"""Squares of 8, 12, 16, 20, 24, 28 and 32 px."""
ALL = "all"
