"""One of every result, made once: small, with names of columns and images."""

import numpy as np
import pytest

import unveil
from unveil.auditing.result import Audit, CurvePoint, RecordRisk, Verdict


def audit_result():
    risks = [
        RecordRisk(0, "=HYPERLINK(1)", "exact", 6, 0, 0.0, 1.0, 5, 20, "verified", "proved"),
        RecordRisk(1, "<b>Ann</b>", "not recovered", 0, 0, None, None, 3, None, "", "too few"),
    ]
    curve = (
        CurvePoint(10, 0.0, 0.0, 0.0, 0.2, 0.0, 3),
        CurvePoint(40, 0.5, 0.0, 0.3, 0.7, 0.5, 3),
    )
    return Audit(
        verdict=Verdict("leaks", "1 of 2 records comes back", "", ("By relations.",)),
        scheme={"k_private": 2},
        data={"kind": "features"},
        m=40,
        attack="relations",
        explanation="found",
        records=tuple(risks),
        curve=curve,
    )


@pytest.fixture(scope="session")
def results():
    scheme = unveil.Scheme(k_private=2)
    table = np.random.default_rng(0).standard_normal((12, 6)).astype(np.float32)
    sim = unveil.simulate(scheme, private=table, m=60, rng=0)
    encodings = unveil.Encodings(sim.encodings.values, scheme, None, columns="abcdef")
    recovery = unveil.recover(encodings, rng=0)
    overlaps = unveil.Overlaps.from_array(
        sum(
            (sim.selection.private[:, i, None] == sim.selection.private[None, :, j]).astype(int)
            for i in range(2)
            for j in range(2)
        ),
        k_private=2,
    )
    supports = unveil.Supports(
        np.array([[0, 3], [1, -1]]), np.array([0.9, 0.4]), "diagonal", np.array([True, False])
    )
    floral = unveil.find_floral_submatrix(overlaps)
    images = unveil.ImageScores(np.array([0, -1]), np.array([0.9, 0.0]), np.array([30.0, 0.0]))
    return {
        "simulation": sim,
        "encodings": encodings,
        "recovery": recovery,
        "scores": unveil.score(recovery, table),
        "overlaps": overlaps,
        "floral": floral,
        "supports": supports,
        "image scores": images,
        "challenge scores": unveil.ChallengeScores(0.5, 0.3, 0.1, 0.2),
        "plan": unveil.plan(scheme, 20, 200, 100),
        "audit": audit_result(),
    }


KINDS = (
    "simulation",
    "encodings",
    "recovery",
    "scores",
    "overlaps",
    "floral",
    "supports",
    "image scores",
    "challenge scores",
    "plan",
    "audit",
)


@pytest.fixture(params=KINDS)
def result(request, results):
    return results[request.param]


@pytest.fixture(scope="session")
def images(results):
    """A recovery whose vectors are images of 2×3 pixels."""
    from dataclasses import replace

    return replace(results["recovery"], image_shape=(2, 3), columns=())
