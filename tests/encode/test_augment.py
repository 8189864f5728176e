"""Crops of simulated encodings: known exactly where one image is mixed, and shared by an epoch."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from unveil import InputError, Scheme, simulate
from unveil.encode.copies import Copies
from unveil.encode.simulate import with_crops, with_flips
from unveil.encodings import Selection

SHAPE = (4, 5)


def images(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 20)).astype(np.float32)


@pytest.mark.parametrize("flips", [False, True])
def test_every_crop_is_drawn_as_often_and_black_beyond_the_edge(flips):
    x, m = images(1), 3600
    sim = simulate(
        Scheme(1, 0, signs="kept"), private=x, m=m, image_shape=SHAPE, crops=1, flips=flips, rng=1
    )
    copies = Copies(SHAPE, 1, flips)
    every = copies.all_of(copies.padded(x, x.min()))[0]
    distance = np.abs(sim.encodings.values[:, None] - every).max(axis=2)
    assert distance.min(axis=1).max() < 1e-6
    counts = np.bincount(distance.argmin(axis=1), minlength=copies.count)
    fair = m / copies.count
    assert np.abs(counts - fair).max() < 5 * np.sqrt(fair)
    np.testing.assert_array_equal(sim.private, x)


def test_crops_of_an_epoch_are_shared_by_all_slots():
    x = images(6)
    chosen = np.random.default_rng(0).integers(0, 6, size=(60, 2))
    selection = Selection(chosen, np.empty((60, 0), np.int64))
    both, _, flipped = with_flips(x, None, selection, SHAPE, np.random.default_rng(1), 6)
    cut, new = with_crops(both, flipped, Copies(SHAPE, 1), 6, np.random.default_rng(2), 6)
    for epoch in range(10):
        rows = slice(6 * epoch, 6 * epoch + 6)
        names = {}
        for image, copy in zip(chosen[rows].ravel(), new.private[rows].ravel(), strict=True):
            names.setdefault(image, set()).add(copy)
        assert all(len(copies) == 1 for copies in names.values())
    assert len(cut) == len(np.unique(new.private))


def test_public_images_and_the_selection_are_left_alone():
    how = {"n_private": 4, "n_public": 3, "m": 9, "d": 20, "image_shape": SHAPE, "rng": 3}
    plain, cropped = simulate(Scheme(2, 1), **how), simulate(Scheme(2, 1), crops=1, **how)
    np.testing.assert_array_equal(plain.selection.private, cropped.selection.private)
    np.testing.assert_array_equal(plain.public, cropped.public)
    assert not np.array_equal(plain.encodings.values, cropped.encodings.values)


def test_an_epoch_is_that_of_the_released_loop():
    """Against the steps of `train_cross.py`, one by one: every image is padded in black, cut and
    mirrored once; normalised; mixed with a permutation of the same copies and with public images,
    which are left alone. How bright an encoding is has the same mean and spread."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (6, 4, 5, 3)).astype(np.float32) / 255
    p = rng.integers(0, 256, (6, 4, 5, 3)).astype(np.float32) / 255
    mean, std = np.array([0.4914, 0.4822, 0.4465]), np.array([0.2023, 0.1994, 0.2010])
    theirs = (p - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    rows, epochs = [], 400
    for _ in range(epochs):
        copies = []
        for image in x:
            wide = np.pad(image, ((1, 1), (1, 1), (0, 0)))
            down, across = rng.integers(0, 3, 2)
            cut = wide[down : down + 4, across : across + 5]
            copies.append((cut if rng.random() < 0.5 else cut[:, ::-1]) - mean)
        copies = np.array(copies) / std
        lams = np.abs(rng.standard_normal((6, 3)))
        for lam in lams:
            lam /= lam.sum()
            while lam.max() > 0.65 or lam[:2].sum() < 0.3:
                lam[:] = np.abs(rng.standard_normal(3))
                lam /= lam.sum()
        parts = copies, copies[rng.permutation(6)], theirs[rng.permutation(6)]
        rows += list(sum(lams[:, i, None, None, None] * part for i, part in enumerate(parts)))
    sim = simulate(
        Scheme(2, 1, "released", signs="kept", pairing="epochs"),
        private=x.reshape(6, -1),
        public=p.reshape(6, -1),
        m=6 * epochs,
        image_shape=(4, 5, 3),
        flips="epoch",
        crops=1,
        crops_per="epoch",
        units="released",
        rng=6,
    )
    ours = sim.encodings.values.reshape(-1, 4, 5, 3)
    rows = np.array(rows)
    for part in (np.s_[:, :, :], np.s_[:, 0, :], np.s_[:, :, 2]):
        for channel in range(3):
            a, b = (y[part][..., channel].reshape(len(y), -1).mean(axis=1) for y in (ours, rows))
            assert ks_2samp(a, b).pvalue > 1e-4
    # Black is a pixel of 0, not the least pixel of these images; and another fill is told apart.
    other = simulate(
        Scheme(1, signs="kept"),
        private=0.5 + x.reshape(6, -1) / 2,
        m=500,
        image_shape=(4, 5, 3),
        crops=1,
        units=(mean, std),
        rng=6,
    ).encodings.values.reshape(-1, 3)
    np.testing.assert_allclose(other.min(axis=0), -mean / std, rtol=1e-5)


def test_public_images_of_an_epoch_are_not_mirrored():
    x = images(8)
    scheme = Scheme(2, 2, signs="kept", pairing="epochs")
    how = {"private": np.zeros((4, 20)), "public": x, "m": 24, "image_shape": SHAPE, "rng": 3}
    plain, shared = simulate(scheme, **how), simulate(scheme, flips="epoch", **how)
    np.testing.assert_array_equal(plain.encodings.values, shared.encodings.values)
    each = simulate(scheme, flips=True, **how)
    assert not np.array_equal(plain.encodings.values, each.encodings.values)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"crops": 1, "image_shape": None}, "add image_shape="),
        ({"crops": 9}, "smaller than they are"),
        ({"crops": 1, "crops_per": "epoch"}, "without epochs"),
        ({"crops": 1, "crops_per": "day"}, "choose 'use' or 'epoch'"),
    ],
)
def test_what_cannot_be_cropped_is_refused(how, words):
    with pytest.raises(InputError, match=words):
        simulate(Scheme(2), 4, m=9, d=20, rng=0, **({"image_shape": SHAPE} | how))
