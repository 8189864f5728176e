"""The sieve of long lists: how many pixels it takes, and that it lets members through."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.encode.simulate import simulate
from unveil.scheme import Scheme
from unveil.supports.folded.likelihood import Model
from unveil.supports.folded.screen import screen, top_products
from unveil.supports.folded.sieve import FROM, SIEVED, scored, sieve_pixels
from unveil.supports.folded.survey import survey_public

MODEL = Model(2, 0.5, 0.5)


def test_more_vectors_take_more_pixels_and_short_lists_or_few_pixels_no_sieve():
    assert sieve_pixels(MODEL, FROM - 1, 10_000) == 0
    few, many = sieve_pixels(MODEL, FROM, 10_000), sieve_pixels(MODEL, 10**6, 10_000)
    assert 0 < few < many < 1200
    assert few % 16 == many % 16 == 0
    assert sieve_pixels(MODEL, 10**6, many) == 0
    assert sieve_pixels(Model(4, 0.25, 0.75), 10**6, 3072) == 0


@pytest.mark.parametrize("clip", [0.0, 2.0])
def test_scores_are_plain_products(clip):
    rng = np.random.default_rng(0)
    rows, P = (rng.standard_normal((n, 50)).astype(np.float32) for n in (20, 30))
    indices = rng.integers(0, 30, (20, 4))
    indices[3, 1] = -1
    values = np.minimum(P**2, clip) if clip else P
    expected = np.einsum("td,tcd->tc", rows, values[indices])
    expected[3, 1] = -np.inf
    np.testing.assert_allclose(scored(rows, P, indices, clip), expected, rtol=1e-4, atol=1e-5)


def test_a_sieved_pass_finds_the_members_and_tells_products_on_all_pixels():
    sim = simulate(Scheme(2, 2), 50, n_public=3000, m=60, d=1500, rng=3)
    plain = survey_public(sim.public, 700)
    sieved = replace(plain, sieve=700)
    Y = sim.encodings.magnitudes()
    pool = screen(Y, sieved, 50)
    members = (sim.selection.public[:, :, None] == pool[:, None, :]).any(axis=2)
    assert members.mean() > 0.98
    # The best of all are the same, by the same products.
    values, indices = top_products(Y, sieved, 3)
    np.testing.assert_allclose(
        values, np.take_along_axis(Y @ sim.public.T, indices, axis=1), rtol=1e-4
    )
    assert (np.sort(pool[:, :2]) == np.sort(screen(Y, plain, 50)[:, :2])).mean() > 0.98
    # More than the sieve holds: all pixels, as without one.
    most = SIEVED + 1
    assert (screen(Y, sieved, most) == screen(Y, plain, most)).all()
