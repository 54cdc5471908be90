"""How many gets in flight use up the device."""

from harness import published
from harness.report.answer import Answer, Finding, Shown
from harness.report.answers.common import NOTHING, by_level, find, grows_until, judged, median, said, unknown
from harness.report.names import level_name, levels_name, varying
from harness.report.quantities import digits
from harness.results import Point, Results, grouped

RATE = "gets_per_s"
# The depth at which the paper gives its part of the device's rate.
PAPER_DEPTH = 1024
# Of that part, what ours may lack and still be the same.
SAME = 0.02


def answer(results: Results) -> Answer:
    """The depth from which on more gain nothing, and the part of the device there."""
    others = [axis for axis in varying(results) if axis != "depth"]
    groups = grouped(results.points(), lambda point: levels_name(point.levels, others))
    curves = {name: by_level(of, "depth", RATE) for name, of in groups.items()}
    curves = {name: of for name, of in curves.items() if of}
    if not curves:
        return NOTHING
    name, curve = max(curves.items(), key=lambda of: max(median(point, RATE) or 0.0 for point in of[1]))
    enough = grows_until(curve, RATE)
    ratio = median(enough, "ratio")
    deepest = curve[-1]
    where = f" with {name}" if name else ""
    sentence = (
        f"With {level_name('depth', enough.levels['depth'])}{where} the store does {said(enough, RATE, '1/s')}, "
        + (f"{digits(ratio)} of what the device gives" if ratio is not None else "the device was not measured")
        + ("." if deepest is enough else f"; {_beyond(deepest)}.")
    )
    shown = [Shown(level_name("depth", of.levels["depth"]), of, RATE, "p99_us") for of in curve]
    shown += [Shown(f"part of the device, {of.levels['depth']} in flight", of, "ratio") for of in curve[-3:]]
    return Answer(sentence, shown, _finding(curve))


def _beyond(deepest: Point) -> str:
    part = said(deepest, "ratio", "1")
    return f"more in flight gain under 10 %, and with {deepest.levels['depth']} it does {part} of what the device gives"


def _finding(curve: list[Point]) -> Finding:
    theirs = published.AIODB_PER_S[PAPER_DEPTH] / published.AIODB_FIO_PER_S
    says = f"nearly all of the device's rate from 64 in flight on, and {theirs:.3f} of what fio gets with {PAPER_DEPTH}"
    deep = find(curve, depth=PAPER_DEPTH)
    if deep is None:
        return unknown(says, f"{PAPER_DEPTH} in flight were not measured")
    summary = deep.summary("ratio")
    if summary is None:
        return unknown(says, "the device was not measured")
    why = f"{digits(summary.median)} of the device with {PAPER_DEPTH}"
    why += f", between {digits(summary.low)} and {digits(summary.high)}" if summary.interval else ""
    return judged(says, [deep], why, lambda: summary.high >= theirs - SAME)
