"""The report in a real browser: it renders, asks nobody, sorts, filters, and names cannot take it
over."""

import json
import shutil
from pathlib import Path

import pytest

from unveil.report import write_report

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

if BROWSER is None or DRIVER is None:
    pytest.skip(
        "no Chromium with its driver here: apt install chromium chromium-driver",
        allow_module_level=True,
    )
webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium drives the browser: pip install 'unveil[dev]'"
)

# Luminance contrast of every text on the page with what is behind it, as WCAG defines it; the worst
# comes back.
CONTRAST = """
const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const parse = (c) => { const n = c.match(/[\\d.]+/g).map(Number); return n.length > 3 && n[3] === 0 ? null : n; };
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
let worst = [99, ""], seen = 0;
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const at = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !at.checkVisibility() || at.closest("script, title")) continue;
  let behind = at, ground = null;
  while (behind && !(ground = parse(getComputedStyle(behind).backgroundColor))) behind = behind.parentElement;
  const style = getComputedStyle(at), ink = parse(at.closest("svg") ? style.fill : style.color);
  const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
  seen += 1;
  if (ratio < worst[0]) worst = [ratio, at.outerHTML.slice(0, 90)];
}
return [...worst, seen, getComputedStyle(document.body).backgroundColor];
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def view(browser, tmp_path):
    """Opens the report of an audit as a reader would: from disk, in a window of some width, light
    or dark."""

    def open_report(audit, width=1200, scheme="light"):
        path = Path(write_report(audit, tmp_path / "report.html"))
        screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get_log("browser"), browser.get_log("performance")  # what earlier pages left
        browser.get(path.as_uri())
        return browser

    return open_report


def column(browser, index):
    script = "return Array.from(document.querySelectorAll('#records tbody tr'), r => r.cells[arguments[0]].textContent)"
    return browser.execute_script(script, index)


def click_heading(browser, title):
    for button in browser.find_elements("css selector", "#records thead button"):
        if button.text.startswith(title):
            browser.execute_script("arguments[0].focus()", button)
            button.send_keys("\ue007")  # Enter: by keyboard, as by mouse
            return button.find_element("xpath", "..").get_attribute("aria-sort")
    raise AssertionError(f"no heading {title}")


def requests(browser):
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


def test_it_renders_without_a_complaint_and_asks_nobody(view, make_audit):
    browser = view(make_audit())
    assert browser.get_log("browser") == []
    assert browser.title == "Leaks: an audit by Unveil"
    assert "half came back" in browser.find_element("tag name", "h1").text
    urls = requests(browser)
    assert any(url.startswith("file:") and url.endswith("report.html") for url in urls)
    assert [
        url for url in urls if not url.startswith("data:") and not url.endswith("report.html")
    ] == []
    broken = "return Array.from(document.images).filter(i => i.checkVisibility() && !(i.complete && i.naturalWidth)).length"
    assert browser.execute_script(broken) == 0
    top, bottom = browser.execute_script(
        "const b = document.querySelector('.verdict').getBoundingClientRect(); return [b.top, b.bottom]"
    )
    assert 0 <= top < bottom <= 800


def test_headings_sort_both_ways_and_unknown_values_stay_last(view, make_audit):
    browser = view(make_audit(40))
    assert click_heading(browser, "#") == "ascending"
    assert column(browser, 0) == [str(i) for i in range(40)]
    assert click_heading(browser, "#") == "descending"
    assert column(browser, 0) == [str(i) for i in reversed(range(40))]
    assert click_heading(browser, "image") == "ascending"
    assert column(browser, 1) == [f"image-{i}.png" for i in range(40)]  # image-2 before image-10
    for direction in ("ascending", "descending"):
        assert click_heading(browser, "from m") == direction
        known = [int(text) for text in column(browser, 5) if text != "–"]
        assert known == sorted(known, reverse=direction == "descending")
        assert column(browser, 5)[len(known) :] == ["–"] * 20
    assert len(browser.find_elements("css selector", "[aria-sort]")) == 1


def test_filters_leave_what_matches(view, make_audit):
    browser = view(make_audit(40))
    outcome, find = browser.find_element("id", "outcome"), browser.find_element("id", "find")
    outcome.send_keys("not recovered")
    assert {text.strip() for text in column(browser, 2)} == {"not recovered"}
    assert browser.find_element("id", "shown").text == "10 of 40 records"
    find.send_keys("IMAGE-11")
    assert column(browser, 1) == ["image-11.png"]
    find.send_keys("nowhere\n")
    assert column(browser, 1) == []
    assert "report.html" in browser.current_url
    assert "?" not in browser.current_url


def test_thousands_of_rows_are_laid_out_a_hundred_at_a_time(view, make_audit):
    browser = view(make_audit(3000))
    assert len(column(browser, 0)) == 100
    assert browser.find_element("id", "shown").text == "3,000 records, the first 100 shown"
    click_heading(browser, "#")
    assert column(browser, 0) == [str(i) for i in range(100)]
    browser.find_element("id", "find").send_keys("image-2999")
    assert column(browser, 0) == ["2999"]
    browser.find_element("id", "find").send_keys("\ue009a\ue003")  # Ctrl+A, Backspace
    browser.find_element("css selector", "#more button").click()
    assert len(column(browser, 0)) == 1000


def test_names_cannot_inject(view, make_audit, hostile_names):
    browser = view(make_audit(12, names=hostile_names))
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.pwned") is None
    assert sorted(column(browser, 1)[i] for i in range(12)) == sorted(
        [*hostile_names, "image-10.png", "image-11.png"]
    )
    assert len(browser.find_elements("tag name", "script")) == 1
    assert len(browser.find_elements("tag name", "h1")) == 1
    alts = browser.execute_script("return Array.from(document.images, i => i.alt)")
    assert f"Original: {hostile_names[0]}" in alts


def test_markup_that_got_in_could_still_not_run(view, make_audit):
    browser = view(make_audit())
    tried = """
    const script = document.createElement("script"); script.textContent = "window.pwned = 1"; document.body.append(script);
    document.body.insertAdjacentHTML("beforeend", '<img src="data:," onerror="window.pwned = 2">');
    document.body.insertAdjacentHTML("beforeend", '<img src="http://127.0.0.1:9/x.png">');
    """
    browser.execute_script(tried)
    browser.execute_async_script("setTimeout(arguments[0], 200)")
    assert browser.execute_script("return window.pwned") is None
    assert (
        sum("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))
        >= 3
    )


@pytest.mark.parametrize(
    ("level", "scheme"), [("leaks", "light"), ("partly", "dark"), ("nothing", "light")]
)
def test_every_text_has_contrast_in_light_and_dark(view, make_audit, level, scheme):
    browser = view(make_audit(level=level), scheme=scheme)
    ratio, where, seen, ground = browser.execute_script(CONTRAST)
    assert seen > 100
    assert ratio >= 4.5, where
    assert (sum(map(int, ground[4:-1].split(","))) > 384) == (scheme == "light")
    browser.find_element("id", "theme").click()  # to the other one
    ratio, where, _, other = browser.execute_script(CONTRAST)
    assert other != ground
    assert ratio >= 4.5, where


def test_a_phone_needs_no_sideways_scrolling(view, make_audit, hostile_names):
    browser = view(
        make_audit(12, names=(*hostile_names[:3], "y" * 300, *hostile_names[3:])), width=375
    )
    for details in browser.find_elements("tag name", "details"):
        browser.execute_script("arguments[0].open = true", details)
    assert browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [
        375,
        375,
    ]
    assert browser.execute_script("return document.querySelector('svg.narrow').checkVisibility()")
    assert not browser.execute_script("return document.querySelector('svg.wide').checkVisibility()")


def test_the_keyboard_reaches_everything_and_focus_shows(view, make_audit):
    browser = view(make_audit())
    body = browser.find_element("tag name", "body")
    body.send_keys("\ue004")
    skip = browser.switch_to.active_element
    assert skip.get_attribute("href").endswith("#main")
    assert skip.rect["x"] >= 0
    skip.send_keys("\ue007")
    browser.switch_to.active_element.send_keys("\ue004")
    style = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["images", "features"])
def test_every_part_on_a_phone_and_on_a_desk(view, whole_audit, kind, scheme):
    for width in (390, 1280):
        browser = view(whole_audit(kind), width=width, scheme=scheme)
        for details in browser.find_elements("tag name", "details"):
            browser.execute_script("arguments[0].open = true", details)
        wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        ratio, where, seen, _ = browser.execute_script(CONTRAST)
        assert seen > 200
        assert ratio >= 4.5, where
        assert browser.get_log("browser") == []


def test_printed_it_has_no_buttons_and_keeps_its_colours(view, whole_audit):
    browser = view(whole_audit())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = "return document.querySelector(arguments[0]).checkVisibility()"
        assert not browser.execute_script(shown, "#theme")
        assert not browser.execute_script(shown, "#filters")
        assert browser.execute_script(shown, ".attackers")
        cut = "return getComputedStyle(document.querySelector('.scroll')).overflow"
        assert browser.execute_script(cut) == "visible"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
