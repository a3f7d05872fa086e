"""Print one line of JSON about this interpreter and its installed distributions.

A script for the target's interpreter (Python 3.8 and newer), fed to its standard input when the
current folder is out of `sys.path`. It imports
little of the standard library, and no installed package. Reading dist-info folders by hand is
several times faster than `importlib.metadata` and goes on after broken metadata.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: PTH100, PTH112, PTH113, PTH116, PTH118, PTH119, PTH120, PTH208
from __future__ import annotations

import json
import os
import re
import struct
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOADERS = "/lib"
"""The folder of musl's loader."""
SMALL = 256 * 1024
"""Files of fewer bytes are compared by hash too, larger ones by size alone."""
ASSIGNMENT = re.compile(r"^(\w+)\s*=\s*['\"]([^'\"\n]*)['\"]", re.MULTILINE)
CORE = "Software\\Python\\PythonCore\\"
"""The key of the releases of python.org in the registry, PEP 514."""
SIZE = re.compile(r"[0-9]{1,18}$")
MODULE = re.compile(r"^((?!\.\.)[^,\n]*/__init__\.py),", re.MULTILINE)
"""The first package in RECORD: `numpy/__init__.py`."""
REQUIRED = {"flatbuffers", "numpy", "packaging", "protobuf"}
"""What every build of onnxruntime requires, installed or still to come."""
LIBRARY = re.compile(r"\.so(\.\d+)*$|\.dll$|\.pyd$")


def unwaiting(path: str, flags: int) -> int:
    """Open a file; a pipe in its place would be waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read(path: str) -> str | None:
    """Return the text of a file with plain line ends, None where it cannot be read."""
    try:
        with open(path, "rb", 0, opener=unwaiting) as file:  # as text it takes twice as long
            text = (file.readall() or b"").decode("utf-8", "replace")
    except OSError:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def listing(folder: str) -> list[str]:
    """Return the names in `folder`, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def canonical(name: str) -> str:
    """Return the name as PEP 503 compares it: `NVIDIA.cublas_cu12` is `nvidia-cublas-cu12`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def metadata(folder: str, entry: str) -> tuple[str, str | None]:
    """Return (path, text) of the metadata of a dist-info, egg-info or egg entry."""
    path = os.path.join(folder, entry)
    if entry.endswith(".dist-info"):
        return path, read(os.path.join(path, "METADATA"))
    if entry.endswith(".egg"):
        path = os.path.join(path, "EGG-INFO")
    if os.path.isdir(path):
        return path, read(os.path.join(path, "PKG-INFO"))
    return path, read(path)


def egg_requires(path: str) -> list[str]:
    """Return the requirements of an egg-info folder, those of extras left out.

    requires.txt: `numpy>=1.21`, then sections `[:python_version < "3.11"]` and `[extra]`.
    """
    requires: list[str] = []
    marker: str | None = ""
    for line in (read(os.path.join(path, "requires.txt")) or "").splitlines():
        if line.startswith("["):
            extra, _, marker = line.strip("[] ").partition(":")
            marker = None if extra else marker
        elif line.strip() and marker is not None:
            requires.append(line.strip() + ("; " + marker if marker else ""))
    return requires


def libraries_of(name: str, folder: str, path: str, *, requested: bool) -> dict[str, Any]:
    """Return what is known of the libraries of a distribution that may hold CUDA's."""
    if name == "torch" and sys.platform == "win32":  # in its own directory
        torch_libraries = listing(os.path.join(folder, "torch", "lib"))
        names = ["torch/lib/" + library for library in torch_libraries if library.endswith(".dll")]
        return {"libraries": names, "missing": int(not names)}
    if not name.startswith(("nvidia-", "cuda-", "onnxruntime-ep-")):
        return {}
    listed = recorded(path)
    libraries = [(library, size) for library, _, size in listed if LIBRARY.search(library)]
    return {
        "size": sum(size for _, _, size in listed),
        "requested": requested,
        "libraries": [library for library, _ in libraries],
        "missing": sum(differs(os.path.join(folder, lib), size) for lib, size in libraries),
    }


