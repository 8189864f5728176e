"""The words about sample complexity follow the numbers."""

from experiments.paper.sample_complexity_page import draw, section
from experiments.reproduce import rows


def facts(offset=0.0, real=0, failed=0):
    fits, points = {}, []
    for k, theory, ns in ((2, 4 / 3, (50, 100)), (3, 2.5, (20, 30))):
        fit = {"exponent": theory + offset, "low": theory - 0.1, "high": theory + 0.1, "scale": 1.0}
        fits[str(k)] = {
            "theory": theory,
            **dict.fromkeys(("subsets", "predicted", "sunflower", "twice", "attack"), fit),
        }
        for n in ns:
            first = {"median": n**theory, "all": [0.5 * n**theory, n**theory, 2 * n**theory]}
            points.append(
                {
                    "k": k,
                    "n": n,
                    **dict.fromkeys(("subsets", "sunflower", "twice", "attack"), first),
                }
                | {
                    "predicted": {"median": n**theory},
                    "search": {"asked": 3, "agrees": 3, "real": real},
                    "failed": failed,
                }
            )
    return {"draws": 3, "searched": 3, "attacks": 2, "d": 64, "points": points, "fits": fits}


def test_verdicts_follow_the_numbers():
    assert section(facts()).verdict.startswith(
        "Agrees on the exponent; the search found a floral exactly when there was one in 12 of 12"
    )
    assert "the paper's in 0 of 6" in section(facts()).verdict
    assert "the paper's in 4 of 6" in section(facts(real=2)).verdict
    assert section(facts(offset=0.3)).verdict.startswith("Does not agree on the exponent")
    assert "more than" in section(facts(failed=2)).body
    assert "more than" not in section(facts(failed=1)).body


def test_a_row_per_point_and_one_figure():
    assert [(row["k"], row["n"]) for row in rows(facts())] == [(2, 50), (2, 100), (3, 20), (3, 30)]
    assert set(draw(facts())) == {""}
