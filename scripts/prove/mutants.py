"""Change the program in small ways, and look whether the fast tests notice.

    python scripts/prove/mutants.py --sample 400 --seed 1        of the whole program
    python scripts/prove/mutants.py --since main                 of the lines changed since
    python scripts/prove/mutants.py --module 'resolve/rules.py'  all of a module

Run it with the Python of `.venv-test` and the program installed there as it is here. The first run
measures which tests run which line (`.mutants/`, made anew when tests or program have changed);
each mutation then meets the tests that run its line, until one fails. That it fails without the
mutation, too, is looked at. What nothing notices fails the run, unless `mutants.toml` has the
reason why it makes no difference. Samples are written to `scripts/prove/results/`; an interrupted
one goes on.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import itertools
import queue
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from prove.outcomes import record, recorded
from support import mutation_tests
from support.mutation_tests import RESOLVER, ROOT, CannotTellError, Laboratory, Reach
from support.mutations import Difference, ModuleMutations, Mutation

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REVIEWED = Path(__file__).with_suffix(".toml")
RECENT = 400
"""Changed lines that the gate looks at of the newest commits."""
COLOURS = {"meta": "normal", "frag": "normal", "new": "green", "newMoved": "cyan"}
"""By which git tells what is new, and what it has seen elsewhere."""
MOVED = "\x1b[36m+"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


Lines = Mapping[str, set[int] | None]
"""Lines of modules; None: all of them."""


class Mutant:
    """A mutation of a module, and what it makes of it."""

    def __init__(self, module: str, mutations: ModuleMutations, mutation: Mutation) -> None:
        self.module, self.mutation, self._mutations = module, mutation, mutations

    @functools.cached_property
    def difference(self) -> Difference:
        """What it makes of the module."""
        return self._mutations.apply(self.mutation)

    @property
    def name(self) -> str:
        """What it is, for people and for results."""
        change = f"{self.difference.before} -> {self.difference.after or '(nothing)'}"
        return f"{self.module}:{self.mutation.line}: {change}"


class Judgement(NamedTuple):
    """What came of a mutant."""

    outcome: str
    """`killed`, `timeout`, `survived`, `equivalent` or `not judged`."""
    by: str = ""
    """The test that failed, or the reason."""
    seconds: float = 0.0


class Judge:
    """Runs the tests that concern a mutant."""

    def __init__(self, reach: Reach, deadline: float = float("inf")) -> None:
        self._reach, self._deadline = reach, deadline
        self._sound: set[str] = set()
        self._unsound: set[str] = set()
        rows = tomllib.loads(REVIEWED.read_text(encoding="utf-8")).get("equivalent", [])
        self._reviewed = {
            (row["module"], row["before"], row["after"]): row["reason"] for row in rows
        }

    def judge(self, mutant: Mutant, laboratory: Laboratory) -> Judgement:
        """Look whether a test notices `mutant`."""
        difference, mutation = mutant.difference, mutant.mutation
        reason = self._reviewed.get((mutant.module, difference.before, difference.after))
        if reason is not None:
            return Judgement("equivalent", reason)
        began = time.monotonic()
        place = mutant.module, mutation.first, mutation.line
        own = self._reach.of_line(*place)
        found = self._ask(mutant, own, laboratory)
        if found.outcome == "survived" and self._reach.runs_early(*place):
            found = self._ask(mutant, own, laboratory, anew=True)
        if found.outcome == "survived":
            found = self._ask(mutant, self._reach.others(mutant.module, own), laboratory)
        return found._replace(seconds=round(time.monotonic() - began, 1))

    def files(self, mutants: Iterable[Mutant]) -> set[str]:
        """Return the files of all tests that `mutants` may need."""
        found: set[str] = set()
        for module in {mutant.module for mutant in mutants}:
            found |= self._reach.files(module)
        return found

    def _ask(
        self, mutant: Mutant, tests: Iterable[str], laboratory: Laboratory, *, anew: bool = False
    ) -> Judgement:
        waiting = [test for test in tests if test not in self._unsound]
        while waiting:
            piece = waiting if anew else self._piece(waiting)
            limit, left = self._reach.limit(piece), self._deadline - time.monotonic()
            if left <= 0:
                return Judgement("not judged")
            change = mutant.module, mutant.difference.code, piece, min(limit, left)
            outcome = laboratory.run_anew(*change) if anew else laboratory.run(*change)
            if outcome is None:
                anew = True  # collecting takes a while: all that is left at once
                continue
            if outcome.noticed is None:
                return Judgement("timeout" if limit < left else "not judged")
            if not outcome.noticed:
                waiting = waiting[len(piece) :]
                continue
            failed = self._test_of(outcome.by)
            if self._is_sound(failed, laboratory):
                return Judgement("killed", failed)
            waiting = [test for test in waiting if test not in self._unsound]
        return Judgement("survived")

    def _piece(self, tests: Sequence[str]) -> list[str]:
        """Return the first of `tests`, about `PIECE` seconds of them."""
        totals = itertools.accumulate(self._reach.seconds.get(test, 1.0) for test in tests)
        number = sum(total <= mutation_tests.PIECE for total in totals)
        return [*tests[: number + 1]]

    def _test_of(self, line: str) -> str:
        """Return the test that a line of pytest's summary names, or the file, or the line."""
        name = line
        while name not in self._reach.seconds and " - " in name:
            name = name.rpartition(" - ")[0]
        return name

    def _is_sound(self, test: str, laboratory: Laboratory) -> bool:
        """Return whether `test`, or all of a file, passes without a mutation."""
        if test not in self._sound | self._unsound:
            whole = {name for name in self._reach.seconds if name.partition("::")[0] == test}
            tests = whole or {test}
            passed = laboratory.passes(sorted(tests), self._reach.limit(tests))
            (self._sound if passed else self._unsound).update({test, *tests})
        return test in self._sound


