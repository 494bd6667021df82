"""Corruptions against plain NumPy, and where occlusion may lie."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soubench.builders.keyed import KeyedRandom
from soubench.builders.rrs.corruptions import (
    GAUSSIAN_SIGMA,
    OCCLUDED_SHARE,
    SALT_AND_PEPPER_SHARE,
    gaussian_noise,
    keeps_visible,
    occlude,
    place_occlusion,
    salt_and_pepper,
)

PICTURE = np.random.default_rng(5).integers(0, 256, (37, 53, 3), dtype=np.uint8)
GRAY = np.full((400, 500, 3), 128, np.uint8)


def uniform_16_bit(seed, n):
    """The low, then the higher 16 bits of each raw 64-bit number."""
    raw = np.random.PCG64(seed).random_raw((n + 3) // 4)
    return [int(value) >> shift & 0xFFFF for value in raw for shift in (0, 16, 32, 48)][:n]


def test_severities_are_those_of_the_paper():
    assert GAUSSIAN_SIGMA == (0.08, 0.12, 0.18, 0.26, 0.38)
    assert SALT_AND_PEPPER_SHARE == (0.03, 0.06, 0.09, 0.17, 0.27)
    assert OCCLUDED_SHARE == (0.05, 0.10, 0.20, 0.30, 0.40)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_gaussian_noise_is_the_plain_formula(severity):
    draws = uniform_16_bit(11, PICTURE.size)
    z = np.array([NormalDist().inv_cdf((u + 0.5) / 65536) for u in draws]).reshape(PICTURE.shape)
    expected = np.clip(np.rint(PICTURE + 255 * GAUSSIAN_SIGMA[severity - 1] * z), 0, 255)
    found = gaussian_noise(PICTURE, severity, 11)
    # A sum that ends in .5 may be rounded either way.
    assert (np.abs(found - expected) <= 1).all()
    assert (found == expected).mean() > 0.999


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_salt_and_pepper_is_the_plain_formula(severity):
    expected = PICTURE.copy()
    share = SALT_AND_PEPPER_SHARE[severity - 1]
    limit = round(65536 * share / 2)
    for i, u in enumerate(uniform_16_bit(3, 37 * 53)):
        if u < limit:
            expected[divmod(i, 53)] = 0
        elif u >= 65536 - limit:
            expected[divmod(i, 53)] = 255
    assert (salt_and_pepper(PICTURE, severity, 3) == expected).all()


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_noises_have_the_strength_that_they_say(severity):
    noisy = gaussian_noise(GRAY, severity, 1).astype(float) - 128
    sigma = 255 * GAUSSIAN_SIGMA[severity - 1]
    # What is cut off at black and white: the deviation of a normal clipped at ±128.
    clipped = np.clip(np.random.default_rng(0).normal(0, sigma, 10**6), -128, 127).std()
    assert noisy.std() == pytest.approx(clipped, rel=0.01)
    assert abs(np.corrcoef(noisy[:, :-1, 0].ravel(), noisy[:, 1:, 0].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(noisy[..., 0].ravel(), noisy[..., 1].ravel())[0, 1]) < 0.02
    peppered = salt_and_pepper(GRAY, severity, 1)
    share = SALT_AND_PEPPER_SHARE[severity - 1]
    assert (peppered == 0).all(axis=2).mean() == pytest.approx(share / 2, rel=0.05)
    assert (peppered == 255).all(axis=2).mean() == pytest.approx(share / 2, rel=0.05)


def test_corruptions_leave_their_input_alone_and_follow_their_seed():
    before = PICTURE.copy()
    for noise in (gaussian_noise, salt_and_pepper):
        assert (noise(PICTURE, 3, 7) == noise(PICTURE, 3, 7)).all()
        assert (noise(PICTURE, 3, 7) != noise(PICTURE, 3, 8)).any()
    occlude(PICTURE, [(0, 0, 9, 9)])
    assert (before == PICTURE).all()


def test_occlusion_is_gray_rectangles_and_nothing_else():
    expected = PICTURE.copy()
    for y in range(37):
        for x in range(53):
            if (2 <= x < 9 and 3 <= y < 30) or (20 <= x < 53 and 0 <= y < 5):
                expected[y, x] = 127
    assert (occlude(PICTURE, [(2, 3, 9, 30), (20, 0, 53, 5)]) == expected).all()


def box_in(width, height):
    return st.tuples(
        st.integers(0, width - 2),
        st.integers(0, height - 2),
        st.integers(1, 60),
        st.integers(1, 60),
    ).map(lambda b: (b[0], b[1], min(width, b[0] + b[2]), min(height, b[1] + b[3])))


SIZES = [(160, 120), (400, 40), (30, 300), (64, 64)]


def boxes_in(size_wh):
    return st.tuples(st.just(size_wh), st.lists(box_in(*size_wh), max_size=8))


@given(st.integers(1, 5), st.one_of([boxes_in(size_wh) for size_wh in SIZES]), st.integers(0, 1000))
def test_no_box_is_more_than_half_hidden_and_the_share_is_kept(severity, drawn, seed):
    (width, height), boxes = drawn
    found = place_occlusion((width, height), severity, boxes, KeyedRandom(seed))
    if found is None:
        assert boxes
        return
    covered = np.zeros((height, width), int)
    for x1, y1, x2, y2 in found:
        covered[y1:y2, x1:x2] += 1
    assert covered.max() == 1
    slack = 1 + sum(x2 - x1 for x1, _, x2, _ in found) / 2
    assert abs(covered.sum() - OCCLUDED_SHARE[severity - 1] * width * height) <= slack
    for x1, y1, x2, y2 in boxes:
        assert covered[y1:y2, x1:x2].mean() <= 0.5


def test_what_fills_the_picture_cannot_be_kept_visible_beyond_its_half():
    everything = [(0, 0, 160, 120)]
    assert place_occlusion((160, 120), 5, everything, KeyedRandom(1)) is not None
    halves = [(0, 0, 8, 120), (8, 0, 160, 120)]
    grid = [(x, y, x + 2, y + 2) for x in range(0, 160, 2) for y in range(0, 120, 2)]
    assert place_occlusion((160, 120), 5, grid, KeyedRandom(1)) is None
    assert keeps_visible([(0, 0, 4, 120)], halves)
    assert not keeps_visible([(0, 0, 5, 120)], halves)