def distribution(folder: str, entry: str) -> dict[str, Any]:
    """Return the distribution of a metadata folder; of a broken one only its path."""
    path, text = metadata(folder, entry)
    head = (text or "").partition("\n\n")[0]
    if "\n " in head or "\n\t" in head:  # few are folded
        head = re.sub(r"\n[ \t]+", " ", head)
    fields: dict[str, list[str]] = {"Name": [], "Version": [], "Requires-Dist": []}
    for line in head.split("\n"):
        key, _, value = line.partition(":")
        if key in fields:
            fields[key].append(value.strip(" \t"))
    name, version = "".join(fields["Name"][:1]), "".join(fields["Version"][:1])
    if entry.startswith("~") or not name or not version or version == "None":
        return {"name": entry, "version": None, "path": path}
    requires = fields["Requires-Dist"]
    if not entry.endswith(".dist-info") and not requires:
        requires = egg_requires(path)
    row: dict[str, Any] = {"name": name, "version": version, "path": path, "requires": requires}
    files = listing(path)  # none in an egg-info that is a file
    if "INSTALLER" in files:
        row["installer"] = (read(os.path.join(path, "INSTALLER")) or "").strip()
    if "direct_url.json" in files:
        source = read(os.path.join(path, "direct_url.json")) or ""
        row["editable"] = re.search('"editable": ?true', source) is not None
        row["local"] = '"dir_info"' in source
    if "ORTGPU_FIX_PROVIDED" in files:
        row["provided"] = True
    # uv marks all that it installs as requested.
    requested = "REQUESTED" in files and row.get("installer") == "pip"
    row.update(libraries_of(canonical(name), folder, path, requested=requested))
    return row


def distributions() -> list[dict[str, Any]]:
    """Return every distribution on sys.path, in its order; of one name the first is in use.

    An image's layer, or `pip install --target`, leaves the old metadata of a name beside the new:
    the placeholder that this program installed is not the one whose files are there.
    """
    rows: list[Any] = []
    for folder in dict.fromkeys(map(os.path.abspath, sys.path)):
        inside: list[Any] = []
        for entry in listing(folder):
            if entry.endswith((".dist-info", ".egg-info", ".egg")):
                inside.append(distribution(folder, entry))
            elif entry.endswith(".egg-link"):  # of `setup.py develop`
                linked = (read(os.path.join(folder, entry)) or "").split("\n")[0].strip()
                inner = [name for name in listing(linked) if name.endswith(".egg-info")]
                inside += [dict(distribution(linked, name), editable=True) for name in inner]
        rows += sorted(inside, key=lambda row: bool(row.get("provided")))
    return rows


OWN = ".ortgpu-fix/"
"""The state folder of ortgpu-fix, which comes and goes: what a RECORD says of it means nothing."""


def without_module(row: dict[str, Any]) -> bool:
    """Return whether a module that a distribution lists is gone: looked at is one file of it."""
    listed = MODULE.search(read(os.path.join(row["path"], "RECORD")) or "")
    folder = os.path.dirname(row["path"])
    return listed is not None and not os.path.isfile(os.path.join(folder, listed.group(1)))


def look_at_required(installed: list[dict[str, Any]]) -> None:
    """Note of what a build of onnxruntime requires whether its files are there."""
    real = [
        package
        for package in installed
        if package["version"] is not None and "missing" not in package
    ]
    lines = [
        line
        for row in real
        if canonical(row["name"]).startswith(("onnxruntime", "ort-"))
        for line in row["requires"]
    ]
    names = {canonical(re.split(r"[^\w.-]", line)[0]) for line in lines} | REQUIRED
    for row in real:
        if canonical(row["name"]) in names and without_module(row):
            row["missing"] = 1


def recorded(info: str) -> list[tuple[str, str, int]]:
    """Return path, hash and size of the files in RECORD; none without RECORD.

    A line: `onnxruntime/capi/_ld_preload.py,sha256=pX_…,406`.
    """
    rows: list[Any] = []
    metadata_folder = os.path.basename(info) + "/"
    for line in (read(os.path.join(info, "RECORD")) or "").splitlines():
        path, _, size = line.rpartition(",")
        path, _, digest = path.rpartition(",")
        path = path.strip('"').replace("\\", "/")
        if SIZE.match(size) and not path.startswith(("..", "/", metadata_folder, OWN)):
            rows.append((path, digest, int(size)))
    return rows


def damage(folder: str, info: str) -> list[str]:
    """Return the files of RECORD that are missing or changed."""
    return [
        path
        for path, digest, size in recorded(info)
        if not path.endswith(".pyc") and differs(os.path.join(folder, path), size, digest)
    ]


def differs(path: str, size: int, digest: str = "") -> bool:
    """Return whether the file differs from the one in the wheel; without `digest`, by size."""
    try:
        if os.stat(path).st_size != size:
            return True
        if size >= SMALL or not digest.startswith("sha256="):
            return False
        with open(path, "rb", 0, opener=unwaiting) as file:
            content = file.readall() or b""
    except OSError:
        return True
    import base64  # noqa: PLC0415 - few environments have a file to compare
    import hashlib  # noqa: PLC0415

    actual = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(actual).rstrip(b"=").decode() != digest[len("sha256=") :]


