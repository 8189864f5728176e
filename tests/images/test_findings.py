"""What was found, as a recovery: nothing verified, and what a reader must know is said."""

import numpy as np
from scipy import sparse

import unveil
from unveil.encode.units import KNOWN, PLAIN
from unveil.images.findings import as_recovery
from unveil.images.likeness import Clues
from unveil.images.reweigh import Weighing
from unveil.images.sign_fields import Mixture
from unveil.images.task import RoundState
from unveil.parallel import Stopwatch

SCHEME = unveil.Scheme(2, 1, weighting="released", signs="random")


def told(unit=PLAIN, signed=True, polarity=9.0, rough=0.0, **options):
    """Three images of 4×4 pixels in five encodings."""
    rng = np.random.default_rng(0)
    members = np.array([[0, 1], [1, 2], [0, 2], [0, 1], [1, 2]])
    best = rng.uniform(0.1, 0.4, members.shape).astype(np.float32)
    weights = np.zeros((5, 3), np.float32)
    np.put_along_axis(weights, members, best, axis=1)
    known = sparse.csr_array(weights)
    ones = np.ones(5, np.float32)
    state = RoundState(
        rng.uniform(-2, 2, (3, 16)).astype(np.float32),
        np.zeros((5, 16), np.float32),
        Mixture(known, ones),
        Weighing(known, sparse.csr_array(weights**2), members, best, ones),
        polarity=polarity,
    )
    clues = Clues(*np.full((4, 3), 0.5), 3.0, rough=rough)
    encodings = unveil.Encodings(rng.random((5, 16)), SCHEME, None, (4, 4))
    found = as_recovery(
        "natural", encodings, SCHEME, unit, state, clues, signed, Stopwatch(), **options
    )
    return found, weights


def test_members_and_weights_are_those_found_and_nothing_is_verified():
    found, weights = told()
    np.testing.assert_array_equal(found.members.toarray(), weights > 0)
    np.testing.assert_array_equal(found.weights.toarray(), weights)
    assert set(found.status) == {"unresolved"}
    assert np.abs(found.vectors).max() <= 1
    assert len(found.reasons) == len(found.evidence["likeness"]) == 3
    assert "none is exact" in found.explanation


def test_what_a_reader_must_know_is_said_where_it_holds():
    assert "negative" not in told()[0].explanation
    assert "which it is was not settled" in told(signed=False)[0].explanation
    assert "other units (cifar10)" in told(KNOWN["cifar10"])[0].explanation
    assert "white noise" in told(rough=0.9)[0].explanation
    assert told(aside="; and more")[0].explanation.endswith("; and more")


def test_images_that_were_mirrored_and_likeness_that_nothing_tells_are_said():
    found, _ = told(mirrored=True)
    assert found.evidence["mirrored"]
    assert "which way round" in found.explanation
    assert "mirrored" not in told()[0].evidence
    assert set(told(rough=0.9)[0].reasons) == {"how like the private image it is is not known"}