def modules_of(patterns: Sequence[str]) -> list[str]:
    """Return the modules that a pattern matches, all that can be mutated without one."""
    found = (path.relative_to(RESOLVER).as_posix() for path in sorted(RESOLVER.rglob("*.py")))
    wanted = [name for name in found if not name.endswith("__init__.py")]
    if not patterns:
        return wanted
    return [name for name in wanted if any(fnmatch.fnmatch(name, each) for each in patterns)]


def mutants_of(module: str, lines: set[int] | None = None) -> list[Mutant]:
    """Return the mutants of `module`, or those of some of its lines."""
    mutations = ModuleMutations((RESOLVER / module).read_text(encoding="utf-8"))
    wanted = [row for row in mutations.found if lines is None or row.line in lines]
    return [Mutant(module, mutations, mutation) for mutation in wanted]


def sample(modules: Sequence[str], number: int, seed: int) -> list[Mutant]:
    """Draw `number` mutants of all of `modules`, in an order by chance."""
    every = [mutant for module in modules for mutant in mutants_of(module)]
    return random.Random(seed).sample(every, min(number, len(every)))  # noqa: S311


def changed_lines(since: str) -> dict[str, set[int]]:
    """Return the lines of each module that are not as in the commit `since`, here or elsewhere.

    Files that were renamed or copied are held against what they were, and blocks of lines that were
    moved, as git sees them, are as they were.
    """
    text = _git(
        *(
            word
            for name, colour in COLOURS.items()
            for word in ("-c", f"color.diff.{name}={colour}")
        ),
        *("diff", "--unified=0", "--no-ext-diff", "--relative=resolver", "-M", "-C"),
        *("--color=always", "--color-moved=blocks", "--color-moved-ws=allow-indentation-change"),
        *(since, "--", "resolver"),
    )
    found: dict[str, set[int]] = {}
    module, number = "", 0
    for coloured in text.splitlines():
        line = _COLOUR.sub("", coloured)
        if line.startswith("+++ "):
            module = line.removeprefix("+++ ").removeprefix("b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,\d+)? @@", line):
            number = int(hunk[1])
        elif line.startswith("+"):
            if not coloured.startswith(MOVED):
                found.setdefault(module, set()).add(number)
            number += 1
    return {name: lines for name, lines in found.items() if name.endswith(".py") and lines}


def recent_lines() -> list[Lines]:
    """Return the lines that are new, in groups, the newest first.

    New is what is not committed, and the commits that `origin/main` has not; on main itself the
    last ones, up to `RECENT` lines of them. Commits from before the time that `mutants.toml` names
    are looked at by samples, and those that only move what is there (`.git-blame-ignore-revs`) by
    nobody.
    """
    start = tomllib.loads(REVIEWED.read_text(encoding="utf-8")).get("start")
    since = [f"--since={start.isoformat()}"] if start else []
    words = ("rev-list", "--max-count=50", *since, "HEAD")
    own = _git(*words, "--not", "origin/main", "--", "resolver") or _git(*words, "--", "resolver")
    try:
        moving = set((ROOT / ".git-blame-ignore-revs").read_text(encoding="utf-8").split())
    except FileNotFoundError:
        moving = set()
    steps = [("", "HEAD"), *((commit, f"{commit}^") for commit in own.split())]
    groups: list[Lines] = []
    seen: dict[str, set[int]] = {}
    number = 0
    for commit, before in steps:
        parent = _git("rev-parse", "--verify", "--quiet", before)
        if not parent or number > RECENT:
            break  # the first commit of all, or of those that a shallow clone has
        now = changed_lines(parent)
        new = {name: lines - seen.get(name, set()) for name, lines in now.items()}
        new = {name: lines for name, lines in new.items() if lines and commit not in moving}
        groups += [new] if new else []
        number += sum(map(len, new.values()))
        for name, lines in now.items():
            seen.setdefault(name, set()).update(lines)
    return groups


