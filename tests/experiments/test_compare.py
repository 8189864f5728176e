"""The comparison of attacks: one family, small; what an attack does wrong is a result."""

import json

from click.testing import CliRunner
from experiments import compare
from experiments.compare import FAMILIES, instance, main, scored, trial

from unveil import recover


def test_two_attacks_on_one_family(tmp_path):
    run = CliRunner().invoke(
        main,
        [
            *("--attack", "line-graph", "--attack", "mixing", "--family", "told-k2"),
            *("--draws", "1", "--out", str(tmp_path)),
        ],
    )
    assert run.exit_code == 0, run.output
    found = json.loads((tmp_path / "compare.json").read_text())["told-k2"]
    assert (found["line-graph"][0]["share"], found["line-graph"][0]["wrong"]) == (1.0, 0)
    assert "overlaps" in found["mixing"][0]["refused"]
    page = (tmp_path / "compare.md").read_text()
    assert "| told-k2 | 100% |" in page


def test_instances_are_the_same_in_every_process_and_as_they_are_said_to_be():
    for name in ("k3", "public", "told-wrong", "all-public", "images"):
        first, second = (instance(FAMILIES[name], 3) for _ in range(2))
        assert first[0].encodings.values.tobytes() == second[0].encodings.values.tobytes()
        assert first[0].encodings.m == FAMILIES[name].m
    wrong, true = (
        instance(FAMILIES[name], 0)[1]["overlaps"].toarray() for name in ("told-wrong", "told-k2")
    )
    assert 0.001 < (wrong != true).mean() < 0.02


def test_public_supports_are_scored():
    sim, _ = instance(FAMILIES["all-public"], 0)
    recovery = recover(sim.encodings, sim.public, rng=0)
    assert scored(recovery, FAMILIES["all-public"], sim) == (1.0, 0)


def test_an_attack_that_fails_or_takes_too_long_is_a_result(monkeypatch):
    def fails(*_, **__):
        raise ValueError("on purpose")

    monkeypatch.setattr(compare, "recover_told", fails)
    assert trial("exact", "k2", 0, 60) == {"crashed": "ValueError: on purpose"}

    def hangs(*_, **__):
        while True:
            pass

    monkeypatch.setattr(compare, "recover_told", hangs)
    assert trial("exact", "k2", 0, 1) == {"late": True}
