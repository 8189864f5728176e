"""simulate(): the same seed gives the same bytes, stages do not disturb each other, the user's
arrays are taken as they are."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.checks import InputError
from unveil.scheme import FIXED_WEIGHTINGS

SMALL = {"n_public": 6, "m": 12, "d": 40}


def everything(sim):
    return [
        sim.encodings.values,
        sim.private,
        sim.public,
        sim.selection.private,
        sim.selection.public,
    ]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones():
    scheme = Scheme(2, 2, signs="random")
    first, again, other = (simulate(scheme, 10, noise=0.1, rng=seed, **SMALL) for seed in (3, 3, 4))
    for a, b, c in zip(everything(first), everything(again), everything(other), strict=True):
        assert a.tobytes() == b.tobytes()
        assert a.tobytes() != c.tobytes()


def test_a_generator_is_a_seed_too_and_moves_on():
    def seeded():
        return np.random.default_rng(7)

    rng = seeded()
    first, second = (
        simulate(Scheme(2, 2), 10, rng=rng, **SMALL),
        simulate(Scheme(2, 2), 10, rng=rng, **SMALL),
    )
    np.testing.assert_array_equal(
        first.private, simulate(Scheme(2, 2), 10, rng=seeded(), **SMALL).private
    )
    assert not np.array_equal(first.private, second.private)


def test_the_global_generator_is_neither_used_nor_moved():
    state = np.random.get_state()  # noqa: NPY002
    simulate(Scheme(2, 2, signs="random"), 10, noise=0.1, **SMALL)
    assert str(state) == str(np.random.get_state())  # noqa: NPY002


def test_without_a_seed_every_call_is_new():
    assert not np.array_equal(
        simulate(Scheme(), 5, m=3, d=8).private, simulate(Scheme(), 5, m=3, d=8).private
    )


def test_each_stage_draws_from_its_own_seed():
    alone = simulate(Scheme(2, 0), 10, m=12, d=40, rng=5)
    together = simulate(Scheme(2, 2, signs="random"), 10, noise=0.2, rng=5, **SMALL)
    np.testing.assert_array_equal(alone.private, together.private)
    np.testing.assert_array_equal(alone.selection.private, together.selection.private)
    assert not np.array_equal(together.private[:6], together.public)
    assert alone.public is None


def test_random_signs_have_the_same_magnitudes_as_absolute_values():
    absolute = simulate(Scheme(2, 2), 10, rng=5, **SMALL).encodings
    random = simulate(Scheme(2, 2, signs="random"), 10, rng=5, **SMALL).encodings
    np.testing.assert_array_equal(random.magnitudes(), absolute.values)
    assert (random.values < 0).any()


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
def test_encodings_are_the_absolute_mixture_of_the_selected_vectors(weighting):
    sim = simulate(Scheme(3, 2, weighting), 10, rng=1, **SMALL)
    scheme = sim.encodings.scheme
    for i in range(12):
        mixed = scheme.private_weight * sim.private[sim.selection.private[i]].sum(axis=0)
        mixed += scheme.public_weight * sim.public[sim.selection.public[i]].sum(axis=0)
        np.testing.assert_allclose(sim.encodings.values[i], np.abs(mixed), atol=1e-6)
    assert sim.encodings.pixel_rms == 1.0


def test_gaussian_vectors_are_standard():
    sim = simulate(Scheme(), 50, m=1, d=2000, rng=0)
    values = sim.private.astype(np.float64)
    # 100,000 draws, six standard errors each: 4e-9.
    assert abs(values.mean()) < 6 / np.sqrt(1e5)
    assert abs((values**2).mean() - 1) < 6 * np.sqrt(2 / 1e5)


def test_the_users_own_vectors_are_encoded_as_they_are():
    rng = np.random.default_rng(0)
    private, public = rng.uniform(0, 255, (8, 20)), rng.uniform(0, 255, (5, 20))
    sim = simulate(Scheme(2, 1), m=9, private=private, public=public, rng=0)
    np.testing.assert_array_equal(sim.private, private.astype(np.float32))
    np.testing.assert_array_equal(sim.public, public.astype(np.float32))
    assert sim.encodings.values.shape == (9, 20)
    assert sim.encodings.pixel_rms is None
    assert sim.selection.private.max() < 8


def test_only_one_part_need_be_given():
    sim = simulate(Scheme(2, 1), 7, m=9, public=np.ones((5, 20)), rng=0)
    assert (sim.private.shape, sim.encodings.pixel_rms) == ((7, 20), 1.0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"private": np.ones((5, 9)), "d": 8}, "d: 8 and 9 contradict each other"),
        ({"private": np.ones((5, 9)), "public": np.ones((5, 8))}, "d: 8 and 9 contradict"),
        ({"private": np.ones((5, 9)), "n_private": 6}, "n_private: 5 and 6 contradict"),
        ({"public": np.ones((5, 9)), "n_public": 4}, "n_public: 4 and 5 contradict"),
        ({"m": 0}, "m=0: ask for at least one encoding"),
        ({"d": 0}, "d=0: give a positive number"),
        ({"n_private": -1}, "n_private=-1"),
        ({"n_private": 1}, "k_private=2 of only 1"),
        ({"private": np.full((5, 9), np.nan)}, "private: the value at row 0, pixel 0"),
        ({"rng": -1}, "rng=-1"),
        ({"rng": "seed"}, "rng='seed'"),
        ({"rng": True}, "rng=True"),
    ],
)
def test_contradictions_and_nonsense_are_refused_in_one_sentence(arguments, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        simulate(Scheme(), **arguments)
    assert "\n" not in str(caught.value)


def test_half_normal_weights_are_drawn_for_every_encoding_and_recorded():
    scheme = Scheme(3, weighting="half-normal")
    sim = simulate(scheme, 10, m=400, d=40, rng=2)
    weights = sim.selection.weights
    assert weights.shape == (400, 3)
    assert (weights > 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert len(np.unique(weights)) == weights.size
    for i in range(400):
        mixed = weights[i] @ sim.private[sim.selection.private[i]].astype(np.float64)
        np.testing.assert_allclose(sim.encodings.values[i], np.abs(mixed), atol=1e-6)
    equal = simulate(Scheme(3), 10, m=400, d=40, rng=2)
    assert equal.selection.weights is None
    np.testing.assert_array_equal(equal.private, sim.private)
    np.testing.assert_array_equal(equal.selection.private, sim.selection.private)
    np.testing.assert_array_equal(
        weights, simulate(scheme, 10, m=400, d=80, rng=2).selection.weights
    )


def test_half_normal_weights_are_magnitudes_of_normal_numbers_divided_by_their_sum():
    weights = simulate(Scheme(2, weighting="half-normal"), 5, m=4000, d=1, rng=3).selection.weights
    angle = np.sort(
        np.arctan2(weights[:, 1], weights[:, 0]) / (np.pi / 2)
    )  # uniform, as for any two normal numbers
    assert np.abs(angle - (np.arange(4000) + 0.5) / 4000).max() < 2 / np.sqrt(4000)


def released(**more):
    scheme = Scheme(2, 2, "released", pairing="epochs", **more)
    return scheme, {"n_private": 6, "n_public": 9, "m": 30, "d": 24, "rng": 2}


def slow(sim):
    """Every encoding by itself, slot by slot, before signs are hidden."""
    out = np.zeros(sim.encodings.values.shape)
    for i in range(len(out)):
        slots = [(sim.private, sim.selection.private, sim.selection.weights)]
        slots.append((sim.public, sim.selection.public, sim.selection.public_weights))
        for vectors, chosen, weights in slots:
            for j, w in zip(chosen[i], weights[i], strict=True):
                out[i] += w * vectors[j].astype(np.float64)
    return out


@pytest.mark.parametrize("weighting", ["released", "uniform", "dirichlet", "sorted"])
@pytest.mark.parametrize("pairing", ["independent", "epochs"])
def test_weights_of_both_parts_equal_a_slow_loop(weighting, pairing):
    sim = simulate(Scheme(2, 3, weighting, pairing=pairing), 6, n_public=9, m=30, d=24, rng=2)
    np.testing.assert_allclose(sim.encodings.values, np.abs(slow(sim)), atol=1e-6)
    total = sim.selection.weights.sum(axis=1) + sim.selection.public_weights.sum(axis=1)
    np.testing.assert_allclose(total, 1, rtol=1e-12)


def test_a_vector_that_meets_itself_has_the_sum_of_its_weights():
    scheme, how = released(signs="kept")
    sim = simulate(scheme, **how)
    itself = np.flatnonzero(sim.selection.private[:, 0] == sim.selection.private[:, 1])
    assert len(itself)
    np.testing.assert_allclose(sim.encodings.values, slow(sim), atol=1e-6)


def test_labels_are_the_weights_of_the_classes_of_private_vectors():
    scheme, how = released()
    classes = np.array([0, 2, 2, 1, 0, 3])
    labels = simulate(scheme, labels=classes, **how).encodings.labels
    sim = simulate(scheme, **how)
    expected = np.zeros((30, 4))
    for i in range(30):
        for j, w in zip(sim.selection.private[i], sim.selection.weights[i], strict=True):
            expected[i, classes[j]] += w
    np.testing.assert_allclose(labels, expected, atol=1e-7)
    assert sim.encodings.labels is None
    equal = simulate(
        Scheme(2, 2), 6, n_public=9, m=30, d=24, rng=2, labels=classes
    ).encodings.labels
    np.testing.assert_allclose(equal.sum(axis=1), 1.0)  # two weights of 1/√4


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3, 4, -1], [0.5] * 6, [["a"]] * 6])
def test_labels_that_are_no_classes_are_refused(labels):
    scheme, how = released()
    with pytest.raises(InputError, match="labels: give the class of each of the 6 private vectors"):
        simulate(scheme, labels=labels, **how)


def test_flips_mirror_every_image_with_probability_one_half():
    """One private image per encoding, known exactly: as it is or mirrored; the same for the public
    one."""
    shape, m = (2, 3, 4), 2000
    rng = np.random.default_rng(0)
    private, public = (rng.standard_normal((1, 24)).astype(np.float32) for _ in range(2))
    mirror = [v.reshape(2, 3, 4)[:, ::-1].ravel() for v in (private[0], public[0])]
    sim = simulate(
        Scheme(1, 1, signs="kept"),
        private=private,
        public=public,
        m=m,
        image_shape=shape,
        flips=True,
        rng=1,
    )
    options = np.array(
        [a + b for a in (private[0], mirror[0]) for b in (public[0], mirror[1])]
    ) / np.sqrt(2)
    distance = np.abs(sim.encodings.values[:, None] - options).max(axis=2)
    assert distance.min(axis=1).max() < 1e-5
    counts = np.bincount(distance.argmin(axis=1), minlength=4)
    assert np.abs(counts - m / 4).max() < 6 * np.sqrt(m * 3 / 16)
    assert sim.encodings.image_shape == shape
    np.testing.assert_array_equal(sim.private, private)


def test_flips_of_an_epoch_are_shared_by_all_slots():
    """Every copy of an epoch, plain or mirrored, occurs as often as the image has slots."""
    rng = np.random.default_rng(0)
    private = rng.standard_normal((6, 24)).astype(np.float32)
    scheme = Scheme(2, 0, signs="kept", pairing="epochs")
    how = {"private": private, "m": 60, "image_shape": (4, 6), "rng": 1}
    shared = simulate(scheme, flips="epoch", **how)
    mirrored = private.reshape(6, 4, 6)[:, :, ::-1].reshape(6, 24)
    both = np.concatenate([private, mirrored]).astype(np.float64)
    weight = scheme.private_weight
    used = np.zeros((10, 6))
    for row, (y, pair) in enumerate(
        zip(shared.encodings.values, shared.selection.private, strict=True)
    ):
        tried = {
            (a, b): np.abs(weight * (both[pair[0] + 6 * a] + both[pair[1] + 6 * b]) - y).max()
            for a in (0, 1)
            for b in (0, 1)
        }
        a, b = min(tried, key=tried.get)
        if pair[0] == pair[1]:
            assert a == b
        used[row // 6, pair[0]] += a
        used[row // 6, pair[1]] += b
    assert set(np.unique(used)) == {0, 2}
    with pytest.raises(InputError, match="without epochs"):
        simulate(Scheme(2), flips="epoch", **how)
    with pytest.raises(InputError, match="choose True"):
        simulate(scheme, flips="sometimes", **how)


def test_flips_change_nothing_else_and_need_a_shape():
    scheme, how = released()
    plain, flipped = (
        simulate(scheme, **how),
        simulate(scheme, image_shape=(4, 6), flips=True, **how),
    )
    np.testing.assert_array_equal(plain.selection.private, flipped.selection.private)
    np.testing.assert_array_equal(plain.selection.weights, flipped.selection.weights)
    assert not np.array_equal(plain.encodings.values, flipped.encodings.values)
    # An image one pixel wide is its own mirror image.
    np.testing.assert_array_equal(
        simulate(scheme, image_shape=(24, 1), flips=True, **how).encodings.values,
        plain.encodings.values,
    )
    with pytest.raises(InputError, match=r"add image_shape=\(height, width"):
        simulate(scheme, flips=True, **how)


@pytest.mark.parametrize("weighting", ["released", "uniform", "dirichlet", "sorted"])
def test_a_part_may_be_missing(weighting):
    public_only = simulate(Scheme(0, 3, weighting), 0, n_public=9, m=10, d=30, rng=0)
    np.testing.assert_allclose(public_only.encodings.values, np.abs(slow(public_only)), atol=1e-6)
    private_only = simulate(Scheme(3, 0, weighting, pairing="epochs"), 5, m=10, d=30, rng=0)
    assert private_only.selection.public_weights is None
    np.testing.assert_allclose(private_only.selection.weights.sum(axis=1), 1, rtol=1e-12)
