"""The 95 % interval of a share over rows that come in clusters, such as questions of one picture.

A leaf module (see ``reply.py``).
"""

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

DRAWS = 2_000
SEED = 0
TAIL = 0.025
Z = 1.959963984540054  # the normal quantile of 1 - TAIL
_BLOCK_CELLS = 2_000_000


def clustered_interval(right: Sequence[bool], clusters: Sequence[Hashable]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the share right, by a bootstrap over clusters.

    Each of 2,000 draws (``numpy.random.default_rng(0)``) takes as many clusters as there are, with
    replacement, and all their rows. Clusters are put in order of (rows, right rows) first, so that
    neither the order of the rows nor the names of the clusters change a digit. Where every cluster
    has the same share right, every draw would give that share and the interval would be a point;
    then it is Wilson's for that share in as many trials as there are clusters.

    Args:
        right: Whether each row is right.
        clusters: The cluster of each row.

    Returns:
        Lower and upper bound, 0 to 1; (0.0, 1.0) without rows.
    """
    numbers: dict[Hashable, int] = {}
    index = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    n_clusters = len(numbers)
    if n_clusters == 0:
        return 0.0, 1.0
    rows = np.bincount(index)
    hits = np.bincount(index, weights=np.asarray(right, dtype=float)).astype(np.int64)
    if np.all(hits * rows[0] == hits[0] * rows):
        return wilson(int(hits[0]) / int(rows[0]), n_clusters)
    order = np.lexsort((hits, rows))
    shares = _resampled_shares(hits[order], rows[order])
    low, high = np.quantile(shares, [TAIL, 1 - TAIL])
    return float(low), float(high)


def _resampled_shares(
    hits: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(SEED)
    n_clusters = len(rows)
    block = max(1, _BLOCK_CELLS // n_clusters)
    shares = []
    for first in range(0, DRAWS, block):
        drawn = rng.integers(n_clusters, size=(min(block, DRAWS - first), n_clusters))
        shares.append(hits[drawn].sum(axis=1) / rows[drawn].sum(axis=1))
    return np.concatenate(shares)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share in ``n`` trials."""
    spread = Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
