"""Public images among candidates: planted ones exactly, decoys never, what is not there as
noise."""

import numpy as np
import pytest
from scipy import sparse

from unveil.images.prior import ImagePrior, image_prior
from unveil.images.public_part import BLOCK, find_public_part
from unveil.parallel import using


def problem(m=120, candidates=150, k_public=2, mean=0.0, seed=0):
    """Prior, candidates, private weights and images, the public indices and weights, z."""
    rng = np.random.default_rng(seed)
    generic = image_prior((16, 16))
    # As photographs in colour, every component above the floor of whitening.
    variances = np.geomspace(30, 0.5, 256).astype(np.float32)
    prior = ImagePrior(
        generic.mean + np.float32(mean), generic.basis, variances, generic.pixel, bool(mean)
    )

    public, images = prior.draw(candidates, rng), prior.draw(8, rng)
    indices = rng.permuted(np.tile(np.arange(candidates), (m, 1)), axis=1)[:, :k_public]
    weights = rng.dirichlet(np.full(2 + k_public, 12.0), m).astype(np.float32)
    L = np.zeros((m, 8), np.float32)
    np.put_along_axis(
        L, rng.permuted(np.tile(np.arange(8), (m, 1)), axis=1)[:, :2], weights[:, :2], axis=1
    )
    weights = weights[:, 2:]
    z = L @ images + np.einsum("ij,ijd->id", weights, public[indices])
    return prior, public, sparse.csr_array(L), images, indices, weights, z.astype(np.float32)


def run(prior, public, L, images, z, k_public=2):
    total = (1 - np.asarray(L.sum(axis=1)).ravel()).astype(np.float32)
    return find_public_part(np.abs(z), z, L, images, public, prior, k_public, total)


def dense(indices, weights, candidates):
    out = np.zeros((len(indices), candidates))
    for row, (places, values) in enumerate(zip(indices, weights, strict=True)):
        out[row, places[places >= 0]] = values[places >= 0]
    return out


@pytest.mark.parametrize(("k_public", "mean"), [(1, 0.0), (2, 0.0), (2, 0.3), (3, 0.3)])
def test_planted_candidates_are_found_with_their_weights_when_signs_are_true(k_public, mean):
    prior, public, L, images, indices, weights, z = problem(k_public=k_public, mean=mean)
    found = run(prior, public, L, images, z, k_public)
    np.testing.assert_array_equal(np.sort(found.indices, axis=1), np.sort(indices, axis=1))
    np.testing.assert_allclose(
        dense(found.indices, found.weights, 150), dense(indices, weights, 150), atol=2e-3
    )
    np.testing.assert_allclose(found.rest, 0, atol=3e-3)
    np.testing.assert_allclose(found.offsets, z - L @ images, atol=0.02)


@pytest.mark.parametrize("mean", [0.0, 0.3])
def test_nothing_is_found_among_decoys(mean):
    prior, _, L, images, _, weights, z = problem(mean=mean)
    decoys = problem(mean=mean, candidates=2000, m=1, seed=9)[1]
    found = run(prior, decoys, L, images, z)
    assert (found.indices == -1).all()
    assert not found.weights.any()
    np.testing.assert_allclose(found.rest, weights.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(found.offsets, found.rest[:, None] * prior.mean, atol=1e-6)


def test_one_of_two_is_found_where_the_other_is_no_candidate():
    prior, public, L, images, indices, _, z = problem()
    known = indices < 75
    found = run(prior, public[:75], L, images, z)
    truth = [set(row[mask].tolist()) for row, mask in zip(indices, known, strict=True)]
    got = [set(row[row >= 0].tolist()) for row in found.indices]
    assert all(g <= t for g, t in zip(got, truth, strict=True))
    assert sum(map(len, got)) > 0.7 * known.sum()
    assert (found.rest >= 0).all()


def test_nothing_at_all_is_left_where_there_is_no_public_part():
    prior, public, L, images, _, _, _ = problem()
    whole = sparse.csr_array(sparse.diags_array(1 / np.asarray(L.sum(axis=1)).ravel()) @ L)
    found = run(prior, public, whole, images, (whole @ images).astype(np.float32))
    np.testing.assert_allclose(found.weights, 0, atol=1e-4)
    np.testing.assert_allclose(found.offsets, 0, atol=1e-3)


def test_weights_never_exceed_what_public_images_have_together():
    prior, public, L, images, _, weights, z = problem()
    total = (0.8 * weights.sum(axis=1)).astype(np.float32)
    found = find_public_part(np.abs(z), z, L, images, public, prior, 2, total)
    assert (found.weights.sum(axis=1) <= total + 1e-5).all()
    assert (found.weights >= 0).all()


def test_soft_signs_with_errors_among_them_do():
    prior, public, L, images, indices, _, z = problem()
    rng = np.random.default_rng(3)
    small = np.abs(z) < np.quantile(np.abs(z), 0.15)
    E = np.where(small & (rng.random(z.shape) < 0.4), -z, z) * rng.uniform(0.7, 1, z.shape)
    total = (1 - np.asarray(L.sum(axis=1)).ravel()).astype(np.float32)
    found = find_public_part(np.abs(z), E.astype(np.float32), L, images, public, prior, 2, total)
    hits = found.indices[found.indices >= 0]
    right = (found.indices[:, :, None] == indices[:, None]).any(axis=2)[found.indices >= 0]
    assert len(hits) > 0.7 * indices.size
    assert right.mean() > 0.98


def test_order_blocks_and_workers_only_move_the_result():
    prior, public, L, images, _, _, z = problem(m=BLOCK + 20)
    rows, columns = (
        np.random.default_rng(1).permutation(len(z)),
        np.random.default_rng(2).permutation(150),
    )
    with using(workers=1):
        one = run(prior, public, L, images, z)
    with using(workers=2):
        other = run(prior, public[columns], sparse.csr_array(L[rows]), images, z[rows])
    np.testing.assert_array_equal(columns[other.indices], one.indices[rows])
    np.testing.assert_allclose(other.weights, one.weights[rows], atol=1e-4)


def test_no_candidate_is_taken_twice_where_its_weight_is_at_the_bound():
    prior, public, _, images, indices, _, _ = problem()
    L = sparse.csr_array(np.eye(8, dtype=np.float32)[np.arange(120) % 8] * np.float32(0.1))
    z = L @ images + np.float32(0.9) * public[indices[:, 0]]
    found = run(prior, public, L, images, z.astype(np.float32))
    np.testing.assert_array_equal(found.indices[:, 0], indices[:, 0])
    assert (found.indices[:, 1] != found.indices[:, 0]).all()
