"""The MyCassandra blog's idea of reading MySQL below SQL: gets of single rows by each way there is, beside a key-value
server and an embedded store, with the processor time that each takes."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Experiment, Notes
from harness.experiments.processor import mean_cores
from harness.fields import Field
from harness.rows import Metric, Row
from harness.run import Run
from harness.sampling import ProcessSample, read_processes
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores.base import DURABILITIES
from harness.stores.registry import STORES

# By these properties YCSB does nothing else, to any record as often as to another.
OPERATIONS = MappingProxyType(
    {"get": ("readproportion=1", "updateproportion=0"), "put": ("readproportion=0", "updateproportion=1")}
)
WORKLOAD = "readonly"
# The kinds of operation as YCSB calls them.
KINDS = MappingProxyType({"get": "read", "put": "update"})
LOADING_THREADS = 16
# What samples call the process of YCSB.
CLIENT = "YCSB"


class DirectAccess(Experiment):
    """A loaded store for each run, asked by more and more clients."""

    name = "direct-access"
    stores = tuple(STORES)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "operation": Field(str, "what clients do to single rows", choices=tuple(OPERATIONS)),
            "threads": Field(int, "YCSB's client threads", least=1, most=256),
        }
    )
    swept = frozenset({"operation", "threads"})
    parameters = MappingProxyType(
        {
            "records": Field(int, "records that are loaded", least=100, most=1_000_000_000),
            "seconds": Field(int, "seconds for each point at most", least=20, most=3600),
            "fields": Field(int, "fields of a record", least=1, most=1000, default=1),
            "field_bytes": Field(int, "bytes of a field", least=1, most=1 << 20, default=1000),
            "durability": Field(str, "of every write", choices=DURABILITIES, default="interval"),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("operations_per_s", "throughput", "1/s", main=True),
        Metric("cpu_us", "processor time, server and client", "µs/operation", main=True),
        Metric("server_cpu_us", "processor time, server", "µs/operation"),
        Metric("client_cpu_us", "processor time, client", "µs/operation"),
        *(Metric(f"{kind}_p50_us", f"{kind}, median", "µs") for kind in KINDS.values()),
        *(Metric(f"{kind}_p99_us", f"{kind}, 99th percentile", "µs") for kind in KINDS.values()),
    )
    notes = Notes(
        durability=(
            "as the parameter says: MySQL's innodb_flush_log_at_trx_commit is 1 for `sync`, 2 for `interval`, 0 for "
            "`none`; Redis's appendfsync always, everysec, no"
        ),
        latency="a closed loop: each thread waits for its answer before it asks again",
        method=(
            client.FLATNESS,
            "YCSB asks all stores through the same interface of Java. MySQL is read by a prepared SELECT (SQL), by the "
            "statement HANDLER, which each get opens and closes anew, by a stored procedure, and below SQL by the "
            "plugin HandlerSocket. Puts go by SQL whatever the way to read.",
            "Processor time is what the kernel counts of the processes, once a second over the part of a point that is "
            "measured, by the operations of that time. The server is mariadbd or redis-server. The client is the "
            "virtual machine with YCSB, the interface and the driver, its compiler and collector included. aiodb lies "
            "in the client's process: it has no server, and what YCSB itself takes is not taken off. Only the sum of "
            "both can be compared between all stores.",
            "Server and client share the cores of one machine and talk over its loopback: with many clients throughput "
            "is what both together leave each other.",
            "MySQL has all rows in its buffer pool, Redis in its memory. aiodb reads the device with each get.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh store has nothing to run on"
        if _durability(run) not in STORES[run.store].durabilities:
            return f"`durability`: {run.store} has no `{_durability(run)}`"
        return None

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return [*client.programs(place, (WORKLOAD,)), *STORES[run.store].programs(place)]

    def packages(self, run: Run) -> Sequence[str]:
        return STORES[run.store].packages

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        return STORES[run.store].services(place, _durability(run))

    def expected_seconds(self, run: Run) -> float:
        store = STORES[run.store]
        measuring = sum(1 for _ in run.points()) * (float(run.parameters["seconds"]) + client.OPENING_SECONDS)
        loading = int(run.parameters["records"]) / store.loads_per_s + client.OPENING_SECONDS
        return store.starting_seconds + loading + measuring

    def needed_bytes(self, run: Run) -> float:
        store = STORES[run.store]
        seconds = float(run.parameters["seconds"]) + client.OPENING_SECONDS
        putting = sum(seconds for point in run.points() if point["operation"] == "put")
        written = client.written_bytes(run.parameters, putting, store.writes_per_s)
        return store.disk_bytes(client.loaded_bytes(run.parameters) + written)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        called = STORES[run.store].client
        properties = (
            *STORES[run.store].properties(place, _durability(run)),
            f"recordcount={run.parameters['records']}",
            f"fieldcount={run.parameters['fields']}",
            f"fieldlength={run.parameters['field_bytes']}",
        )
        load = client.command(place, "load", called, WORKLOAD, properties, LOADING_THREADS)
        steps = [Step("load", load, 600 + int(run.parameters["records"]) / 200)]
        seconds = float(run.parameters["seconds"])
        for point in run.points():
            operation, threads = str(point["operation"]), point["threads"]
            name = f"{operation}-{threads}"
            measured = (*properties, *OPERATIONS[operation], *client.measuring(place, name, WORKLOAD, seconds))
            command = client.command(place, "run", called, WORKLOAD, measured, threads)
            steps.append(Step(name, command, 300 + 2 * seconds, (point,)))
        return steps

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        client.check(finished)
        if not finished.step.points:
            return ()
        (point,) = finished.step.points
        row = client.measured_row(finished, point, place, float(run.parameters["seconds"]))
        servers = {service.name for service in self.services(run, place)}
        samples = read_processes(place.kept / "processes.csv")
        costs = processor_us(samples, row.window_s, row.values["operations_per_s"], servers)
        return [dataclasses.replace(row, values={**row.values, **costs})]


def processor_us(
    samples: Iterable[ProcessSample], window_s: tuple[float, float], rate_per_s: float, servers: Iterable[str]
) -> Mapping[str, float]:
    """Processor time for each operation, of the servers, of the client and of both, from what was sampled within a
    window in which so many were done each second."""
    cores = mean_cores(samples, window_s)
    found = {}
    for name, of in (("server_cpu_us", set(servers)), ("client_cpu_us", {CLIENT})):
        used = sum(cores.get(process, 0.0) for process in of)
        if of and not used:
            raise BadOutputError(f"of {', '.join(sorted(of))} there is no sample within the part that was measured")
        if of:
            found[name] = used * 1e6 / rate_per_s
    return {"cpu_us": sum(found.values()), **found}


def _durability(run: Run) -> str:
    return str(run.parameters["durability"])
