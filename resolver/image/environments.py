"""The Python environments of an image, as facts; none of their Pythons is run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.utils import canonicalize_name

from ..companions.build import MARKER
from ..companions.contents import LIBRARIES
from ..evidence.metadata import fields
from ..facts.model import Facts, Interpreter, Kind, OnnxRuntime, Package
from ..versions import count
from .archive import Image
from .system import libraries_of, platform_of, toolkits_of
from .tree import File, Folder, Tree

_SITE = re.compile(
    r"(?P<prefix>.*)/lib(?:64)?/(?P<kind>python|pypy)(?P<version>3\.\d+)(?P<free>t?)/"
    r"(?:site|dist)-packages"
)
_DEBIAN = "/usr/lib/python3/dist-packages"
"""Each of Debian's Pythons reads it."""
_BASES = ("/usr/local", "/usr")
_CACHED = re.compile(r"((.*)/pkgs/[^/]+)/lib/.*")
"""What conda unpacked, and links into environments."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Of a container whose image names none."""
_PROGRAM = re.compile(r".*/(python|pypy)(3\.\d+)(t?)")
_ASSIGNMENT = re.compile(r"^(\w+)\s*=\s*['\"]([^'\"\n]*)['\"]", re.MULTILINE)
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_VARIABLES = frozenset(
    {
        *("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "PYTHONPATH"),
        *("NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES"),
    }
)


class Environment(NamedTuple):
    """A Python environment of an image."""

    path: str
    """Its prefix: `/opt/venv`, `/usr`."""
    sites: tuple[str, ...]
    """The folders of its packages, in the order of sys.path."""
    facts: Facts
    """Without a driver and GPUs."""


class _Place(NamedTuple):
    prefix: str
    kind: str
    version: str
    free: str

    @property
    def python(self) -> str:
        return f"{self.prefix}/bin/{self.kind}{self.version}{self.free}"


def environments_of(image: Image) -> tuple[Environment, ...]:
    """Return the environments of an image, sorted by their prefixes.

    Raises Error `image-without-system`.
    """
    tree = image.tree
    shown = {name: text for name, text in image.environment.items() if name in _VARIABLES}
    machine = Facts(
        platform=platform_of(tree, image.architecture),
        driver=None,
        gpus=None,
        python=Interpreter(version=""),
        toolkits=toolkits_of(tree),
        environment=shown,
    )
    sites: dict[_Place, list[str]] = {}
    folders = [path for path, _ in tree.folders() if path.endswith("-packages")]
    for folder in sorted(folders, key=lambda path: (path == _DEBIAN, path)):
        for place in _places(tree, folder) if not _is_cached(tree, folder) else ():
            sites.setdefault(place, []).append(folder)
    added = [*_with_packages(tree, image.environment.get("PYTHONPATH", ""))]
    for first in _first_python(tree, image.environment.get("PATH", _PATH)) if added else ():
        sites[first] = [*dict.fromkeys([*added, *sites.get(first, [])])]
    made = (
        _environment(tree, place, own, _of_base(tree, place, sites), machine)
        for place, own in sites.items()
    )
    return tuple(sorted(made, key=lambda row: (row.path, row.facts.python.version)))


def _is_cached(tree: Tree, folder: str) -> bool:
    """Tell whether a folder is of a package in conda's cache, and of no environment."""
    match = _CACHED.match(folder)
    marks = [f"{match[1]}/info/index.json", f"{match[2]}/conda-meta"] if match else []
    return any(tree.find(mark) for mark in marks)


def _first_python(tree: Tree, path: str) -> Iterator[_Place]:
    """Yield the Python that a container starts; nothing where it has none."""
    for folder in path.split(":"):
        for name in ("python3", *tree.names(folder)):
            if match := _PROGRAM.fullmatch(tree.real(f"{folder}/{name}") or ""):
                yield _Place(folder.rpartition("/bin")[0], *match.groups())
                return


def _with_packages(tree: Tree, path: str) -> Iterator[str]:
    """Yield those folders of PYTHONPATH that hold distributions."""
    for folder in (tree.real(row) or "" for row in path.split(":") if row.startswith("/")):
        if any(name.endswith(".dist-info") for name in tree.names(folder)):
            yield folder


def _places(tree: Tree, folder: str) -> Iterator[_Place]:
    """Yield the Pythons that read a folder: its own, or the base one whose user's it is."""
    if folder == _DEBIAN:
        minors = re.findall(r"\bpython(3\.\d+)\b", " ".join(tree.names("/usr/lib")))
        places = [_Place("/usr", "python", minor, "") for minor in minors]
        yield from (place for place in places if tree.find(place.python))
    elif match := _SITE.fullmatch(folder):
        own = _Place(*match.group("prefix", "kind", "version", "free"))
        bases = [own._replace(prefix=base) for base in _BASES]
        known = [own] if tree.find(f"{own.prefix}/pyvenv.cfg") else [own, *bases]
        yield next((place for place in known if tree.find(place.python)), own)


def _of_base(tree: Tree, place: _Place, sites: dict[_Place, list[str]]) -> list[str]:
    """Return the folders of the base Python that a venv reads too."""
    config = _config(tree, place)
    if config.get("include-system-site-packages", "").lower() != "true":
        return []
    return sites.get(place._replace(prefix=config.get("home", "").rpartition("/bin")[0]), [])


def _config(tree: Tree, place: _Place) -> dict[str, str]:
    rows = (line.partition("=") for line in tree.text(f"{place.prefix}/pyvenv.cfg").splitlines())
    return {name.strip().lower(): text.strip() for name, _, text in rows}


def _environment(
    tree: Tree, place: _Place, own: list[str], base: list[str], machine: Facts
) -> Environment:
    config = _config(tree, place)
    kind: Kind = (
        "venv" if config else "conda" if tree.names(f"{place.prefix}/conda-meta") else "system"
    )
    version = re.match(r"\d+\.\d+\.\d+", config.get("version") or config.get("version_info") or "")
    marked = f"{place.prefix}/lib/python{place.version}/EXTERNALLY-MANAGED"
    packages = {row.name: row for row in _packages(tree, base, outside=True)}
    packages |= {row.name: row for row in _packages(tree, own, outside=False)}
    conda = place.prefix if kind == "conda" else None
    libraries = libraries_of(tree, machine.environment, machine.platform.machine, conda)
    facts = machine._replace(
        python=Interpreter(
            version=version[0] if version else place.version,
            implementation="pypy" if place.kind == "pypy" else "cpython",
            free_threaded=bool(place.free),
            executable=f"{place.prefix}/bin/python",
            environment=kind,
            externally_managed=kind == "system" and tree.find(marked) is not None,
            autoload=True,
        ),
        packages=tuple(packages[name] for name in sorted(packages)),
        libraries=libraries,
        onnxruntime=_build(tree, [*own, *base]),
    )
    return Environment(place.prefix or "/", (*own, *base), facts)


def _packages(tree: Tree, sites: Iterable[str], *, outside: bool) -> Iterator[Package]:
    """Yield the distributions in `sites`; of one name the last is the one in use.

    A stand-in is not, where a layer has put a real one into the same folder.
    """
    for site in reversed(list(sites)):
        infos = [
            f"{site}/{name}"
            for name in reversed(tree.names(site))
            if name.endswith((".dist-info", ".egg-info")) and not name.startswith("~")
        ]
        rows = [row for info in infos for row in _package(tree, site, info, outside=outside)]
        yield from sorted(rows, key=lambda row: not row.provided)


def _package(tree: Tree, site: str, info: str, *, outside: bool) -> Iterator[Package]:
    texts = (tree.text(f"{info}{file}") for file in ("/METADATA", "/PKG-INFO", ""))
    text = next(filter(None, texts), "").partition("\n\n")[0]
    names, versions, requires = fields(text, "Name", "Version", "Requires-Dist")
    if not names or not versions:
        return
    name = canonicalize_name(names[0])
    if name == LIBRARIES and not site.endswith("-packages"):  # no .pth of it is read there
        return
    listed = [row for row in _recorded(tree, info) if _LIBRARY.search(row[0])]
    nvidia = listed if name.startswith("nvidia-") else []
    yield Package(
        name=name,
        version=versions[0],
        requires=tuple(requires),
        provided=MARKER in tree.names(info),
        intact=all(_is_whole(tree, site, *row) for row in nvidia),
        libraries=tuple(path for path, _ in nvidia),
        outside=outside,
    )


def _recorded(tree: Tree, info: str) -> list[tuple[str, int]]:
    """Return path and size of the files in RECORD, but for what is written after it."""
    folder = info.rpartition("/")[2] + "/"
    rows = []
    for line in tree.text(f"{info}/RECORD").splitlines():
        path, _, bytes_ = line.rpartition(",")
        path, size = path.rpartition(",")[0].strip('"'), count(bytes_)
        if size is not None and not path.startswith(("..", "/", folder)) and path[-4:] != ".pyc":
            rows.append((path, size))
    return rows


def _is_whole(tree: Tree, site: str, path: str, size: int) -> bool:
    node = tree.find(f"{site}/{path}")
    return isinstance(node, File) and node.size == size


def _build(tree: Tree, sites: Iterable[str]) -> OnnxRuntime | None:
    """Return the build in the shared folder `onnxruntime`, as its own files tell it."""
    homes = [site for site in sites if isinstance(tree.find(f"{site}/onnxruntime"), Folder)]
    homes.sort(key=lambda site: tree.find(f"{site}/onnxruntime/__init__.py") is None)
    if not homes:
        return None
    site = homes[0]
    build = dict(
        _ASSIGNMENT.findall(tree.text(f"{site}/onnxruntime/capi/build_and_package_info.py"))
    )
    name, version = build.get("package_name"), build.get("__version__")
    claims = []
    for folder in tree.names(site):
        rows = _recorded(tree, f"{site}/{folder}") if folder.endswith(".dist-info") else []
        if any(path == "onnxruntime/__init__.py" for path, _ in rows):
            damaged = sum(not _is_whole(tree, site, *row) for row in rows)
            claims += [
                (damaged, row.name, row.version)
                for row in _package(tree, site, f"{site}/{folder}", outside=False)
                if not name or row.name == canonicalize_name(name)
            ]
    damaged, owner, owned = min(claims, default=(1, None, None))
    whole = not damaged and version in {None, owned}
    return OnnxRuntime(name or owner, version or owned, build.get("cuda_version"), intact=whole)
