"""Figures: no screen, same bytes, colours that everyone tells apart."""

from itertools import combinations

import numpy as np
from experiments.drawing import COLOURS, SERIES, panels, save, style


def some_figure():
    figure, axes = panels(1, 2, (4, 2), sharey=True)
    axes[0].plot([1, 2], [3, 4], color=COLOURS["blue"], label="a")
    axes[0].legend()
    return figure


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        with style():
            save(some_figure(), tmp_path / name)
    for kind in ("svg", "png"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


def test_no_window_and_no_global_state():
    import matplotlib
    from matplotlib import pyplot

    before = dict(matplotlib.rcParams)
    with style():
        some_figure()
    assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []


def test_series_differ_for_those_who_see_no_red_or_green():
    """Machado, Oliveira and Fernandes' matrices for full protanopia and deuteranopia, on linear
    light."""
    protan = np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    )
    deutan = np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    )
    rgb = {
        name: np.array([int(COLOURS[name][i : i + 2], 16) / 255 for i in (1, 3, 5)]) ** 2.2
        for name in SERIES
    }
    for matrix in (protan, deutan):
        seen = {name: np.clip(matrix @ colour, 0, 1) ** (1 / 2.2) for name, colour in rgb.items()}
        assert min(np.abs(seen[a] - seen[b]).sum() for a, b in combinations(SERIES, 2)) > 0.2
