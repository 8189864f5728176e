"""Records that are there up to something all of them share: a shift, a number, an order of the
columns; and chance, which is none of these."""

import numpy as np
import pytest

import unveil
from unveil.auditing.disguised import disguised
from unveil.auditing.risks import ALMOST, EXACT, Yardstick
from unveil.scheme import Scheme

RNG = np.random.default_rng(0)
RECORDS = RNG.standard_normal((16, 30)).astype(np.float32)
SECRET = RNG.standard_normal(30).astype(np.float32)
SIGNS = RNG.choice([-1, 1], 30).astype(np.float32)
ORDER, ROWS = RNG.permutation(30), RNG.permutation(16)
BITS = (RNG.random((16, 30)) < 0.3).astype(np.float32)
OTHERS = RNG.standard_normal((5, 30)).astype(np.float32)


def counts(vectors, records=RECORDS):
    words, outcome = disguised(vectors, Yardstick.of(records, 1e-2))
    return words, [int((outcome == what).sum()) for what in (EXACT, ALMOST)]


@pytest.mark.parametrize(
    ("vectors", "records", "words", "expected"),
    {
        "shift": (RECORDS[ROWS] + 2 * SECRET, RECORDS, "a vector", [0, 16]),
        "signs and factor": (0.3 * SIGNS * (RECORDS + SECRET)[:12], RECORDS, "a vector", [0, 12]),
        "others": (np.vstack([RECORDS[:11] + SECRET, OTHERS]), RECORDS, "a vector", [0, 11]),
        "number": (2 * RECORDS[ROWS] + 3, RECORDS, "one number", [16, 0]),
        "number under signs": (SIGNS * (RECORDS + 3), RECORDS, "one number", [16, 0]),
        "order": (2 * RECORDS[ROWS][:9, ORDER], RECORDS, "the order", [0, 9]),
        "order of bits": (BITS[ROWS][:, ORDER], BITS, "the order", [0, 16]),
    }.values(),
)
def test_records_show_through_what_all_share(vectors, records, words, expected):
    said, found = counts(vectors, records)
    assert words in said
    assert found == expected


def test_chance_is_no_disguise():
    rng = np.random.default_rng(1)
    assert counts(rng.standard_normal((16, 30)).astype(np.float32)) == ("", [0, 0])
    assert counts((rng.random((16, 30)) < 0.3).astype(np.float32), BITS) == ("", [0, 0])
    # A shuffle of its own for every record is no order of the columns.
    assert counts(rng.permuted(RECORDS, axis=1)) == ("", [0, 0])
    assert counts(RECORDS[:2] + SECRET) == ("", [0, 0])
    assert counts(np.zeros_like(RECORDS)) == ("", [0, 0])


def mixed(x, rng):
    chosen = np.array([rng.choice(len(x), 2, replace=False) for _ in range(7 * len(x))])
    return x[chosen].mean(axis=1)


@pytest.mark.parametrize(
    ("encode", "level", "by"),
    {
        "order": (lambda y: np.abs(y)[:, ORDER], "partly", "relations"),
        "secret vector": (lambda y: np.abs(y + SECRET), "partly", "relations"),
        "number": (lambda y: y + 3, "leaks", "unhidden"),
        "number and magnitudes": (lambda y: np.abs(y) + 0.5, "leaks", "noisy-relations"),
        "squares": (lambda y: y**2, "leaks", "relations"),
    }.values(),
)
def test_an_audit_sees_through_them(encode, level, by):
    found = unveil.audit(
        RECORDS, Scheme(2), encoder=lambda x, public, rng: encode(mixed(x, rng)), rng=0, seeds=1,
        effort=4.0,
    )  # fmt: skip
    assert found.verdict.level == level
    assert by in found.attack
    assert found.threats[0].exact + found.threats[0].approximate == 16
