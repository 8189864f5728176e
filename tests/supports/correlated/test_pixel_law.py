"""The law of the public vectors: what is said of them, trees against scipy, means and deviations as
far as they are real."""

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from unveil.supports.correlated.pixel_law import _spanning_tree, departures, measure_law, plain_law
from unveil.supports.folded.survey import survey_public


def survey(x):
    return survey_public(np.asarray(x, np.float32), 64)


@pytest.mark.parametrize(
    ("n", "d"), [(2, 6), (5, 30), (20, 300), (50, 100), (400, 60), (300, 1500)]
)
def test_gaussian_vectors_are_as_the_model_has_them(n, d):
    # Six standard errors, with a margin for few vectors: 3,126 lists of 2 to 2000 vectors gave no
    # alarm.
    for seed in range(5):
        assert departures(survey(np.random.default_rng(seed).standard_normal((n, d)))) == ""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda r: np.cumsum(r.standard_normal((60, 200)), axis=1), "pixels are correlated"),
        (lambda r: np.cumsum(r.standard_normal((60, 200)), axis=1), "brighter than others"),
        (lambda r: r.standard_t(2.5, (60, 200)), "heavy-tailed"),
        (lambda r: r.integers(0, 2, (60, 200)) * 2.0 - 1, "discrete or bounded"),
        (lambda r: np.abs(r.standard_normal((60, 200))), "have a mean"),
        (
            lambda r: r.standard_normal((60, 200)) * np.linspace(0.5, 1.5, 200),
            "brighter than others",
        ),
        (
            lambda r: (lambda x: x[:, 1:] + x[:, :-1])(r.standard_normal((60, 201))),
            "pixels are correlated",
        ),
    ],
)
def test_other_vectors_are_told_apart_in_words(make, words):
    assert words in departures(survey(make(np.random.default_rng(0))))


def test_the_tree_is_the_maximum_spanning_tree():
    R = np.corrcoef(np.random.default_rng(0).standard_normal((30, 40)).T).astype(np.float32)
    order, parent, correlation = _spanning_tree(R)
    assert sorted(order.tolist()) == list(range(40))
    assert (parent < np.arange(40)).all()
    np.testing.assert_array_equal(correlation[1:], R[order[1:], order[parent[1:]]])
    weight = 2 - np.abs(R.astype(float))
    np.fill_diagonal(weight, 0)
    assert np.abs(correlation).sum() == pytest.approx(
        2 * 39 - minimum_spanning_tree(weight).sum(), abs=1e-4
    )


def test_a_random_walk_is_a_chain():
    x = np.cumsum(np.random.default_rng(1).standard_normal((200, 80)), axis=1)
    law = measure_law(survey(x))
    steps = np.abs(law.order[1:] - law.order[law.parent[1:]])
    assert np.mean(steps == 1) > 0.9
    np.testing.assert_allclose(law.deviation[9:], np.sqrt(np.arange(10, 81)), rtol=0.25)


def test_gaussian_vectors_have_the_plain_law():
    public = survey(np.random.default_rng(2).standard_normal((200, 300)))
    law, plain = measure_law(public), plain_law(public)
    # The largest of 45,000 correlations passes 2√(log d/n) in about one list of a hundred; this one
    # has none.
    assert law.linked == plain.linked == 0
    np.testing.assert_allclose(law.mean, 0, atol=0.02)
    np.testing.assert_allclose(law.deviation, plain.deviation, rtol=0.1)


def test_a_mean_that_all_share_is_seen():
    x = np.abs(np.random.default_rng(3).standard_normal((100, 50)))
    np.testing.assert_allclose(measure_law(survey(x)).mean, np.sqrt(2 / np.pi), atol=0.1)
