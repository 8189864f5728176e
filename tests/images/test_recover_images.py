"""The image attack through its public function: what comes back, what it says of itself, and what it
refuses. Bundled clothes of 14×14 pixels; fixed seeds."""

from dataclasses import replace

import numpy as np
import pytest

import unveil
from unveil.data.bundled import fashion_mnist
from unveil.encode.units import KNOWN

SHAPE = (14, 14)
SCHEME = unveil.Scheme(2, 2, weighting="released", signs="random", pairing="epochs")


def pictures():
    images, _ = fashion_mnist()
    x = images[:, ::2, ::2].reshape(len(images), -1).astype(np.float32) / np.float32(127.5) - 1
    order = np.random.default_rng(0).permutation(len(x))
    return x[order[:12]], x[order[12:]], order


def simulate(m=360, scheme=SCHEME, n=12, **more):
    private, public, _ = pictures()
    return unveil.simulate(
        scheme, private=private[:n], public=public if scheme.k_public else None, m=m, rng=1,
        image_shape=SHAPE, **more,
    )  # fmt: skip


def ssim(recovery, sim):
    return unveil.image_scores(recovery.vectors, sim.private, SHAPE)


@pytest.fixture(scope="module")
def known():
    """360 encodings of 12 images, the candidates for public images known."""
    sim = simulate()
    return sim, unveil.recover(sim.encodings, sim.public, n_private=12, rng=0)


def test_images_come_back_and_say_how_sure_they_are(known):
    sim, recovery = known
    scores = ssim(recovery, sim)
    assert recovery.attack == "natural"
    assert scores.mean_ssim > 0.85
    assert set(recovery.status) == {"unresolved"}
    said = np.array(recovery.evidence["likeness"])[scores.matches]
    assert abs(said.mean() - scores.mean_ssim) < 0.2
    assert "SSIM" in recovery.reasons[0]
    assert recovery.evidence["public_images_found"] > 0.6


def test_members_and_weights_are_those_that_were_mixed(known):
    sim, recovery = known
    name = np.full(len(recovery), -1)
    matches = ssim(recovery, sim).matches
    name[matches] = np.arange(12)
    best = np.asarray(recovery.weights.tocsr().argmax(axis=1)).ravel()
    heaviest = sim.selection.private[np.arange(360), sim.selection.weights.argmax(axis=1)]
    assert np.mean(name[best] == heaviest) > 0.8
    # Weights of the law: the mean private weight is right to a tenth.
    assert recovery.weights.data.mean() == pytest.approx(sim.selection.weights.mean(), rel=0.1)


def test_like_images_do_and_the_same_seed_gives_the_same_bytes():
    sim = simulate(m=240, n=8)
    like = sim.public
    one, two = (unveil.recover_images(sim.encodings, like=like, n_private=8, rng=3) for _ in "ab")
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert one.evidence == two.evidence


def test_labels_are_used_and_those_that_cannot_be_are_said_to_be_left_out():
    _, names = fashion_mnist()
    kinds = sorted(set(names))
    order = pictures()[2]
    classes = np.array([kinds.index(names[i]) for i in order[:12]])
    sim = simulate(m=300, labels=classes)
    recovery = unveil.recover_images(sim.encodings, sim.public, n_private=12, rng=0)
    assert ssim(recovery, sim).mean_ssim > 0.8
    wrong = np.ones((300, 3), np.float32)
    wrong[:, 0] = 2
    recovery = unveil.recover_images(sim.encodings, sim.public, n_private=12, labels=wrong, rng=0)
    assert "not used" in recovery.explanation


def test_without_public_images_or_their_number_or_like_ones():
    sim = simulate(m=300, scheme=unveil.Scheme(2, 0, weighting="released", pairing="epochs"))
    recovery = unveil.recover_images(sim.encodings, like=pictures()[1], n_private=12, rng=0)
    assert ssim(recovery, sim).mean_ssim > 0.5  # .55 or .68, by how products are rounded
    recovery = unveil.recover_images(sim.encodings, rng=0)
    assert len(recovery) >= 6
    assert not recovery.signed  # nothing tells bright from dark


