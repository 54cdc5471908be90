"""What a requirement takes of one kind of node in one way at one level, in all draws of what is unsure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.sizing.fits import BAND, Draws, Growth, normal
from harness.sizing.model import UNKNOWN_GROWTH, WRITES, Model
from harness.sizing.node import (
    Demand,
    Rate,
    Refused,
    Unsure,
    copies_of,
    disk_demands,
    mixing_factor,
    network_demand,
    rate_of,
)
from harness.sizing.requirement import Node, Requirement
from harness.sizing.room import room_demands
from harness.sizing.ways import Way

PROCESSOR = "processor"
# What is unsure of a cluster, whatever its nodes do.
ADD_UP = "nodes that add up"
MORE_NODES = "more nodes than were measured"
ANSWERING = "replicas that answer"
# A kind that takes no more of a resource than this changes no answer.
SMALL_PART = 0.05


@dataclass(frozen=True)
class Plan:
    """Demands at the middle of what is known, and everything that they may be off by."""

    model: Model
    asked: Requirement
    way: Way
    level: str
    demands: tuple[Demand, ...]
    rates: Mapping[str, Rate]
    mixing: Unsure | None

    @property
    def growth(self) -> Growth:
        """How nodes add up; of processes with parts of the data nobody measured that."""
        return self.model.growth if self.asked.system == "cassandra" else UNKNOWN_GROWTH

    def nodes(self) -> Draws:
        """Nodes of each draw, whole ones, with those that may be lost."""
        alive = np.ceil(self.alive() - 1e-9)
        found: Draws = np.maximum(self.asked.replication, alive + self.asked.lost_nodes)
        return found

    def alive(self, without: str | None = None) -> Draws:
        """Nodes of each draw that must work, not rounded; `without` is what is taken to be known."""
        found: Draws = np.max([self.alive_for(demand, without) for demand in self.demands], axis=0)
        return found

    def alive_for(self, demand: Demand, without: str | None = None) -> Draws:
        """Those that one resource takes."""

        def off(name: str) -> Draws:
            return np.zeros_like(normal(name)) if name == without else normal(name)

        times = np.zeros_like(normal(ADD_UP))
        for kind, part in demand.parts.items():
            logs = np.zeros_like(times)
            for of in demand.unsure.get(kind, ()):
                logs = logs + of.spread * off(of.name)
            if demand.resource == PROCESSOR:
                logs = logs + (self.mixing.spread * off(self.mixing.name) if self.mixing else 0.0)
                logs = logs + np.log(self.model.fanout.times(self._copies(kind), off(ANSWERING)))
            times = times + part / (1 - self.asked.headroom) * np.exp(logs)
        if demand.grows:
            return self.growth.nodes(times, off(ADD_UP), off(MORE_NODES))
        # A node holds no row twice: where one has room for all of it, any number does.
        found: Draws = np.where(times <= self.asked.replication, np.minimum(times, 1.0), times)
        return found

    def used(self, nodes: float) -> float:
        """The part of its processor that a node uses once as many are lost as may be, by the middle of draws."""
        (processor,) = (of for of in self.demands if of.resource == PROCESSOR)
        taken = sum(
            part * float(self.model.fanout.times(self._copies(kind), np.zeros(1))[0])
            for kind, part in processor.parts.items()
        )
        return min(1 - self.asked.headroom, taken / self.growth.times(max(1.0, nodes - self.asked.lost_nodes)))

    def _copies(self, kind: str) -> int:
        return copies_of(kind, self.level, self.asked.replication)

    def unsure(self) -> list[Unsure]:
        """Everything that the answer may be off by."""
        found = [of for demand in self.demands for members in demand.unsure.values() for of in members]
        found += [self.mixing] if self.mixing else []
        if self.asked.system == "cassandra":
            most = self.model.growth.most_nodes
            found += [
                Unsure(ADD_UP, self.growth.spread, "", "nodes that join under load: make campaign NAME=grow, repeated"),
                Unsure(MORE_NODES, 0.0, "", f"more than {most} nodes: make campaign NAME=grow with more"),
            ]
            if self.asked.replication > 1:
                measure = f"levels at replication {self.asked.replication}, beside 1: make campaign NAME=consistency"
                found.append(Unsure(ANSWERING, self.model.fanout.spread, "", measure))
        return found

    def relevant(self) -> list[Demand]:
        """The demands that can bind, by what is unsure; a guess of another changes no answer."""
        whole = float(np.quantile(self.alive(), BAND[0]))
        return [of for of in self.demands if float(np.quantile(self.alive_for(of), BAND[1])) >= whole]

    def guesses(self) -> list[str]:
        """Why the demands are none that were measured: those that can bind, and kinds that take much of them."""
        found = []
        for demand in self.relevant():
            total = sum(demand.parts.values())
            for kind, members in demand.unsure.items():
                if demand.parts[kind] >= SMALL_PART * total:
                    found += [of.guess for of in members]
            if demand.resource == PROCESSOR and self.mixing:
                found.append(self.mixing.guess)
        return found


def plan(model: Model, asked: Requirement, node: Node, way: Way, level: str) -> Plan | Refused:
    """The demands of a requirement; Refused where no campaign says what they are."""
    wanted = asked.operations.rates()
    rates: dict[str, Rate] = {}
    for kind in wanted:
        found = rate_of(model, way, kind, asked, node)
        if isinstance(found, Refused):
            return found
        rates[kind] = found
    disk = disk_demands(model, way, level, asked, node)
    if isinstance(disk, Refused):
        return disk
    times, mixing = mixing_factor(model, rates, asked)
    waits = {kind: model.level_wait(level, asked.replication) if kind in WRITES else 1.0 for kind in wanted}
    parts = {kind: rate / rates[kind].per_s * waits[kind] * times for kind, rate in wanted.items()}
    processor = Demand(PROCESSOR, parts, {kind: of.unsure for kind, of in rates.items()})
    network = network_demand(way, level, asked, node)
    demands = (processor, *disk, *([network] if network else []), *room_demands(way, asked, node))
    if not all(math.isfinite(part) for of in demands for part in of.parts.values()):
        return Refused("no number of such nodes is enough: memory is used up by Cassandra itself")
    return Plan(model, asked, way, level, demands, rates, mixing)
