"""The natural-image attack on bundled images: what comes back, what it says of itself, what it
refuses."""

import numpy as np
import pytest

import unveil
from unveil.data.bundled import fashion_mnist
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
    sim = unveil.simulate(SCHEME, private=private, public=public, m=24, rng=8, shape=SHAPE)
    with pytest.raises(unveil.InputError, match="n_private=1"):
        unveil.recover(sim.encodings, public, attack="natural", n_private=1)
    with pytest.raises(unveil.InputError, match="memory limit"):
        unveil.recover(sim.encodings, public, attack="natural", n_private=12, memory_limit=1000)
    with pytest.raises(unveil.InputError, match="same size"):
        unveil.recover(sim.encodings, attack="natural", like=public[:, :100], n_private=12)
    with pytest.raises(unveil.InputError, match="like"):
        unveil.recover(sim.encodings, public, attack="full", like=public)
