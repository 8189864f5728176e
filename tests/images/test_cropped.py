"""Images that were cropped at random before they were mixed, from encodings to images."""

import numpy as np
import pytest

import unveil
from unveil.images.prior import image_prior
from unveil.scoring.images import image_scores

SHAPE = (24, 24)
PRIOR = image_prior(SHAPE)
SCHEME = unveil.Scheme(2, 1, weighting="released", signs="random", pairing="epochs")


@pytest.fixture(scope="module")
def cropped():
    rng = np.random.default_rng(3)
    private, public = (np.clip(PRIOR.draw(count, rng), -1, 1) for count in (8, 300))
    private[:, 0] = -1  # black is the least value there is
    sim = unveil.simulate(
        SCHEME, private=private, public=public, m=320, rng=1, image_shape=SHAPE, crops=1
    )
    return sim, np.clip(PRIOR.draw(300, rng), -1, 1)


def recovered(cropped, **options):
    sim, like = cropped
    found = unveil.recover(
        sim.encodings, attack="natural", like=like, n_private=8, units="[-1,1]", rng=0, **options
    )
    return found, image_scores(found.vectors, sim.private, SHAPE)


def test_images_come_back_where_crops_are_told(cropped):
    """Fixed seeds: half of eight small images, from forty encodings of each."""
    told, scores = recovered(cropped, crops=1)
    assert len(told) <= 8
    assert scores.mean_ssim > 0.4
    assert set(told.status) == {"unresolved"}
    assert told.members.shape == (320, len(told))
    # Nothing was learned on crops: what is claimed may be wrong, and that is said.
    said = np.sum(told.evidence["recognisable"]) / 8
    assert said < scores.share(0.5) + 0.3
    assert "may be wrong" in told.explanation


def test_what_crops_need_is_asked_for_in_a_sentence(cropped):
    with pytest.raises(unveil.InputError, match="smaller than they are"):
        recovered(cropped, crops=24)
    sim, _ = cropped
    unknown = unveil.Scheme(2, 1, weighting="unknown", signs="random")
    encodings = unveil.Encodings(sim.encodings.values, unknown, None, SHAPE)
    with pytest.raises(unveil.InputError, match="needs the law of weights"):
        unveil.recover(encodings, attack="natural", crops=1, n_private=8, rng=0)
