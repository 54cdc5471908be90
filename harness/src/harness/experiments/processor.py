"""Processor time as it was sampled of processes while a point was measured."""

import itertools
from collections.abc import Iterable, Mapping

from harness.sampling import ProcessSample


def mean_cores(samples: Iterable[ProcessSample], window_s: tuple[float, float]) -> Mapping[str, float]:
    """How many cores processes of each name used on average within a window, by the samples of whole periods in it;
    empty where there are none."""
    began, ended = window_s
    cores: dict[float, dict[str, float]] = {}
    for sample in samples:
        of_time = cores.setdefault(sample.t_s, {})
        of_time[sample.name] = of_time.get(sample.name, 0.0) + sample.cpu_cores
    # Each sample tells of the time since the one before.
    periods = [
        (now, now - before) for before, now in itertools.pairwise(sorted(cores)) if began <= before < now <= ended
    ]
    measured_s = sum(seconds for _, seconds in periods)
    names = {name for now, _ in periods for name in cores[now]}
    return {name: sum(cores[now].get(name, 0.0) * seconds for now, seconds in periods) / measured_s for name in names}
