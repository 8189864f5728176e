"""One vector at a time: all peaks are seen, and means are those of the posterior."""

import numpy as np
import pytest

from unveil.solve.pixels.one_by_one import sweep


def instance(noise, n=12, m=120, pixels=30, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, pixels)).astype(np.float32)
    members = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    mix = x[members].sum(axis=1) + noise * rng.standard_normal((m, pixels))
    return x, members, np.abs(mix).astype(np.float32)


def likelihood(t, rest, y, noise, size):
    """Of one value, by hand."""
    both = sum(np.exp(-((sign * y - rest - t) ** 2) / (2 * noise**2)) for sign in (1, -1))
    return np.log(both).sum() - t**2 / (2 * size**2)


@pytest.mark.parametrize("mean", [False, True])
def test_the_first_vector_takes_its_highest_value_or_its_mean(mean):
    noise = 0.6
    x, members, y = instance(noise)
    out = sweep(y, members, x, noise, mean=mean)
    rows = (members == 0).any(axis=1)
    others = members[rows].sum(axis=1)  # vector 0 has number 0
    grid = np.linspace(-4, 4, 801)
    for p in range(5):
        size = np.sqrt(np.mean(x[:, p] ** 2))
        score = np.array(
            [
                likelihood(t, x[others, p], y[rows, p].astype(float), noise, size)
                for t in size * grid
            ]
        )
        weight = np.exp(score - score.max())
        best = (weight * size * grid).sum() / weight.sum() if mean else size * grid[score.argmax()]
        # The grid's step is 0.2 sizes; its mean is nearer than that.
        assert abs(out[0, p] - best) < (0.03 if mean else 0.11) * size


def test_a_vector_on_a_wrong_peak_is_put_right():
    x, members, y = instance(0.2)
    wrong = x.copy()
    wrong[3] = -x[3]
    out = sweep(y, members, wrong, 0.2, mean=False)
    far = np.abs(x[3]) > 0.5
    assert far.sum() > 10
    assert (np.abs(out[3] - x[3])[far] < 0.3).all()


def test_beyond_the_grid_and_unused_vectors_stay():
    x, members, y = instance(0.3)
    x = np.vstack([x, np.full((1, x.shape[1]), 7.0, np.float32)])
    out = sweep(y, members, x, 0.3, mean=True)
    np.testing.assert_array_equal(out[-1], x[-1])
    bright = x.copy()
    bright[0] = 30 * np.sign(x[0])  # far beyond four times the size of the other pixels
    y = np.abs(bright[members].sum(axis=1)).astype(np.float32)
    big = np.abs(bright[0]) > 4 * np.sqrt(np.mean(bright**2, axis=0))
    out = sweep(y, members, bright, 0.3, mean=True)
    np.testing.assert_allclose(out[0][~big], bright[0][~big], atol=0.5)
    np.testing.assert_array_equal(out[0][big], bright[0][big])


@pytest.mark.parametrize("mean", [False, True])
def test_weights_of_their_own_move_a_vector_to_its_value(mean):
    """With members and weights right and one vector at −x: it goes back, as far as noise allows."""
    rng = np.random.default_rng(3)
    x, members, _ = instance(0.0)
    weights = rng.uniform(0.2, 0.8, members.shape)
    mix = (weights[:, :, None] * x[members]).sum(axis=1)
    y = np.abs(mix + 0.05 * rng.standard_normal(mix.shape)).astype(np.float32)
    wrong = x.copy()
    wrong[5] = -x[5]
    out = sweep(y, members, wrong, 0.05, mean=mean, weights=weights)
    # Twenty encodings of weight one half: an error of 0.02.
    assert np.abs(out[5] - x[5]).max() < 0.15
    same = sweep(y, members, wrong, 0.05, mean=mean)
    assert np.abs(same[5] - x[5]).max() > 0.5