def test_an_unknown_law_is_found_out():
    sim = simulate()
    blind = replace(sim.encodings, scheme=replace(SCHEME, weighting="unknown"))
    recovery = unveil.recover_images(blind, sim.public, n_private=12, rng=0)
    assert recovery.evidence["weighting"] in ("released", "uniform", "dirichlet", "sorted")
    assert ssim(recovery, sim).mean_ssim > 0.7


def test_mirrored_images_come_back_once_and_crops_where_most_copies_have_them():
    sim = simulate(m=400, n=8, flips=True)
    recovery = unveil.recover_images(sim.encodings, like=sim.public, n_private=8, flips=True, rng=0)
    mirrored = sim.private.reshape(8, *SHAPE)[:, :, ::-1].reshape(8, -1)
    either = ssim(recovery, sim).better(unveil.image_scores(recovery.vectors, mirrored, SHAPE))
    assert len(recovery) == 8
    assert either.mean_ssim > 0.6
    assert "which way round" in recovery.explanation
    sim = simulate(m=320, n=8, crops=1, crops_per="epoch")
    recovery = unveil.recover_images(sim.encodings, like=sim.public, n_private=8, crops=1, rng=0)
    assert ssim(recovery, sim).mean_ssim > 0.5


@pytest.mark.parametrize(("units", "stated"), [("cifar10", False), ("[0,1]", True)])
def test_units_are_found_out_or_stated(units, stated):
    private, public, _ = pictures()
    sim = unveil.simulate(
        SCHEME, private=KNOWN[units].mixed(private[:8], SHAPE),
        public=KNOWN[units].mixed(public, SHAPE), m=240, rng=1, image_shape=SHAPE,
    )  # fmt: skip
    recovery = unveil.recover_images(
        sim.encodings, like=public, n_private=8, units=units if stated else None, rng=0
    )
    assert recovery.evidence["units"] == units
    assert np.abs(recovery.vectors).max() <= 1
    assert unveil.image_scores(recovery.vectors, private[:8], SHAPE).mean_ssim > 0.4


def test_noise_is_not_claimed_to_be_images():
    rng = np.random.default_rng(7)
    noise = np.abs(rng.standard_normal((200, 64))).astype(np.float32) / 4
    encodings = unveil.Encodings(noise, SCHEME, None, (8, 8))
    recovery = unveil.recover_images(encodings, n_private=5, rng=0)
    assert not recovery.verified.any()
    assert np.mean(recovery.evidence["recognisable"]) < 0.3


def test_what_it_cannot_take_it_refuses_in_a_sentence():
    private, public, _ = pictures()
    plain = unveil.simulate(SCHEME, private=private, public=public, m=24, rng=8)
    with pytest.raises(unveil.InputError, match="image_shape"):
        unveil.recover(plain.encodings, public, attack="natural")
    with pytest.raises(unveil.InputError, match=r"takes no n_private=.*image_shape="):
        unveil.recover(plain.encodings, attack="paper", n_private=5)
    encodings = simulate(m=24).encodings
    for options, words in (
        ({"n_private": 12.0}, r"n_private=12\.0: give the number"),
        ({"n_private": 1}, "n_private=1"),
        ({"like": 0 * public}, "all the same"),
        ({"like": public[:, :100]}, "same size"),
        ({"n_private": 12, "memory_limit": 1000}, "memory limit"),
        ({"crops": 14}, "crops=14"),
        ({"units": "furlongs"}, "units='furlongs'"),
        ({"labels": np.ones((5, 3))}, "5 labels of 24"),
    ):
        with pytest.raises(unveil.InputError, match=words):
            unveil.recover_images(encodings, **options)
    none = replace(encodings, scheme=replace(SCHEME, k_private=0))
    with pytest.raises(unveil.InputError, match="k_private=0"):
        unveil.recover_images(none)
