"""The examples of public names run as they are printed."""

import doctest
import inspect

import pytest

import unveil

EXAMPLES = [
    test
    for name in unveil.__all__
    for test in doctest.DocTestFinder(recurse=False).find(getattr(unveil, name), name)
    if test.examples
]
SECTIONS = ("Parameters", "Attributes")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_an_example_gives_what_it_prints(example):
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    report = []
    runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_an_example_that_is_wrong_would_be_seen():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    runner = doctest.DocTestRunner()
    runner.run(wrong, out=lambda _: None)
    assert runner.failures == 1


@pytest.mark.parametrize(
    "name",
    [
        "ChallengeScores",
        "Encodings",
        "Floral",
        "ImageScores",
        "Overlaps",
        "Recovery",
        "Scheme",
        "Scores",
        "Selection",
        "Simulation",
        "Supports",
        "challenge_scores",
        "find_all_florals",
        "find_floral_submatrix",
        "gram_extract",
        "image_scores",
        "is_floral",
        "learn_private_image",
        "learn_public",
        "lint_encoder",
        "lint_encodings",
        "plan",
        "read_challenge",
        "score",
        "simulate",
    ],
)
def test_every_parameter_or_field_is_described(name):
    thing = getattr(unveil, name)
    text = inspect.getdoc(thing)
    section = next(s for s in SECTIONS if f"{s}\n{'-' * len(s)}" in text)
    body = text.split(f"{section}\n{'-' * len(section)}\n")[1].split("\n\n")[0]
    described = {
        entry.strip()
        for line in body.splitlines()
        if not line.startswith(" ")
        for entry in line.split(" : ")[0].split(",")
    }
    fields = getattr(thing, "__dataclass_fields__", None)
    asked = set(fields) if fields else set(inspect.signature(thing).parameters)
    # `shape` is the older name of `image_shape`, described there.
    assert asked - described - {"shape"} == set()
