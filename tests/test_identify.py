"""The scheme is identified from values alone, and noise is called noise."""

import numpy as np
import pytest

import unveil
from unveil import Scheme
from unveil.identify import contradiction, identify, repeated_records, signs_of

SCHEMES = {
    "kept, equal": Scheme(2, signs="kept"),
    "kept, own": Scheme(2, weighting="dirichlet", signs="kept"),
    "kept, three": Scheme(3, weighting="dirichlet", signs="kept"),
    "hidden, equal": Scheme(2),
    "random signs": Scheme(2, signs="random"),
    "hidden, own": Scheme(2, weighting="half-normal"),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_the_right_scheme_comes_first(name):
    scheme = SCHEMES[name]
    sim = unveil.simulate(scheme, n_private=15, m=220, d=200, rng=4)
    found, evidence = identify(30 * sim.encodings.values, rng=0)[0]
    assert (found.k_private, found.signs) == (scheme.k_private, scheme.signs)
    assert found.fixed_weights == scheme.fixed_weights
    assert f"encodings are mixtures of {scheme.k_private} out of 15 records" in evidence


def test_masks_of_a_pool():
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((15, 100)) + 2 * rng.standard_normal(100)).astype(np.float32)
    scheme = Scheme(2, weighting="half-normal", signs="masked", masks=3)
    values = unveil.simulate(scheme, private=x, m=400, rng=0).encodings.values
    found = identify(values, rng=0)[0].scheme
    assert (found.signs, found.masks, found.k_private) == ("masked", 3, 2)


def test_one_record_each():
    rng = np.random.default_rng(0)
    values = np.abs(rng.standard_normal((12, 80)))[rng.integers(0, 12, 60)].astype(np.float32)
    assert repeated_records(values) == len(np.unique(values, axis=0))
    assert identify(values, rng=0)[0].scheme.k_private == 1


@pytest.mark.parametrize(
    "law", ["normal", "folded", "uniform", "levels", "low rank", "walks", "chains"]
)
def test_noise_is_called_noise(law):
    rng = np.random.default_rng(1)
    values = {
        "normal": rng.standard_normal((120, 40)),
        "folded": np.abs(rng.standard_normal((120, 40))),
        "uniform": rng.random((60, 60)),
        "levels": rng.integers(0, 3, (120, 12)),
        "chains": np.concatenate(
            [
                np.cos(np.linspace(0, 9, 100)[:, None] + np.linspace(0, 9, 60)) + 0.05 * noise
                for noise in rng.standard_normal((2, 100, 60))
            ]
        ),
        "walks": np.cumsum(rng.standard_normal((120, 12)), axis=1),
        "low rank": rng.standard_normal((120, 5)) @ rng.standard_normal((5, 40)),
    }[law]
    assert identify(values, rng=0) == []


def test_what_fits_noise_up_to_noise_is_nothing():
    rng = np.random.default_rng(36)
    rng.standard_normal((12, 12))
    # Of these, 34 of 60 encodings are "explained up to noise" as sums of two of four vectors.
    recovery = unveil.recover(np.abs(rng.standard_normal((60, 12))), rng=36)
    assert len(recovery) == 0
    assert recovery.verdict().startswith("No private vector")


def test_a_stated_scheme_that_encodings_contradict_is_said():
    sim = unveil.simulate(Scheme(2, signs="kept"), n_private=15, m=200, d=60, rng=0)
    hidden = unveil.Encodings(sim.encodings.values, Scheme(2, signs="random"), None)
    recovery = unveil.recover(hidden, rng=0)
    assert "contradict signs='random'" in recovery.evidence["contradiction"]
    own = unveil.Encodings(
        sim.encodings.values, Scheme(3, weighting="dirichlet", signs="kept"), None
    )
    assert "k_private=3" in unveil.recover(own, rng=0).evidence["contradiction"]
    right = unveil.Encodings(sim.encodings.values, sim.encodings.scheme, None)
    assert contradiction(right, unveil.recover(right, rng=0)) == ""


def test_recover_without_a_scheme_says_what_it_found():
    scheme = Scheme(2, weighting="dirichlet", signs="kept")
    sim = unveil.simulate(scheme, n_private=20, m=200, d=60, rng=0)
    recovery = unveil.recover(sim.encodings.values, rng=0)
    assert recovery.evidence["scheme"]["found"]
    assert unveil.score(recovery, sim.private).exact == 20
    nothing = unveil.recover(np.random.default_rng(0).standard_normal((60, 40)), rng=0)
    assert not nothing.evidence["scheme"]["found"]
    assert not nothing.verified.any()


def test_signs():
    rng = np.random.default_rng(0)
    x = unveil.simulate(Scheme(2, signs="kept"), n_private=10, m=100, d=60, rng=0).encodings.values
    assert signs_of(x) == "kept"
    assert signs_of(np.abs(x)) == "absolute"
    assert signs_of(x * rng.choice([-1, 1], x.shape).astype(np.float32)) == "random"
