"""A plan by cases: the driver or the GPUs are not known, and each case has the plan that it gets.

A layer on `plan_for`, which is called for one machine at a time. Between two drivers with the same
plan every driver has that plan, where the newer one runs whatever the older one does: so few of the
many machines that there could be are asked for, and most of them for one release alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..facts.model import GPU_BUILD, Driver, Facts, Gpu
from ..matrix.model import Matrix
from ..plan.model import Case, DriverRange, Plan
from ..versions import major, numbers
from .opened import plan_for, plan_for_check
from .options import PlanOptions

KNOWN = ""
"""In the place of a compute capability: the GPUs are those of the facts."""
OLDEST = "1"
"""A driver release before all that are known."""


def plan_by_cases(facts: Facts, options: PlanOptions, matrix: Matrix, known: Sequence[str]) -> Plan:
    """Return the plan for a machine of which something is `unknown`: one for each it may be.

    Where none of them has one, that is the plan: what is not known does not matter.
    `known` are the compute capabilities that its GPUs may have.
    """
    table = _Table(facts, options, matrix, known)
    cases = tuple(table.cases())
    shared = [case.plan.findings for case in cases if case.plan.verdict != "impossible"]
    if not shared:
        return plan_for(table.newest(), options, matrix)
    common = [row for row in shared[0] if all(row in each for each in shared[1:])]
    return Plan(
        verdict="unknown",
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
        matrix_added=matrix.added,
        findings=tuple(row for row in common if row.code != "gpus-unknown"),
        consumers=cases[0].plan.consumers,
        cases=cases,
        unknown=facts.unknown,
    )


def checked_plan(facts: Facts, options: PlanOptions, matrix: Matrix) -> Plan:
    """Return the plan as far as `--check` needs it: of a machine that is not known its verdict."""
    if not facts.unknown:
        return plan_for_check(facts, options, matrix)
    return Plan("unknown", matrix.date, matrix.digest, unknown=facts.unknown)


def _key(plan: Plan) -> tuple[object, ...]:
    """Return what a plan does; two machines with the same are one case."""
    done = plan.verdict, plan.selection, plan.uninstall, plan.install
    return *done, plan.companions, plan.requires


def _order(case: Case) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sort key of a case: newest driver first, then newest GPU."""
    since = numbers(case.driver.since or "") if case.driver else ()
    newest = numbers(case.gpus[-1]) if case.gpus else ()
    padded = (*since, 0, 0, 0)[:3]
    return tuple(-number for number in padded), tuple(-number for number in newest)


def _drivers(facts: Facts, matrix: Matrix) -> list[str]:
    """Return a driver release for each step in what drivers of this system can run, oldest first.

    A branch begins with its number, but runs its CUDA only from the floor of that CUDA's major on.
    """
    windows = facts.platform.windows_driver
    floors = {row.cuda: row.windows if windows else row.linux for row in matrix.floors}
    steps = {str(branch): floors.get(major(cuda)) for branch, cuda in matrix.branches.items()}
    starts = {
        floor if floor and numbers(floor) > numbers(branch) else branch
        for branch, floor in steps.items()
    }
    starts |= {str(row.branch) for row in matrix.first_branches}
    return [OLDEST, *sorted(starts, key=numbers)]


