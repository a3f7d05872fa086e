"""Write the two wheels into pyproject.toml, for uv, Poetry and PDM, or into a Pipfile.

Comments, order and format stay (`tomlkit`). The loader requires onnxruntime-gpu and NVIDIA's wheels
itself, so that two requirements and their two sources are all:

- the user's own requirement of onnxruntime, without a bound that the planned version does not meet,
  comes from the placeholder on the machines that have the GPU, and from the index elsewhere;
- the loader is required on those machines alone.

PDM locks one candidate of a name for all systems, so there the placeholder comes everywhere. Pipenv
locks for one system, and takes the two wheels by their paths: with a marker beside it, it cannot
read a path whose file has a `+`.

Sources: https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources,
https://python-poetry.org/docs/dependency-specification/#multiple-constraints-dependencies,
https://pdm-project.org/latest/usage/dependency/#dependency-overrides,
https://pipenv.pypa.io/en/latest/pipfile.html.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, MutableMapping, MutableSequence
from collections.abc import Set as AbstractSet
from typing import Any

import tomlkit
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table, Whitespace

from ..companions.contents import LABEL, LIBRARIES
from ..errors import Error
from ..facts.model import CPU_BUILD, GPU_BUILD
from ..utils.toml import tomllib
from ..versions import allows, numbers
from .model import COMMENT, FOLDER, Wanted
from .requirement_lines import IN_PROJECT, named_build, with_served_bound

_Table = MutableMapping[str, Any]
_LISTS = (("project", "dependencies"), ("tool", "uv", "dev-dependencies"))
_LISTS_BY_NAME = (("project", "optional-dependencies"), ("dependency-groups",))
_NO_PACKAGES = frozenset({"source", "requires", "scripts", "pipenv", "build-system"})
"""Tables of a Pipfile; each of the others is a category of packages."""
_SOURCES = frozenset({"path", "url", "git", "index", "source", "file"})
"""Keys of a requirement that says where it comes from."""
_CARET = re.compile(r"[\^~](?=\s*\d)")
"""Of Poetry's notation: `^3.9`, `~3.9`."""
_OF_PLACEHOLDER = re.compile(rf"!=[^,|]*{re.escape(LABEL)}")


def parse_pyproject(text: str) -> tomlkit.TOMLDocument:
    """Return the document. Raises ValueError for what is no TOML."""
    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as error:
        raise ValueError(str(error)) from error


def written(document: tomlkit.TOMLDocument, before: str) -> str:
    """Return the text of the document; `before` is what it was parsed from.

    Raises ValueError where it would not be read as it is.
    """
    text = tomlkit.dumps(document)
    text = text if before.endswith("\n\n") else f"{text.rstrip()}\n"
    if tomllib.loads(text) != document.unwrap():
        raise ValueError(text)
    return text


def needs_python(document: _Table, python: str) -> str | None:
    """Return `python` (`3.11`) where the project allows an older one, too.

    uv and Poetry lock for all that it allows, and one that names none allows all.
    """
    wanted = _table(document, "project").get("requires-python")
    wanted = wanted or _table(document, "tool", "poetry", "dependencies").get("python")
    older = [f"3.{minor}.99" for minor in range(numbers(python)[1])]
    for part in str(wanted or "").split("|"):
        with contextlib.suppress(InvalidSpecifier):  # one release alone, in Poetry's notation
            allowed = SpecifierSet(_CARET.sub(">=", part))
            if any(map(allowed.contains, older)):
                return python
    return None


def requires_build(document: _Table, wanted: Wanted) -> bool:
    """Return whether the project itself, one of its extras or groups, requires onnxruntime."""
    texts = (line for lines in _lists(document) for line in lines if isinstance(line, str))
    return any(named_build(line, wanted) for line in texts) or any(
        name in table for table in _poetry_tables(document) for name in (CPU_BUILD, GPU_BUILD)
    )


def for_uv(document: _Table, wanted: Wanted, *, adds: bool, sources: bool) -> None:
    """Write the lines of uv into `document`.

    `adds`: this project gets the requirements that nobody has; `sources`: it is the root, where all
    members of a workspace look. Raises Error `project-own-source` where the user has another one.
    """
    _set_lines(document, wanted, adds=adds)
    if not sources:
        return
    table = _made_table(document, "tool", "uv", "sources")
    _refuse_other_source(table, "[tool.uv.sources]")
    placeholder = {"path": f"{FOLDER}/{wanted.placeholder.file}", "marker": wanted.marker}
    _put(table, CPU_BUILD, _inline(placeholder))
    _put(table, LIBRARIES, _inline({"path": f"{FOLDER}/{wanted.libraries.file}"}), remark=True)


