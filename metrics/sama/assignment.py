"""Pair predicted with reference items at the least cost, by rules in order, exactly.

A leaf module: the metric's script imports it and it imports nothing beside it, because `evaluate`
copies only the files that the script names.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

# Below this, a double holds every integer.
_EXACT = 2**53


def pack(criteria: Sequence[Sequence[int]], n_pairs: int) -> list[int]:
    """Write several costs as one integer, so that the least sum is the least by all of them.

    The costs are the digits of one number, the first criterion leading. A digit's base is one more
    than the largest sum that ``n_pairs`` entries of it can reach, so that no sum of ``n_pairs``
    packed numbers carries into the digit before: comparing such sums compares the criteria's sums
    one after the other.

    Args:
        criteria: For each criterion the costs of all pairs, ints >= 0, in the same order.
        n_pairs: How many pairs one assignment has.
    """
    packed = list(criteria[0])
    for costs in criteria[1:]:
        base = n_pairs * max(costs) + 1
        packed = [number * base + cost for number, cost in zip(packed, costs, strict=True)]
    return packed


def assign(costs: Sequence[int], n_rows: int, n_columns: int) -> list[tuple[int, int]]:
    """Return the pairs (row, column) of the assignment of least total cost, exactly.

    Args:
        costs: Ints >= 0 of any size, row by row.
        n_rows: Rows of the matrix, at least 1.
        n_columns: Columns of it, at least 1.
    """
    # scipy computes with doubles. Its duals reach n x the largest cost, and the sums it compares
    # hold two costs and two duals. Six shapes on 224 x 224 px stay within that for texts of some
    # 20,000 characters, of 500 where numbers are unread.
    if (2 * min(n_rows, n_columns) + 2) * max(costs) < _EXACT:
        matrix = np.array(costs, dtype=np.float64).reshape(n_rows, n_columns)
        rows, columns = linear_sum_assignment(matrix)
        return list(zip(rows.tolist(), columns.tolist(), strict=True))
    rows_of_costs = [list(costs[i * n_columns : (i + 1) * n_columns]) for i in range(n_rows)]
    if n_rows <= n_columns:
        return assign_integers(rows_of_costs)
    transposed = [list(column) for column in zip(*rows_of_costs, strict=True)]
    return sorted((row, column) for column, row in assign_integers(transposed))


def assign_integers(costs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Solve the same with integers of any size: the Hungarian method by shortest paths, O(n^2 m).

    Only for numbers that scipy's doubles cannot hold, since it is some twenty times slower.

    Args:
        costs: n rows of m ints, n <= m.
    """
    n, m = len(costs), len(costs[0])
    row_dual = [0] * n
    column_dual = [0] * (m + 1)
    # Column m is where each search starts: it belongs to the row that is being placed.
    row_of = [-1] * (m + 1)
    for row in range(n):
        row_of[m] = row
        column = m
        slack: list[int | None] = [None] * m
        came_from = [m] * m
        is_done = [False] * (m + 1)
        while row_of[column] != -1:
            is_done[column] = True
            here = row_of[column]
            step: int | None = None
            nearest = m
            for j in range(m):
                if is_done[j]:
                    continue
                reduced = costs[here][j] - row_dual[here] - column_dual[j]
                known = slack[j]
                if known is None or reduced < known:
                    slack[j] = known = reduced
                    came_from[j] = column
                if step is None or known < step:
                    step = known
                    nearest = j
            delta = step or 0
            for j in range(m + 1):
                if is_done[j]:
                    row_dual[row_of[j]] += delta
                    column_dual[j] -= delta
                elif j < m:
                    slack[j] = (slack[j] or 0) - delta
            column = nearest
        while column != m:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    return sorted((row_of[j], j) for j in range(m) if row_of[j] != -1)
