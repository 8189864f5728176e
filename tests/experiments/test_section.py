"""Tables in Markdown."""

from experiments.section import Section, table


def test_a_table():
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_bar_in_a_cell_does_not_end_it():
    assert table(["a"], [["|x|"]]).splitlines()[-1] == "| \\|x\\| |"


def test_a_section_needs_no_captions():
    assert Section("t", "c", "o", "v").captions == {}