def for_poetry(document: _Table, wanted: Wanted) -> None:
    """Write the lines of Poetry into `document`: [project] has requirements, or its own table has.

    Raises Error `project-own-source` where the user has another source of his own.
    """
    if "dependencies" in _table(document, "project"):
        _set_lines(document, wanted, adds=True)
    having = [table for table in _poetry_tables(document) if CPU_BUILD in table]
    table = having[0] if having else _made_table(document, "tool", "poetry", "dependencies")
    _refuse_other_source(table, "[tool.poetry]")
    for each in _poetry_tables(document):
        if GPU_BUILD in each and not _poetry_allows(_version(each[GPU_BUILD]), wanted.release):
            each[GPU_BUILD] = "*"
    of_wheel = {"path": f"{FOLDER}/{wanted.placeholder.file}", "markers": wanted.marker}
    version = _without_placeholder(_version(table.get(CPU_BUILD, "*")), wanted)
    others = {"version": version, "markers": wanted.elsewhere}
    both = tomlkit.array().multiline(multiline=True)
    both.extend([_inline(of_wheel), _inline(others)])
    _put(table, CPU_BUILD, both)
    libraries = {"path": f"{FOLDER}/{wanted.libraries.file}", "markers": wanted.marker}
    _put(table, LIBRARIES, _inline(libraries), remark=True)


def for_pdm(document: _Table, wanted: Wanted) -> None:
    """Write the lines of PDM into `document`.

    Raises Error `project-own-source` where the user overrides onnxruntime himself.
    """
    loader = f"{LIBRARIES} @ {IN_PROJECT}{wanted.libraries.file} ; {wanted.marker}"
    _set_lines(document, wanted, adds=True, loader=loader)
    table = _made_table(document, "tool", "pdm", "resolution", "overrides")
    if not str(table.get(CPU_BUILD, IN_PROJECT)).startswith(IN_PROJECT):
        raise Error("project-own-source", where="[tool.pdm.resolution.overrides]")
    _put(table, CPU_BUILD, f"{IN_PROJECT}{wanted.placeholder.file}", remark=True)


def for_pipenv(document: _Table, wanted: Wanted) -> None:
    """Write the lines of Pipenv into `document`, in the category that has onnxruntime.

    Raises Error `project-own-source` where the user has another source of it.
    """
    names = [name for name in document if name not in _NO_PACKAGES]
    tables = {name: _table(document, name) for name in names}
    home = next((name for name, section in tables.items() if CPU_BUILD in section), "packages")
    for name, section in tables.items():
        if GPU_BUILD in section and not _poetry_allows(
            _version(section[GPU_BUILD]), wanted.release
        ):
            section[GPU_BUILD] = "*"
        if name != home:
            section.pop(LIBRARIES, None)
    table = _made_table(document, home)
    _refuse_other_source(table, f"[{home}]", _SOURCES - {"index"})  # Pipenv writes the default, too
    _put(table, CPU_BUILD, _inline({"path": f"{FOLDER}/{wanted.placeholder.file}"}))
    libraries = {"path": f"{FOLDER}/{wanted.libraries.file}"}
    _put(table, LIBRARIES, _inline(libraries), remark=True)


def _set_lines(document: _Table, wanted: Wanted, *, adds: bool, loader: str = "") -> None:
    """Replace the lines of onnxruntime that the planned version does not meet; add what lacks."""
    loader = loader or f"{LIBRARIES}; {wanted.marker}"
    present: set[str] = set()
    beside: tuple[MutableSequence[Any], int] | None = None
    for lines in _lists(document):
        for at, line in enumerate(list(lines)):
            name = named_build(line, wanted) if isinstance(line, str) else None
            if name is None:
                continue
            new = loader if name == LIBRARIES else with_served_bound(line, wanted)
            if new != line:
                lines[at] = new
            present.add(name)
            beside = beside or (lines, at + 1)
    lacking = {CPU_BUILD: f"{CPU_BUILD}; {wanted.marker}", LIBRARIES: loader}
    missing = [line for name, line in lacking.items() if name not in present]
    if adds and missing:
        if beside is None:
            project = _made_table(document, "project")
            lines = project.setdefault("dependencies", tomlkit.array())
            if not isinstance(lines, MutableSequence):
                raise TypeError(lines)
            beside = lines, len(lines)
        lines, at = beside
        for line in reversed(missing):
            lines.insert(at, line)


