"""What a notebook shows: short, balanced, and without markup from outside."""

from dataclasses import replace
from html.parser import HTMLParser

from unveil.present.notebook import ROWS


class Balanced(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_a_short_table(result):
    page = Balanced(result._repr_html_())
    assert page.open == []
    assert 1 <= page.seen.count("tr") <= ROWS + 1
    assert not {"script", "style", "b"} - {"b"} & set(page.seen)


def test_markup_from_outside_is_text(results):
    assert "<b>Ann" not in results["audit"]._repr_html_()
    assert "&lt;b&gt;Ann" in results["audit"]._repr_html_()
    named = replace(results["recovery"], columns=("<script>", "b", "c", "d", "e", "f"))
    assert "<script>" not in named._repr_html_()


def test_what_is_left_out_is_counted(results):
    text = results["encodings"]._repr_html_()
    assert f"{results['encodings'].m - ROWS} more rows" in text


def test_images_are_shown(images):
    assert Balanced(images._repr_html_()).seen.count("img") == min(12, len(images))
