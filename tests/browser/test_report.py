from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

from sectorwise.analysis.instructions import HangReport
from sectorwise.machine.execution import Waiting
from tests.browser.pages import analyze_family, write_page
from tests.comparison.kernels import analyze_example
from tests.measured.rows import list_families
from tests.report.large import INSTRUCTIONS, make_large_analysis
from tests.report.samples import BECAUSE, COPYING, FAULTY, LOST, SITES, UNKNOWN, make_analysis, make_kernel

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

SCRIPT = "<script>window.run = true</script>"


@pytest.fixture
def example(folder: Path) -> str:
    return write_page(folder, "example", analyze_example())


def chosen(page: Page) -> str:
    return page.locator("#look h2").first.inner_text()


def test_opens_on_the_dearest_finding(page: Page, example: str) -> None:
    page.goto(example)
    assert page.locator("h1").inner_text() == "transpose_naive<<<(16, 16), (32, 8)>>>"
    assert page.locator(".find").first.inner_text().startswith("SW101")
    assert chosen(page) == "Global store of 4 B"
    assert (page.locator("tr.here td.n").text_content() or "") == "19"
    numbers = page.locator("table.numbers tbody tr").first.locator("td").all_inner_texts()
    assert numbers == ["sectors", "65,536", "8,192", "32.0", "4.0", "12 %"]
    assert page.locator(".card").count() == 6
    assert page.locator(".card svg").count() >= 6


def test_switches_kernels(page: Page, example: str) -> None:
    page.goto(example)
    page.locator("#kernel").select_option("1")
    assert page.locator("h1").inner_text().startswith("transpose_tile")
    assert chosen(page) == "Shared load of 4 B"
    assert (page.locator("tr.here td.n").text_content() or "") == "36"
    page.keyboard.press("Tab")
    page.locator("#lines").focus()
    page.keyboard.press(">")
    assert page.locator("h1").inner_text().startswith("transpose_padded")
    page.keyboard.press("<")
    assert page.locator("#kernel").input_value() == "1"


def test_selects_lines_and_instructions(page: Page, example: str) -> None:
    page.goto(example)
    page.locator("tr.hot", has_text="float value = in").click()
    assert chosen(page) == "Global load of 4 B"
    assert page.locator("#look .chips button").count() == 4
    page.locator("#look .chips button").nth(2).click()
    assert page.locator("#look .chips button").nth(2).get_attribute("aria-pressed") == "true"
    assert "site=" in page.url


def test_metric_changes_the_bars(page: Page, example: str) -> None:
    page.goto(f"{example}#k=1")
    row = page.locator('tr[data-key$=":36"]')
    assert re.fullmatch(r"[\d.]+ (ns|µs)", (row.locator(".heat .v").text_content() or ""))
    page.locator("#metrics button", has_text="Wavefronts").click()
    assert row.locator(".heat").get_attribute("title") == "262,144 wavefronts, ideal 8,192"
    assert (row.locator(".heat .v").text_content() or "") == "×32"  # noqa: RUF001 - the sign is meant
    page.locator("#metrics button", has_text="Sectors").click()
    assert row.locator(".heat").get_attribute("title") == "32,768 sectors, ideal 32,768"
    assert page.locator(".heat .b").count() == 0


def test_steps_through_warps_that_differ(page: Page, example: str) -> None:
    page.goto(example)
    assert "way 1 of" in page.locator(".warp").inner_text()
    first = page.locator(".warp svg").first.inner_html()
    page.locator(".warp [aria-label='Next way']").click()
    assert "way 2 of" in page.locator(".warp").inner_text()
    assert page.locator(".warp svg").first.inner_html() != first
    page.locator("#lines").focus()
    page.keyboard.press("[")
    assert "way 1 of" in page.locator(".warp").inner_text()
    assert page.locator(".warp svg").first.inner_html() == first


def test_pictures_are_what_was_counted(page: Page, example: str) -> None:
    page.goto(f"{example}#k=1")
    label = page.locator(".warp svg").first.get_attribute("aria-label")
    assert label == "32 passes over 32 banks"
    page.goto(f"{example}#k=0")
    label = page.locator(".warp svg").first.get_attribute("aria-label")
    assert label == "32 lanes of 4 bytes touch 32 sectors of 32 lines"


