"""The README's Python does what its comments say."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_ten_lines_of_python_print_what_they_say(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len([line for line in code.splitlines() if line]) <= 10
    exec(compile(code, str(README), "exec"), {})
    explanation, counts = capsys.readouterr().out.splitlines()
    said = [comment.split("…")[0] for comment in re.findall(r"print.*# (.*)", code)]
    assert explanation.startswith(said[0])
    assert counts == said[1]
