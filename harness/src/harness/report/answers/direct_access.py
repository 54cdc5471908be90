"""How many gets each way to read MySQL does, and what they cost."""

from collections.abc import Sequence

from harness.experiments.direct_access import KINDS
from harness.report.answer import Answer, Finding, Shown
from harness.report.answers.common import NOTHING, best, find, joined, judged, measured, median, said, times, unknown
from harness.report.names import level_name, point_name, store_name
from harness.report.quantities import digits
from harness.results import Point, Results, grouped
from harness.stores.mysql import MysqlDirect, MysqlProcedure
from harness.stores.redis import RedisStore

RATE = "operations_per_s"
COST = "cpu_us"
SERVER = "server_cpu_us"
# What the blog has read of a program that reads below SQL, by a stored procedure.
PUBLISHED_TIMES = 10


def answer(results: Results) -> Answer:
    """Of each operation the stores from the fastest to the slowest, each with as many clients as it does most with."""
    points = measured(results.points(), RATE)
    if not points:
        return NOTHING
    parts = []
    for operation, of in grouped(points, lambda point: str(point.levels["operation"])).items():
        tops = [best(own, RATE) for own in grouped(of, lambda point: point.store).values()]
        tops.sort(key=lambda point: -(median(point, RATE) or 0.0))
        parts.append(f"{operation}s at most, and processor time for each: {joined([_told(top) for top in tops])}")
    shown = [Shown(point_name(results, of), of, RATE, f"{KINDS[str(of.levels['operation'])]}_p99_us") for of in points]
    shown += [Shown(f"{point_name(results, of)}: processor time", of, COST) for of in points]
    sentence = "; ".join(parts)
    return Answer(f"{sentence[0].upper()}{sentence[1:]}.", shown, _finding(results.campaign.source, points))


def _told(point: Point) -> str:
    clients = level_name("threads", point.levels["threads"])
    cost, server = median(point, COST), median(point, SERVER)
    costs = "not measured" if cost is None else f"{digits(cost)} µs"
    costs += "" if server is None else f", {digits(server)} µs of it the server's"
    return f"{store_name(point.store)} {said(point, RATE, '1/s')} with {clients} ({costs})"


def _finding(source: str, points: Sequence[Point]) -> Finding:
    """The blog has read how much faster than a procedure it is, and hopes to keep up with key-value stores so."""
    gets = [point for point in points if point.levels["operation"] == "get"]
    if not gets:
        return unknown(source, "the source has no figure for puts")
    says = "access below SQL is ten and more times as fast as a stored procedure"
    threads = max(int(point.levels["threads"]) for point in gets)
    direct, procedure, redis = (
        find(gets, store=store.name, threads=threads) for store in (MysqlDirect, MysqlProcedure, RedisStore)
    )
    if direct is None or procedure is None:
        return unknown(says, "gets were not measured both below SQL and by a stored procedure")
    rate = median(direct, RATE) or 0.0
    faster = rate / (median(procedure, RATE) or 1.0)
    cheaper = (median(procedure, SERVER) or 0.0) / (median(direct, SERVER) or 1.0)
    clients = level_name("threads", threads)
    why = (
        f"with {clients} HandlerSocket does {times(faster)} the gets of a stored procedure, which takes "
        f"{times(cheaper)} the processor time of the server"
    )
    judging = [direct, procedure]
    if redis is not None:
        why += f", and {times(rate / (median(redis, RATE) or 1.0))} those of Redis"
        judging.append(redis)
    return judged(says, judging, why, lambda: faster >= PUBLISHED_TIMES)
