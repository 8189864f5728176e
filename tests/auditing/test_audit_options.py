"""Options of an audit: checked once, before anything runs."""

import numpy as np
import pytest

from unveil.auditing.audit_options import options_of
from unveil.checks import InputError
from unveil.scheme import Scheme


def options(scheme=None, what_if=None, **changes):
    facts = {"m": None, "noise": 0.0, "seeds": 2, "relative_tolerance": 1e-2, "effort": 0.0}
    others = dict.fromkeys(
        ["sensitive", "encoder", "encodings", "labels", "out", "memory_limit", "progress"]
    )
    return options_of(scheme, what_if, 0, **{**facts, **others, **changes})


def test_axes_of_what_if():
    assert options(what_if="all").what_if == ("noise", "k", "m")
    assert options(what_if="k").what_if == ("k",)
    with pytest.raises(InputError, match="choose one of"):
        options(what_if="d")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"seeds": 0}, "independent draws"),
        ({"relative_tolerance": 0.0}, "positive number"),
        ({"effort": -1.0}, "0 or more"),
        ({"encoder": np.abs, "encodings": np.ones((3, 2))}, "what makes them"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, complaint):
    with pytest.raises(InputError, match=complaint):
        options(**changes)


def test_one_record_in_each_is_for_encoders_only():
    with pytest.raises(InputError, match="2 or more"):
        options(Scheme(1))
    assert options(Scheme(1), encoder=np.abs).scheme.k_private == 1
