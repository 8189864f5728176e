"""Weights and norms of a scheme, and one-sentence complaints."""

from math import sqrt

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.scheme import EXACT_WEIGHTINGS, WEIGHTINGS, Scheme

KS = [(1, 0), (2, 0), (2, 2), (3, 1), (1, 5), (6, 2), (0, 3)]


@pytest.mark.parametrize(("k_private", "k_public"), KS)
def test_equal_weights_give_a_selection_vector_of_norm_one(k_private, k_public):
    scheme = Scheme(k_private, k_public, "equal")
    assert scheme.private_variance + scheme.public_variance == pytest.approx(1)
    for k, weight in ((k_private, scheme.private_weight), (k_public, scheme.public_weight)):
        assert weight == pytest.approx(1 / sqrt(k_private + k_public) if k else 0)


@pytest.mark.parametrize(("k_private", "k_public"), KS)
def test_paper_weights_give_each_part_norm_one_so_both_parts_norm_root_two(k_private, k_public):
    scheme = Scheme(k_private, k_public, "paper")
    assert scheme.private_weight == pytest.approx(1 / sqrt(k_private) if k_private else 0)
    assert scheme.public_weight == pytest.approx(1 / sqrt(k_public) if k_public else 0)
    assert scheme.private_variance + scheme.public_variance == pytest.approx(
        (k_private > 0) + (k_public > 0)
    )


@pytest.mark.parametrize(("k_private", "k_public"), KS)
def test_convex_weights_sum_to_one(k_private, k_public):
    scheme = Scheme(k_private, k_public, "convex")
    assert k_private * scheme.private_weight + k_public * scheme.public_weight == pytest.approx(1)
    assert scheme.private_variance == pytest.approx(k_private / (k_private + k_public) ** 2)
    assert scheme.public_variance == pytest.approx(k_public / (k_private + k_public) ** 2)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"k_private": -1}, "k_private=-1: give a whole number"),
        ({"k_public": 1.5}, "k_public=1.5: give a whole number"),
        ({"k_private": True}, "k_private=True: give a whole number"),
        ({"k_private": "2"}, "k_private='2': give a whole number"),
        ({"k_private": 0, "k_public": 0}, "at least one vector"),
        ({"weighting": "fair"}, "weighting='fair': choose one of equal, paper, convex"),
        ({"weighting": "half-normal", "k_public": 1}, "weights of their own need k_public=0"),
        (
            {"pairing": "twins"},
            "pairing='twins': choose one of independent, epochs, epochs-in-order",
        ),
        ({"signs": "lost"}, "signs='lost': choose one of absolute, random, kept, masked"),
        ({"weighting": "dirichlet", "alpha": 0.0}, "alpha=0.0: give a number from 0.001"),
        ({"weighting": "dirichlet", "alpha": "1"}, "alpha='1': give a number"),
        ({"weighting": "dirichlet", "alpha": float("nan")}, "alpha=nan: give a number"),
        ({"alpha": 0.2}, "alpha=0.2 with weighting='equal': use weighting='dirichlet'"),
        ({"signs": "masked", "masks": -1}, "masks=-1: give a whole number"),
        ({"masks": 16}, "masks=16 with signs='absolute': use signs='masked'"),
    ],
)
def test_a_scheme_that_cannot_be_is_refused_in_one_sentence(arguments, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        Scheme(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["private_weight", "private_variance"])
def test_half_normal_weights_are_not_one_number(name):
    scheme = Scheme(2, weighting="half-normal")
    assert not scheme.fixed_weights
    assert Scheme(2).fixed_weights
    assert scheme.public_variance == 0
    with pytest.raises(
        InputError, match="every encoding has weights of its own; use attack='mixing'"
    ):
        getattr(scheme, name)


@pytest.mark.parametrize("weighting", ["released", "uniform", "dirichlet", "sorted"])
@pytest.mark.parametrize(
    "name", ["private_weight", "private_variance", "public_weight", "public_variance"]
)
def test_drawn_weights_allow_a_public_part_and_are_not_one_number(weighting, name):
    scheme = Scheme(2, 4, weighting)
    assert not scheme.fixed_weights
    assert Scheme(2, 0, weighting).public_weight == 0
    with pytest.raises(
        InputError, match="every encoding has weights of its own; use attack='natural'"
    ):
        getattr(scheme, name)


def test_what_takes_some_weightings_only_lets_those_pass():
    for weighting in WEIGHTINGS:
        scheme = Scheme(2, 0, weighting)
        if weighting in EXACT_WEIGHTINGS:
            scheme.require_weighting(*EXACT_WEIGHTINGS)
        else:
            with pytest.raises(InputError, match="use attack='natural'"):
                scheme.require_weighting(*EXACT_WEIGHTINGS)


def test_a_scheme_takes_numpy_integers_and_is_equal_by_value():
    scheme = Scheme(np.int64(3), np.int32(1))
    assert scheme == Scheme(3, 1)
    assert type(scheme.k_private) is int
