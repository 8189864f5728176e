"""The audit: every part filled, the same twice, honest about data it cannot read, and going on
where it stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import unveil
from unveil.auditing.clock import Clock
from unveil.auditing.trials import Laboratory
from unveil.checks import InputError
from unveil.scheme import Scheme

SMALL = {"n_private": 15, "d": 120, "rng": 0, "seeds": 2, "effort": 0.5}


@pytest.fixture(scope="module")
def small():
    return unveil.audit(**SMALL)


def test_gaussian_records_leak_and_it_says_so(small):
    assert small.verdict.level == "leaks"
    assert (
        small.verdict.headline
        == "Do not release: 15 of 15 records come back exactly from 105 encodings."
    )
    assert {record.outcome for record in small.records} == {"exact"}
    assert all(
        record.status == "verified" and record.error < 1e-2 and record.correlation > 0.99
        for record in small.records
    )
    assert all(record.from_m is not None and record.from_m <= 105 for record in small.records)
    assert sum(record.encodings for record in small.records) == 2 * 105
    assert small.attack == "relations"
    assert small.guarantees[1].holds
    assert [threat.key for threat in small.threats] == ["blind", "told", "insider"]
    assert small.threats[0].tried[0].attack == "relations"
    assert small.threats[1].exact == 15
    assert small.threats[0].residual_low > 0.5
    assert {m.kind: m.rate for m in small.meanings} == {"singling out": 1.0, "linkability": 1.0}


def test_every_part_is_filled_and_is_json(small):
    facts = json.loads(json.dumps(small.facts(), allow_nan=False))
    for part in (
        "scheme",
        "data",
        "records",
        "curve",
        "stages",
        "findings",
        "guarantees",
        "model",
        "run",
        "threats",
        "meanings",
        "assumed",
        "provenance",
    ):
        assert facts[part], part
    assert facts["run"]["seed"] == 0
    assert facts["run"]["unveil"]
    assert small.pictures.overlaps.shape[0] == small.pictures.overlaps.shape[1] > 10
    assert small.pictures.originals is None


def test_the_curve_goes_from_nothing_to_all(small):
    ms = [point.m for point in small.curve]
    assert ms == sorted(set(ms))
    assert ms[-1] == 105
    assert small.curve[-1].exact == 1.0
    assert small.curve[0].exact < 0.5
    assert all(point.low <= point.exact <= point.high and point.runs == 2 for point in small.curve)


def test_the_same_seed_gives_the_same_audit(small):
    again = unveil.audit(**SMALL)
    assert again.records == small.records
    assert again.curve == small.curve
    assert again.verdict == small.verdict
    other = unveil.audit(**{**SMALL, "rng": 1, "effort": 0.0, "seeds": 1})
    assert [r.error for r in other.records] != [r.error for r in small.records]


def test_images_come_with_pictures_and_without_claims():
    images = np.random.default_rng(0).integers(0, 256, (16, 6, 6), dtype=np.uint8)
    images[:, :3] = 0
    audit = unveil.audit(images, m=100, rng=0, seeds=1, effort=0)
    assert (
        audit.pictures.originals.shape
        == audit.pictures.recoveries.shape
        == audit.pictures.encodings.shape
        == (16, 6, 6)
    )
    for part in (audit.pictures.originals, audit.pictures.encodings, audit.pictures.recoveries):
        assert 0 <= part.min() <= part.max() <= 1
    assert not audit.model["gaussian"]
    assert not audit.guarantees[1].holds
    assert any("counts are measured against the true records" in s for s in audit.verdict.sentences)


def test_nothing_recovered_is_no_proof():
    audit = unveil.audit(n_private=40, d=64, m=30, noise=3.0, rng=0, seeds=1, effort=0)
    assert audit.verdict.level == "nothing"
    assert "no proof of safety" in audit.verdict.headline
    assert {record.outcome for record in audit.records} == {"not recovered"}
    assert all(record.reason and record.from_m is None for record in audit.records)
    assert len(audit.curve) == 1


def test_what_only_a_told_attacker_gets_is_partly():
    # Smooth records mislead statistics, and 110 encodings of three have too few exact relations.
    smooth = np.cumsum(np.random.default_rng(0).standard_normal((24, 200)), axis=1).astype(
        np.float32
    )
    audit = unveil.audit(smooth, scheme=unveil.Scheme(3), m=110, rng=0, seeds=1, effort=0)
    assert audit.attack.endswith(", told the overlaps")
    assert audit.verdict.level == "partly"
    assert "once it is known which encodings share a record" in audit.verdict.headline
    assert not next(g for g in audit.guarantees if "nothing but the release" in g.what).holds


def test_a_wrong_verified_vector_is_never_silent(monkeypatch):
    """An attack that lies: the audit must count it, find it, and withdraw its trust."""
    honest = unveil.recover

    def liar(*args, **options):
        recovery = honest(*args, **options)
        recovery.vectors[:1, 5] += 1.0
        return recovery

    monkeypatch.setattr("unveil.auditing.trials.recover", liar)
    audit = unveil.audit(n_private=20, d=200, m=140, rng=0, seeds=1, effort=0)
    assert audit.findings[0].severity == "high"
    assert "verified" in audit.findings[0].what
    assert not audit.guarantees[1].holds
    assert sum(record.outcome == "exact" for record in audit.records) == 19


def test_public_part_and_noise():
    audit = unveil.audit(
        scheme=Scheme(2, 1), n_private=12, n_public=10, d=600, m=120, rng=0, seeds=1, effort=0
    )
    assert audit.data["public records"] == 10
    assert audit.verdict.level == "leaks"
    noisy = unveil.audit(n_private=20, d=300, m=160, noise=0.02, rng=0, seeds=1, effort=0)
    assert {r.outcome for r in noisy.records} <= {"approximate", "not recovered"}


def test_features_are_audited_from_a_table(tmp_path):
    values = np.random.default_rng(0).standard_normal((20, 200)) * np.logspace(-6, 6, 200) + 3
    np.savetxt(
        tmp_path / "t.csv",
        values,
        delimiter=";",
        header=";".join(f"f{i}" for i in range(200)),
        comments="",
    )
    audit = unveil.audit(tmp_path / "t.csv", m=140, rng=0, seeds=1, effort=0)
    assert sum(r.outcome == "exact" for r in audit.records) >= 19
    assert audit.records[3].name == "row 4"
    said = [*audit.verdict.sentences, *(g.why for g in audit.guarantees), audit.model["in words"]]
    assert any("column by column" in s for s in said)
    assert not [s for s in said if "pixel" in s or "image" in s]


def audited(private, **options):
    return unveil.audit(private, **{"rng": 0, "seeds": 1, "effort": 0, **options})


@pytest.mark.parametrize("shape", [(20, 40), (20, 8, 8)])
def test_data_that_are_not_negative_are_not_hidden(shape):
    draw = np.random.default_rng(0).random(shape).astype(np.float32)
    for values in (draw, (draw > 0.6).astype(np.float32)):
        audit = audited(values)
        assert audit.verdict.level == "leaks"
        assert audit.threats[0].exact == 20
        assert audit.attack == "unhidden"


def test_five_columns_come_back():
    audit = audited(np.random.default_rng(1).standard_normal((24, 5)).astype(np.float32))
    assert audit.threats[0].exact == 24


def test_records_that_are_there_twice_count_once():
    once = np.random.default_rng(1).standard_normal((12, 20)).astype(np.float32)
    audit = audited(np.vstack([once, once]))
    assert (audit.threats[0].exact, audit.threats[0].records) == (12, 12)
    assert {record.outcome for record in audit.records} == {"exact"}
    assert "12 of 12 records" in audit.verdict.headline


def test_answers_from_one_to_five_come_back_though_exact_relations_say_nothing():
    """Any four encodings of so few values fulfil a relation by chance; noisy ones go by more."""
    answers = np.random.default_rng(3).integers(1, 6, (24, 20)).astype(np.float32)
    audit = audited(answers, m=168)
    assert audit.verdict.level == "leaks"
    assert audit.threats[0].exact == 24


def mixed(private, public, rng, weights=None, m=140):
    chosen = [rng.choice(len(private), 2, replace=False) for _ in range(m)]
    share = np.full(m, 0.5) if weights is None else rng.beta(weights, weights, m)
    return (
        share[:, None] * private[np.array(chosen)[:, 0]]
        + (1 - share)[:, None] * private[np.array(chosen)[:, 1]]
    )


class Object:
    def encode(self, private, public, rng):
        return 0.3 * private


ENCODERS = {
    "identity": (lambda private, public, rng: private, "leaks", "copies"),
    "an object that scales": (Object(), "leaks", "copies"),
    "clipped": (lambda private, public, rng: np.clip(private, -1, 1), "partly", "copies"),
    "magnitudes": (lambda private, public, rng: np.abs(private), "partly", "copies"),
    "noise": (
        lambda private, public, rng: private + 0.1 * rng.standard_normal(private.shape),
        "partly",
        "copies",
    ),
    "MixUp": (lambda *a: mixed(*a), "leaks", "relations"),
    "MixUp with its own weights": (lambda *a: mixed(*a, weights=1.0), "leaks", "mixing"),
    "one mask for all": (
        lambda private, public, rng: mixed(private, public, rng) * rng.choice([-1, 1], 40),
        "leaks",
        "relations",
    ),
    "nothing of the records": (
        lambda private, public, rng: np.abs(rng.standard_normal((60, 40))),
        "nothing",
        "",
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_the_users_encoder_is_what_is_attacked(name):
    encoder, level, attack = ENCODERS[name]
    records = np.random.default_rng(1).standard_normal((20, 40)).astype(np.float32)
    audit = audited(records, encoder=encoder)
    assert audit.verdict.level == level
    assert attack in audit.attack
    assert audit.findings
    if level == "nothing":
        best = audit.threats[0]
        assert best.residual_low <= 0 <= best.residual_high
        assert all(attempt.attack in audit.verdict.headline for attempt in best.tried)


def test_encodings_somebody_else_made():
    records = np.random.default_rng(1).standard_normal((20, 40)).astype(np.float32)
    made = unveil.simulate(Scheme(2), private=records, m=140, rng=3).encodings.values
    audit = audited(records, encodings=made)
    assert audit.threats[0].exact == 20
    assert audit.m == 140
    assert audit.assumed["encodings made by"] == "somebody else"
    with pytest.raises(InputError, match="same space"):
        audited(records, encodings=made[:, :30])


def test_a_sensitive_column_is_inferred():
    records = np.random.default_rng(1).standard_normal((20, 8)).astype(np.float32)
    found = next(m for m in audited(records, sensitive=3).meanings if m.kind == "inference")
    assert found.rate == 1.0
    assert found.control < 0.5
    with pytest.raises(InputError, match="from 0 to 7"):
        audited(records, sensitive=8)


def test_twice_as_many_records_as_are_mixed_is_said_in_words():
    audit = unveil.audit(n_private=4, d=50, m=20, rng=0, seeds=1, effort=0)
    assert any("two sets of records" in s for s in audit.verdict.sentences)


def test_tolerance_is_an_older_name_of_relative_tolerance():
    options = {"n_private": 6, "d": 40, "m": 40, "noise": 0.01, "rng": 0, "seeds": 1, "effort": 0}
    strict, loose = (
        unveil.audit(relative_tolerance=share, **options).records for share in (1e-6, 0.5)
    )
    assert "exact" not in {r.outcome for r in strict}
    assert "exact" in {r.outcome for r in loose}
    assert unveil.audit(tolerance=0.5, **options).records == loose


BAD = {
    "seeds": ({"seeds": 0}, "1 or more"),
    "relative tolerance": ({"relative_tolerance": 0}, "relative_tolerance=0: give a positive"),
    "tolerance, its older name": ({"tolerance": 0}, "relative_tolerance=0: give a positive"),
    "effort": ({"effort": -1}, "0 or more"),
    "m": ({"m": 1}, "2 or more"),
    "range": ({"m": (50, 20)}, "smaller number first"),
    "k": ({"scheme": Scheme(9), "n_private": 8}, "lower k_private"),
    "k of 1": ({"scheme": Scheme(1)}, "2 or more"),
    "no public": ({"private": np.eye(9), "scheme": Scheme(2, 1)}, "no public vectors"),
    "public without k": ({"public": np.ones((9, 784))}, "k_public"),
    "public of other size": ({"public": np.ones((9, 3)), "scheme": Scheme(2, 1)}, "same space"),
    "memory": ({"m": 10**6, "memory_limit": 10**8}, "memory"),
    "scheme": ({"scheme": 2}, "unveil.Scheme"),
    "negative seed": ({"rng": -1}, "0 or more"),
    "no records": ({"private": np.empty((0, 5))}, "there are none"),
    "zeros": ({"private": np.zeros((9, 5))}, "records are zero"),
    "equal records": ({"private": np.ones((9, 5))}, "records are equal"),
    "what if": ({"what_if": "x"}, "noise, k, m, all"),
    "both": ({"encoder": np.abs, "encodings": np.ones((9, 9))}, "what was made"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    options, words = BAD[name]
    with pytest.raises(InputError, match=words):
        unveil.audit(**options)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="choose another name"):
        unveil.audit(out=tmp_path, **SMALL)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_an_audit_that_was_killed_goes_on_where_it_stopped(small, tmp_path, monkeypatch):
    out = tmp_path / "audit"
    code = f"import unveil; unveil.audit(out={str(out)!r}, **{SMALL!r})"
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ})
    deadline = time.monotonic() + 60
    while (
        process.poll() is None
        and time.monotonic() < deadline
        and len(list(out.glob("trials/*.npz"))) < 2
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {p.name: p.read_bytes() for p in out.glob("trials/*.npz")}
    assert len(kept) >= 2
    made = []
    honest = Laboratory._attack
    monkeypatch.setattr(Laboratory, "_attack", lambda self, *a: made.append(a) or honest(self, *a))
    audit = unveil.audit(out=out, **SMALL)
    assert audit.records == small.records
    assert audit.curve == small.curve
    total = len(list(out.glob("trials/*.npz")))
    assert len(made) == total - len(kept) < total
    assert all((out / "trials" / name).read_bytes() == content for name, content in kept.items())
    assert not [
        p for p in Path(out).rglob(".*") if p.is_file() and p.suffix == ".npz" and p.name in kept
    ]


def test_time_that_ran_out_is_said(monkeypatch):
    monkeypatch.setattr("unveil.auditing.audit.clock_for", lambda effort: Clock(-1.0))
    records = np.random.default_rng(0).standard_normal((12, 30))
    found = unveil.audit(records, Scheme(2), m=84, seeds=1, rng=0)
    # Nothing comes back then; that encodings can be linked to records is seen all the same.
    assert found.verdict.level == "partly"
    assert "no record comes back" in found.verdict.headline
    assert any("Time ran out for" in sentence for sentence in found.verdict.sentences)
    monkeypatch.undo()
    whole = unveil.audit(records, Scheme(2), m=84, seeds=1, rng=0, effort=0)
    assert not any("Time ran out" in sentence for sentence in whole.verdict.sentences)