class _Table:
    """The plan of each driver and GPU that the machine may have, as far as it was asked for."""

    def __init__(
        self, facts: Facts, options: PlanOptions, matrix: Matrix, known: Sequence[str]
    ) -> None:
        self._facts, self._options, self._matrix = facts, options, matrix
        unknown, ignored = facts.unknown or "", options.ignored_gpus
        may_have = [gpu for gpu in known if gpu not in ignored]
        self._gpus = may_have if "gpus" in unknown else [KNOWN]
        self._drivers = _drivers(facts, matrix) if "driver" in unknown else [""]
        self._plans: dict[tuple[int, str | None], Plan] = {}
        self._held: dict[tuple[object, ...], bool] = {}

    def newest(self) -> Facts:
        """Return the machine with the newest driver that is known, and any GPU."""
        if not self._drivers[-1]:
            return self._facts
        return self._facts._replace(driver=Driver(version=self._drivers[-1]))

    def cases(self) -> Iterator[Case]:
        """Yield the cases, newest driver first."""
        plans: dict[str, dict[int, Plan]] = {gpu: {} for gpu in self._gpus}
        for first, last in self._stretches():
            self._fill(first, last, plans)
        groups: dict[tuple[object, ...], list[str]] = {}
        for gpu, by_driver in plans.items():
            key = tuple(_key(by_driver[at]) for at in range(len(self._drivers)))
            groups.setdefault(key, []).append(gpu)
        found = [case for gpus in groups.values() for case in self._of_group(gpus, plans[gpus[0]])]
        yield from sorted(found, key=_order)

    def _of_group(self, gpus: Sequence[str], by_driver: dict[int, Plan]) -> Iterator[Case]:
        """Yield the cases of GPUs that fare alike: one for each stretch of drivers."""
        named = None if list(gpus) == [KNOWN] else tuple(gpus)
        if len(self._drivers) == 1:
            yield Case(None, named, by_driver[0])
            return
        starts = [
            at
            for at in range(len(self._drivers))
            if not at or _key(by_driver[at]) != _key(by_driver[at - 1])
        ]
        for at, end in zip(starts, [*starts[1:], None], strict=True):
            since = self._drivers[at] if at else None
            before = None if end is None else self._drivers[end]
            yield Case(DriverRange(since, before), named, by_driver[at])

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Yield the stretches of drivers in which a newer one runs all that an older one does.

        One ends where a branch ends the support of some GPUs.
        """
        ends = {row.branch for row in self._matrix.last_branches}
        first = 0
        for at in range(1, len(self._drivers) + 1):
            over = at == len(self._drivers)
            if over or any(
                numbers(self._drivers[at - 1])[0] <= end < numbers(self._drivers[at])[0]
                for end in ends
            ):
                yield first, at - 1
                first = at

    def _fill(self, first: int, last: int, plans: dict[str, dict[int, Plan]]) -> None:
        """Find the plans of the drivers from `first` to `last`, for all GPUs, from above."""
        newest = dict.fromkeys(self._gpus, last)
        while newest:
            at = max(newest.values())
            waiting = [gpu for gpu in self._gpus if newest.get(gpu) == at]
            best = self._plan(at, None) if len(waiting) > 1 else None
            for gpu in waiting:
                plan = best if best and self._holds(best, at, gpu) else self._plan(at, gpu)
                since = self._since(plan, first, at, gpu)
                plans[gpu] |= dict.fromkeys(range(since, at + 1), plan)
                newest[gpu] = since - 1
                if since == first:
                    del newest[gpu]

    def _since(self, plan: Plan, first: int, last: int, gpu: str) -> int:
        """Return the oldest driver of a stretch with `plan`, which is that of its newest one."""
        if plan.verdict == "impossible":
            return first
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._holds(plan, middle, gpu) else (middle + 1, high)
        return high

    def _plan(self, at: int, gpu: str | None) -> Plan:
        """Return the plan of a driver and a GPU; `gpu` None: of any GPU."""
        if (at, gpu) not in self._plans:
            self._plans[at, gpu] = self._resolved(at, gpu, self._matrix)
        return self._plans[at, gpu]

    def _holds(self, plan: Plan, at: int, gpu: str) -> bool:
        """Return whether `plan` is the plan of a driver and a GPU, where no better one can be."""
        build = plan.build
        builds = [
            known for known in self._matrix.builds if build and known.version == build.version
        ]
        if build is None or build.name != GPU_BUILD or not builds:
            return _key(self._plan(at, gpu)) == _key(plan)
        key = *_key(plan), at, gpu
        if key not in self._held:
            alone = self._matrix._replace(builds=tuple(builds))
            self._held[key] = _key(self._resolved(at, gpu, alone)) == _key(plan)
        return self._held[key]

    def _resolved(self, at: int, gpu: str | None, matrix: Matrix) -> Plan:
        facts = self._facts
        if self._drivers[at]:
            facts = facts._replace(driver=Driver(version=self._drivers[at]))
        if gpu != KNOWN:
            gpus = None if gpu is None else (Gpu(compute_capability=gpu),)
            facts = facts._replace(gpus=gpus)
        return plan_for(facts, self._options, matrix, unlocking=False)
