"""Where encodings come from: nested draws, samples, and the records behind somebody's encodings."""

import numpy as np
import pytest

import unveil
from unveil.auditing.release import Release, load, members_of, run_encoder

X = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)


def test_a_draw_is_the_same_whenever_it_is_made():
    a, b = (Release(X, None, unveil.Scheme(2), 50, 0.0, 7) for _ in range(2))
    b.draw(0)
    assert np.array_equal(a.draw(1)[0], b.draw(1)[0])
    assert not np.array_equal(a.draw(0)[0], a.draw(1)[0])


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


@pytest.mark.parametrize("laws", ["equal", "drawn"])
def test_who_an_encoder_mixes_is_read_off_unit_vectors(laws):
    def encode(private, public, rng):
        chosen = np.array([rng.choice(len(private), 3, replace=False) for _ in range(70)])
        weights = np.ones((70, 3)) if laws == "equal" else rng.dirichlet(np.ones(3), 70)
        mixed = np.einsum("mk,mkd->md", weights, private[chosen])
        return mixed * rng.choice([-1, 1], mixed.shape)

    # More records than columns: too many sums of three for a search.
    x = np.random.default_rng(1).standard_normal((50, 7)).astype(np.float32)
    release = Release(x, None, unveil.Scheme(3), 0, 0.0, 0, None, encode)
    members = release.draw(0)[1]
    assert members.shape == (70, 3)
    assert np.array_equal(np.sort(members), np.sort(_chosen(release)))


def _chosen(release):
    rng = release._rng(0)
    return np.array([rng.choice(len(release.private), 3, replace=False) for _ in range(70)])


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


def test_how_many_are_mixed_is_found_where_it_was_stated_wrong():
    sim = unveil.simulate(unveil.Scheme(3), private=X, m=60, rng=0)
    case = load(X, encodings=sim.encodings.values)
    assert case.release.scheme.k_private == 3
    assert case.found == "Encodings mix 3 records each, not 2 as was stated."
    assert np.array_equal(case.release.draw(0)[1], sim.selection.private)
    noise = np.random.default_rng(1).standard_normal((60, 30)).astype(np.float32)
    assert not load(X, encodings=noise).found


def test_what_only_wraps_an_encoder_is_not_where_it_failed():
    from unveil.cli.encoder import _quietly

    with pytest.raises(unveil.InputError, match="must take"):
        run_encoder(_quietly(lambda private: private), X, None, None)
