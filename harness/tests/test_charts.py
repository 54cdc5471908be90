"""What charts are drawn from: units, colours, hollow points, gaps, and the library that draws them."""

import hashlib
import json
import re
import shutil
import subprocess
from importlib import resources
from typing import Any

from harness.report.charts import UPLOT_VERSION, chart, drawn, panel_chart, place, script
from harness.report.figure import Cell, Figure, HeatMap, Look, Mark, Series, known_marks
from harness.report.names import level_name, store_colour, store_name
from harness.report.panels import Panel
from harness.report.picture import picture
from harness.report.thinning import thin

UPLOT_SHA256 = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


def line(*ys: float, **more: Any) -> Series:
    return Series("one", tuple(Mark(float(x), y, y, y) for x, y in enumerate(ys, 1)), **more)


def figure(*series: Series, **more: Any) -> Figure:
    return Figure("A <b>", "note", "x", more.pop("y_title", "1/s"), series, **more)


def test_the_library_is_the_one_that_is_pinned() -> None:
    code = resources.files("harness.report").joinpath("uPlot.iife.min.js").read_bytes()
    assert hashlib.sha256(code).hexdigest() == UPLOT_SHA256
    assert f"(v{UPLOT_VERSION})" in code[:100].decode()
    assert "MIT" in resources.files("harness.report").joinpath("uPlot.LICENSE").read_text()
    assert not re.search(r"(src|href)=", script().replace("</script>", "").split("uPlot")[0])