def owns_folder(package: dict[str, Any]) -> bool:
    """Return whether a distribution lists files in the shared folder `onnxruntime`."""
    if not canonical(package["name"]).startswith(("onnxruntime", "ort-")):
        return False
    return "\nonnxruntime/__init__.py," in "\n" + (read(package["path"] + "/RECORD") or "")


def has_libraries(folder: str, cuda: str | None) -> bool:
    """Return whether the folder `onnxruntime` has its module, and the provider for `cuda`."""
    names = str(listing(os.path.join(folder, "capi")))
    return "onnxruntime_pybind11_state" in names and (
        cuda is None or "onnxruntime_providers_cuda" in names
    )


def onnxruntime(installed: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the build in the shared folder `onnxruntime`, None without that folder."""
    homes = [entry for entry in sys.path if os.path.isdir(os.path.join(entry, "onnxruntime"))]
    homes.sort(key=lambda entry: not os.path.isfile(os.path.join(entry, "onnxruntime/__init__.py")))
    if not homes:
        return None
    home = os.path.abspath(homes[0])
    folder = os.path.join(home, "onnxruntime")
    info = read(os.path.join(folder, "capi", "build_and_package_info.py"))
    build = dict(ASSIGNMENT.findall(info or ""))
    name, version = build.get("package_name"), build.get("__version__")
    cuda = build.get("cuda_version")
    whole = os.path.isfile(os.path.join(folder, "__init__.py"))  # else an empty namespace
    real = [
        package
        for package in installed
        if package["version"] is not None and not package.get("provided")
    ]
    named = [row for row in real if name and canonical(row["name"]) == canonical(name)]
    claims = [
        (package, damage(os.path.dirname(package["path"]), package["path"]))
        for package in named or filter(owns_folder, real)
    ]
    intact = False
    if claims:
        package, damaged = claims[0] if named else min(claims, key=lambda claim: len(claim[1]))
        # Old wheels have no build info, and a build of another name may have that of its origin.
        if not named and whole and (not name or not damaged):
            name, version = package["name"], package["version"]
        seen = has_libraries(folder, cuda) or recorded(package["path"])
        intact = whole and package["version"] == version and not damaged and bool(seen)
    name = name and canonical(name)
    return {"distribution": name, "version": version, "cuda": cuda, "intact": intact}


def libc() -> str | None:
    """Return `glibc 2.35` or `musl 1.2.4`; None on Windows, or not known."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError, ValueError):
        text = None
    if text and text.startswith("glibc"):
        return str(text)
    loaders = [name for name in listing(LOADERS) if name.startswith("ld-musl-")]
    if not loaders:
        return None
    import subprocess  # noqa: PLC0415, TID251 - on musl alone

    try:  # musl's loader without arguments: "musl libc (x86_64)\nVersion 1.2.4\n…" on stderr
        argv = [os.path.join(LOADERS, loaders[0])]
        loader = subprocess.run(argv, stderr=subprocess.PIPE, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(rb"Version (\d+(?:\.\d+)+)", loader.stderr)
    return "musl " + version.group(1).decode() if version else None


def kind_of_environment(purelib: str) -> str:
    """Return `venv`, `conda`, `user` (a Python whose own folder is read-only here) or `system`."""
    if sys.prefix != sys.base_prefix:
        return "venv"
    if in_store():
        return "user"
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "conda"
    site = sys.modules.get("site")
    if getattr(site, "ENABLE_USER_SITE", None) and not writable(existing(purelib)):
        return "user"
    return "system"


def existing(folder: str) -> str:
    """Return `folder`, or what is above it: an embeddable Python comes without the folder."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def writable(folder: str) -> bool:
    """Return whether this user may make files in `folder`.

    On Windows a file is made, which is gone when it is closed, as pip does it
    (`pip/_internal/utils/filesystem.py`): `os.access` says yes to each folder there.
    """
    temporary = getattr(os, "O_TEMPORARY", None)
    if temporary is None:
        return os.access(folder, os.W_OK)
    file = os.path.join(folder, f".ortgpu-fix-probe-{os.getpid()}")
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | temporary, 0o600))
    except OSError:
        return False
    return True


def in_store() -> bool:
    r"""Return whether this Python is in a package of the Microsoft Store, which nobody may change.

    `C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.11_…`:
    https://docs.python.org/3/using/windows.html#known-issues
    """
    return "windowsapps" in sys.prefix.lower().replace("\\", "/").split("/")


def owner(mark: str | None) -> str | None:
    """Return where this Python, which is no virtual environment, came from; None: not known.

    `mark` is the text of its EXTERNALLY-MANAGED: uv's names uv (`uv python install`, PEP 668). An
    embeddable Python has a `._pth` file beside it, and belongs to its application, with or without
    the install manager's file: https://docs.python.org/3/using/windows.html#finding-modules.
    pyenv-win keeps its own in `pyenv-win/versions` (https://github.com/pyenv-win/pyenv-win).
    """
    if mark is not None and "managed by uv" in mark:
        return "uv"
    if in_store():
        return "store"
    if any(re.match(r"python\d+\._pth$", name) for name in listing(sys.prefix)):
        return "embeddable"
    if sys.prefix.lower().replace("\\", "/").split("/")[-3:-1] == ["pyenv-win", "versions"]:
        return "pyenv-win"
    return registered()


def registered() -> str | None:
    """Return who registered this Python on Windows for all programs to find; None: nobody.

    Python.org's installer does, for the user or for all of them, and so does the install manager,
    which marks what is its own: PEP 514, https://github.com/python/pymanager (`pep514utils.py`).
    """
    try:
        winreg: Any = __import__("winreg")  # Windows alone has it
    except ImportError:
        return None

    def value(hive: Any, key: str, name: str | None) -> Any:  # noqa: ANN401 - of any type
        """Return a value, the names of the keys below where `name` is None; () without it."""
        try:
            with winreg.OpenKey(hive, key) as opened:
                if name is not None:
                    return winreg.QueryValueEx(opened, name)[0]
                return [winreg.EnumKey(opened, at) for at in range(winreg.QueryInfoKey(opened)[0])]
        except OSError:
            return ()

    prefix = os.path.normcase(os.path.realpath(sys.prefix))
    hives = (
        (winreg.HKEY_CURRENT_USER, "python-org-user"),
        (winreg.HKEY_LOCAL_MACHINE, "python-org-machine"),
    )
    found = (
        "pymanager" if value(hive, CORE + tag, "ManagedByPyManager") else who
        for hive, who in hives
        for tag in value(hive, CORE, None)
        for folder in [value(hive, CORE + tag + "\\InstallPath", "")]
        if folder and os.path.normcase(os.path.realpath(str(folder))) == prefix
    )
    return next(found, None)


def user_site(own: str) -> str | None:
    """Return the user's site folder where Python looks there before `own`, None otherwise."""
    folder = getattr(sys.modules.get("site"), "USER_SITE", None)
    paths = [os.path.abspath(entry) for entry in sys.path]
    if folder not in paths or own not in paths or paths.index(own) < paths.index(folder):
        return None
    return str(folder)


def main() -> None:
    """Print the answer."""
    paths = sysconfig.get_paths()
    version = "{}.{}.{}".format(*sys.version_info[:3])
    if sys.version_info[3] != "final":
        stage = {"alpha": "a", "beta": "b", "candidate": "rc"}[sys.version_info[3]]
        version += stage + str(sys.version_info[4])
    kind = kind_of_environment(paths["purelib"])
    mark = None if kind == "venv" else read(os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED"))
    managed_by = owner(mark) if kind in {"system", "user"} else None
    pixi = kind == "conda" and os.path.isfile(os.path.join(sys.prefix, "conda-meta", "pixi"))
    installed = distributions()
    look_at_required(installed)
    answer = {
        "version": version,
        "implementation": sys.implementation.name,
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "platform": sysconfig.get_platform(),
        "bits": struct.calcsize("P") * 8,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "purelib": paths["purelib"],
        "platlib": paths["platlib"],
        "scripts": paths["scripts"],
        "environment": kind,
        "read_only": not writable(existing(paths["purelib"])),
        "user_site": user_site(paths["purelib"]) if kind != "user" else None,
        "externally_managed": mark is not None or managed_by not in {None, "store", "embeddable"},
        "managed_by": "pixi" if pixi else managed_by,
        # An embeddable Python's `._pth` file does not import site, unless it says so, as ComfyUI's:
        # https://docs.python.org/3/using/windows.html#finding-modules
        "pth": "site" in sys.modules and not sys.flags.no_site,
        "libc": libc(),
        "onnxruntime": onnxruntime(installed),
        "installed": installed,
    }
    print("\n" + json.dumps(answer))


if __name__ == "__main__":
    main()
