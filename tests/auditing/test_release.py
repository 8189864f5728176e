"""Where encodings come from: the scheme, the user's encoder, a file; and the records behind
them."""

from dataclasses import replace

import numpy as np
import pytest

from unveil import simulate
from unveil.auditing.release import (
    Release,
    by_encoder,
    must_match,
    records_behind,
    with_k_found,
)
from unveil.checks import InputError
from unveil.scheme import Scheme

RECORDS = np.random.default_rng(0).standard_normal((12, 30)).astype(np.float32)


def release(**changes):
    facts = {"scheme": Scheme(2), "top": 40, "noise": 0.0, "seed": 1}
    return Release(**{"private": RECORDS, "public": None, **facts, **changes})


def test_the_scheme_draws_anew_and_the_same_again():
    first, again = release(), release()
    assert np.array_equal(first.draw(0).values, again.draw(0).values)
    assert not np.array_equal(first.draw(0).values, first.draw(1).values)


def test_an_encoder_draws_with_the_generator_it_is_given():
    make = by_encoder(lambda x, public, rng: x + rng.standard_normal(x.shape), RECORDS, None, 1)
    assert np.array_equal(make(0), make(0))
    assert not np.array_equal(make(0), make(1))
    mine = release(make=make)
    assert not mine.stated
    assert mine.identity != release().identity


def test_an_encoder_that_fails_gets_one_sentence():
    with pytest.raises(InputError, match="ZeroDivisionError"):
        by_encoder(lambda x, public, rng: 1 / 0, RECORDS, None, 1)(0)
    with pytest.raises(InputError, match=r"returned 3 values .* records of .*same space"):
        by_encoder(lambda x, public, rng: x[:, :3], RECORDS, None, 1)(0)
    with pytest.raises(InputError, match="returned nothing: end it with return"):
        by_encoder(lambda x, public, rng: None, RECORDS, None, 1)(0)
    with pytest.raises(InputError, match="return all encodings at once"):
        by_encoder(lambda x, public, rng: x[0] + x[1], RECORDS, None, 1)(0)
    with pytest.raises(InputError, match="an object with encode"):
        by_encoder(3, RECORDS, None, 1)
    assert must_match(RECORDS, RECORDS) is RECORDS


@pytest.mark.parametrize("k", [2, 3])
def test_the_records_behind_encodings_are_found(k):
    sim = simulate(Scheme(k), private=RECORDS, m=50, rng=0)
    found = records_behind(3 * sim.encodings.values, RECORDS, Scheme(k), None)
    np.testing.assert_array_equal(found, sim.selection.private)


def test_the_records_behind_clipped_encodings_are_found():
    sim = simulate(Scheme(2), private=RECORDS, m=50, rng=0)
    found = records_behind(np.minimum(sim.encodings.values, 1.3), RECORDS, Scheme(2), None)
    np.testing.assert_array_equal(found, sim.selection.private)


def test_and_not_made_up():
    noise = np.abs(np.random.default_rng(1).standard_normal((50, 30))).astype(np.float32)
    assert records_behind(noise, RECORDS, Scheme(2), None) is None


def test_the_number_of_records_is_found_where_the_stated_one_fails():
    X = np.random.default_rng(0).standard_normal((14, 8)).astype(np.float32)

    def three(number):
        rng = np.random.default_rng(number)
        rows = np.array([rng.choice(14, 3, replace=False) for _ in range(100)])
        return np.abs(X[rows].mean(axis=1))

    release = Release(X, None, Scheme(2), 100, 0.0, 0, make=three)
    found = with_k_found(release)
    assert found.scheme.k_private == 3
    assert found.chosen(0, 100) is not None
    noise = replace(release, make=lambda number: three(number) + 0.3 * three(number + 1), _drawn={})
    assert with_k_found(noise).scheme.k_private == 2
