"""What a change and its roll back promise, computed from snapshots; see `states_model`."""

from __future__ import annotations

from dataclasses import dataclass

from support.states import SHARED, Files, info_of, infos, owned, wheel_of


def plain(files: Files) -> Files:
    """Return the files alone, without folders."""
    return {path: about for path, about in files.items() if path[-1] != "/"}


def text(files: Files, path: str) -> bytes | None:
    """Return the bytes at `path`, or None."""
    return files[path][2] if path in files else None


@dataclass(frozen=True)
class Change:
    """A change that can be undone, or must be put back."""

    before: Files
    after: Files
    """What was there when it ended, or was killed."""
    touched: frozenset[str]
    whole: tuple[str, ...]
    """The metadata folders that come."""
    known: frozenset[bytes]
    """What the change itself writes."""
    committed: bool = True
    perhaps: bool = False
    """It may be gone: a later apply was killed where it tidies."""
    again: bool = False
    """A roll back that was allowed was killed: it may ask to be allowed again."""
    met: bool = False
    """A roll back that was killed had met what a user did."""

    def later(self, now: Files) -> set[str]:
        """Return the files that somebody changed since."""
        one, other = plain(self.after), plain(now)
        return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}

    def newcomers(self, now: Files) -> tuple[set[str], set[str]]:
        """Return what goes with distributions that came later, and what stays for their sake."""
        new = {info for info in infos(now) if info not in infos(self.before)} - {*self.whole}
        shared = any(path.startswith(SHARED) for path in self.touched)
        came = {i for i in new if shared and any(p.startswith(SHARED) for p in owned(now, i))}
        theirs = {path for info in came for path in owned(now, info)}
        others = {path for info in infos(now).keys() - came for path in owned(now, info)}
        stay = {path for info in new - came for path in owned(now, info)} & self.touched
        return theirs - (others - self.touched), stay - self.before.keys()

    def inside(self, path: str) -> bool:
        """Tell whether `path` is in a metadata folder that came."""
        return path.startswith(self.whole)

    def undone(self, now: Files) -> Files:
        """Return what a roll back leaves."""
        theirs, stay = self.newcomers(now)
        goes = (self.touched | theirs) - stay
        kept = {
            path: about
            for path, about in plain(now).items()
            if path not in goes and (not self.inside(path) or path in stay)
        }
        return kept | {path: self.before[path] for path in self.touched & self.before.keys()}

    def must_refuse(self, now: Files) -> bool:
        """Tell whether a roll back would lose what a user did."""
        lost = any(
            text(now, path) not in {text(self.after, path), text(self.before, path)}
            for path in self.touched
        )
        more = any(self.inside(path) and path not in self.touched for path in plain(now))
        return self.committed and (lost or more or bool(self.newcomers(now)[0]))

    def may_refuse(self, now: Files) -> bool:
        """Tell whether a roll back meets something of somebody else."""
        later = {path for path in self.later(now) if path in self.touched or self.inside(path)}
        return self.again or bool(later or self.newcomers(now)[0])


def planned(now: Files, releases: tuple[str, ...]) -> tuple[Files, Change]:
    """Return what an apply of `releases` leaves, and the change."""
    coming = {path: row for one in releases for path, row in wheel_of(one).items()}
    names = {one.split()[0] for one in releases}
    build = any(name.startswith("onnxruntime") for name in names)
    there = {info: row.split()[0] for info, row in infos(now).items() if f"{info}METADATA" in now}
    going = {i for i, name in there.items() if name in names or (build and name[:4] == "onnx")}
    whole = tuple(map(info_of, releases))
    gone = {path for info in going for path in owned(now, info)}
    stays = {path for info in there.keys() - going for path in owned(now, info)}
    gone = (gone - stays) | {path for path in now if path.startswith(whole)} | coming.keys()
    if any(path.startswith(SHARED) for path in gone):
        gone |= {path for path in now if path.startswith(SHARED)} - stays
    there_or_coming = plain(now).keys() | coming.keys()  # a RECORD lists what a user deleted, too
    gone = {path for path in gone if path in there_or_coming}
    after = {path: about for path, about in plain(now).items() if path not in gone}
    after |= {path: (0, 0, row) for path, row in coming.items()}
    known = frozenset(coming.values())
    return after, Change(now, after, frozenset(gone), whole, known)


def same(expected: Files, found: Files, written: frozenset[str] | set[str] = frozenset()) -> bool:
    """Tell whether all files are as expected; of those `written` just now the bytes alone."""
    found = plain(found)
    return expected.keys() == found.keys() and all(
        about == found[path] or (path in written and about[2] == found[path][2])
        for path, about in expected.items()
    )


def differing(expected: Files, found: Files) -> dict[str, object]:
    """Return what differs, for people."""
    keys = expected.keys() | found.keys()
    return {k: (expected.get(k), found.get(k)) for k in keys if expected.get(k) != found.get(k)}
