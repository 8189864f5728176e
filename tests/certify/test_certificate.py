"""Every doubt gives its status and its reason; without a doubt a vector is verified."""

from itertools import combinations

import numpy as np
import pytest

from unveil import Encodings, Scheme
from unveil.certify.certificate import (
    FEWEST_PIXELS,
    _sum_of_squared_products,
    certify,
)
from unveil.records import AMBIGUOUS, UNRESOLVED, VERIFIED
from unveil.solve.pixels.pixels import PixelSolution


def subsets(n, k, m, seed=0):
    return np.array(
        [
            np.sort(row)
            for row in np.random.default_rng(seed).permuted(np.tile(np.arange(n), (m, 1)), axis=1)[
                :, :k
            ]
        ]
    )


def instance(members, n, d=200, pixel_rms=1.0, x=None, group=None, **changes):
    """Encodings of unit vectors by `members`, and a solution that is the truth itself."""
    k = members.shape[1]
    x = np.random.default_rng(1).standard_normal((n, d)) if x is None else x
    values = np.abs(x[members].sum(axis=1)) / np.sqrt(k)
    d = x.shape[1]
    group = np.zeros(n, np.int64) if group is None else np.array(group)
    facts = {
        "misfit": np.zeros(d),
        "solved": np.ones(d, bool),
        "differs": np.zeros(n, np.int64),
        "group": group,
    } | changes
    return (
        Encodings(values, Scheme(k), pixel_rms),
        members,
        len(members),
        PixelSolution(values=x, **facts),
    )


def test_without_a_doubt_everything_is_verified():
    for k in (2, 3, 4):
        status, reasons = certify(*instance(subsets(15, k, 100), 15))
        assert (status == VERIFIED).all()
        assert all("different encodings reproduced at all 200 pixels" in why for why in reasons)


def test_an_unsolved_pixel_leaves_everything_unresolved():
    solved = np.ones(200, bool)
    solved[[3, 7]] = False
    status, reasons = certify(*instance(subsets(15, 2, 100), 15, solved=solved))
    assert (status == UNRESOLVED).all()
    assert reasons[0] == "2 of 200 pixels were not solved"


def test_explaining_fewer_than_half_of_the_encodings_verifies_nothing():
    encodings, members, _, solution = instance(subsets(15, 2, 100), 15)
    status, reasons = certify(encodings, members[:49], 49, solution)
    assert (status == AMBIGUOUS).all()
    assert "only 49 of 100 encodings are explained" in reasons[0]


def test_few_pixels_verify_nothing():
    for pixel_rms in (1.0, None):
        at = certify(*instance(subsets(60, 2, 500), 60, d=FEWEST_PIXELS, pixel_rms=pixel_rms))[0]
        below, reasons = certify(
            *instance(subsets(60, 2, 500), 60, d=FEWEST_PIXELS - 1, pixel_rms=pixel_rms)
        )
        assert (at == VERIFIED).all()
        assert (below == AMBIGUOUS).all()
        assert "pixels are too few" in reasons[0]


def test_a_bipartite_graph_does_not_determine_its_vectors():
    members = np.array([(i, j) for i in range(5) for j in range(5, 10)])
    status, reasons = certify(*instance(members, 10, pixel_rms=None))
    assert (status == AMBIGUOUS).all()
    assert reasons[0] == "the 5 encodings that use it do not determine it"


def test_vectors_that_always_occur_together_are_not_determined():
    members = np.vstack([subsets(12, 3, 90), [[12, 13, j] for j in range(12)]])
    status, _ = certify(*instance(members, 14))
    assert (status[12:] == AMBIGUOUS).all()
    assert (status[:12] == VERIFIED).all()


def test_a_vector_used_once_is_ambiguous_however_often_that_encoding_is_copied():
    for copies in (1, 3):
        members = np.vstack([subsets(14, 2, 100), [[3, 14]] * copies])
        status, reasons = certify(*instance(members, 15))
        assert status[14] == AMBIGUOUS
        assert reasons[14] == "appears in one encoding only"
        assert (status[:14] == VERIFIED).all()


def test_another_value_at_one_pixel_is_a_doubt_about_that_vector_only():
    differs = np.zeros(15, np.int64)
    differs[4] = 1
    status, reasons = certify(*instance(subsets(15, 2, 100), 15, differs=differs))
    assert status[4] == AMBIGUOUS
    assert "another value fits as well at 1 of 200 pixels" in reasons[4]
    assert (np.delete(status, 4) == VERIFIED).all()