def test_keyboard(page: Page, example: str) -> None:
    page.goto(f"{example}#k=1")
    page.locator("#lines").focus()
    page.keyboard.press("k")
    assert (page.locator("tr.here td.n").text_content() or "") == "30"
    page.keyboard.press("j")
    assert (page.locator("tr.here td.n").text_content() or "") == "36"
    page.keyboard.press("s")
    assert page.locator("#views button[aria-pressed='true']").inner_text() == "SASS"
    assert (page.locator("tr.here .op").text_content() or "") == "LDS"
    page.keyboard.press("m")
    assert page.locator("#metrics button[aria-pressed='true']").inner_text() == "Sectors"
    page.keyboard.press("s")
    page.keyboard.press("i")
    assert page.locator("#look .chips button").nth(1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("n")
    assert page.locator(".find[aria-current='true']").count() == 1
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("kTile + 1")
    assert "".join(page.locator("mark").all_text_contents()) == "kTile + 1"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") != "search"


def test_links_lead_to_a_line_an_instruction_and_a_view(page: Page, example: str) -> None:
    page.goto(f"{example}#k=2&view=sass&metric=wavefronts&site=5")
    assert page.locator("h1").inner_text().startswith("transpose_padded")
    shown = page.url
    here = page.locator("tr.here").text_content() or ""
    page.goto("about:blank")
    page.goto(shown)
    assert (page.locator("tr.here").text_content() or "") == here
    page.locator("#views button", has_text="Source").click()
    target = page.locator("tr.hot td.n a").first.get_attribute("href")
    assert target is not None
    page.goto(f"{example}{target}")
    assert (page.locator("tr.here td.n").text_content() or "") == (
        page.locator("tr.hot td.n").first.text_content() or ""
    )
    page.goto(f"{example}#k=99&site=4000&line=nowhere&metric=taste")
    assert page.locator("h1").inner_text().startswith("transpose_naive")


def test_light_and_dark(page: Page, example: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(example)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.locator("#theme").click()
    light = page.evaluate(background)
    assert [sum(map(int, re.findall(r"\d+", color))) > 384 for color in (dark, light)] == [False, True]
    page.reload()
    assert page.evaluate(background) == light
    page.evaluate("localStorage.clear()")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_fits_the_width(page: Page, example: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{example}#k=1")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#look").scroll_into_view_if_needed()
    assert page.locator(".warp svg").first.is_visible()


def test_print_shows_all_lines(page: Page, example: str) -> None:
    page.goto(example)
    page.emulate_media(media="print")
    assert not page.locator("#search").is_visible()
    assert page.evaluate(
        "document.getElementById('lines').scrollHeight <= document.getElementById('lines').clientHeight + 1"
    )
    page.emulate_media(media="screen")


def test_source_is_shown_and_not_run(page: Page, folder: Path) -> None:
    text = f"// </script>{SCRIPT}<img src=x onerror='window.run=true'>\n" * 7
    analysis = replace(make_analysis(make_kernel(), source_texts={"sample.cu": text}), source=f"a{SCRIPT}.cu")
    page.goto(write_page(folder, "evil", analysis))
    assert page.evaluate("window.run") is None
    assert SCRIPT in (page.locator("tr.hot td.t").first.text_content() or "")
    assert SCRIPT in page.locator(".where").inner_text()


def test_missing_source_leaves_the_sass(page: Page, folder: Path) -> None:
    page.goto(write_page(folder, "gone", replace(analyze_example(), source_texts={})))
    assert "The source was not found: this is the SASS view alone." in page.locator("#lines").inner_text()
    assert page.locator("#views button", has_text="Source").is_disabled()
    assert chosen(page) == "Global store of 4 B"


def test_unknown_and_wrong_are_marked(page: Page, folder: Path) -> None:
    page.goto(f"{write_page(folder, 'unknown', make_analysis(UNKNOWN, FAULTY))}#site=5")
    assert BECAUSE in page.locator(".finds").inner_text()
    assert BECAUSE in page.locator("#look").inner_text()
    assert page.locator("tr .tag.unknown").count() == 1
    page.locator("#metrics button", has_text="Sectors").click()
    assert page.locator("tr.here .heat.unknown .q").count() == 1
    page.locator("#kernel").select_option("1")
    page.goto(f"{page.url.partition('#')[0]}#k=1&site=3")
    assert "first in block (3, 0, 0), warp 1, lane 5" in page.locator("#look").inner_text()


def test_a_line_of_many_instructions_leaves_their_numbers_in_sight(page: Page, folder: Path) -> None:
    """An unrolled loop: its line has 120 loads, of which one in the middle is chosen."""
    many = [replace(SITES[0], offset=f"0x{0x100 + 16 * number:04x}") for number in range(120)]
    page.goto(f"{write_page(folder, 'many', make_analysis(make_kernel(sites=tuple(many))))}#site=60")
    chips, numbers = page.locator("#look .chips"), page.locator("#look table.numbers")
    assert chips.locator("button").count() == 120
    pressed = chips.locator("button[aria-pressed=true]")
    assert pressed.inner_text().endswith("0x04c0")
    boxes = [each.bounding_box() for each in (chips, pressed, numbers)]
    assert None not in boxes
    around, chip, table = (box for box in boxes if box is not None)
    assert around["y"] <= chip["y"]
    assert chip["y"] + chip["height"] <= around["y"] + around["height"]
    # The panel scrolls by itself, and is no higher than the window: so much of it is seen at once.
    top = page.locator("#look").bounding_box()
    assert top is not None
    assert table["y"] + table["height"] - top["y"] <= 450


def test_what_hangs_has_no_time(page: Page, folder: Path) -> None:
    hang = HangReport(
        "SW903", "0x0100", None, Waiting.LOOP, 4, "4 warps repeat a loop: the launch hangs", is_certain=True
    )
    page.goto(write_page(folder, "hang", make_analysis(replace(make_kernel(), hangs=(hang,)))))
    assert "The launch hangs, or may hang: counts are of what ran until then" in page.locator("main").inner_text()


def test_bulk_copies_are_chosen_as_accesses_are(page: Page, folder: Path) -> None:
    page.goto(f"{write_page(folder, 'copying', make_analysis(COPYING))}#site=6")
    look = page.locator("#look").inner_text()
    assert look.startswith("Bulk tile load of 8,192 B")
    for words in ("outside, filled\t1,024", "blocks that get one\t64", "sectors at the L2\t32,768", "assumed"):
        assert words in look
    page.locator("#metrics button", has_text="Sectors").click()
    assert page.locator("tr.here .heat.bad").count() == 1
    page.locator("#look .chips button", has_text="UTMALDG").first.click()
    assert "bytes a row\t16" in page.locator("#look").inner_text()
    page.goto(f"{page.url.partition('#')[0]}#site=8")
    assert LOST in page.locator("#look").inner_text()
    assert "Bulk copies" in page.locator(".tiles").inner_text()


@pytest.mark.parametrize("family", list_families())
def test_every_family_is_shown(page: Page, folder: Path, family: str) -> None:
    analysis = analyze_family(family)
    page.goto(write_page(folder, family, analysis))
    for number, kernel in enumerate(analysis.kernels):
        page.evaluate(f"location.hash = 'k={number}&view={'sass' if number % 2 else 'source'}'")
        page.wait_for_function(f"document.getElementById('kernel').value === '{number}'")
        assert page.locator("h1").inner_text().startswith(kernel.name)
        assert page.locator("tr.hot").count() > 0
        sites = page.locator("#look h2").first.inner_text()
        assert sites != "Nothing chosen"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["#k=1", "#k=0&view=sass&metric=sectors"])
def test_nothing_serious_stands_in_the_way(page: Page, example: str, scheme: str, address: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the two
    page.goto(example + address)
    found = Axe().run(page)
    serious = [
        (violation["id"], [node["html"][:120] for node in violation["nodes"][:3]])
        for violation in found.response["violations"]
        if violation["impact"] in {"serious", "critical"}
    ]
    assert serious == []


def test_large_report_opens_soon(page: Page, folder: Path) -> None:
    page.goto(write_page(folder, "large", make_large_analysis()) + "#view=sass")
    page.locator("tr.here").wait_for()
    assert page.locator("tr").count() >= INSTRUCTIONS
    # By the clock, as a person waits: a second where nothing else runs, and far more where tests share the machine.
    waited = page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
    assert waited < 60_000
