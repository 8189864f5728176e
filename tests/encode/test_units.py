"""Units of pixels: there and back, by a formula of its own, and what is simulated in them."""

import numpy as np
import pytest

from unveil import InputError, Scheme, simulate
from unveil.encode.units import KNOWN, as_units

SHAPE = (12, 12, 3)


def photographs(count=4, seed=0):
    """In [−1, 1], with whole bytes behind them, the ends among these."""
    bytes_ = np.random.default_rng(seed).integers(0, 256, (count, 432))
    bytes_[:, :2] = 0, 255
    return (bytes_ / 127.5 - 1).astype(np.float32)


@pytest.mark.parametrize("name", KNOWN)
def test_there_and_back(name):
    x = photographs(5)
    unit = KNOWN[name]
    np.testing.assert_allclose(
        unit.to_pixels(unit.of_pixels(x, SHAPE), SHAPE), x, rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("name", KNOWN)
def test_encodings_become_mixtures_of_the_images_that_the_attack_reckons_with(name):
    unit, x = KNOWN[name], photographs(4)
    weights = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    released = np.abs(weights @ unit.mixed(x, SHAPE))[None]
    expected = np.abs(weights @ unit.of_pixels(x, SHAPE))[None]
    np.testing.assert_allclose(unit.of_encodings(released), expected, atol=1e-4)


@pytest.mark.parametrize("given", ["inches", (0.5,), (0.5, 0.0), ("a", 1), 3])
def test_what_is_no_unit_is_refused_in_one_sentence(given):
    with pytest.raises(InputError, match="units=") as caught:
        as_units(given)
    assert "\n" not in str(caught.value)


def test_a_mean_per_channel_is_taken_channel_by_channel():
    unit = as_units(([0.1, 0.2, 0.3], [0.5, 0.5, 0.25]))
    x = np.ones((1, 432), np.float32)
    np.testing.assert_allclose(unit.mixed(x, SHAPE).reshape(-1, 3)[7], [1.8, 1.6, 2.8], rtol=1e-5)


@pytest.mark.parametrize("form", ["[-1,1]", "[0,1]", "bytes"])
def test_images_are_mixed_in_the_units_said_whatever_form_they_come_in(form):
    x = photographs(6)
    given = {"[-1,1]": x, "[0,1]": (x + 1) / 2, "bytes": np.rint((x + 1) * 127.5)}[form]
    how = {"m": 9, "image_shape": SHAPE, "rng": 0}
    sim = simulate(
        Scheme(2, 1, "released", signs="kept"),
        private=given[:4],
        public=given[4:],
        units="released",
        **how,
    )
    # CIFAR-10's numbers for private images, ImageNet's for public ones.
    p = ((x + 1) / 2).reshape(6, -1, 3)
    own = (p[:4] - [0.4914, 0.4822, 0.4465]) / [0.2023, 0.1994, 0.2010]
    others = (p[4:] - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(sim.private, own.reshape(4, -1), atol=2e-5)
    np.testing.assert_allclose(sim.public, others.reshape(2, -1), atol=2e-5)
    chosen = sim.selection
    expected = np.einsum("ij,ijd->id", chosen.weights, sim.private[chosen.private])
    expected += chosen.public_weights * sim.public[chosen.public[:, 0]]
    np.testing.assert_allclose(sim.encodings.values, expected, atol=1e-5)


def test_units_are_of_images_that_are_given():
    x = photographs()
    with pytest.raises(InputError, match="add image_shape="):
        simulate(Scheme(2), private=x, m=9, units="cifar10")
    with pytest.raises(InputError, match="give the images"):
        simulate(Scheme(2), 4, d=432, m=9, units="cifar10", image_shape=SHAPE)
    with pytest.raises(InputError, match=r"private images from .* give them as bytes"):
        simulate(Scheme(2), private=3 * x, m=9, units="cifar10", image_shape=SHAPE)
