"""Intervals: against a plain loop, the metric's own, scipy, and what 95 % means."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from soubench.inference.intervals import (
    DRAWS,
    NO_INTERVAL,
    SEED,
    cluster_sums,
    combined,
    difference_interval,
    score_interval,
    wilson,
)
from soubench.metrics.option_match.interval import clustered_interval

NAN = float("nan")


def sums(values, clusters, parts=None):
    return cluster_sums(
        np.asarray(values, float),
        np.asarray(clusters),
        None if parts is None else np.asarray(parts),
    )


def rows(seed, n_rows=90, n_clusters=13):
    rng = np.random.default_rng(seed)
    clusters = rng.integers(n_clusters, size=n_rows)
    right = (rng.random(n_rows) < 0.2 + 0.05 * clusters).astype(float)
    return right, clusters


def slow_draws(sorted_clusters, score):
    """Every draw, one after the other, of whole clusters of values."""
    rng = np.random.default_rng(SEED)
    n = len(sorted_clusters)
    draws = rng.integers(n, size=(DRAWS, n))
    return [score([sorted_clusters[i] for i in draw]) for draw in draws]


def grouped(values, clusters):
    members = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    return sorted(members.values(), key=lambda m: (len(m), sum(m)))


def test_sums_by_hand():
    # cluster 7: two rows of part 0, 1 + 0; cluster 2: one row of each part; NaN is none
    found = sums([1, 0, 1, 0.5, NAN], [7, 7, 2, 2, 9], [0, 0, 0, 1, 0])
    assert found.tolist() == [[[1, 1], [1, 0.5]], [[2, 1], [0, 0]]]
    # part 0: 2 of 3; part 1: 0.5 of 1; their mean
    assert combined(found.sum(axis=0)) == pytest.approx((2 / 3 + 0.5) / 2)


@pytest.mark.parametrize("seed", range(4))
def test_equals_a_plain_loop_with_the_same_draws(seed):
    right, clusters = rows(seed)

    def accuracy(drawn):
        return sum(map(sum, drawn)) / sum(map(len, drawn))

    draws = slow_draws(grouped(right, clusters), accuracy)
    quantiles = statistics.quantiles(draws, n=40, method="inclusive")
    found = score_interval(sums(right, clusters))
    assert found == (pytest.approx(quantiles[0]), pytest.approx(quantiles[-1]))


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_metrics_own_interval_to_the_last_digit(seed):
    right, clusters = rows(seed, n_rows=400, n_clusters=120)
    assert tuple(score_interval(sums(right, clusters))) == clustered_interval(
        right.astype(bool).tolist(), clusters.tolist()
    )


def test_root_mean_square_equals_a_plain_loop():
    errors = np.array([0.0, 3, -1, 2, 5, -4, 1, 0])
    clusters = [0, 0, 1, 1, 2, 3, 4, 4]

    def rmse(drawn):
        squares = [value for cluster in drawn for value in cluster]
        return (sum(squares) / len(squares)) ** 0.5

    quantiles = statistics.quantiles(
        slow_draws(grouped(errors**2, clusters), rmse), n=40, method="inclusive"
    )
    found = score_interval(sums(errors**2, clusters), root=True, is_share=False)
    assert found == (pytest.approx(quantiles[0]), pytest.approx(quantiles[-1]))


def test_more_clusters_than_are_kept_give_the_same_draws():
    rng = np.random.default_rng(5)
    right = (rng.random(6_000) < 0.3).astype(float)
    assert tuple(score_interval(sums(right, np.arange(6_000)))) == clustered_interval(
        right.astype(bool).tolist(), list(range(6_000))
    )


@given(st.permutations(range(30)), st.permutations(range(6)))
def test_neither_order_of_rows_nor_names_of_clusters_matter(order, names):
    right, clusters = rows(1, n_rows=30, n_clusters=6)
    order = np.array(order)
    renamed = np.array(names)[clusters]
    assert score_interval(sums(right, clusters)) == score_interval(
        sums(right[order], renamed[order])
    )


@pytest.mark.parametrize("n", [1, 4, 50])
@pytest.mark.parametrize("k", [0, 0.5, 1])
def test_wilson_where_all_clusters_agree(n, k):
    values = [0.0, 1.0] * n if k == 0.5 else [float(k)] * (2 * n)
    found = score_interval(sums(values, np.repeat(np.arange(n), 2)))
    if k == 0.5 and n % 2:
        # scipy takes whole numbers of right answers only
        assert found == wilson(0.5, n)
        return
    oracle = binomtest(int(k * n), n).proportion_ci(0.95, "wilson")
    assert found == (pytest.approx(oracle.low, abs=1e-12), pytest.approx(oracle.high, abs=1e-12))


def test_nothing_is_claimed_without_rows_or_for_errors_that_all_agree():
    assert score_interval(sums([], [])) == NO_INTERVAL
    assert score_interval(sums([3.0, 3.0], [0, 1]), is_share=False) == NO_INTERVAL


@pytest.mark.parametrize("agreement", [0.0, 0.6])
def test_95_percent_of_the_intervals_hold_the_truth(agreement):
    """300 sets of 80 pictures with four questions each, 40 % right, alike within a picture or not.

    Binomial with p = 0.95: at least 272 of 300 but for one time in a thousand; percentile
    intervals of 80 clusters are a little narrow.
    """
    rng = np.random.default_rng(11)
    clusters = np.repeat(np.arange(80), 4)
    held = rows_held = 0
    for _ in range(300):
        own = rng.random(320) < 0.4
        shared = np.repeat(rng.random(80) < 0.4, 4)
        right = np.where(np.repeat(rng.random(80) < agreement, 4), shared, own).astype(float)
        low, high = score_interval(sums(right, clusters))
        held += low <= 0.4 <= high
        low, high = score_interval(sums(right, np.arange(320)))
        rows_held += low <= 0.4 <= high
    assert held >= 272
    if agreement:
        # Rows taken for independent claim too much.
        assert rows_held < held


def test_paired_difference_equals_a_plain_loop_and_is_narrower_than_unpaired():
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(40), 3)
    first = (rng.random(120) < 0.5).astype(float)
    second = np.where(rng.random(120) < 0.1, 1.0, first)
    a, b = sums(first, clusters), sums(second, clusters)
    members = sorted(zip(a[:, 0].tolist(), b[:, 0].tolist(), strict=True))

    def difference(drawn):
        n = sum(x[0] for x, _ in drawn)
        return sum(y[1] for _, y in drawn) / n - sum(x[1] for x, _ in drawn) / n

    quantiles = statistics.quantiles(slow_draws(members, difference), n=40, method="inclusive")
    found = difference_interval(a, b)
    assert found == (pytest.approx(quantiles[0]), pytest.approx(quantiles[-1]))
    low_a, high_a = score_interval(a)
    assert found.high - found.low < high_a - low_a
    reverse = difference_interval(b, a)
    assert reverse.low < 0 < found.high


def test_no_difference_anywhere_has_no_interval():
    right, clusters = rows(2)
    assert difference_interval(sums(right, clusters), sums(right, clusters)) == NO_INTERVAL
