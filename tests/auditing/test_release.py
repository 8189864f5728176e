"""Where encodings come from: nested draws, samples, and the records behind somebody's encodings."""

import numpy as np
import pytest

import unveil
from unveil.auditing.release import Release, members_of, run_encoder

X = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)


def test_a_draw_is_the_same_whenever_it_is_made():
    a, b = (Release(X, None, unveil.Scheme(2), 50, 0.0, 7) for _ in range(2))
    b.draw(0)
    assert np.array_equal(a.draw(1).values, b.draw(1).values)
    assert not np.array_equal(a.draw(0).values, a.draw(1).values)


def test_a_sample_keeps_encodings_per_record():
    release = Release(X, None, unveil.Scheme(2), 140, 0.0, 0)
    small = release.sample(np.arange(5))
    assert (len(small.private), small.m) == (5, 35)


@pytest.mark.parametrize("k", [2, 3])
def test_the_records_behind_encodings(k):
    sim = unveil.simulate(unveil.Scheme(k), private=X, m=60, rng=0)
    found = members_of(3 * sim.encodings.values, X, unveil.Scheme(k), None)
    assert np.array_equal(found, sim.selection.private)
    noise = np.random.default_rng(1).standard_normal((60, 30)).astype(np.float32)
    assert members_of(noise, X, unveil.Scheme(k), None) is None


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (3, "give a function"),
        (lambda private: private, "must take"),
        (lambda private, public, rng: 1 / 0, "ZeroDivisionError"),
        (lambda private, public, rng: None, "returned nothing"),
        (lambda private, public, rng: private[0], "all encodings at once"),
        (lambda private, public, rng: private[:, :3], "as many values as a record"),
    ],
)
def test_broken_encoders_get_one_sentence(encoder, words):
    with pytest.raises(unveil.InputError, match=words):
        run_encoder(encoder, X, None, np.random.default_rng(0))