def test_the_script_can_be_read() -> None:
    assert shutil.which("node"), "`node` is missing: `make test-harness` installs nodejs"
    code = resources.files("harness.report").joinpath("chart.js").read_text()
    checked = subprocess.run(["node", "--check", "-"], input=code, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_a_store_has_one_colour_in_every_figure() -> None:
    alone = chart(figure(line(1, 2, 3, store="rocksdb")))
    beside = chart(figure(line(1, 2, 3, store="aiodb"), line(1, 2, 3, store="lmdb"), line(2, 3, 4, store="rocksdb")))
    assert alone["series"][0]["colour"] == beside["series"][2]["colour"] == store_colour("rocksdb")
    colours = {store_colour(store) for store in ("aiodb", "rocksdb", "lmdb", "redis", "stock", "trie")}
    assert len(colours) == 6
    assert store_colour("cassandra-aiodb") == store_colour("aiodb")
    assert store_colour("stock-128") == store_colour("stock-4") == store_colour("stock")


def test_lines_of_one_colour_differ_in_dash_and_shape() -> None:
    both = chart(figure(line(1, 2, 3, store="stock-128"), line(2, 3, 4, store="stock-4"), line(3, 4, 5, store="aiodb")))
    assert [series["dash"] for series in both["series"]] == [0, 1, 0]


def test_latencies_are_in_milliseconds() -> None:
    late = chart(figure(line(1500.0, 2500.0, 3500.0), y_title="µs"))
    assert (late["y"], [mark[1] for mark in late["series"][0]["marks"]]) == ("ms", [1.5, 2.5, 3.5])


def test_doubtful_points_are_marked_as_such() -> None:
    marks = (Mark(1, 10, 9, 11), Mark(2, 10, 5, 15, doubtful=True), Mark(3, 10, 10, 10, doubtful=True))
    drawn_marks = chart(figure(Series("one", marks)))["series"][0]["marks"]
    assert drawn_marks == [[1, 10, 9, 11, 0], [2, 10, 5, 15, 1], [3, 10, 10, 10, 1]]


def test_two_points_are_not_joined() -> None:
    assert not chart(figure(line(1, 2)))["series"][0]["joined"]
    assert chart(figure(line(1, 2, 3)))["series"][0]["joined"]
    assert not chart(figure(line(1, 2, 3, look=Look.PREDICTED)))["series"][0]["joined"]


def test_a_stall_has_no_place_on_a_logarithm() -> None:
    marks = chart(figure(line(10.0, 0.0, 20.0), y_log=True))["series"][0]["marks"]
    assert [mark[1] for mark in marks] == [10.0, None, 20.0]


def test_nothing_copied_has_no_place_on_a_logarithm() -> None:
    assert not chart(figure(Series("one", known_marks([(0, 1), (64, 2), (128, 3)])), x_log=True))["xLog"]


def test_percentiles_are_stretched_towards_the_last() -> None:
    marks = chart(figure(Series("one", known_marks([(0, 1), (90, 2), (99, 3)])), percentiles=True))["series"][0][
        "marks"
    ]
    assert [mark[0] for mark in marks] == [0, 1, 2]


def test_stores_stand_side_by_side_over_names() -> None:
    both = (Series("one", known_marks([(0, 10), (1, 20)]), store="aiodb"), Series("two", known_marks([(0, 5)])))
    made = chart(figure(*both, categories=("A", "C")))
    assert made["categories"] == ["A", "C"]
    assert made["series"][0]["marks"][0][0] < 0 < made["series"][1]["marks"][0][0]


def test_what_a_chart_is_drawn_from_ends_no_script() -> None:
    text = place(chart(figure(Series("</script><b>", known_marks([(1, 2)])))))
    assert text.count("</script>") == 1
    found = re.search(r'<script type="application/json">(.*)</script>', text)
    assert found is not None
    assert json.loads(found[1])["series"][0]["name"] == "</script><b>"


def test_a_heat_map_is_a_table() -> None:
    cells = (Cell("aiodb", "ONE", 10.0, "10", strong=True), Cell("aiodb", "ALL", 5.0, "5"))
    text = drawn(HeatMap("Title", "note", "level", ("aiodb",), ("ONE", "ALL", "TWO"), cells))
    assert text.count("<td") == 3
    assert 'class="strong"' in text


def test_thinning_keeps_peaks_stalls_and_gaps() -> None:
    curve: list[tuple[float, float | None]] = [(float(x), 100.0) for x in range(2000)]
    curve[777] = (777.0, 0.0)
    curve[1234] = (1234.0, 900.0)
    curve[1500] = (1500.0, None)
    thinned = thin(curve, 100)
    assert len(thinned) <= 102
    assert {(777.0, 0.0), (1234.0, 900.0), (1500.0, None)} <= set(thinned)
    assert [x for x, _ in thinned] == sorted(x for x, _ in thinned)
    assert thin(curve[:50], 100) == curve[:50]


def test_a_panel_keeps_its_gaps() -> None:
    made = panel_chart(Panel("mean latency, µs", (("a", ((0.0, 1000.0), (1.0, None), (2.0, 2000.0))),)))
    assert (made["title"], made["y"]) == ("mean latency", "ms")
    assert made["series"][0]["marks"] == [[0.0, 1.0], [1.0, None], [2.0, 2.0]]


def test_names_are_words() -> None:
    assert [level_name("threads", 30), level_name("nodes", 1), level_name("depth", 64)] == [
        "30 clients", "1 node", "64 gets in flight",
    ]  # fmt: skip
    assert level_name("workload", "readonly") == "reads"
    assert [store_name("rocksdb"), store_name("stock-4"), store_name("trie")] == [
        "RocksDB", "Cassandra's memtable, 4 MB", "Cassandra's trie memtable",
    ]  # fmt: skip


def test_a_picture_has_its_colours_with_it() -> None:
    ours = Series("ours", (Mark(1, 10, 5, 15), Mark(64, 20, 18, 22, True)), store="aiodb")
    ceiling = Series("device", known_marks([(1, 11), (64, 25)]), Look.CEILING)
    text = picture(figure(ours, ceiling, x_log=True, level=(1.0, "one")), "salt")
    assert not re.search(r"#0a0[bc]0\d", text)
    for name in set(re.findall(r"var\((--\w+)\)", text)):
        assert f"{name}:" in text
    assert text == picture(figure(ours, ceiling, x_log=True, level=(1.0, "one")), "salt"), "the same each time"
