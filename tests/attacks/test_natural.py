"""The natural-image attack on bundled images: what comes back, what it says of itself, what it
refuses."""

from dataclasses import replace

import numpy as np
import pytest

import unveil
from unveil.data.bundled import fashion_mnist
from unveil.images.polarity import SURE
from unveil.images.prior import image_prior
from unveil.scoring.images import image_scores

SHAPE = (14, 14)
SCHEME = unveil.Scheme(2, 2, weighting="released", signs="random", pairing="epochs")


def pictures():
    images, _ = fashion_mnist()
    x = images[:, ::2, ::2].reshape(len(images), -1).astype(np.float32) / np.float32(127.5) - 1
    order = np.random.default_rng(0).permutation(len(x))
    return x[order[:12]], x[order[12:]], order


@pytest.fixture(scope="module")
def known():
    """12 private images, 360 encodings, the public images known: with recovery."""
    private, public, _ = pictures()
    sim = unveil.simulate(SCHEME, private=private, public=public, m=360, rng=1, shape=SHAPE)
    return sim, unveil.recover(sim.encodings, public, n_private=12, rng=0)


def test_most_images_come_back_recognisably(known):
    """Fixed seeds; settings were chosen on others, so that failure is a matter of code, not of
    chance."""
    sim, recovery = known
    scores = image_scores(recovery.vectors, sim.private, SHAPE)
    assert recovery.attack == "natural"
    assert scores.mean_ssim > 0.6
    assert scores.share(0.5) > 0.7


def test_nothing_is_called_verified_and_every_image_says_how_sure_it_is(known):
    _, recovery = known
    assert set(recovery.status) == {"unresolved"}
    likeness = np.array(recovery.evidence["likeness"])
    assert likeness.shape == (12,)
    assert ((likeness > 0) & (likeness < 1)).all()
    assert "SSIM" in recovery.reasons[0]


def test_the_likeness_said_follows_the_likeness_there_is(known):
    sim, recovery = known
    scores = image_scores(recovery.vectors, sim.private, SHAPE)
    there = scores.matches >= 0
    said = np.array(recovery.evidence["likeness"])[scores.matches[there]]
    assert abs(said.mean() - scores.ssim[there].mean()) < 0.25


def test_members_and_weights_are_mostly_right(known):
    sim, recovery = known
    matches = image_scores(recovery.vectors, sim.private, SHAPE).matches
    name = np.full(len(recovery), -1)
    name[matches[matches >= 0]] = np.flatnonzero(matches >= 0)
    weights = recovery.weights.tocsr()
    right = 0
    for row in range(sim.encodings.m):
        largest = sim.selection.private[row, sim.selection.weights[row].argmax()]
        right += largest in name[weights.indices[weights.indptr[row] : weights.indptr[row + 1]]]
    assert right / sim.encodings.m > 0.7


def test_same_seed_same_bytes():
    private, public, _ = pictures()
    sim = unveil.simulate(SCHEME, private=private[:6], public=public, m=90, rng=2, shape=SHAPE)
    one, two = (unveil.recover(sim.encodings, like=public, n_private=6, rng=3) for _ in range(2))
    assert one.vectors.tobytes() == two.vectors.tobytes()
    assert one.evidence == two.evidence


def test_labels_name_the_images_classes():
    private, public, order = pictures()
    _, names = fashion_mnist()
    kinds = sorted(set(names))
    classes = np.array([kinds.index(names[i]) for i in order[:12]])
    sim = unveil.simulate(
        SCHEME, private=private, public=public, m=240, rng=4, shape=SHAPE, labels=classes
    )
    recovery = unveil.recover(sim.encodings, public, n_private=12, rng=0)
    assert image_scores(recovery.vectors, private, SHAPE).mean_ssim > 0.5


def test_neither_like_images_nor_their_number_need_be_known():
    private, _, _ = pictures()
    sim = unveil.simulate(
        unveil.Scheme(2, 0, weighting="released"), private=private, m=240, rng=5, shape=SHAPE
    )
    recovery = unveil.recover(sim.encodings, rng=0)
    assert len(recovery) > 0
    assert not recovery.signed  # nothing tells bright from dark


def with_pictures_of_another_kind(seed=9):
    """Private clothes of 28×28 pixels, public images that have a mean of their own and nothing of
    clothes; others like either."""
    rng = np.random.default_rng(seed)
    images = fashion_mnist()[0].reshape(240, -1).astype(np.float32) / np.float32(127.5) - 1
    clothes = images[rng.permutation(240)]
    side = np.tile(np.linspace(-0.25, 0.25, 28), 28)
    public = np.clip(0.6 * image_prior((28, 28)).draw(800, rng) + side, -1, 1)
    scheme = unveil.Scheme(2, 2, weighting="released", pairing="epochs")
    sim = unveil.simulate(
        scheme, private=clothes[:16], public=public[:400], m=800, rng=seed, shape=(28, 28)
    )
    return sim, public[400:], clothes[16:]


