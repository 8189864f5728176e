"""Figures that show something; what cannot be drawn is said in words."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot

import unveil
from unveil.present.pictures import plot


def drawn(figure):
    """The figure's pixels, from 0 to 1."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] / 255


@pytest.mark.parametrize("kind", ["encodings", "recovery", "overlaps", "floral", "audit"])
def test_a_figure_is_not_empty_and_not_kept(results, kind):
    before = pyplot.get_fignums()
    assert drawn(results[kind].plot()).std() > 0.02
    assert pyplot.get_fignums() == before


def test_images_are_drawn_as_images(images):
    figure = images.plot()
    assert len(figure.axes) == len(images)
    assert figure.axes[0].get_images()[0].get_array().shape == (2, 3)


def test_a_recovery_says_how_many_are_verified(results):
    recovery = results["recovery"]
    labels = [text.get_text() for text in recovery.plot().axes[0].get_legend().get_texts()]
    assert f"{int(recovery.verified.sum())} verified" in labels


def test_what_has_nothing_to_show_says_so(results):
    empty = unveil.Recovery.empty(results["encodings"], "relations", "no relations", {})
    with pytest.raises(unveil.InputError, match="no relations"):
        empty.plot()
    with pytest.raises(unveil.InputError, match="no leakage curve"):
        replace(results["audit"], curve=()).plot()
    with pytest.raises(TypeError, match="no picture"):
        plot(results["scores"])
