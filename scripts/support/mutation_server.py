"""Collect tests once, then run some of them with a changed module, in a fork, as often as asked.

    mutation_server.py SOCKET WORDS FOR PYTEST ...

A request is a JSON line: its number, the path of a module, its text before and now, and tests. The
answers are lists that begin with that number: then the number of the process, which leads a group
of its own, and later the test that failed, "" where all passed, or null where the new text would
have changed what happened at the import.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType

import pytest


class Server:
    """The plugin that answers requests instead of running what was collected."""

    def __init__(self, number: int) -> None:
        """Talk over the socket with this file number."""
        self._socket = socket.socket(fileno=number)
        self._child = False
        self._number = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Iterator[None]:
        """Answer until the other side closes; in a fork, go on with the tests that were named."""
        items = {item.nodeid: item for item in session.items}
        functions = functions_by_file()
        gc.freeze()  # a fork that collected garbage would copy what it looks at
        reader = self._socket.makefile(encoding="utf-8")
        self._say("ready")
        for line in reader:
            self._number, path, before, now, tests = json.loads(line)
            child = os.fork()
            if not child:
                os.setsid()
                self._child = True
                self._say(os.getpid())
                if not replace_code(functions.get(path, []), path, before, now):
                    self._end(None)
                session.items[:] = [items[test] for test in tests if test in items]
                yield
                self._end("")
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) != 0:
                self._say("the process of the tests died")
        os._exit(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End at the first test that fails."""
        if self._child and report.failed:
            self._end(report.nodeid)

    def _say(self, value: object) -> None:
        self._socket.sendall(f"{json.dumps([self._number, value])}\n".encode())

    def _end(self, value: str | None) -> None:
        self._say(value)
        os._exit(0)


def functions_by_file() -> dict[str, list[FunctionType]]:
    """Return the functions that there are, by the file that they came from."""
    found: dict[str, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            found.setdefault(thing.__code__.co_filename, []).append(thing)
    return found


def replace_code(functions: Sequence[FunctionType], path: str, before: str, now: str) -> bool:
    """Give `functions`, which came from the file `path`, the code that they have `now`.

    Return False where something else differs from `before`: what runs at the import.
    """
    old_codes, new_codes = (
        [*_codes(compile(text, path, "exec", dont_inherit=True))] for text in (before, now)
    )
    if [code.co_name for code in old_codes] != [code.co_name for code in new_codes]:
        return False
    pairs = zip(old_codes, new_codes, strict=True)
    changed = {old: new for old, new in pairs if old != new}
    if any(_differ_at_import(old, new) for old, new in changed.items()):
        return False
    if path not in {getattr(module, "__file__", None) for module in [*sys.modules.values()]}:
        return True  # whoever imports it reads it as it is now
    missing = {old for holder in changed for old in changed.keys() & set(holder.co_consts)}
    missing = {old for old in missing if old.co_flags & inspect.CO_OPTIMIZED}
    for function in functions:
        old, new = function.__code__, changed.get(function.__code__)
        if new is not None and old.co_freevars != new.co_freevars:
            return False
        if new is not None:
            function.__code__ = new
            missing -= {old, *_codes(old)}  # it makes those in it
    return not missing


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _differ_at_import(old: CodeType, new: CodeType) -> bool:
    """Tell whether code of a module or a class body differs, apart from the functions in it."""

    def own(code: CodeType) -> tuple[bytes, object, object]:
        values = [repr(value) for value in code.co_consts if not isinstance(value, CodeType)]
        return code.co_code, code.co_names, values

    return not old.co_flags & inspect.CO_OPTIMIZED and own(old) != own(new)


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[2:], plugins=[Server(int(sys.argv[1]))]))
