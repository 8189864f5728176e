"""Encoder lint on encodings: every slip is found, and honest encodings are left alone."""

import numpy as np
import pytest

import unveil
from unveil.auditing.lint import (
    duplicates,
    expected_repeats,
    lint_encodings,
    public_prefix,
    repeated_subsets,
    sign_masks,
)
from unveil.encodings import Encodings
from unveil.records import Supports
from unveil.scheme import Scheme


def severities(findings):
    return {finding.severity for finding in findings}


@pytest.mark.parametrize("signs", ["absolute", "random"])
@pytest.mark.parametrize("k_public", [0, 2])
@pytest.mark.parametrize("seed", range(3))
def test_honest_encodings_get_nothing_above_low(signs, k_public, seed):
    scheme = Scheme(2, k_public, signs=signs)
    sim = unveil.simulate(scheme, 200, n_public=50 if k_public else 0, m=150, d=400, rng=seed)
    supports = Supports(sim.selection.public, np.ones(150), "truth") if k_public else None
    found = lint_encodings(
        sim.encodings,
        supports=supports,
        n_public=50,
        chosen=np.unique(sim.selection.private, axis=0),
        n_private=200,
    )
    assert severities(found) <= {"fine", "low"}
    assert any("Weights are the same" in f.what for f in found)


@pytest.mark.parametrize("kind", ["heavy", "smooth"])
def test_honest_random_signs_of_odd_data_are_no_false_alarm(kind):
    rng = np.random.default_rng(0)
    values = (
        rng.standard_t(3, (60, 500))
        if kind == "heavy"
        else np.cumsum(rng.standard_normal((60, 500)), axis=1)
    )
    sim = unveil.simulate(Scheme(2, signs="random"), private=values, m=200, rng=0)
    assert severities(sign_masks(sim.encodings)) == {"fine"}


@pytest.mark.parametrize(("m", "subsets"), [(10, 20), (300, 1225), (50, 10**30), (5, 1)])
def test_expected_repeats(m, subsets):
    drawn = np.random.default_rng(0).integers(min(subsets, 2**62), size=(2000, m))
    repeats = [m - len(np.unique(row)) for row in drawn]
    assert expected_repeats(m, subsets) == pytest.approx(np.mean(repeats), rel=0.03, abs=0.05)


def test_repeats_up_to_signs():
    Y = np.random.default_rng(0).standard_normal((30, 50)).astype(np.float32)
    assert duplicates(Y).severity == "fine"
    Y[7] = -Y[3]
    finding = duplicates(Y)
    assert finding.severity == "medium"
    assert finding.what.startswith("1 ")
    assert finding.cure


def test_subsets_drawn_again_and_again():
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permuted(np.tile(np.arange(50), (300, 1)), axis=1)[:, :2], axis=1)
    assert repeated_subsets(chosen, 50).severity == "fine"  # 33 by chance
    assert repeated_subsets(np.tile(chosen[:100], (3, 1)), 50).severity == "high"
    assert repeated_subsets(np.unique(chosen, axis=0), 50).severity == "fine"


def test_self_pairs():
    sim = unveil.simulate(Scheme(2), 50, m=200, d=1000, rng=0)
    Y = sim.encodings.values.copy()
    Y[:9] = np.abs(sim.private[:9]) * np.float32(np.sqrt(2))
    found = [f for f in lint_encodings(Encodings(Y, Scheme(2))) if "itself" in f.what]
    assert [f.severity for f in found] == ["high"]
    assert found[0].what.startswith("9 of 200")


@pytest.mark.parametrize("masks", [1, 5, "whole rows"])
def test_masks_that_are_used_again(masks):
    rng = np.random.default_rng(0)
    sim = unveil.simulate(Scheme(2, signs="kept"), 30, m=150, d=400, rng=0)
    Y = sim.encodings.values
    if masks == "whole rows":
        Y = Y * rng.choice([-1, 1], (150, 1))
    else:
        Y = Y * rng.choice([-1, 1], (masks, 400))[rng.integers(masks, size=150)]
    (finding,) = sign_masks(Encodings(Y, Scheme(2, signs="random")))
    assert finding.severity == "high"
    assert "150 of 150" in finding.what or masks == 5


def test_noise_on_magnitudes_is_no_mask():
    sim = unveil.simulate(Scheme(2), 40, m=200, d=60, rng=0)
    noise = np.random.default_rng(0).normal(0, 0.05, sim.encodings.values.shape)
    found = sign_masks(Encodings(sim.encodings.values + noise, Scheme(2)))
    assert [one.severity for one in found] == ["fine"]


def test_kept_signs_are_said():
    sim = unveil.simulate(Scheme(2, signs="kept"), 30, m=50, d=100, rng=0)
    (finding,) = sign_masks(sim.encodings)
    assert finding.severity == "high"
    assert "MixUp" in finding.what


def test_public_vectors_from_a_prefix():
    rng = np.random.default_rng(0)
    assert public_prefix(rng.integers(0, 1000, (200, 2)), 1000).severity == "fine"
    finding = public_prefix(rng.integers(0, 100, (200, 2)), 1000)
    assert finding.severity == "medium"
    assert "first 100 of 1000" in finding.what
    assert (
        public_prefix(rng.integers(0, 400, (5, 2)), 1000).severity == "fine"
    )  # ten draws: chance 1e-4


def test_every_bad_finding_names_consequence_and_cure():
    sim = unveil.simulate(Scheme(2, signs="kept"), 10, m=200, d=200, rng=0)
    for finding in lint_encodings(sim.encodings):
        assert finding.severity == "fine" or (finding.consequence and finding.cure)