def test_a_separate_group_has_signs_of_its_own():
    members = np.vstack([subsets(15, 2, 100), 15 + np.array(list(combinations(range(6), 2)))])
    status, reasons = certify(*instance(members, 21, group=[0] * 15 + [1] * 6))
    assert (status[:15] == VERIFIED).all()
    assert (status[15:] == AMBIGUOUS).all()
    assert reasons[15] == "linked with only 5 others, whose sign per pixel is their own"


def test_parts_that_one_vector_joins_are_not_believed_where_encodings_contradict():
    """Two vectors with the same magnitudes were read as one, 0: vectors of the smaller part have
    other signs than those of the larger one, and encodings of both fit neither."""
    larger, smaller = np.arange(8), np.array([0, 8, 9, 10, 11])
    members = np.array([*combinations(larger, 2), *combinations(smaller, 2)])
    against = np.zeros(12, np.int64)
    for count, inside in ((0, np.ones(12, bool)), (1, np.arange(12) < 8)):
        against[[1, 9]] = count
        status, reasons = certify(*instance(members, 12), against=against)
        np.testing.assert_array_equal(status == VERIFIED, inside)
        assert all("contradict" in why for why in np.array(reasons)[~inside])


def test_hardly_more_encodings_than_unknowns_verify_nothing():
    members = np.array([(i, (i + 1) % 9) for i in range(9)] + [(0, 4)])
    for copies in (1, 5):  # copies are no equations
        status, reasons = certify(*instance(np.tile(members, (copies, 1)), 9, d=400))
        assert (status == AMBIGUOUS).all()
        assert reasons[0] == "hardly more encodings than unknowns"


@pytest.mark.parametrize("k", [2, 3])
def test_complements_of_2k_vectors_are_recognised(k):
    members = np.array(list(combinations(range(2 * k), k)))
    status, reasons = certify(*instance(members, 2 * k, d=2000, pixel_rms=None))
    assert (status == AMBIGUOUS).all()
    assert "n = 2·k_private" in reasons[0] or "hardly more" in reasons[0]
    if k == 3:
        assert "n = 2·k_private" in reasons[0]


def test_four_vectors_that_occur_in_pairs_are_recognised():
    """Every encoding holds none or two of {0, 1, 2, 3}: their complements inside the four give the
    same encodings."""
    four = np.array(
        [
            (*pair, *rest)
            for pair in combinations(range(4), 2)
            for rest in subsets(11, 2, 12, seed=sum(pair)) + 4
        ]
    )
    members = np.vstack([four, subsets(11, 4, 40, seed=9) + 4])
    x = np.random.default_rng(3).standard_normal((15, 300))
    other = x.copy()
    other[:4] = x[:4].sum(axis=0) / 2 - x[:4]
    swap = np.array([1, 0, 3, 2])
    assert not np.allclose(other[:4], x[swap])
    np.testing.assert_allclose(  # {a, b} becomes {c, d}: the sum stays
        other[four[:, :2]].sum(axis=1),
        [x[[c for c in range(4) if c not in row]].sum(axis=0) for row in four[:, :2]],
    )
    status, reasons = certify(*instance(members, 15, x=x))
    assert (status[:4] == AMBIGUOUS).all()
    assert (status[4:] == VERIFIED).all()
    assert reasons[0] == "all of its encodings hold other vectors in doubt"


@pytest.mark.parametrize("factor", [0.7, 1.5])
def test_pixels_of_another_size_put_the_scale_in_doubt(factor):
    x = factor * np.random.default_rng(1).standard_normal((15, 200))
    status, reasons = certify(*instance(subsets(15, 2, 100), 15, x=x))
    assert (status == AMBIGUOUS).all()
    assert "the scale is in doubt" in reasons[0]
    assert (certify(*instance(subsets(15, 2, 100), 15, x=x, pixel_rms=None))[0] == VERIFIED).all()


def test_correlated_vectors_suggest_a_common_part():
    rng = np.random.default_rng(1)
    x = np.sqrt(0.8) * rng.standard_normal((15, 1000)) + np.sqrt(0.2) * rng.standard_normal(1000)
    x /= np.sqrt(np.mean(x**2))
    status, reasons = certify(*instance(subsets(15, 2, 100), 15, x=x))
    assert (status == AMBIGUOUS).all()
    assert "correlated (0.2" in reasons[0]


