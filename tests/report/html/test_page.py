from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.report.html.highlight import highlight
from sectorwise.report.html.page import MODULES, bundle, read_asset, render
from sectorwise.report.html.payload import gather
from tests.comparison.kernels import analyze_example
from tests.report.large import INSTRUCTIONS, LAUNCHES, make_large_analysis
from tests.report.samples import COPYING, FAULTY, UNKNOWN, make_analysis, make_kernel

EVIL = "// </script><script>alert(1)</script> <!-- & <b>\n__global__ void k() {}  // ]]> \u2028 '\"\n"


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found[-1:] and self.found[-1][0] == "script":
            self.scripts.append(data)


def read_data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    loaded: dict[str, Any] = json.loads(found[1])
    return loaded


def test_source_is_text_and_nothing_of_it_is_run() -> None:
    analysis = replace(make_analysis(make_kernel(), source_texts={"sample.cu": EVIL}), source="</title><b>x.cu")
    page = render(analysis)
    assert [tag for tag, _ in Elements(page).found].count("script") == 2
    assert "alert(1)</script>" not in page
    assert "<title>&lt;/title&gt;&lt;b&gt;x.cu" in page
    data = read_data(page)
    assert "\n".join("".join(line[1::2]) for line in data["files"]["sample.cu"]) == EVIL


def test_bulk_copies_name_their_place_in_the_code() -> None:
    (kernel,) = gather(make_analysis(COPYING))["kernels"]
    code = gather(make_analysis(COPYING))["codes"][kernel["code"]]
    assert [code[each["at"]][1].split(".")[0] for each in kernel["copies"]] == [
        "UTMALDG",
        "UTMALDG",
        "UBLKPF",
        "UTMASTG",
    ]
    assert [each["sectors"] for each in kernel["copies"]] == [32768, 16384, 0, None]


def test_page_loads_nothing() -> None:
    page = render(analyze_example())
    loading = {"src", "srcset", "action", "data", "poster"}
    elements = Elements(page).found
    assert not [attributes for _, attributes in elements if loading & set(attributes)]
    assert {attributes["href"] for _, attributes in elements if "href" in attributes} == {"data:,", "#lines"}
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page


def test_scripts_import_what_is_exported_and_stand_in_order() -> None:
    exported: dict[str, set[str]] = {}
    for name in MODULES:
        text = read_asset(name)
        assert text.startswith("// ")
        for names, module in re.findall(r'^import \{ ([^}]*) \} from "\./([a-z]+\.js)";$', text, re.MULTILINE):
            assert set(names.split(", ")) <= exported[module]
        assert len(re.findall(r"^import ", text, re.MULTILINE)) == len(re.findall(r'from "\./', text))
        exported[name] = set(re.findall(r"^export (?:function|const) (\w+)", text, re.MULTILINE))
    assert not re.findall(r"^(import|export) ", bundle(), re.MULTILINE)
    assert "innerHTML" not in bundle()


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"), max_size=300))
def test_highlighted_pieces_are_the_text(text: str) -> None:
    assert "\n".join("".join(line[1::2]) for line in highlight(text)) == text


def test_words_of_the_language_are_told_apart() -> None:
    (line,) = highlight('__shared__ float tile[32]; // "a"')
    kinds = dict(zip(line[1::2], line[::2], strict=True))
    assert (kinds["float"], kinds["32"], kinds['// "a"']) == ("t", "n", "c")


def test_data_has_every_site_and_its_costs() -> None:
    analysis = analyze_example()
    data = gather(analysis)
    for kernel, shown in zip(analysis.kernels, data["kernels"], strict=True):
        assert shown["sites"]["sectors"] == [site.sectors for site in kernel.sites]
        code = data["codes"][shown["code"]]
        assert [code[row][:2] for row in shown["sites"]["at"]] == [[site.offset, site.sass] for site in kernel.sites]
        issued = [count for length, count in zip(*[iter(shown["issued"])] * 2, strict=True) for _ in range(length)]
        assert issued == [each.issued for each in kernel.instructions]
        lines = [data["places"][code[row][2]][1] for row in shown["sites"]["at"]]
        assert lines == [site.location and site.location.line for site in kernel.sites]
        for site, patterns in zip(kernel.sites, shown["sites"]["patterns"], strict=True):
            for pattern, (number, requests) in zip(site.patterns, patterns, strict=True):
                scene, width, _, lanes = data["patterns"][number][4][0]
                if len(lanes) == 2:
                    lanes = [lanes[0] + lane * lanes[1] for lane in range(32)]
                assert (requests, scene, width) == (pattern.requests, pattern.pictures[0].scene, site.width_bytes)
                assert tuple(lanes) == pattern.pictures[0].lanes


def test_curves_pass_through_the_kernel() -> None:
    for kernel, shown in zip(analyze_example().kernels, gather(analyze_example())["kernels"], strict=True):
        at = kernel.resources.registers_per_thread
        (step,) = [step for step in shown["curves"]["registers"] if step[0] <= at <= step[1]]
        assert step[2:] == [kernel.occupancy.blocks_per_sm, kernel.occupancy.warps_per_sm]


@pytest.mark.parametrize("kernel", [UNKNOWN, FAULTY, make_kernel(sites=())])
def test_unknown_and_missing_parts_are_null(kernel: object) -> None:
    data = gather(make_analysis(kernel))  # type: ignore[arg-type]  # one of the samples
    (shown,) = data["kernels"]
    assert shown["time"] is None
    assert shown["whole"] is False
    unknown = [number for number, why in enumerate(shown["sites"]["unknown_because"]) if why]
    assert [shown["sites"]["sectors"][number] for number in unknown] == [None] * len(unknown)


def test_large_report_is_small() -> None:
    analysis = make_large_analysis()
    begin = time.process_time()
    page = render(analysis)
    assert time.process_time() - begin < 30
    assert len(page.encode()) < 5_000_000
    data = read_data(page)
    assert (len(data["kernels"]), len(data["codes"]), len(data["codes"][0])) == (LAUNCHES, 1, INSTRUCTIONS)
