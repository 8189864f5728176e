"""Phase diagrams: which ground an attack gets, what a column holds, and figures anyone can read."""

import numpy as np
import pytest
from experiments.cells import Cells
from experiments.compare.phase import GROUNDS, N, draw, measure

from experiments.compare import phase
from unveil.scheme import Scheme

TAKES = {"hidden": lambda scheme: scheme.signs == "absolute" and scheme.k_private == 2}
TAKES["mixed"] = lambda scheme: scheme.signs == "kept"
TAKES["public"] = lambda scheme: scheme.k_private == 0
TAKES["none"] = lambda scheme: False


def made_up(attack, trials, limit, *, stop=()):
    """Succeeds from d·m = 20,000 on (n_public·d in the all-public case); over the limit at the
    largest d once."""
    out = []
    for family, seed in trials:
        if not TAKES[attack](family.scheme):
            out.append({"outcome": "refused", "reason": f"{attack} refuses"})
            continue
        size = family.d * (family.n_public or family.m)
        if attack == "public" and family.d < 200:
            out.append({"outcome": "refused", "reason": "too few pixels"})
        elif size == 1600 * 60:
            out.append({"outcome": "limit", "reason": "over the limit"})
        else:
            out.append({"outcome": "ran", "share": float(size >= 20_000 + seed)})
    return out


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(phase, "run_trials", made_up)
    monkeypatch.setattr(phase, "code_of", lambda attack: attack)
    return measure(Cells("compare"), list(TAKES), False, 1.0)


def test_an_attack_gets_the_first_ground_it_takes(found):
    grounds = {attack: [d["ground"] for d in found if d["attack"] == attack] for attack in TAKES}
    assert grounds == {
        "hidden": ["k = 2", "k = 3"],
        "mixed": ["MixUp, k = 2", "MixUp, k = 3"],
        "public": ["all public, k_public = 4"],
        "none": ["none"],
    }
    assert [d["attack"] for d in found if "reason" in d] == ["hidden", "none"]
    assert found[-1]["reason"] == "none refuses"


def test_what_stands_at_a_place_was_measured_there(found):
    shares = found[0]["share"]
    for x, column in zip(found[0]["x"], shares, strict=True):
        for d, share in zip(found[0]["d"], column, strict=True):
            assert share == (None if d * x == 1600 * 60 else float(d * x >= 20_000))
    assert found[0]["x"] == [N * ratio for ratio in phase.QUICK_RATIOS]


def test_a_size_that_is_refused_is_nothing_recovered_and_no_reason_to_leave_the_ground(found):
    [diagram] = [d for d in found if d["attack"] == "public"]
    assert diagram["d"] == [100, 400, 1600]
    assert diagram["share"] == [[0, 0, 1], [0, 1, 1]]


def test_a_ground_is_what_its_name_says():
    place = GROUNDS["k = 3"].at(100, 50)
    assert (place.scheme, place.n, place.m, place.d) == (Scheme(3), N, 100, 50)
    place = GROUNDS["all public, k_public = 4"].at(100, 50)
    assert (place.scheme, place.n, place.n_public, place.m, place.d) == (
        Scheme(0, 4),
        0,
        100,
        20,
        50,
    )


def test_figures_have_the_shares_as_colours(found):
    figures = draw(found)
    assert set(figures) == {
        "-phase-hidden",
        "-phase-mixed",
        "-phase-public",
    }  # one attack alone is no comparison
    panel = figures["-phase-hidden"].axes[0]
    colours = np.ma.filled(panel.collections[0].get_array(), np.nan).reshape(3, 3)
    np.testing.assert_array_equal(colours, np.array(found[0]["share"], float).T)
    assert "over\nlimit" in {text.get_text() for text in panel.texts}
    again = [{**diagram, "attack": "other"} for diagram in found if diagram["attack"] == "hidden"]
    side_by_side = draw([*found, *again])["-phase"]
    assert [axis.get_title() for axis in side_by_side.axes[:4]] == ["hidden", "other", "", ""]
    assert {text.get_text() for text in side_by_side.axes[2].texts} == {"does not apply"}
    assert draw([found[-1]]) == {}


def test_borders_are_half_way_on_a_scale_of_ratios():
    np.testing.assert_allclose(phase._edges(np.array([1.0, 4.0, 16.0])), [0.5, 2, 8, 32])