def _git(*words: str) -> str:
    """Return what git says, nothing where it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def judge_all(
    mutants: Sequence[Mutant], judge: Judge, workers: int
) -> Iterator[tuple[Mutant, Judgement]]:
    """Yield what came of each of `mutants`, and print it."""
    laboratories: queue.SimpleQueue[Laboratory] = queue.SimpleQueue()

    def one(mutant: Mutant) -> Judgement:
        laboratory = laboratories.get()
        try:
            return judge.judge(mutant, laboratory)
        finally:
            laboratories.put(laboratory)

    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        for number in range(workers):
            laboratories.put(Laboratory(Path(folder, str(number)), sorted(judge.files(mutants))))
        with ThreadPoolExecutor(workers) as pool:
            waiting = {pool.submit(one, mutant): mutant for mutant in mutants}
            for number, done in enumerate(as_completed(waiting), start=1):
                mutant, found = waiting[done], done.result()
                place = f"[{number}/{len(mutants)}] {found.outcome}, {found.seconds} s"
                print(f"{place}: {mutant.name}\n    {found.by}", flush=True)
                yield mutant, found
        for _ in range(workers):
            laboratories.get().close()


def run_sample(arguments: argparse.Namespace, reach: Reach) -> int:
    """Judge a sample, going on where an earlier run of today ended."""
    drawn = sample(modules_of(arguments.module), arguments.sample, arguments.seed)
    proof = f"mutants-{arguments.seed}"
    names = [mutant.name for mutant in drawn]
    known = recorded(proof)
    rest = [mutant for mutant in drawn if mutant.name not in known]
    for mutant, found in judge_all(rest, Judge(reach), arguments.workers):
        problems = ["no fast test notices"] if found.outcome == "survived" else []
        row = {"name": mutant.name, **found._asdict(), "problems": problems}
        record(proof, row, names, seed=arguments.seed, drawn=len(drawn))
    rows = recorded(proof).values()
    print(Counter(row["outcome"] for row in rows))
    return int(any(row["problems"] for row in rows))


def run_lines(groups: Sequence[Lines], arguments: argparse.Namespace) -> int:
    """Judge the mutants of lines until the time is over; return 1 where one survives."""
    began = time.monotonic()
    deadline = began + arguments.budget if arguments.budget else float("inf")
    chance = random.Random(0)  # noqa: S311
    mutants: list[Mutant] = []
    for group in groups:
        modules = modules_of(tuple(group))
        drawn = [each for module in modules for each in mutants_of(module, group[module])]
        chance.shuffle(drawn)
        mutants += line_by_line(drawn)
    if not mutants:
        print("nothing to mutate: the newest commits change no line, or git is not here")
        return 0
    judge = Judge(Reach(), deadline)
    survived: list[str] = []
    count: Counter[str] = Counter()
    for mutant, found in judge_all(mutants, judge, arguments.workers):
        count[found.outcome] += 1
        if found.outcome == "survived":
            survived.append(mutant.name)
    print(", ".join(f"{number} {outcome}" for outcome, number in count.most_common()))
    if survived:
        print("no fast test notices:", *survived, sep="\n  ")
    return int(bool(survived))


def line_by_line(drawn: Sequence[Mutant]) -> list[Mutant]:
    """Return one mutant of each line, in the order that is given, then the second of each..."""
    met: Counter[tuple[str, int]] = Counter()
    turns: list[int] = []
    for mutant in drawn:
        line = mutant.module, mutant.mutation.line
        turns.append(met[line])
        met[line] += 1
    return [drawn[at] for at in sorted(range(len(drawn)), key=turns.__getitem__)]


def main(words: Sequence[str] | None = None) -> int:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, formatter_class=argparse.RawTextHelpFormatter
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--sample", type=int, metavar="NUMBER")
    what.add_argument("--since", metavar="COMMIT")
    what.add_argument("--recent", action="store_true", help="what is new, as the gate sees it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--budget", type=float, metavar="SECONDS")
    arguments = parser.parse_args(words)
    if not arguments.budget:
        mutation_tests.measure()
    if arguments.sample:
        return run_sample(arguments, Reach())
    if arguments.recent:
        try:
            return run_lines(recent_lines(), arguments)
        except CannotTellError as error:
            print(f"no mutation is judged: {error}")
            return 0
    if arguments.since:
        groups: list[Lines] = [changed_lines(arguments.since)]
    else:
        groups = [dict.fromkeys(modules_of(arguments.module))]
    return run_lines(groups, arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotTellError as error:
        sys.exit(str(error))
