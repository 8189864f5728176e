"""Units of pixels: found out from images like those mixed, said or refused where that does not do."""

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.encode.simulate import simulate
from unveil.encode.units import KNOWN, PLAIN, Units
from unveil.images.prior import image_prior
from unveil.images.units import find_units, settle_units
from unveil.scheme import Scheme

SHAPE = (12, 12, 3)
SCHEME = Scheme(2, 2, weighting="released")


def photographs(count=120, seed=0):
    """In [−1, 1], with whole bytes behind them; some black and white in each."""
    x = 1.2 * image_prior(SHAPE).draw(count, np.random.default_rng(seed)) - 0.1
    return (np.rint((np.clip(x, -1, 1) + 1) * 127.5) / 127.5 - 1).astype(np.float32)


def release(unit, seed=1):
    x = unit.mixed(photographs(), SHAPE)
    sim = simulate(SCHEME, private=x[:20], public=x[20:], m=200, shape=SHAPE, rng=seed)
    return sim.encodings.values


def settled(given, values, units=None):
    named = {"like": None, "public": None, "private_like": None, **given}
    return settle_units(named, values, SCHEME, SHAPE, units, np.random.default_rng(0))


@pytest.mark.parametrize("name", KNOWN)
def test_units_are_found_by_images_like_those_mixed(name):
    like = photographs(seed=5)
    found = find_units(release(KNOWN[name]), SCHEME, SHAPE, like, np.random.default_rng(0))
    assert found.name == name


@pytest.mark.parametrize("form", ["[-1,1]", "[0,1]", "bytes"])
def test_images_may_come_in_three_forms(form):
    like = photographs(seed=5)
    given = {"[-1,1]": like, "[0,1]": (like + 1) / 2, "bytes": np.rint((like + 1) * 127.5)}[form]
    images, unit = settled({"like": given.astype(np.float32)}, release(PLAIN))
    assert unit == PLAIN
    np.testing.assert_allclose(images["like"], like, atol=1e-5)


def test_images_in_units_of_their_own_are_those_of_the_encodings_up_to_scale():
    own = Units("other", (0.3,), (0.05,))
    images, unit = settled({"like": own.mixed(photographs(seed=5), SHAPE)}, release(own))
    assert unit.name == "unknown"
    assert np.abs(images["like"]).max() == pytest.approx(1)
    with pytest.raises(InputError, match="like images from"):
        settled({"like": own.mixed(photographs(seed=5), SHAPE) / 4}, release(own))
    with pytest.raises(InputError, match="like images from"):
        settled(
            {"like": own.mixed(photographs(seed=5), SHAPE), "private_like": photographs()},
            release(own),
        )


def test_units_that_are_said_are_taken_and_those_that_fit_nothing_are_asked_for():
    own = Units("other", (0.3,), (0.05,))
    like = photographs(seed=5)
    with pytest.raises(InputError, match="say which"):
        settled({"like": like}, release(own))
    with pytest.raises(InputError, match="say which"):  # a millionth of what like images give
        settled({"like": like}, 1e-6 * release(PLAIN))
    images, unit = settled({"like": like}, release(own), units=(0.3, 0.05))
    assert (unit.mean, unit.std) == ((0.3,), (0.05,))
    np.testing.assert_allclose(images["like"], own.of_pixels(like, SHAPE), rtol=1e-5, atol=1e-6)


def test_without_images_the_largest_value_speaks():
    rng = np.random.default_rng(0)
    for name, expected in (("[-1,1]", "[-1,1]"), ("bytes", "bytes"), ("cifar10", "unknown")):
        assert find_units(release(KNOWN[name]), SCHEME, SHAPE, None, rng).name == expected
