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
from unveil.auditing.trials import Laboratory
from unveil.records import InputError, Scheme

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
    assert any(
        "certificate does not cover" in s or "Gaussian" in s for s in audit.verdict.sentences
    )


def test_nothing_recovered_is_no_proof():
    audit = unveil.audit(n_private=40, d=64, m=30, rng=0, seeds=1, effort=0)
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
    assert audit.attack == "full, told the overlaps"
    assert audit.verdict.level == "partly"
    assert "once it is known which encodings share a record" in audit.verdict.headline
    assert not next(g for g in audit.guarantees if "nothing but the release" in g.what).holds


def test_a_wrong_verified_vector_is_never_silent(monkeypatch):
    """An attack that lies: the audit must count it, find it, and withdraw its trust."""
    honest = unveil.recover

    def liar(*args, **options):
        recovery = honest(*args, **options)
        recovery.vectors[0, 5] += 1.0
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


BAD = {
    "seeds": ({"seeds": 0}, "1 or more"),
    "relative tolerance": ({"relative_tolerance": 0}, "positive"),
    "tolerance, its older name": ({"tolerance": 0}, "positive"),
    "effort": ({"effort": -1}, "0 or more"),
    "m": ({"m": 1}, "2 or more"),
    "range": ({"m": (50, 20)}, "smaller number first"),
    "k": ({"scheme": Scheme(9), "n_private": 8}, "lower k_private"),
    "k of 1": ({"scheme": Scheme(1)}, "2 or more"),
    "no public": ({"private": np.ones((9, 9)), "scheme": Scheme(2, 1)}, "no public vectors"),
    "public without k": ({"public": np.ones((9, 784))}, "k_public"),
    "public of other size": ({"public": np.ones((9, 3)), "scheme": Scheme(2, 1)}, "same space"),
    "memory": ({"m": 10**6, "memory_limit": 10**8}, "memory"),
    "scheme": ({"scheme": 2}, "unveil.Scheme"),
    "negative seed": ({"rng": -1}, "0 or more"),
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
