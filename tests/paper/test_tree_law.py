"""Supports where vectors are not Gaussian: found, and none is called certain."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, learn_public, simulate
from unveil.data.bundled import fashion_mnist


def scaled(x):
    return (x / np.sqrt(np.mean(x**2))).astype(np.float32)


def walks(rng, n, d=250):
    return scaled(np.cumsum(rng.standard_normal((n, d)), axis=1))


def run(make, seed, n=60, m=30, k=2, private=None):
    rng = np.random.default_rng(seed)
    X, P = (private or make)(rng, 20), make(rng, n)
    sim = simulate(Scheme(2, k, "equal"), private=X, public=P, m=m, rng=seed)
    found = learn_public(sim.encodings, P)
    return found, (found.indices == sim.selection.public).all(axis=1), sim


def test_random_walks_once_certain_and_wrong_are_found():
    # Of 200 such encodings the plain likelihood called 26 certain, one of them rightly.
    rng = np.random.default_rng(0)
    X, P = walks(rng, 20), walks(rng, 50)
    sim = simulate(Scheme(2, 2, "equal"), private=X, public=P, m=80, rng=0)
    found = learn_public(sim.encodings, P)
    right = (found.indices == sim.selection.public).all(axis=1)
    assert "pixels are correlated" in found.warning
    assert right.mean() > 0.95
    assert not found.certain.any()


def test_images_are_found_where_the_plain_search_finds_hardly_any():
    images = fashion_mnist()[0].reshape(240, -1).astype(np.float32) / np.float32(127.5) - 1
    sim = simulate(Scheme(2, 2), private=images[:30], public=images[40:], m=20, rng=0)
    found = learn_public(sim.encodings, images[40:])
    assert (found.indices == sim.selection.public).all(axis=1).mean() >= 0.9
    assert not found.certain.any()
    assert (found.confidence <= 0.5).all()


def test_a_wrong_number_of_members_is_told_and_none_is_certain():
    rng = np.random.default_rng(6)
    X, P = walks(rng, 20, 120), walks(rng, 40, 120)
    sim = simulate(Scheme(2, 2, "equal"), private=X, public=P, m=30, rng=6)
    for k in (1, 3):
        found = learn_public(Encodings(sim.encodings.values, Scheme(2, k, "equal")), P)
        assert not found.certain.any()


@pytest.mark.parametrize("options", [{"k_public": None}, {"weights": "unknown"}])
def test_with_less_known_nothing_is_certain(options):
    rng = np.random.default_rng(7)
    X, P = walks(rng, 20, 120), walks(rng, 30, 120)
    sim = simulate(Scheme(2, 2, "equal"), private=X, public=P, m=20, rng=7)
    found = learn_public(sim.encodings, P, **options)
    assert "no support is called certain" in found.warning
    assert not found.certain.any()
    assert (found.confidence <= 0.5).all()


@pytest.mark.parametrize("k", [1, 3])
def test_one_and_three_members(k):
    found, right, _ = run(walks, 8, n=40, m=15, k=k)
    assert right.mean() > 0.9
    assert right[found.certain].all()


def test_workers_and_memory_change_nothing():
    rng = np.random.default_rng(9)
    X, P = walks(rng, 10, 60), walks(rng, 20, 60)
    sim = simulate(Scheme(2, 2, "equal"), private=X, public=P, m=65, rng=9)
    one, two = (learn_public(sim.encodings, P, workers=w) for w in (1, 2))
    assert one.indices.tobytes() == two.indices.tobytes()
    assert one.confidence.tobytes() == two.confidence.tobytes()
    tight = learn_public(sim.encodings, P, memory_limit=200_000)
    np.testing.assert_array_equal(tight.indices, one.indices)


def test_a_private_part_that_is_not_gaussian_is_told_from_the_fit():
    rng = np.random.default_rng(13)
    P = rng.standard_normal((200, 250)).astype(np.float32)
    sim = simulate(Scheme(2, 2, "equal"), private=walks(rng, 40), public=P, m=100, rng=13)
    found = learn_public(sim.encodings, P)
    right = (found.indices == sim.selection.public).all(axis=1)
    assert "private vectors are not" in found.warning
    assert right.mean() > 0.7
    assert not found.certain.any()