def _lists(document: _Table) -> Iterator[MutableSequence[Any]]:
    """Yield the lists of requirements: of the project, of its extras and of its groups."""
    for path in _LISTS:
        lines = _table(document, *path[:-1]).get(path[-1])
        if isinstance(lines, MutableSequence):
            yield lines
    for parent in _LISTS_BY_NAME:
        for lines in _table(document, *parent).values():
            if isinstance(lines, MutableSequence):
                yield lines


def _poetry_tables(document: _Table) -> Iterator[_Table]:
    """Yield Poetry's own tables of dependencies."""
    poetry = _table(document, "tool", "poetry")
    tables = [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    groups = _table(poetry, "group")
    tables += [_table(groups, name).get("dependencies") for name in groups]
    yield from (table for table in tables if isinstance(table, MutableMapping))


def _table(document: _Table, *path: str) -> _Table:
    """Return the table at `path`; an empty one where there is none."""
    for key in path:
        value = document.get(key)
        document = value if isinstance(value, MutableMapping) else {}
    return document


def _made_table(document: _Table, *path: str) -> _Table:
    """Return the table at `path`, made where there is none.

    Raises ValueError or TypeError where it cannot be made: in an inline table, below what is none.
    """
    for at, key in enumerate(path, 1):
        if key not in document:
            document[key] = tomlkit.table(is_super_table=at < len(path))
        document = document[key]
        if not isinstance(document, MutableMapping):
            raise TypeError(key)
    return document


def _refuse_other_source(table: _Table, where: str, sources: AbstractSet[str] = _SOURCES) -> None:
    """Raise Error `project-own-source` where onnxruntime has a source that is not ours."""
    source = table.get(CPU_BUILD)
    for entry in source if isinstance(source, list) else [source]:
        if isinstance(entry, MutableMapping):
            path = str(entry.get("path", ""))
            ours = path.startswith(f"{FOLDER}/")
            if not ours and entry.keys() & sources:
                raise Error("project-own-source", where=where)


def _put(table: _Table, key: str, value: object, *, remark: bool = False) -> None:
    """Set a key; with `remark` the comment stands before it, once."""
    if key not in table and isinstance(table, Table):
        body = table.value.body
        while body and isinstance(body[-1][1], Whitespace):  # before the next table
            body.pop()
        if remark:
            table.add(tomlkit.comment(COMMENT))
        table[key] = value
        table.add(tomlkit.nl())
    elif table[key] != value:
        table[key] = value


def _inline(values: dict[str, str]) -> Any:  # noqa: ANN401 - tomlkit's own
    table = tomlkit.inline_table()
    table.update(values)
    return table


def _version(value: object) -> str:
    """Return the version that a dependency of Poetry asks for, `*` where it has none.

    Of several, or of our own two, it is that of the machines without the placeholder.
    """
    values = value if isinstance(value, list) else [value]
    found = [each.get("version") if isinstance(each, MutableMapping) else each for each in values]
    return str(next((each for each in found if each), "*"))


def _without_placeholder(wish: str, wanted: Wanted) -> str:
    """Return what Poetry is to take elsewhere: `wish`, and not the placeholder.

    Poetry takes a file that it has read wherever its version is allowed, whatever the markers say.
    """
    ways = (_OF_PLACEHOLDER.sub("", way).strip(" ,") for way in wish.split("||"))
    no = f"!={wanted.placeholder.version}"
    return " || ".join(no if way in {"", "*"} else f"{way},{no}" for way in ways)


def _poetry_allows(wish: str, version: str) -> bool:
    """Return whether a version in Poetry's notation allows `version`, as far as PEP 440 has it."""
    if wish == "*":
        return True
    with contextlib.suppress(InvalidSpecifier):
        return allows(SpecifierSet(_CARET.sub(">=", wish)), version)
    return canonicalize_name(wish) == canonicalize_name(version)
