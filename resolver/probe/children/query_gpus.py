"""Query NVIDIA's libraries for the driver and the GPUs, one line of JSON for each step.

    python -I -S query_gpus.py FOLDER SECONDS [nvml] [libcuda]

A script, run with a time limit and never imported: a wedged GPU hangs its callers, and some
libraries crash. FOLDER has the module `pynvml`; after SECONDS the script ends in any case.

Every line is an object with the key `library`; a later line of a library replaces the earlier one.
`state` is `asking` (a call has begun: the last line of a library that hangs or crashes), `absent`
(no such library), `unloadable`, `unasked` or `answered`.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from types import ModuleType

WSL = "/usr/lib/wsl/lib"
Answer = dict[str, object]


def say(library: str, state: str, **values: object) -> None:
    """Print one line at once, for the child may be killed."""
    print(json.dumps({"library": library, "state": state, **values}), flush=True)


def load(library: str, name: str) -> ctypes.CDLL | None:
    """Load `name` as the loader finds it, else from WSL's folder; print why it fails.

    A library that is absent and one that cannot be loaded differ: the second error begins with
    another file (`libnvidia-fatbinaryloader.so.390.157: cannot open shared object file`).
    """
    problem = ""
    for candidate in (name, f"{WSL}/{name}"):
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:  # noqa: PERF203 - two rounds
            text = str(error)
            missing = isinstance(error, FileNotFoundError) or (
                "No such file" in text
                and (text.startswith(f"{candidate}:") or f"library {candidate}:" in text)
            )
            problem = problem or ("" if missing else text)
    say(library, "unloadable" if problem else "absent", problem=problem)
    return None


def ask_nvml(folder: str) -> None:
    """Print the reply of NVML, or the error of `pynvml`."""
    say("nvml", "asking", call="dlopen")
    if sys.platform != "win32" and load("nvml", "libnvidia-ml.so.1") is None:
        return  # loaded once, pynvml finds it by this name, wherever it lies
    sys.path.append(folder)
    try:
        import pynvml  # noqa: PLC0415 - only this child may load it

        describe_nvml(pynvml)
    except Exception as error:  # noqa: BLE001 - of an older pynvml, or another of this name
        say("nvml", "unasked", problem=f"pynvml: {error}")


def describe_nvml(pynvml: ModuleType) -> None:
    """Print the driver's release, its CUDA and every GPU of the machine."""
    say("nvml", "asking", call="nvmlInit")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        missing = error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND  # Windows
        say("nvml", "absent" if missing else "answered", code=error.value, problem=str(error))
        return
    answer: Answer = {
        "driver": nvml(pynvml, "nvmlSystemGetDriverVersion"),
        "cuda": nvml(pynvml, "nvmlSystemGetCudaDriverVersion_v2")
        or nvml(pynvml, "nvmlSystemGetCudaDriverVersion"),  # without libcuda.so.1
    }
    say("nvml", "asking", call="nvmlDeviceGetCount", **answer)
    try:
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        say("nvml", "answered", code=error.value, problem=str(error), **answer)
        return
    gpus = [nvml_gpu(pynvml, index) for index in range(count)]
    say("nvml", "answered", code=0, gpus=gpus, **answer)


def nvml_gpu(pynvml: ModuleType, index: int) -> Answer:
    """Return one GPU; a value that NVML lacks (memory of a GB10) is None."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:  # "GPU is lost" and the like
        return {"problem": str(error)}
    memory = nvml(pynvml, "nvmlDeviceGetMemoryInfo", handle)
    mig = nvml(pynvml, "nvmlDeviceGetMigMode", handle)
    return {
        "name": nvml(pynvml, "nvmlDeviceGetName", handle),
        "compute_capability": nvml(pynvml, "nvmlDeviceGetCudaComputeCapability", handle),
        "memory": getattr(memory, "total", None),
        "mig": bool(isinstance(mig, (list, tuple)) and mig and mig[0] == 1),
    }


def nvml(pynvml: ModuleType, call: str, *values: object) -> object:
    """Return the result of `call`, text always as str; None where NVML fails."""
    try:
        answer = getattr(pynvml, call)(*values)
    except (pynvml.NVMLError, AttributeError):
        return None
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


def ask_libcuda() -> None:
    """Print the reply of the user-mode driver, which gives its CUDA even without a GPU."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    say("libcuda", "asking", call="dlopen")
    cuda = load("libcuda", name)
    if cuda is None:
        return
    answer: Answer = {"file": loaded_file(name)}
    number = ctypes.c_int(0)
    say("libcuda", "asking", call="cuDriverGetVersion", **answer)
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        answer["cuda"] = number.value
    say("libcuda", "asking", call="cuInit", **answer)
    code = int(cuda.cuInit(0))
    gpus = libcuda_gpus(cuda) if code == 0 else None
    say("libcuda", "answered", code=code, gpus=gpus, **answer)


def libcuda_gpus(cuda: ctypes.CDLL) -> list[Answer] | None:
    """Return the devices that libcuda shows, None where it cannot count them."""
    number = ctypes.c_int(0)
    if cuda.cuDeviceGetCount(ctypes.byref(number)) != 0:
        return None
    return [libcuda_gpu(cuda, ordinal) for ordinal in range(number.value)]


def libcuda_gpu(cuda: ctypes.CDLL, ordinal: int) -> Answer:
    """Return one device; attributes 75 and 76 are the compute capability (cuda.h)."""
    device, major, minor = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
    if cuda.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
        return {}
    name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t(0)
    gpu: Answer = {}
    if cuda.cuDeviceGetName(name, len(name), device) == 0:
        gpu["name"] = name.value.decode(errors="replace")
    if (
        cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device) == 0
        and cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device) == 0
    ):
        gpu["compute_capability"] = [major.value, minor.value]
    if cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device) == 0:
        gpu["memory"] = memory.value
    return gpu


def loaded_file(name: str) -> str | None:
    """Return the real file behind the library `name` of this process: its name has the release.

    A line of /proc/self/maps: `7f…-7f… r-xp 00000000 08:01 42  /usr/lib/libcuda.so.535.261.03`.
    """
    stem = name.partition(".so")[0] + ".so"
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
            for line in maps:
                path = line.rstrip("\n").partition("/")[2]
                if path.rpartition("/")[2].startswith(stem):
                    return "/" + path
    except OSError:
        pass
    return None


def main(arguments: list[str]) -> None:
    """Query the libraries, NVML first for three fifths of the time, and end in time."""
    folder, seconds, *libraries = arguments
    limit = threading.Timer(float(seconds), os._exit, (0,))
    limit.daemon = True
    limit.start()
    if "nvml" in libraries:
        thread = threading.Thread(target=ask_nvml, args=(folder,), daemon=True)
        thread.start()
        thread.join(0.6 * float(seconds))
    if "libcuda" in libraries:
        ask_libcuda()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
