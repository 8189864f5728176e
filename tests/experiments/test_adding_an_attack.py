"""docs/adding_an_attack.md, followed to the letter: one file, and everything knows the attack."""

import inspect
import json
import re
from pathlib import Path

import pytest

import unveil

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding_an_attack.md"
IN_PYTHON = """
import unveil
sim = unveil.simulate(unveil.Scheme(2), 12, m=80, d=600, rng=0)
found = unveil.recover(sim.encodings, attack="mine", rng=0)
scores = unveil.score(found, sim.private)
print(found.attack, scores.exact, scores.wrong)
"""


@pytest.fixture(scope="module")
def example(house, tmp_path_factory):
    text = PAGE.read_text()
    [source] = re.findall(r"```python\n(.*?)```", text, re.S)
    [place] = re.findall(r"This is `src/unveil/attacks/(\w+\.py)`", text)
    return house(tmp_path_factory.mktemp("house"), {place: source})


def test_python_knows_it(example):
    done = example.run(code=IN_PYTHON)
    assert done.stdout.split() == ["mine", "12", "0"], done.stderr


def test_the_command_line_knows_it(example):
    made = example.run("simulate", "run", "--n-private", 12, "--m", 80, "--d", 600)
    assert made.returncode == 0, made.stderr
    done = example.run("attack", "run", "--attack", "mine", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] == 12


def test_the_comparison_knows_it_and_shows_where_it_refuses(example):
    chosen = [f"--family={name}" for name in ("told-k2", "unequal")]
    done = example.run("compare", "--attack=mine", *chosen, "--out", "out", "--json")
    assert done.returncode == 0, done.stderr
    told, unequal = json.loads(done.stdout)["results"]
    assert (told["outcome"], told["wrong"]) == ("ran", 0)
    assert told["share"] > 0.9
    assert unequal["outcome"] == "refused"
    assert "use attack='full'" in unequal["reason"]


def test_its_signature_is_the_common_one(example):
    space = {}
    exec(compile((example.attacks / "mine.py").read_text(), "mine.py", "exec"), space)
    wanted = [name for name in inspect.signature(unveil.recover).parameters if name != "attack"]
    has = list(inspect.signature(space["ATTACK"]).parameters)
    assert has == [name for name in wanted if name in has]
    assert space["NAME"] not in unveil.attacks.ATTACKS
