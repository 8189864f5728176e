"""The utility experiment: data sets, labels, encodings as the paper defines them; paired runs;
drops."""

import numpy as np
import pytest
from experiments.cells import Cells
from experiments.paper import utility
from experiments.paper.utility import DATA, SCHEMES, _drops, dataset, prepare, synthetic


@pytest.mark.parametrize("data", DATA)
def test_the_larger_half_of_the_scores_is_labelled_one(data):
    vectors, labels = dataset(data, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    x, v = rng.standard_normal((1000, 10)), rng.standard_normal(10)
    score = x @ v if data == "by-sign" else np.abs(x) @ np.abs(v)
    assert labels.sum() == 500
    assert score[labels].min() > score[~labels].max()
    np.testing.assert_array_equal(
        vectors, (np.abs(x) if data == "magnitudes" else x).astype(np.float32)
    )


def test_labels_by_magnitude_do_not_see_signs():
    class Flipped:
        def __init__(self, seed):
            self.rng, self.first = np.random.default_rng(seed), True

        def standard_normal(self, size):
            drawn = self.rng.standard_normal(size)
            flips = np.random.default_rng(0).choice([-1.0, 1.0], size)
            drawn, self.first = (drawn * flips if self.first else drawn), False
            return drawn

    same = dataset("by-magnitude", np.random.default_rng(1))[1]
    assert np.array_equal(dataset("by-magnitude", Flipped(1))[1], same)
    assert not np.array_equal(
        dataset("by-sign", Flipped(1))[1], dataset("by-sign", np.random.default_rng(1))[1]
    )


@pytest.mark.parametrize("k", [1, 3])
def test_encodings_are_means_of_k_vectors_with_the_mean_of_their_labels(k):
    vectors, labels = dataset("by-magnitude", np.random.default_rng(2))
    some, marks = vectors[:12], labels[:12]
    made = {
        scheme: synthetic(some, marks, scheme, k, np.random.default_rng(7)) for scheme in SCHEMES
    }
    mixup, share = made["mixup"]
    from itertools import combinations

    sets = list(combinations(range(12), k))
    means = np.array([some[list(s)].mean(axis=0) for s in sets])
    which = np.argmin(np.abs(mixup[:, None] - means[None]).sum(axis=2), axis=1)
    np.testing.assert_allclose(mixup, means[which], atol=1e-6)
    np.testing.assert_allclose(share, [marks[list(sets[w])].mean() for w in which], atol=1e-6)
    np.testing.assert_array_equal(made["absolute"][0], np.abs(mixup))
    np.testing.assert_array_equal(np.abs(made["random"][0]), np.abs(mixup))
    assert 0.3 < (made["random"][0] == mixup).mean() < 0.7
    assert np.array_equal(made["vanilla"][0], some)
    assert np.array_equal(made["vanilla"][1], marks)


def test_runs_are_paired_over_schemes_and_k():
    one, two = prepare(3, "by-sign", "mixup", 2, 0), prepare(3, "by-sign", "random", 5, 0)
    for a, b in zip(one.originals, two.originals, strict=True):
        assert np.array_equal(a[0], b[0])
    assert all(np.array_equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))
    assert np.array_equal(one.order, two.order)
    other = prepare(4, "by-sign", "mixup", 2, 0)
    assert not np.array_equal(one.originals[0][0], other.originals[0][0])
    assert not np.array_equal(one.order, other.order)


def test_test_vectors_are_never_trained_on():
    run = prepare(0, "by-magnitude", "vanilla", 1, 0)
    (train, _), (test, _) = run.originals
    assert (len(train), len(test)) == (800, 200)
    assert not set(map(bytes, run.inputs[0])) & set(map(bytes, test))


def test_only_absolute_values_are_asked_about_magnitudes():
    run = prepare(0, "by-magnitude", "absolute", 2, 0)
    assert len(run.originals) == 4
    np.testing.assert_array_equal(run.originals[3][0], np.abs(run.originals[1][0]))
    assert len(prepare(0, "by-sign", "absolute", 2, 0).originals) == 2


def test_fresh_encodings_differ_from_epoch_to_epoch(monkeypatch):
    monkeypatch.setattr(utility, "EPOCHS", 3)
    run = prepare(0, "by-sign", "mixup", 2, 0, fresh=True)
    assert run.inputs.shape == (3, 800, 10)
    assert not np.array_equal(run.inputs[0], run.inputs[1])


def test_drops_are_paired_differences():
    def cell(test):
        return {"test": [[0, t] for t in test], "train": [[0, 0]] * len(test)}

    rights = {
        ("by-sign", "vanilla", 1): cell([180, 190, 200]),
        ("by-sign", "mixup", 1): cell([170, 180, 190]),
        ("by-sign", "mixup", 6): cell([160, 170, 180]),
    }
    against, own = _drops(rights, "by-sign", "mixup")
    assert (against["points"], against["low"], against["high"]) == (10.0, 10.0, 10.0)
    assert own["points"] == 5.0


def test_the_whole_of_it_small_and_twice_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(utility, "EPOCHS", 2)
    monkeypatch.setattr(utility, "DATA", ("by-sign",))
    one = utility.measure(Cells("utility", 0, tmp_path), False)
    again = utility.measure(Cells("utility", 0, None), False)
    assert one == again == utility.measure(Cells("utility", 0, tmp_path), False)
    assert {(c["scheme"], c["k"]) for c in one["curves"]} == {("vanilla", 1)} | {
        (scheme, k) for scheme in ("mixup", "absolute", "random") for k in (1, 2, 3, 6)
    }
    assert all(
        len(curve["test"]) == 2 and 0 <= min(curve["test"]) <= max(curve["test"]) <= 1
        for curve in one["curves"]
    )
    assert [p["alpha"] for p in one["printed"]] == [0.0, 0.01, 1.0]
