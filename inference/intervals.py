"""95 % intervals of scores whose rows come in clusters, such as questions about one picture.

One method for every score: whole clusters are drawn with replacement, 2,000 times, as many as
there are, with all their rows; the interval runs from the 2.5 % to the 97.5 % quantile of the score
of the draws. A score is given as sums per cluster, so a draw is a weighted sum, and all draws of it
are one matrix product.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DRAWS = 2_000
SEED = 0
TAIL = 0.025
Z = 1.959963984540054  # the normal quantile of 1 - TAIL
BLOCK_CELLS = 2_000_000
KEPT_CLUSTERS = 4_000
"""Up to so many clusters the draws are kept for the next score, in at most 16 MB."""
KEPT_SIZES = 8

Sums = npt.NDArray[np.float64]
"""Per cluster and part of the score, how many values there are and their sum: (clusters, parts, 2).

A score with several parts is their unweighted mean.
"""


class Interval(NamedTuple):
    """Bounds of a 95 % interval; None where nothing can be said."""

    low: float | None
    high: float | None


NO_INTERVAL = Interval(None, None)


def cluster_sums(
    values: npt.NDArray[np.float64],
    clusters: npt.NDArray[np.int64],
    parts: npt.NDArray[np.int64] | None = None,
) -> Sums:
    """Count and add up values per cluster.

    Args:
        values: One number per row (N,); NaN for a row that has none.
        clusters: The cluster of each row, any numbers (N,).
        parts: The part of the score that each row belongs to, from 0 (N,); one part if None.

    Returns:
        The sums of the clusters that have a value.
    """
    known = ~np.isnan(values)
    values, clusters = values[known], clusters[known]
    part = np.zeros(len(values), dtype=np.int64) if parts is None else parts[known]
    n_parts = int(part.max(initial=0)) + 1
    _, number = np.unique(clusters, return_inverse=True)
    cells = number * n_parts + part
    n_cells = (int(number.max(initial=-1)) + 1) * n_parts
    counts = np.bincount(cells, minlength=n_cells)
    totals = np.bincount(cells, weights=values, minlength=n_cells)
    return np.stack([counts, totals], axis=-1).reshape(-1, n_parts, 2).astype(np.float64)


def combined(sums: Sums, *, root: bool = False) -> npt.NDArray[np.float64]:
    """Return the score of sums over clusters: the mean of the parts' means.

    Args:
        sums: Sums (.., parts, 2).
        root: Take the square root of each mean; for root mean squares, of sums of squares.

    Returns:
        The scores (..,); NaN where no part has a value. Parts without one are left out.
    """
    with np.errstate(invalid="ignore"):
        means = sums[..., 1] / sums[..., 0]
    if root:
        means = np.sqrt(means)
    known = ~np.isnan(means)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, means, 0.0).sum(axis=-1) / known.sum(axis=-1))


def score_interval(sums: Sums, *, root: bool = False, is_share: bool = True) -> Interval:
    """Return the 95 % percentile interval of a score by a bootstrap over clusters.

    Clusters are put in order of their sums first, so that neither the order of rows nor the names
    of clusters change a digit. Where all clusters agree, every draw gives the same score and the
    bootstrap would claim certainty; then it is Wilson's interval for that share in as many trials
    as there are clusters, and None for what is no share.

    Args:
        sums: Sums per cluster, see `Sums`.
        root: See `combined`.
        is_share: The score lies between 0 and 1.
    """
    n_clusters = len(sums)
    if n_clusters == 0:
        return NO_INTERVAL
    if _all_agree(sums):
        if not is_share:
            return NO_INTERVAL
        return wilson(float(combined(sums.sum(axis=0), root=root)), n_clusters)
    return _quantiles(combined(_drawn(_in_order(sums)), root=root))


def difference_interval(first: Sums, second: Sums, *, root: bool = False) -> Interval:
    """Return the 95 % interval of the second score minus the first, by paired draws.

    Args:
        first: Sums of one score.
        second: Sums of the other, of the same clusters in the same order.
        root: See `combined`.

    Returns:
        The interval; None where all draws give the same difference.
    """
    both = _in_order(np.concatenate([first, second], axis=1))
    if len(both) == 0:
        return NO_INTERVAL
    drawn = _drawn(both)
    n_parts = first.shape[1]
    differences = combined(drawn[:, n_parts:], root=root) - combined(drawn[:, :n_parts], root=root)
    found = _quantiles(differences)
    return NO_INTERVAL if found.low == found.high else found


def why_none(clusters: int) -> str:
    """Say in the place of an interval why a score or a difference has none."""
    return "none: one group" if clusters == 1 else "none: groups agree"


def wilson(share: float, n: int) -> Interval:
    """Return Wilson's 95 % interval of a share in ``n`` trials."""
    spread = Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(max(0.0, share * (1 - share)) / n + spread / (4 * n)) / (1 + spread)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def _all_agree(sums: Sums) -> bool:
    """Say whether, in every part, all clusters that have values have the same mean."""
    for part in range(sums.shape[1]):
        counts, totals = sums[:, part].T
        first = int(np.argmax(counts > 0))
        # Without division: whole numbers of right rows are compared exactly.
        if not np.allclose(totals * counts[first], totals[first] * counts, rtol=1e-12, atol=1e-12):
            return False
    return True


def _in_order(sums: Sums) -> Sums:
    columns = sums.reshape(len(sums), -1)
    return sums[np.lexsort(columns.T[::-1])]


def _quantiles(draws: npt.NDArray[np.float64]) -> Interval:
    # A draw may miss all clusters that have a value; it then says nothing.
    known = draws[~np.isnan(draws)]
    if not len(known):
        return NO_INTERVAL
    low, high = np.quantile(known, [TAIL, 1 - TAIL])
    return Interval(float(low), float(high))


def _drawn(sums: Sums) -> Sums:
    """Return the sums of each draw (draws, parts, 2)."""
    n_clusters = len(sums)
    flat = sums.reshape(n_clusters, -1)
    blocks = _kept_draws(n_clusters) if n_clusters <= KEPT_CLUSTERS else _draw_blocks(n_clusters)
    drawn = np.concatenate([block.astype(np.float64) @ flat for block in blocks])
    return drawn.reshape(DRAWS, *sums.shape[1:])


@lru_cache(maxsize=KEPT_SIZES)
def _kept_draws(n_clusters: int) -> list[npt.NDArray[np.uint16]]:
    return list(_draw_blocks(n_clusters))


def _draw_blocks(n_clusters: int) -> Iterator[npt.NDArray[np.uint16]]:
    """Yield how often each cluster is in each draw, a block of draws at a time."""
    rng = np.random.default_rng(SEED)
    size = max(1, BLOCK_CELLS // n_clusters)
    for first in range(0, DRAWS, size):
        n = min(size, DRAWS - first)
        drawn = rng.integers(n_clusters, size=(n, n_clusters))
        cells = drawn + np.arange(n)[:, None] * n_clusters
        counts = np.bincount(cells.ravel(), minlength=n * n_clusters)
        yield counts.reshape(n, n_clusters).astype(np.uint16)
