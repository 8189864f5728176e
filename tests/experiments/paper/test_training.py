"""The stacked trainer against a plain one, its gradient against finite differences."""

import numpy as np
import pytest
from experiments.paper.training import Run, _odds, descend, initial, train

D = 6


def some_run(seed, m=70, epochs=3, init="he", sets=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, D)).astype(np.float32)
    y = x[:, 0] > 0
    weights, biases = initial(init, D, rng)
    inputs = rng.standard_normal((sets, m, D)).astype(np.float32)
    share = rng.integers(0, 4, (sets, m)).astype(np.float32) / 3
    order = np.stack([rng.permutation(m) for _ in range(epochs)])
    return Run(inputs, share, ((x, y), (np.abs(x[:20]), y[:20])), weights, biases, order)


def forward(x, weights, biases):
    activations = [x]
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        activations.append(np.maximum(activations[-1] @ W + b, 0))
    return activations, activations[-1] @ weights[-1] + biases[-1]


def loss(x, share, weights, biases):
    """Cross-entropy of softmax against soft labels, as in a textbook, in double precision."""
    logits = forward(x, weights, biases)[1]
    log = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -np.mean((1 - share) * log[:, 0] + share * log[:, 1])


def plain(run, rate, batch):
    """One network after another, layer by layer, in double precision: (right, weights, biases)."""
    W, b = [w.astype(float) for w in run.weights], [v.astype(float) for v in run.biases]
    right = []
    for epoch, order in enumerate(run.order):
        X, t = (
            run.inputs[epoch % len(run.inputs)].astype(float),
            run.share[epoch % len(run.share)].astype(float),
        )
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            hidden, logits = forward(X[rows], W, b)
            odds = np.exp(logits - logits.max(axis=1, keepdims=True))
            error = (
                odds / odds.sum(axis=1, keepdims=True) - np.stack([1 - t[rows], t[rows]], axis=1)
            ) / len(rows)
            for layer in (3, 2, 1, 0):
                before = (error @ W[layer].T) * (hidden[layer] > 0)
                W[layer] -= rate * hidden[layer].T @ error
                b[layer] -= rate * error.sum(axis=0)
                error = before
        answers = [forward(x.astype(float), W, b)[1] for x, _ in run.originals]
        right.append(
            [
                int(((o[:, 1] > o[:, 0]) == y).sum())
                for o, (_, y) in zip(answers, run.originals, strict=True)
            ]
        )
    return right, W, b


def stacked(run):
    """The layers of one network, as a stack of one."""
    pairs = zip(run.weights, run.biases, strict=True)
    return [(W[None].copy(), b[None].copy()) for W, b in pairs]


@pytest.mark.parametrize("batch", [1, 16, 32])
@pytest.mark.parametrize("sets", [1, 2])
def test_it_is_the_plain_trainer(batch, sets):
    run = some_run(0, sets=sets)
    layers = stacked(run)
    for epoch, order in enumerate(run.order):
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            inputs, share = run.inputs[epoch % sets], run.share[epoch % sets]
            descend(layers, inputs[rows][None], share[rows][None], 0.05)
    right, W, b = plain(run, 0.05, batch)
    for layer in range(4):
        np.testing.assert_allclose(layers[layer][0][0], W[layer], atol=2e-5)
        np.testing.assert_allclose(layers[layer][1][0], b[layer], atol=2e-5)
    assert train([run], rate=0.05, batch=batch)[0].tolist() == right


def test_a_step_goes_down_the_gradient():
    """The change of one step over the rate is the gradient of the loss, entry by entry, by central
    differences."""
    run = some_run(1, m=16, epochs=1)
    rate = 1e-2
    moved = stacked(run)
    before = [array[0].astype(float) for pair in moved for array in pair]
    descend(moved, run.inputs[:1], run.share[:1], rate)
    layers = [array[0] for pair in moved for array in pair]
    x, share = run.inputs[0].astype(float), run.share[0].astype(float)
    rng = np.random.default_rng(0)
    for place in range(8):
        for _ in range(6):
            entry = tuple(int(rng.integers(size)) for size in before[place].shape)
            ends = []
            for step in (1e-6, -1e-6):
                moved = [array.copy() for array in before]
                moved[place][entry] += step
                ends.append(loss(x, share, moved[0::2], moved[1::2]))
            slope = (ends[0] - ends[1]) / 2e-6
            taken = (before[place][entry] - float(layers[place][entry])) / rate
            assert taken == pytest.approx(slope, abs=3e-5)


def test_the_networks_given_stay_as_they_were_and_order_changes_nothing():
    runs = [some_run(seed) for seed in range(5)]
    first = [run.weights[1].copy() for run in runs]
    one = train(runs)
    assert all(np.array_equal(a, run.weights[1]) for a, run in zip(first, runs, strict=True))
    again = train(runs[::-1])[::-1]
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))


def test_it_learns_what_can_be_learned():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((300, D)).astype(np.float32)
    y = x[:, 0] > 0
    weights, biases = initial("he", D, rng)
    order = np.stack([rng.permutation(300) for _ in range(40)])
    found = train([Run(x[None], y.astype(np.float32)[None], ((x, y),), weights, biases, order)])[0]
    assert found[-1, 0] > 0.95 * 300


def test_the_three_starts_are_what_they_say():
    rng = np.random.default_rng(0)
    he, zero = initial("he", 10, rng)
    assert [w.shape for w in he] == [(10, 100), (100, 100), (100, 100), (100, 2)]
    assert he[1].std() == pytest.approx(np.sqrt(2 / 100), rel=0.03)
    assert not any(b.any() for b in zero)
    uniform, bias = initial("uniform", 10, rng)
    assert np.abs(uniform[1]).max() == pytest.approx(0.1, rel=0.01)
    assert np.abs(bias[0]).max() <= 1 / np.sqrt(10)
    printed, both = initial("printed", 10, rng, alpha=100.0)
    for W, b in zip(printed[:3], both[:3], strict=True):
        assert W.std() == pytest.approx(1, rel=0.15)
        assert b.mean() == pytest.approx(W.mean(), abs=0.5)
    assert np.std([W.mean() for W in printed]) > 1


def test_a_network_without_numbers_answers_nothing_right():
    run = some_run(2)
    broken = tuple(w * np.float32(1e30) for w in run.weights)
    found = train([Run(run.inputs, run.share, run.originals, broken, run.biases, run.order)])[0]
    assert not found.any()


def test_logits_are_those_of_the_formula():
    run = some_run(4)
    x = run.originals[0][0]
    expected = forward(x.astype(float), run.weights, run.biases)[1]
    found = _odds(x[None], stacked(run))[0]
    np.testing.assert_allclose(found, expected[:, 1] - expected[:, 0], atol=1e-4)
