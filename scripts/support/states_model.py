"""What must come of applies, kills, a user's own changes and undo, in any order; see `states`.

The machine keeps snapshots and what was promised. After every step the environment is one that this
model names: a change is whole or is not there, what a user did later is lost to
`--allow changed` alone, and whoever refuses has changed nothing.
"""

# A model asserts, and a rule is named after what happens.
# ruff: noqa: D401, S101

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from support.dying_child import Ended, run_until
from support.promised_states import Change, differing, plain, planned, same, text
from support.states import FILES, LONG, PLANS, SITE, Files, World, infos, wheel_of

RELEASES, STEPS = st.sampled_from(sorted(FILES)), st.integers(1, 80)
MET = st.sampled_from(["rename", "lose"])
"""What somebody may do to the environment at any step: give it another name, remove our state."""
WORKS = st.sampled_from([True, True, False])
"""What the verification at the end of an apply finds."""
NAMES = st.sampled_from(sorted({release.split()[0] for release in FILES}))
FAILED = frozenset(
    {*("killed", "apply-failed", "disk-full", "disk-failed"), "restore-failed"}
    | {"environment-read-only"}
)
counts: Counter[str] = Counter()
"""How often a rule ended how."""


class Environment(RuleBasedStateMachine):
    """Everything that may happen to an environment."""

    def __init__(self) -> None:
        """Begin with a fresh one."""
        super().__init__()
        memory = Path("/dev/shm")  # noqa: S108 - files of a moment
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None)).resolve()
        self.world = World(self.folder)
        self.now = self.world.files()
        self.done: list[Change] = []
        self.open: Change | None = None
        self.of_undo = self.mixed = self.nothing = False
        counts["sequences"] += 1

    def teardown(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder)

    def act(
        self,
        name: str,
        act: Callable[[], None],
        step: int,
        *,
        fails: bool = False,
        meets: Callable[[], None] | None = None,
    ) -> Ended:
        """Do it, note the end."""
        ended = run_until(act, step, fails=fails, meets=meets)
        self.world.settle()
        counts["steps"] += 1
        counts[f"{name}: {ended.code or 'done'}"] += 1
        assert ended.code != "internal", ended
        return ended

    def unchanged(self, ended: Ended) -> None:
        """Hold all files against what was."""
        found = self.world.files()
        assert plain(found) == plain(self.now), (ended, differing(plain(self.now), plain(found)))

    @initialize(releases=st.sampled_from(PLANS), first=RELEASES)
    def begin(self, releases: tuple[str, ...], first: str) -> None:
        """A user had installed something before the first apply."""
        self.install(first)
        self.apply(releases)

    @rule(releases=st.sampled_from(PLANS), step=STEPS, fails=st.booleans(), works=WORKS)
    def apply_hit(
        self,
        releases: tuple[str, ...],
        step: int,
        fails: bool,  # noqa: FBT001
        works: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        """An apply that is killed, or meets one error of the disk."""
        self.apply(releases, step, fails=fails, works=works)

    @rule(releases=st.sampled_from(PLANS), works=WORKS)
    def apply(
        self,
        releases: tuple[str, ...],
        step: int = 0,
        *,
        fails: bool = False,
        works: bool = True,
    ) -> None:
        """An apply."""
        apply = lambda: self.world.apply(releases, works=works)  # noqa: E731
        ended = self.act("apply", apply, step, fails=fails)
        if self.open:
            assert ended.code in {"unfinished-change", *(FAILED if step else ())}, ended
            return self.unchanged(ended)
        after, change = planned(self.now, releases)
        found = self.world.files()
        if ended.code == "no-record":
            assert self.mixed, ended
            return self.unchanged(ended)
        end = "" if works else "verify-failed"
        assert ended.code in ({end} if not step else {end, *FAILED}), ended
        if self.world.pending():  # with an error in the roll back of what does not work
            assert ended.code == "killed" or (ended.code == "restore-failed" and not works), ended
            self.open, self.of_undo = replace(change, after=found, committed=False), False
        elif ended.code and (ended.code != "killed" or plain(found) == plain(self.now)):
            self.unchanged(ended)
            return None
        else:
            coming = {path for one in releases for path in wheel_of(one)}
            assert works, ended
            assert same(after, found, coming), (ended, differing(after, plain(found)))
            old = [replace(row, perhaps=True) for row in self.done] if step else []
            self.done = [*old, replace(change, after=found)]
        self.now = found
        return None

    @precondition(lambda self: self.done or self.open)
    @rule(allow=st.booleans(), step=STEPS, fails=st.booleans())
    def undo_hit(self, allow: bool, step: int, fails: bool) -> None:  # noqa: FBT001
        """An undo that is killed, or meets one error of the disk."""
        self.undo(allow, step, fails=fails)

    @precondition(lambda self: self.done or self.open or not self.nothing)
    @rule(allow=st.booleans())
    def undo(self, allow: bool, step: int = 0, *, fails: bool = False) -> None:  # noqa: FBT001
        """The command undo: it puts back what was interrupted, or else the last change."""
        self.nothing = not self.done and not self.open
        act = self.act("undo", lambda: self.world.undo(allow_changed=allow), step, fails=fails)
        while self.done and not self.open and self.done[-1].perhaps:
            if act.code != "nothing-to-undo":
                break
            self.done.pop()
        change = self.open or (self.done[-1] if self.done else None)
        if change is None:
            assert act.code in {"nothing-to-undo", *(FAILED if step else ())}, act
            return self.unchanged(act)
        found = self.world.files()
        if act.code in {"undo-changed", "undo-impossible"}:
            assert change.may_refuse(self.now), (act, change.later(self.now))
            assert not allow or (act.code == "undo-impossible" and self.open), act
            return self.unchanged(act)
        assert act.code in ({""} if not step else {"", *FAILED}), act
        pending = self.world.pending()
        if act.code and plain(found) == plain(self.now) and pending == (self.open is not None):
            return None  # it came to nothing, or to no more than a mark; both may be tried again
        assert allow or not change.must_refuse(self.now), (act, change.later(self.now))
        if pending:
            assert act.code in FAILED, act
            to = change.undone(self.now)
            met = change.met or bool(change.later(self.now))
            again = change.again or allow
            seen = replace(change, after=found, committed=False, again=again, met=met)
            self.open, self.of_undo = seen, self.of_undo or self.open is None
            counts["undo: half"] += bool(to)
        else:
            self.compare(change, found, allow=allow)
            if not self.open or self.of_undo:
                self.done.pop()
            self.open, self.of_undo = None, False
        self.now = found
        return None

    def compare(self, change: Change, found: Files, *, allow: bool) -> None:
        """Hold what a roll back left against what it should have left."""
        expected, found_all, found = change.undone(self.now), found, plain(found)
        if not change.committed:  # a user may have been there where the change had not yet been
            theirs = self.newcomers_of(change)
            for path in change.later(self.now):
                mine = self.now.get(path)
                known = mine is None or mine[2] in change.known | {text(change.before, path)}
                kept = found.get(path) == mine
                assert kept or known or allow or change.again, f"{path} of a user is lost"
                if kept or (allow and path in theirs):
                    expected.pop(path, None)
                    expected |= {path: found[path]} if path in found else {}
        assert expected == found, differing(expected, found)
        if not change.met and not change.later(self.now):
            folders = {path for path in change.before if path[-1] == "/"}
            odd = {path for path in folders if found_all.get(path) != change.before[path]}
            assert not odd, f"folders are not as before: {odd}"

    @precondition(lambda self: not self.open)
    @rule(releases=st.sampled_from(PLANS), step=STEPS, what=MET, works=WORKS)
    def apply_meets(
        self,
        releases: tuple[str, ...],
        step: int,
        what: str,
        works: bool,  # noqa: FBT001
    ) -> None:
        """An apply during which the environment is renamed, or loses our state."""
        meets = getattr(self.world, what)
        apply = lambda: self.world.apply(releases, works=works)  # noqa: E731
        ended = self.act(f"apply, {what}", apply, step, meets=meets)
        after, change = planned(self.now, releases)
        found = self.world.files()
        self.done = [replace(row, perhaps=True) for row in self.done]
        if not ended.code:
            assert works, ended
            coming = {path for one in releases for path in wheel_of(one)}
            assert same(after, found, coming), (ended, differing(after, plain(found)))
            self.done.append(replace(change, after=found, perhaps=True))
        elif plain(found) != plain(self.now):
            assert ended.code.startswith("restore-"), ended
            assert self.world.pending() or what == "lose", ended
            self.mixed |= not self.world.pending()
        if self.world.pending():
            self.open, self.of_undo = replace(change, after=found, committed=False), False
        self.now = found

    @precondition(lambda self: self.done or self.open)
    @rule(allow=st.booleans(), step=STEPS, what=MET)
    def undo_meets(self, allow: bool, step: int, what: str) -> None:  # noqa: FBT001
        """An undo during which the environment is renamed, or loses our state."""
        meets = getattr(self.world, what)
        undo = lambda: self.world.undo(allow_changed=allow)  # noqa: E731
        act = self.act(f"undo, {what}", undo, step, meets=meets)
        while self.done and not self.open and self.done[-1].perhaps:
            if act.code != "nothing-to-undo":
                break
            self.done.pop()
        change, found = self.open or (self.done[-1] if self.done else None), self.world.files()
        pending = self.world.pending()
        if change is None or (act.code and plain(found) == plain(self.now)):
            self.unchanged(act)
        elif not act.code:
            self.compare(change, found, allow=allow)
        else:
            assert act.code.startswith("restore-"), act
            assert pending or what == "lose", act
            self.mixed |= not pending
        if pending and change is not None:
            met = change.met or bool(change.later(self.now))
            seen = replace(change, committed=False, again=change.again or allow, met=met)
            self.of_undo |= self.open is None
            self.open = replace(seen, after=found) if plain(found) != plain(self.now) else seen
        elif change is not None and not act.code:
            if not self.open or self.of_undo:
                self.done.pop()
            self.open = None
        elif self.open and not pending:
            self.lost()
        self.done = [replace(row, perhaps=True) for row in self.done]
        self.now = found

    @precondition(lambda self: self.done or self.open)
    @rule()
    def lose(self) -> None:
        """A user removes our state: what was begun stays as it is."""
        self.world.lose()
        self.lost()
        self.done = []
        self.used("lose")

    def lost(self) -> None:
        """Note that what was interrupted can be put back no more."""
        self.mixed |= self.open is not None
        if self.of_undo and self.done:
            self.done.pop()
        self.open, self.of_undo = None, False

    @rule()
    def rename(self) -> None:
        """A user gives the environment another name: all goes on as if nothing had happened."""
        self.world.rename()
        self.world.settle()
        before = self.now
        self.used("rename")
        assert before == self.now

    @precondition(lambda self: self.done or self.open)
    @rule(allow=st.booleans(), step=STEPS, what=MET)
    def forget_meets(self, allow: bool, step: int, what: str) -> None:  # noqa: FBT001
        """A forget during which the environment is renamed, or loses our state."""
        forget = lambda: self.world.forget(allow_changed=allow)  # noqa: E731
        act = self.act(f"forget, {what}", forget, step, meets=getattr(self.world, what))
        self.unchanged(act)
        if self.open and not self.world.pending():
            assert allow or what == "lose", act
            self.lost()
        self.done = [replace(row, perhaps=True) for row in self.done]

    def newcomers_of(self, change: Change) -> set[str]:
        """Return what goes with those that came later."""
        return change.newcomers(self.now)[0]

    @precondition(lambda self: self.done or self.open)
    @rule(allow=st.booleans(), step=st.one_of(st.just(0), STEPS))
    def forget(self, allow: bool, step: int) -> None:  # noqa: FBT001
        """The command undo --forget: nothing moves, ever."""
        act = self.act("forget", lambda: self.world.forget(allow_changed=allow), step)
        self.unchanged(act)
        if self.open and not allow:
            assert act.code in {"unfinished-change", *(FAILED if step else ())}, act
            return
        assert act.code in ({""} if not step else {"", "killed"}), act
        if self.open and not self.world.pending():
            self.mixed = True
            if self.of_undo:
                self.done.pop()
            self.open, self.of_undo = None, False
        self.done = [replace(row, perhaps=True) for row in self.done] if act.code else []

    def used(self, name: str) -> None:
        """Note what a user did."""
        counts["steps"] += 1
        counts[f"user: {name}"] += 1
        self.now = self.world.files()

    @rule(release=RELEASES)
    def install(self, release: str) -> None:
        """A user installs something, also what the change has or had."""
        self.world.install(release)
        self.used("install")

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        """A user removes a distribution."""
        self.world.remove(name)
        self.used("remove")

    @rule(at=st.integers(0, 40), how=st.sampled_from(["edit", "delete"]))
    def edit(self, at: int, how: str) -> None:
        """A user edits or deletes a file, of ours or of others."""
        files = [path for path in sorted(plain(self.now)) if ".dist-info" not in path]
        files = [path for path in files if path.startswith(SITE) and not path.endswith("/link")]
        if files:
            path = files[at % len(files)]
            self.world.edit(path) if how == "edit" else (self.world.prefix / path).unlink()
        self.used(how)

    @rule(
        where=st.sampled_from(["", "onnxruntime/", "nvidia/", "bystander/", "info"]),
        name=st.sampled_from(["notes.tmp", LONG]),
    )
    def add(self, where: str, name: str = "notes.tmp") -> None:
        """A user adds a file, perhaps among the metadata of a distribution."""
        found = sorted(infos(self.now))
        folder = f"{SITE}/{where}" if where != "info" else (found or [f"{SITE}/"])[-1]
        self.world.edit(f"{folder}{name}")
        self.used("add")
