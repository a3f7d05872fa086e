"""The rules of the layout, held by reading the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import compact
import pytest

import ortgpu_fix.matrix

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "resolver").glob("*.py"))
SCRIPTS = {
    "autoload",
    "autostart",
    "engine_guard",
    "gpu_query",
    "inside",
    "smoke",
    "smoke_libraries",
    "smoke_torch",
}
"""Run by other interpreters, or apart: neither core nor shell."""
SHELL = {"__init__", "__main__"} | {
    path.stem
    for path in MODULES
    if re.search(r"^Shell\b", ast.get_docstring(ast.parse(path.read_text())) or "", re.MULTILINE)
}
CORE = {path.stem for path in MODULES} - SHELL - SCRIPTS
WORLD = {"os", "subprocess", "socket", "requests", "time", "datetime", "tempfile", "shutil"}


def imports(path: Path) -> set[str]:
    """Return what a module imports: `.name` for its siblings, the top name for others."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level and node.module:
            found.add(f".{node.module}")
        elif isinstance(node, ast.ImportFrom) and node.level:
            found |= {f".{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_module_says_whether_it_is_core_or_shell(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""

    assert docstring
    if path.stem not in SCRIPTS | {"__init__", "__main__"}:
        assert re.search(r"^(Core|Shell)\b", docstring, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(CORE))
def test_no_core_module_touches_the_world_or_imports_the_shell(name: str) -> None:
    used = imports(ROOT / "resolver" / f"{name}.py")

    assert not used & WORLD
    assert not {module for module in used if module.removeprefix(".") in SHELL - {"__init__"}}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_are_relative(path: Path) -> None:
    assert not imports(path) & {"ortgpu_fix", "resolver", "data"}


def test_every_data_file_is_installed() -> None:
    installed = {entry.name for entry in files("ortgpu_fix.data").iterdir() if entry.is_file()}
    on_disk = {path.name for path in (ROOT / "data").iterdir() if path.is_file()}

    assert installed == on_disk


def test_every_table_has_a_schema_beside_it() -> None:
    tables = {path.stem for path in (ROOT / "data").glob("*.toml")}
    schemas = {
        path.name.removesuffix(".schema.json") for path in (ROOT / "data").glob("*.schema.json")
    }

    assert tables == schemas


def test_the_compact_tables_are_what_the_tables_say() -> None:
    assert compact.COMPACT.read_bytes() == compact.compact()


def test_one_name_per_module() -> None:
    assert ortgpu_fix.matrix.__name__ == "ortgpu_fix.matrix"
    assert not {"resolver", "data"} & set(sys.modules)


SLOW_TO_START = """
import dataclasses, sys
from ortgpu_fix.__main__ import main
sys.argv = ["ortgpu-fix", "--facts", "example", "--json"]
main()
ours = [module for name, module in sys.modules.items() if name.startswith("ortgpu_fix")]
kinds = [kind for module in ours for kind in vars(module).values() if isinstance(kind, type)]
print({kind.__qualname__ for kind in kinds if dataclasses.is_dataclass(kind)}, file=sys.stderr)
print({"importlib.resources", "tempfile", "zipfile"} & set(sys.modules), file=sys.stderr)
"""


def test_a_plan_starts_fast() -> None:
    """Making a dataclass takes 0.7 ms, a named tuple a seventh: a plan meets sixty records."""
    argv = [sys.executable, "-c", SLOW_TO_START]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)

    assert done.stderr.splitlines() == ["set()", "set()"]


@pytest.mark.parametrize("name", ["checker", "raw_tables", "raw_torch"])
def test_the_judge_of_plans_shares_no_code_with_the_program(name: str) -> None:
    library = {"__future__", "collections", "functools", "pathlib", "re", "sys", "typing"}
    allowed = {*library, "packaging", "raw_tables", "raw_torch", "tomli", "tomllib"}

    assert imports(ROOT / "tests" / "support" / f"{name}.py") <= allowed
