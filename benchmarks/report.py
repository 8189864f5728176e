"""The report in headless Chromium: size and loading time of a hundred images, sorting and filtering
of five thousand rows."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import Row
from unveil.auditing.result import Audit, CurvePoint, Pictures, RecordRisk, Verdict
from unveil.report import write_report

REPEATS = 5
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"

LOADED = "const e = performance.getEntriesByType('navigation')[0]; return [e.loadEventEnd]"
USED = """
const button = document.querySelectorAll("#records thead button")[1], find = document.getElementById("find");
const timed = (work) => { const t = performance.now(); work(); document.body.offsetHeight; return performance.now() - t; };
return [timed(() => button.click()), timed(() => { find.value = "17"; find.dispatchEvent(new Event("input")); })];
"""


def audit(records: int, images: int) -> Audit:
    """Images are noise, the worst a PNG can be given."""
    rng = np.random.default_rng(0)
    reason = (
        "re-encoding reproduces every encoding known to mix it, from more equations than unknowns"
    )
    return Audit(
        Verdict("leaks", f"{records} of {records} records come back."),
        scheme={"k_private": 2},
        data={"n_private": records},
        m=700,
        attack="full",
        explanation="all verified",
        records=tuple(
            RecordRisk(
                i, f"{i}.png", "exact", 9, 0, i / 1e6, 1.0, 14, 700 - i % 300, "verified", reason
            )
            for i in range(records)
        ),
        curve=tuple(
            CurvePoint(m, m / 700, 0.0, m / 800, min(1.0, m / 600), m / 700, 5)
            for m in range(100, 701, 100)
        ),
        pictures=Pictures(
            *rng.random((3, images, 32, 32, 3), dtype=np.float32),
        ),
    )


def rows() -> list[Row]:
    out: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        hundred = write_report(audit(100, 100), Path(folder) / "images.html")
        many = write_report(audit(5000, 1), Path(folder) / "rows.html")
        size = hundred.stat().st_size / 1e6
        out.append(
            ("report of 100 colour images of 32×32, noise", "< 5 MB", f"{size:.2f} MB", size < 5)
        )
        browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if browser is None or driver is None:
            return [
                *out,
                (
                    "the same, loaded in headless Chromium",
                    "< 1 s",
                    "no chromium and chromium-driver here",
                    None,
                ),
            ]
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS.split(), f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        page = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            load = _median(page, hundred, LOADED)[0]
            out.append(
                (
                    "the same, loaded in headless Chromium",
                    "< 1 s",
                    f"{load / 1000:.2f} s",
                    load < 1000,
                )
            )
            load = _median(page, many, LOADED)[0]
            sort, find = _median(page, many, USED)
            out.append(
                (
                    "5,000 records: load, sort, filter",
                    "",
                    f"{load:.0f}, {sort:.0f}, {find:.0f} ms",
                    None,
                )
            )
        finally:
            page.quit()
    return out


def _median(page: Any, path: Path, script: str) -> list[float]:
    times = []
    for _ in range(REPEATS):
        page.get(path.as_uri())
        times.append(page.execute_script(script))
    return [float(value) for value in np.median(times, axis=0)]
