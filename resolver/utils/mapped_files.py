"""The files that a running process has mapped into its memory: its program and its libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def process_ids(proc: Path = PROC) -> Iterator[int]:
    """Yield the numbers of all processes; on Windows of at most 8,192."""
    if sys.platform == "win32":
        yield from _process_ids()
    else:
        yield from (int(entry.name) for entry in proc.glob("[0-9]*"))


def mapped_files(pid: int, proc: Path = PROC) -> tuple[str, ...]:
    """Return the paths of the files that a process has mapped, each once, as the system names them.

    On Windows its modules, the program first. Raises ProcessLookupError where there is no such
    process, and PermissionError where it is another user's. A line of /proc/PID/maps:
    `7f2c3e000000-7f2c3e022000 r--p 00000000 fe:00 1234  /venv/…/libcudnn.so.9` (proc_pid_maps(5)).
    """
    if sys.platform == "win32":
        return _modules(pid)
    try:
        text = (proc / str(pid) / "maps").read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error
    fields = (line.split(maxsplit=5) for line in text.split("\n"))
    return tuple(dict.fromkeys(row[5] for row in fields if row[5:] and row[5].startswith("/")))


def process_name(pid: int, files: tuple[str, ...], proc: Path = PROC) -> str:
    """Return the short name of a process that has mapped `files`. Raises OSError where it ended."""
    if sys.platform == "win32":
        return Path(files[0]).name
    return (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _MOST = 8192
    _QUERY, _READ, _ALL_MODULES = 0x0400, 0x0010, 3
    _INVALID = 87
    """ERROR_INVALID_PARAMETER: OpenProcess says so where there is no such process."""

    def _process_ids() -> list[int]:
        kernel = ctypes.WinDLL("kernel32")
        numbers, size = (wintypes.DWORD * _MOST)(), wintypes.DWORD()
        kernel.K32EnumProcesses(numbers, ctypes.sizeof(numbers), ctypes.byref(size))
        found = numbers[: size.value // ctypes.sizeof(wintypes.DWORD)]
        return [number for number in found if number]

    def _modules(pid: int) -> tuple[str, ...]:
        """Source: https://learn.microsoft.com/windows/win32/psapi/enumerating-all-modules-for-a-process."""
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = wintypes.HANDLE
        handle = kernel.OpenProcess(_QUERY | _READ, 0, pid)
        if not handle:
            missing = ctypes.get_last_error() == _INVALID
            raise ProcessLookupError(pid) if missing else PermissionError(pid)
        process = wintypes.HANDLE(handle)
        try:
            modules, size = (wintypes.HMODULE * _MOST)(), wintypes.DWORD()
            name = ctypes.create_unicode_buffer(32768)
            if not kernel.K32EnumProcessModulesEx(
                process, modules, ctypes.sizeof(modules), ctypes.byref(size), _ALL_MODULES
            ):
                raise PermissionError(pid)
            paths = []
            for module in modules[: size.value // ctypes.sizeof(wintypes.HMODULE)]:
                if kernel.K32GetModuleFileNameExW(
                    process, wintypes.HMODULE(module), name, len(name)
                ):
                    paths.append(name.value)  # noqa: PERF401 - the buffer is one
            return tuple(paths)
        finally:
            kernel.CloseHandle(process)
