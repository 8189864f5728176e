"""What rows of an epoch share: the conditional mean of a Gaussian written out, and images that get
better when it is taken out."""

import numpy as np
import pytest
from scipy import sparse

from unveil.images.epochs import Epochs
from unveil.images.prior import image_prior
from unveil.images.reweigh import whiten
from unveil.images.shared_public import ALONE, LEAST, shared_part, without_shared
from unveil.images.sign_fields import Mixture
from unveil.images.task import ImageTask, RoundState, Weighing, WeightLaw
from unveil.scheme import Scheme

SHAPE, N, T = (12, 12), 8, 30


@pytest.fixture(scope="module")
def problem():
    """Signed encodings of epochs: private images, and public ones each in four rows of its epoch."""
    rng = np.random.default_rng(0)
    prior = image_prior(SHAPE, image_prior(SHAPE).draw(800, rng) + np.float32(0.1))
    images = prior.draw(N, rng)
    m = N * T
    A, z = np.zeros((m, N), np.float32), np.zeros((m, 144), np.float32)
    for epoch in range(T):
        rows = np.arange(epoch * N, epoch * N + N)
        weights = rng.dirichlet(np.full(6, 2.0), N).astype(np.float32)
        for slot in range(2):
            np.add.at(A, (rows, rng.permutation(N)), weights[:, slot])
        public = prior.draw(N, rng)
        for slot in range(2, 6):
            z[rows] += weights[:, slot, None] * public[rng.permutation(N)]
    z += A @ images
    return prior, images, sparse.csr_array(A), z, Epochs(np.arange(m) // N, N, 2)


def test_the_part_is_the_conditional_mean_written_out(problem):
    prior, images, A, z, epochs = problem
    part = shared_part(np.abs(z), z, A, images, prior, epochs)
    rows = slice(N, 2 * N)
    known = (1 - A[rows].toarray().sum(axis=1, keepdims=True)) * prior.mean
    residual = z[rows] - A[rows] @ images - known
    r = (residual @ whiten(prior)).astype(np.float64)
    C = r @ r.T / r.shape[1]
    C[~np.eye(N, dtype=bool)] *= 1 - ALONE
    for i in range(N):
        others = np.arange(N) != i
        tells = np.linalg.solve(C[np.ix_(others, others)], C[others, i])
        np.testing.assert_allclose(
            part.offsets[N + i], known[i] + tells @ residual[others], atol=1e-3
        )
        left = max(C[i, i] - tells @ C[others, i], LEAST)
        np.testing.assert_allclose(part.left[N + i], left, rtol=1e-2)


def test_most_of_the_public_part_is_told_by_other_rows(problem):
    prior, images, A, z, epochs = problem
    part = shared_part(np.abs(z), z, A, images, prior, epochs)
    public = z - A @ images
    error = ((public - part.offsets) ** 2).sum() / ((public - public.mean(axis=0)) ** 2).sum()
    assert error < 0.5


def test_images_get_better_and_weights_stay(problem):
    prior, images, A, z, epochs = problem
    rng = np.random.default_rng(1)
    scheme = Scheme(2, 4, "released")
    Y = np.abs(z)
    task = ImageTask(Y, scheme, WeightLaw.of(scheme, rng), prior, None, shape=SHAPE)
    squares = sparse.csr_array(A.multiply(A))
    off = (images + 0.2 * prior.draw(N, rng)).astype(np.float32)
    m = len(Y)
    weighing = Weighing(
        A, squares, np.zeros((m, 2), np.int64), np.zeros((m, 2), np.float32), np.ones(m, np.float32)
    )
    state = RoundState(off, z.copy(), Mixture(A, np.full(m, 0.1, np.float32)), weighing)
    steps = []
    better = without_shared(task, state, epochs, lambda *said: steps.append(said))
    assert ((better.images - images) ** 2).mean() < 0.5 * ((off - images) ** 2).mean()
    assert better.weighing is weighing
    assert steps[-1][1] == steps[-1][2]
