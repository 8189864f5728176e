"""A start among white noise: images come back up to one sign of all, a bright sky over dark ground
included."""

import numpy as np

from unveil.images.prior import image_prior, smooth_prior
from unveil.images.task import ImageTask, WeightLaw
from unveil.images.white_start import white_start
from unveil.scheme import Scheme

SHAPE = (16, 16)


def test_what_images_have_in_common_turns_no_half_of_them():
    rng = np.random.default_rng(0)
    n, m, d = 12, 900, 256
    sky = np.repeat(np.where(np.arange(16) < 8, 0.5, -0.5), 16)
    images = np.clip(0.7 * smooth_prior(SHAPE).draw(n, rng) + sky, -1, 1)
    A = np.zeros((m, n), np.float32)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    np.put_along_axis(A, members, rng.uniform(0.15, 0.45, (m, 2)).astype(np.float32), axis=1)
    Y = np.abs(A @ images + 0.1 * rng.standard_normal((m, d))).astype(np.float32)
    scheme = Scheme(2, 4, "released")
    prior = image_prior(SHAPE, rng.uniform(-1, 1, (400, d)).astype(np.float32))
    task = ImageTask(Y, scheme, WeightLaw.of(scheme, rng), prior, None, shape=SHAPE)
    found = white_start(task, A, A**2, rng)
    likeness = [np.corrcoef(a, b)[0, 1] for a, b in zip(found, images, strict=True)]
    assert abs(np.median(likeness)) > 0.85
    # None is a negative of the others, and no half of any.
    assert min(np.array(likeness) * np.sign(np.median(likeness))) > 0.25