def test_too_few_pixels_to_see_a_correlation_verify_nothing():
    x = np.random.default_rng(1).standard_normal((10, 30))
    x /= np.sqrt(np.mean(x**2))
    status, reasons = certify(*instance(subsets(10, 2, 60), 10, x=x))
    assert (status == AMBIGUOUS).all()
    assert "too few to rule out a part that all encodings share" in reasons[0]


@pytest.mark.parametrize(
    ("k", "rows", "combination"),
    [
        (3, [(5, 12, q) for q in (6, 7, 8, 9)], {4: 1, 11: 1, 5: -1}),  # {4, 11, q} as {5, z, q}
        (
            2,
            [(1, 12), (2, 12), (3, 12)],
            {1: -1, 2: -1, 3: -1},
        ),  # the triangle 12, 23, 31 as the star 1z, 2z, 3z
    ],
)
@pytest.mark.parametrize("pixels", [300, 25])
def test_an_alias_of_other_vectors_is_ambiguous(k, rows, combination, pixels):
    extra = 20 if pixels == 25 else 0  # more vectors than pixels: only the partners can tell
    n = 13 + extra
    names = np.delete(np.arange(n), 12)
    members = np.vstack([names[subsets(n - 1, k, 20 * n)], rows])
    x = np.random.default_rng(2).standard_normal((n, pixels))
    x[12] = sum(sign * x[i] for i, sign in combination.items())
    status, reasons = certify(*instance(members, n, x=x, pixel_rms=None))
    assert status[12] == AMBIGUOUS
    assert "combination of other vectors" in reasons[12]
    free = np.setdiff1d(names, list(combination))
    assert (status[free] == VERIFIED).all()


@pytest.mark.parametrize("wrong", [1e-7, 1e-6, 1e-5])
def test_an_alias_is_seen_through_what_is_wrong_with_the_pixels(wrong):
    rng = np.random.default_rng(5)
    names = np.delete(np.arange(13), 12)
    members = np.vstack([names[subsets(12, 2, 60)], [(1, 12), (2, 12), (3, 12)]])
    x = rng.standard_normal((13, 40))
    x[12] = -x[1] - x[2] - x[3]
    x += wrong * rng.standard_normal(x.shape)
    status, reasons = certify(
        *instance(members, 13, x=x, pixel_rms=None, misfit=np.full(40, wrong))
    )
    assert status[12] == AMBIGUOUS
    assert "combination of other vectors" in reasons[12]


def test_columns_that_are_nearly_the_same_make_no_combinations():
    """As in a table: 13 records, 14 columns that differ from a common one by a thousandth, in units
    of their own."""
    rng = np.random.default_rng(6)
    x = (
        rng.standard_normal((13, 1)) + 1e-3 * rng.standard_normal((13, 14))
    ) * 10.0 ** rng.integers(-2, 3, 14)
    x = np.hstack([x, rng.standard_normal((13, 8)) * 1e-3 + 1])
    task = instance(subsets(13, 2, 70), 13, x=x, pixel_rms=None, misfit=np.full(22, 1e-10))
    assert (certify(*task)[0] == VERIFIED).all()


def test_a_genuine_vector_with_few_partners_is_verified_when_pixels_suffice():
    members = np.vstack([subsets(14, 2, 100), [[1, 14], [2, 14], [3, 14]]])
    assert (certify(*instance(members, 15))[0] == VERIFIED).all()


@pytest.mark.parametrize("shape", [(7, 30), (30, 7)])
def test_squared_products_are_summed_on_the_smaller_side(shape):
    x = np.random.default_rng(0).standard_normal(shape)
    assert abs(_sum_of_squared_products(x) - ((x @ x.T) ** 2).sum()) < 1e-8


def test_ten_thousand_vectors_are_certified_within_seconds():
    n, m, d = 10_000, 70_000, 24
    members = np.random.default_rng(3).integers(0, n, (m, 2))
    members = members[members[:, 0] != members[:, 1]]
    status, reasons = certify(*instance(members, n, d=d))
    few = [why for what, why in zip(status, reasons, strict=True) if what != VERIFIED]
    assert len(few) < 20
    assert all(
        "combination" in why or "one encoding" in why or "do not determine" in why for why in few
    )
