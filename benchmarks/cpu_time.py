"""CPU time of web and of PostgreSQL: it hardly depends on what else the machine does."""

from collections.abc import Callable, Mapping
from statistics import median

import psutil
import psycopg

from benchmarks.stage import Stage

ROUNDS, PER_ROUND = 5, 100


def cpu_per_call(
    stage: Stage,
    url: str,
    runs: Mapping[str, Callable[[], bytes]],
    *,
    rounds: int = ROUNDS,
    per_round: int = PER_ROUND,
) -> dict[str, tuple[float, float]]:
    """Return the median CPU seconds of web and of PostgreSQL per call, in rounds that alternate."""
    web = psutil.Process(stage.service.processes["web"].pid)
    database = postmaster(url)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(per_round):
            run()
    for _ in range(rounds):
        for name, run in runs.items():
            before = cpu_of(web), cpu_of(database)
            for _ in range(per_round):
                run()
            spent = cpu_of(web) - before[0], cpu_of(database) - before[1]
            times[name].append((spent[0] / per_round, spent[1] / per_round))
    return {
        name: (median(web for web, _ in found), median(postgres for _, postgres in found))
        for name, found in times.items()
    }


def cpu_of(process: psutil.Process) -> float:
    """Return the CPU seconds of the process and its children, ended ones too."""
    own = process.cpu_times()
    spent = own.user + own.system + own.children_user + own.children_system
    for child in process.children(recursive=True):
        times = child.cpu_times()
        spent += times.user + times.system
    return spent


def postmaster(url: str) -> psutil.Process:
    with psycopg.connect(url) as connection:
        parent = psutil.Process(connection.info.backend_pid).parent()
    if parent is None:
        raise RuntimeError("PostgreSQL must run on this machine")
    return parent
