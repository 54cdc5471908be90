"""From which size on memory is no faster than the device."""

from harness import published
from harness.report.answer import Answer, Shown
from harness.report.answers.common import NOTHING, find, judged, measured, median, said, times
from harness.report.names import level_name, point_name
from harness.report.quantities import digits
from harness.results import Results


def answer(results: Results) -> Answer:
    """What is left of memory's rate with the largest copies, beside the device."""
    points = measured(results.points(), "lmdb_gets_per_s")
    if not points:
        return NOTHING
    depth = min(int(point.levels["depth"]) for point in points)
    curve = sorted((of for of in points if of.levels["depth"] == depth), key=lambda of: int(of.levels["copy_bytes"]))
    least, most = curve[0], curve[-1]
    crossing = next((of for of in curve if (median(of, "ratio") or 0.0) >= 1), None)
    left = (median(most, "lmdb_gets_per_s") or 0.0) / (median(least, "lmdb_gets_per_s") or 1.0)
    copied = level_name("copy_bytes", most.levels["copy_bytes"])
    if crossing is None:
        sentence = (
            f"At no size measured: with {copied} LMDB in memory still does {said(most, 'lmdb_gets_per_s', '1/s')}, "
            f"{digits(left)} of what it does with none, and {times(1 / (median(most, 'ratio') or 1.0))} what "
            f"aiodb gets from the device ({said(most, 'gets_per_s', '1/s')})."
        )
    else:
        sentence = (
            f"From {level_name('copy_bytes', crossing.levels['copy_bytes'])} on: there aiodb gets "
            f"{said(crossing, 'gets_per_s', '1/s')} from the device and LMDB "
            f"{said(crossing, 'lmdb_gets_per_s', '1/s')} from memory."
        )
    theirs = published.AIODB_LMDB_PER_S[4096] / published.AIODB_LMDB_PER_S[0]
    shown = [Shown(f"LMDB, {level_name('copy_bytes', of.levels['copy_bytes'])}", of, "lmdb_gets_per_s") for of in curve]
    shown += [Shown(f"aiodb, {point_name(results, of)}", of, "gets_per_s") for of in (curve[0], curve[-1])]
    ends = [of for of in (find(curve, copy_bytes=0), find(curve, copy_bytes=4096)) if of]
    finding = judged(
        f"LMDB in memory falls to {digits(theirs)} of its rate when 4096 bytes are copied, below the SSD's",
        ends,
        f"falls to {digits(left)} of its rate, and the device gives {said(most, 'ratio', '1')} of that",
        lambda: crossing is not None,
    )
    return Answer(sentence, shown, finding)
