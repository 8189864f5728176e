"""A wrong scheme that is stated is contradicted in words, and nothing wrong is verified under it; a
right one is not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from unveil import Encodings, Scheme, recover, score, simulate
from unveil.attacks.scheme_stated import contradiction
from unveil.records import Recovery

N, M, D = 12, 110, 60
OWN = Scheme(2, weighting="half-normal")


def released(truth, noise=0.0):
    sim = simulate(truth, N, m=M, d=D, noise=noise, rng=3)
    return sim.private, sim.encodings.values


@pytest.mark.parametrize(
    ("truth", "stated", "words"),
    [
        (Scheme(3, 0, "dirichlet", "kept"), Scheme(2, signs="kept"), "k_private=2"),
        (Scheme(2, 0, "dirichlet", "kept"), Scheme(2, signs="kept"), "weighting='equal'"),
        (Scheme(2, 0, "convex", "random"), Scheme(2, 0, "uniform", "kept"), "signs='kept'"),
        (Scheme(2, 0, "convex"), Scheme(2, 0, "convex", "kept"), "signs='kept'"),
        (Scheme(2, 0, "convex", "kept"), Scheme(2, 0, "convex"), "signs='absolute'"),
        (Scheme(2, 0, "convex"), OWN, "weighting='half-normal'"),
        (OWN, Scheme(3, 0, "half-normal"), "k_private=3"),
    ],
)
def test_a_wrong_scheme_is_contradicted_in_words(truth, stated, words):
    private, values = released(truth)
    recovery = recover(Encodings(values, stated, None), rng=0)
    assert f"contradict {words}" in recovery.explanation
    assert score(recovery, private).wrong == 0


@pytest.mark.parametrize(
    ("truth", "stated", "words"),
    [
        (Scheme(3, 0, "convex"), Scheme(2, 0, "convex"), "k_private=2: "),
        (OWN, Scheme(2, 0, "convex"), "weighting='convex': "),
        (Scheme(1), Scheme(2), "k_private=2: "),
        (Scheme(2), Scheme(1), "k_private=1: "),
        (Scheme(2, 0, "convex"), Scheme(2, 1, "convex"), "k_public=1: "),
        (Scheme(3, 0, "convex"), Scheme(2, 1, "convex"), ""),
    ],
)
def test_another_scheme_speaks_against_one_under_which_nothing_came_back(truth, stated, words):
    """Three equal records may be two and a public one."""
    encodings = Encodings(released(truth)[1], stated, None)
    found = contradiction(encodings, Recovery.empty(encodings, "full", "", {}), [], 0, None)
    assert found.startswith(f"the encodings contradict {words}") if words else not found


def test_a_public_part_that_is_not_there_is_contradicted():
    _, values = released(Scheme(2, 0, "convex", "kept"))
    public = np.random.default_rng(0).standard_normal((30, D)).astype(np.float32)
    stated = Scheme(2, 1, "convex", "kept")
    recovery = recover(Encodings(values, stated, None), public, rng=0)
    assert "contradict k_public=1: " in recovery.explanation
    assert not recovery.verified.any()


@pytest.mark.parametrize(("size", "said"), [(0.05, "k_private=3: one of the vectors"), (1.0, "")])
def test_a_vector_that_is_everywhere_and_next_to_nothing_is_none(size, said):
    """Pairs up to noise are triples with it."""
    sim = simulate(Scheme(2, 0, "convex"), N, m=M, d=D, noise=0.02, rng=3)
    third = size * np.random.default_rng(0).standard_normal((1, D))
    chosen = np.column_stack([sim.selection.private, np.full(M, N)])
    members = sparse.csr_array(
        (np.ones(3 * M, bool), chosen.ravel(), 3 * np.arange(M + 1)), shape=(M, N + 1)
    )
    stated = Encodings(sim.encodings.values, Scheme(3, 0, "convex"), None)
    best = replace(
        Recovery.empty(stated, "full", "", {}),
        vectors=np.concatenate([1.5 * sim.private, third]).astype(np.float32),
        status=np.full(N + 1, "ambiguous"),
        members=members,
        explained=M,
    )
    found = contradiction(stated, best, [best], 0, None)
    assert found.startswith(f"the encodings contradict {said}") if said else not found


@pytest.mark.parametrize(
    ("truth", "noise"),
    [
        (Scheme(2, 0, "convex"), 0.0),
        (Scheme(2, 0, "convex"), 0.03),
        (Scheme(2, 0, "convex", "kept"), 0.0),
        (OWN, 0.0),
        (Scheme(3, 0, "dirichlet", "kept"), 0.02),
        (Scheme(1), 0.0),
    ],
)
def test_the_right_scheme_is_not_contradicted(truth, noise):
    _, values = released(truth, noise)
    recovery = recover(Encodings(values, truth, None), rng=0)
    assert len(recovery)
    assert "contradiction" not in recovery.evidence


def test_magnitudes_with_noise_on_top_have_no_signs_kept():
    _, values = released(Scheme(2, 0, "convex"))
    noisy = values + 0.01 * np.random.default_rng(1).standard_normal(values.shape)
    recovery = recover(Encodings(noisy, Scheme(2, 0, "convex"), None), rng=0)
    assert (noisy < 0).any()
    assert "contradict signs" not in recovery.explanation
