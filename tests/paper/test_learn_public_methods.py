"""LearnPublic: one call for every method and everything unknown, checked input, edge cases."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, learn_public, simulate
from unveil.checks import InputError
from unveil.paper.learn_public import METHODS
from unveil.scheme import FIXED_WEIGHTINGS


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_truth_at_generous_d(method, weighting):
    sim = simulate(Scheme(2, 2, weighting, "random"), 10, n_public=20, m=12, d=8000, rng=3)
    supports = learn_public(sim.encodings, sim.public, method=method)
    np.testing.assert_array_equal(supports.indices, sim.selection.public)
    assert supports.method == method
    assert supports.confidence.shape == (12,)
    assert ((supports.confidence > 0) & (supports.confidence <= 1)).all()


@pytest.mark.parametrize("method", ["folded-em", "diagonal", "sdp"])
def test_a_single_public_vector_per_encoding_is_found(method):
    sim = simulate(Scheme(2, 1), 10, n_public=10, m=12, d=20_000, rng=1)
    np.testing.assert_array_equal(
        learn_public(sim.encodings, sim.public, method=method).indices, sim.selection.public
    )


@pytest.mark.parametrize("method", METHODS)
def test_no_public_part_means_empty_supports(method):
    encodings = Encodings(np.ones((4, 6)), Scheme(2, 0))
    for public in (None, np.ones((3, 6))):
        supports = learn_public(encodings, public, method=method)
        assert supports.indices.shape == (4, 0)
        assert supports.confidence.tolist() == [1.0] * 4


def test_a_memory_limit_does_not_change_supports():
    sim = simulate(Scheme(2, 2), 10, n_public=50, m=12, d=500, rng=3)
    tight = learn_public(sim.encodings, sim.public, memory_limit=10_000)
    np.testing.assert_array_equal(tight.indices, learn_public(sim.encodings, sim.public).indices)


@pytest.mark.parametrize("d", [100, 1000])
def test_permuting_public_vectors_permutes_supports(d):
    sim = simulate(Scheme(2, 2), 10, n_public=200, m=40, d=d, rng=4)
    order = np.random.default_rng(0).permutation(200)
    there, here = (
        learn_public(sim.encodings, sim.public[order]),
        learn_public(sim.encodings, sim.public),
    )
    np.testing.assert_array_equal(np.sort(order[there.indices], axis=1), here.indices)
    np.testing.assert_allclose(there.confidence, here.confidence, atol=1e-3)


def test_the_sdp_reports_every_encoding_as_progress():
    sim = simulate(Scheme(2, 2), 10, n_public=8, m=3, d=500, rng=4)
    seen = []
    learn_public(sim.encodings, sim.public, method="sdp", progress=lambda *step: seen.append(step))
    assert seen == [("learn public", i, 3) for i in (1, 2, 3)]


@pytest.mark.parametrize(
    ("public", "method", "complaint"),
    [
        (
            np.ones((5, 6)),
            "guess",
            "method=.guess.: choose one of folded-em, diagonal, sdp, fast, printed",
        ),
        (None, "diagonal", "no public vectors"),
        (np.ones((5, 7)), "diagonal", "7 pixels, encodings 6"),
        (np.ones((1, 6)), "sdp", "k_public=2 of only 1"),
        (np.full((5, 6), np.nan), "diagonal", "public: the value at row 0"),
        (np.ones((1001, 6)), "sdp", "n_public=1001.*use method=.folded-em."),
    ],
)
def test_bad_input_is_refused_in_one_sentence(public, method, complaint):
    with pytest.raises(InputError, match=complaint):
        learn_public(Encodings(np.ones((4, 6)), Scheme(2, 2)), public, method=method)


def test_a_memory_limit_of_nothing_is_refused():
    with pytest.raises(InputError, match="memory_limit=0"):
        learn_public(Encodings(np.ones((4, 6)), Scheme(2, 2)), np.ones((5, 6)), memory_limit=0)


def same(supports, truth):
    pairs = zip(supports.indices, truth.tolist(), strict=True)
    return np.array(
        [sorted(set(found[found >= 0].tolist())) == sorted(set(true)) for found, true in pairs]
    )


@pytest.mark.parametrize(
    ("wrong", "options"),
    [(2, {"k_public": None}), (3, {"k_public": None}), (0, {"k_public": None})],
)
def test_an_unknown_number_of_public_vectors_is_estimated(wrong, options):
    sim = simulate(Scheme(2, 2), 20, n_public=300, m=40, d=1500, rng=5)
    supports = learn_public(
        Encodings(sim.encodings.values, Scheme(2, wrong)), sim.public, **options
    )
    np.testing.assert_array_equal(supports.indices, sim.selection.public)
    assert supports.certain.mean() > 0.9


@pytest.mark.parametrize("wrong", [1, 3])
def test_a_wrong_number_of_public_vectors_is_told_and_nothing_is_certain(wrong):
    sim = simulate(Scheme(2, 2), 20, n_public=300, m=40, d=1500, rng=5)
    supports = learn_public(Encodings(sim.encodings.values, Scheme(2, wrong)), sim.public)
    assert f"k_public={wrong} does not fit" in supports.warning
    assert "look like k_public=2" in supports.warning
    assert not supports.certain.any()
    assert learn_public(sim.encodings, sim.public).warning == ""


def test_no_public_part_at_all_is_no_support_that_is_certain():
    sim = simulate(Scheme(2, 0), 20, m=20, d=600, rng=0)
    public = np.random.default_rng(0).standard_normal((300, 600))
    supports = learn_public(sim.encodings, public, k_public=None)
    assert supports.indices.shape == (20, 0)
    assert "no public vector stands out" in supports.warning
    assert not supports.certain.any()


@pytest.mark.parametrize("k_public", ["scheme", None])
def test_unknown_weights_are_learned_with_the_support(k_public):
    rng = np.random.default_rng(0)
    P = rng.standard_normal((300, 2000))
    truth = np.sort([rng.choice(300, 2, replace=False) for _ in range(30)], axis=1)
    weights = rng.uniform(0.5, 1, (30, 2))
    Y = np.einsum("mk,mkd->md", weights, P[truth]) + 0.7 * rng.standard_normal((30, 2000))
    supports = learn_public(Encodings(Y, Scheme(2, 2)), P, k_public=k_public, weights="unknown")
    right = same(supports, truth)
    assert right.mean() >= 0.95
    np.testing.assert_allclose(supports.weights[right][:, :2], weights[right], atol=0.12)
    assert not (supports.certain & ~right).any()
    assert supports.certain.mean() > 0.9 if k_public else not supports.certain.any()


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
def test_without_a_private_part_the_weights_are_exact(weighting):
    scheme = Scheme(0, 3, weighting)
    sim = simulate(scheme, 0, n_public=300, m=30, d=300, rng=0)
    supports = learn_public(sim.encodings, sim.public)
    right = same(supports, sim.selection.public)
    assert supports.certain.mean() >= 0.9
    assert right[supports.certain].all()
    np.testing.assert_allclose(
        np.abs(supports.weights[supports.certain][:, :3]), scheme.public_weight, atol=1e-5
    )


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_noise_is_part_of_what_is_unknown(noise):
    sim = simulate(Scheme(2, 2), 20, n_public=300, m=40, d=3000, noise=noise, rng=6)
    supports = learn_public(sim.encodings, sim.public)
    np.testing.assert_array_equal(supports.indices, sim.selection.public)
    assert supports.certain.mean() > 0.9


def test_vectors_of_any_scale_will_do():
    sim = simulate(Scheme(2, 2), 20, n_public=300, m=40, d=2000, rng=6)
    scaled = simulate(Scheme(2, 2), private=50 * sim.private, public=40 * sim.public, m=40, rng=6)
    assert scaled.encodings.pixel_rms is None
    supports = learn_public(scaled.encodings, scaled.public)
    np.testing.assert_array_equal(supports.indices, scaled.selection.public)
    assert supports.certain.mean() > 0.9


def test_duplicates_are_reported_and_the_first_stands_for_all():
    sim = simulate(Scheme(2, 2), 20, n_public=100, m=40, d=1500, rng=7)
    public = np.concatenate([sim.public, sim.public[[3, 50, 3]]])
    supports = learn_public(sim.encodings, public)
    assert supports.interchangeable == ((3, 100, 102), (50, 101))
    np.testing.assert_array_equal(supports.indices, sim.selection.public)
    assert supports.certain.mean() > 0.9


def test_an_encoding_of_two_copies_is_not_certain():
    rng = np.random.default_rng(8)
    P = rng.standard_normal((100, 1500))
    P[99] = P[0]
    Y = np.abs(0.5 * (P[[0] * 10] + P[[99] * 10]) + np.sqrt(0.5) * rng.standard_normal((10, 1500)))
    assert not learn_public(Encodings(Y, Scheme(2, 2)), P).certain.any()


def test_a_public_vector_of_zeros_is_never_selected():
    sim = simulate(Scheme(2, 2), 20, n_public=50, m=60, d=1000, rng=9)
    public = np.insert(sim.public, 20, 0, axis=0)
    supports = learn_public(sim.encodings, public)
    truth = sim.selection.public + (sim.selection.public >= 20)
    np.testing.assert_array_equal(supports.indices, truth)
    assert not (supports.indices == 20).any()


def test_an_encoding_of_zeros_is_not_certain():
    sim = simulate(Scheme(2, 2), 20, n_public=50, m=10, d=500, rng=9)
    Y = sim.encodings.values.copy()
    Y[4] = 0
    for weights in ("scheme", "unknown"):
        supports = learn_public(Encodings(Y, Scheme(2, 2)), sim.public, weights=weights)
        assert not supports.certain[4]
        assert np.isfinite(supports.confidence).all()


@pytest.mark.parametrize("n_public", [2, 3])
def test_hardly_any_choice_is_no_problem(n_public):
    sim = simulate(Scheme(2, 2), 10, n_public=n_public, m=8, d=2000, rng=1)
    np.testing.assert_array_equal(
        learn_public(sim.encodings, sim.public).indices, sim.selection.public
    )


def test_a_memory_mapped_file_gives_the_same_bytes(tmp_path):
    sim = simulate(Scheme(2, 2), 10, n_public=200, m=20, d=300, rng=2)
    np.save(tmp_path / "public.npy", sim.public)
    mapped = learn_public(
        sim.encodings, np.load(tmp_path / "public.npy", mmap_mode="r"), memory_limit=1 << 20
    )
    here = learn_public(sim.encodings, sim.public)
    assert mapped.indices.tobytes() == here.indices.tobytes()
    assert mapped.confidence.tobytes() == here.confidence.tobytes()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"k_public": 3}, "k_public=3: say it in the Scheme"),
        ({"weights": "mine"}, "weights='mine': choose one of scheme, unknown"),
        ({"method": "diagonal", "k_public": None}, "method='diagonal' needs k_public"),
        ({"workers": 0}, "workers=0"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(options, complaint):
    with pytest.raises(InputError, match=complaint):
        learn_public(Encodings(np.ones((4, 6)), Scheme(2, 2)), np.ones((5, 6)), **options)


def test_fewer_different_public_vectors_than_k_public_are_refused():
    with pytest.raises(InputError, match="only 1 public vectors that differ"):
        learn_public(Encodings(np.ones((4, 6)), Scheme(2, 2)), np.ones((5, 6)))
    with pytest.raises(InputError, match="pass public="):
        learn_public(Encodings(np.ones((4, 6)), Scheme(2, 2)), None, k_public=None)
