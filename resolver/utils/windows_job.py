"""A job of Windows: a process with all that it starts, which end together.

Source: https://learn.microsoft.com/windows/win32/procthread/job-objects
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
    _KILL_ON_JOB_CLOSE = 0x2000

    class _Limits(ctypes.Structure):
        """JOBOBJECT_EXTENDED_LIMIT_INFORMATION of winnt.h, of which one field is used."""

        _fields_ = (
            ("_times", ctypes.c_int64 * 2),
            ("flags", wintypes.DWORD),
            ("_rest", ctypes.c_size_t * 15),
        )

    class Job:
        """The job of one child; `with_us`: ends with us, whatever ends us."""

        def __init__(self, process: int, *, with_us: bool) -> None:
            """Put the process with this handle, and all that it will start, into the job."""
            self._kernel = ctypes.WinDLL("kernel32")
            self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(self._kernel.CreateJobObjectW(None, None))
            limits = _Limits(flags=_KILL_ON_JOB_CLOSE if with_us else 0)
            self._kernel.SetInformationJobObject(
                self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
            )
            self._kernel.AssignProcessToJobObject(self._handle, wintypes.HANDLE(process))

        def end(self) -> None:
            """End every process of the job."""
            self._kernel.TerminateJobObject(self._handle, 1)

        def close(self) -> None:
            """Let go of the job, which ends what is left of it where it ends with us."""
            self._kernel.CloseHandle(self._handle)
