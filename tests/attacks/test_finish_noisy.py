"""A recovery under noise: nothing verified, errors of what is settled, nothing where chance fits."""

import numpy as np
import pytest

import unveil
from unveil.attacks.finish_noisy import approximate
from unveil.parallel import Stopwatch
from unveil.solve.pixels.noisy import NoisySolution


@pytest.fixture
def noisy():
    rng = np.random.default_rng(0)
    return NoisySolution(
        values=rng.standard_normal((3, 8)),
        rows=np.array([0, 1, 2]),
        members=np.array([[0, 1], [1, 2], [0, 2]]),
        noise=0.1,
        error=np.array([0.01, 0.02, 0.03]),
        determined=np.array([True, True, False]),
        nats=5.0,
        spare=1.0,
        open_share=np.array([0.0, 0.5, 0.0]),
    )


@pytest.fixture
def encodings():
    return unveil.Encodings(np.ones((4, 8), np.float32), unveil.Scheme(2))


def test_errors_are_told_of_what_is_settled_and_nothing_is_verified(noisy, encodings):
    found = approximate(encodings, "full", noisy, 2.0, False, Stopwatch(), {"seen": 1})
    assert list(found.status) == ["unresolved", "ambiguous", "ambiguous"]
    assert found.evidence["standard_error"] == [pytest.approx(0.02), None, None]
    assert "±0.02 per pixel" in found.reasons[0]
    assert "50% of the pixels" in found.reasons[1]
    assert "do not determine it" in found.reasons[2]
    np.testing.assert_allclose(found.vectors, 2 * noisy.values, rtol=1e-6)
    np.testing.assert_array_equal(
        found.members.toarray(), [[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 0]]
    )
    assert (found.explained, found.exact, found.evidence["seen"]) == (3, False, 1)


def test_what_chance_explains_as_well_is_not_returned(noisy, encodings):
    by_chance = NoisySolution(**{**vars(noisy), "spare": -1.0})
    found = approximate(encodings, "full", by_chance, 1.0, False, Stopwatch(), {})
    assert not len(found.vectors)
    assert "by chance" in found.explanation