def test_private_images_with_a_mean_of_their_own_come_back_with_one_sign_or_say_so():
    sim, like, _ = with_pictures_of_another_kind()
    recovery = unveil.recover(sim.encodings, attack="natural", like=like, n_private=16, rng=0)
    right, turned = (
        image_scores(sign * recovery.vectors, sim.private, (28, 28)).mean_ssim for sign in (1, -1)
    )
    assert max(right, turned) > 0.7
    assert recovery.signed == (recovery.evidence["polarity"] > SURE)
    assert recovery.signed or "a negative counts" in recovery.explanation
    assert right > turned or not recovery.signed


def test_other_images_of_the_private_kind_can_be_given():
    sim, like, others = with_pictures_of_another_kind()
    recovery = unveil.recover(
        sim.encodings, attack="natural", like=like, private_like=others, n_private=16, rng=0
    )
    assert image_scores(recovery.vectors, sim.private, (28, 28)).mean_ssim > 0.6
    with pytest.raises(unveil.InputError, match="private_like images have 100 pixels"):
        unveil.recover(
            sim.encodings, attack="natural", private_like=others[:, :100], n_private=16, rng=0
        )


def test_mirrored_images_are_merged():
    private, public, _ = pictures()
    sim = unveil.simulate(
        SCHEME, private=private[:6], public=public, m=180, rng=6, shape=SHAPE, flips=True
    )
    recovery = unveil.recover(sim.encodings, public, n_private=6, flips=True, rng=0)
    assert len(recovery) == 6
    assert recovery.members.shape == (180, 6)


def test_encodings_that_share_nothing_give_nothing_or_nothing_sure():
    rng = np.random.default_rng(7)
    noise = np.abs(rng.standard_normal((60, 64))).astype(np.float32)
    recovery = unveil.recover(unveil.Encodings(noise, SCHEME, None, (8, 8)), n_private=5, rng=0)
    assert not recovery.verified.any()


def test_what_it_cannot_take_it_refuses_in_a_sentence():
    private, public, _ = pictures()
    sim = unveil.simulate(SCHEME, private=private, public=public, m=24, rng=8)
    with pytest.raises(unveil.InputError, match="shape"):
        unveil.recover(sim.encodings, public, attack="natural")
    with pytest.raises(unveil.InputError, match=r"like= says nothing .*image_shape="):
        unveil.recover(sim.encodings, attack="paper", like=public)
    sim = unveil.simulate(SCHEME, private=private, public=public, m=24, rng=8, shape=SHAPE)
    with pytest.raises(unveil.InputError, match=r"n_private=12\.0: give the number"):
        unveil.recover(sim.encodings, public, attack="natural", n_private=12.0)
    with pytest.raises(unveil.InputError, match="all like images are the same"):
        unveil.recover(sim.encodings, attack="natural", like=0 * public)
    none = replace(sim.encodings, scheme=replace(SCHEME, k_private=0))
    with pytest.raises(unveil.InputError, match="k_private=0"):
        unveil.recover(none, attack="natural")
    with pytest.raises(unveil.InputError, match="n_private=1"):
        unveil.recover(sim.encodings, public, attack="natural", n_private=1)
    with pytest.raises(unveil.InputError, match="memory limit"):
        unveil.recover(sim.encodings, public, attack="natural", n_private=12, memory_limit=1000)
    with pytest.raises(unveil.InputError, match="same size"):
        unveil.recover(sim.encodings, attack="natural", like=public[:, :100], n_private=12)
    with pytest.raises(unveil.InputError, match="like"):
        unveil.recover(sim.encodings, public, attack="full", like=public)


def test_public_white_noise_has_rounds_of_its_own_and_settles_no_sign(monkeypatch):
    from unveil.images import white_rounds

    monkeypatch.setattr(white_rounds, "CYCLES", 2)
    rng = np.random.default_rng(0)
    private = np.clip(image_prior((16, 16)).draw(6, rng), -1, 1)
    noise = rng.uniform(-1, 1, (900, 256)).astype(np.float32)
    sim = unveil.simulate(
        unveil.Scheme(2, 2, "released", pairing="epochs", signs="random"),
        private=private, public=noise[:400], m=300, rng=1, image_shape=(16, 16),
    )  # fmt: skip
    found = unveil.recover(
        sim.encodings, attack="natural", like=noise[400:], n_private=6, units="[-1,1]", rng=0
    )
    assert found.vectors.shape == (6, 256)
    assert not found.signed
    assert "which it is was not settled" in found.explanation
    # How sure encodings are is what tells here, and whether images come back again.
    assert np.abs(found.evidence["again"]).max() <= 1
    assert 0 < np.sum(found.evidence["recognisable"]) <= 6
