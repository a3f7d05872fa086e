"""The rules of the layout, held by reading the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path

import docs
import pytest
from sources import parsed

import ortgpu_fix
import ortgpu_fix.matrix.model
from matrix import compile_tables

ROOT = Path(__file__).parents[2]
RESOLVER = ROOT / "resolver"
MODULES = {
    ".".join(path.relative_to(RESOLVER).with_suffix("").parts): path
    for path in sorted(RESOLVER.rglob("*.py"))
    if path.read_bytes()
}
CHILDREN = {name for name in MODULES if ".children." in name or ".loader." in name}
"""Run by other interpreters than ours, or in processes of their own."""


def imports(path: Path) -> set[str]:
    """Return the top names of what a module imports, those of its own package excepted."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def test_every_module_is_installed_and_nothing_else() -> None:
    folder = Path(ortgpu_fix.__file__).parent
    installed = {path.relative_to(folder) for path in folder.rglob("*") if path.suffix != ".pyc"}

    assert {path for path in installed if path.parts[0] != "data" and path.suffix} == {
        path.relative_to(RESOLVER)
        for path in RESOLVER.rglob("*")
        if path.suffix and path.suffix not in {".pyc", ".md"}
    }


def test_values_do_not_change() -> None:
    """Whoever has one may rely on it, and may ask for it as a key; two are put together."""
    growing = set()
    for name, path in MODULES.items():
        for node in (each for each in ast.walk(parsed(path)) if isinstance(each, ast.ClassDef)):
            for each in node.decorator_list:
                flags = {word.arg for word in getattr(each, "keywords", ())}
                if ast.unparse(each).startswith("dataclass"):
                    assert "slots" in flags, name
                    growing |= set() if "frozen" in flags else {f"{name}.{node.name}"}

    assert growing == {"apply.undo_check.Comparison"}


def test_every_package_is_empty_in_itself() -> None:
    full = {path for path in RESOLVER.rglob("__init__.py") if path.read_bytes()}

    assert full == {RESOLVER / "__init__.py", RESOLVER / "companions/loader/__init__.py"}


def test_every_module_says_what_it_is() -> None:
    silent = [name for name, path in MODULES.items() if not ast.get_docstring(parsed(path))]

    assert silent == []


@pytest.mark.parametrize("name", sorted(CHILDREN))
def test_what_others_run_needs_the_standard_library_alone(name: str) -> None:
    """`query_gpus` is run by our own interpreter, and asks NVML by its own bindings."""
    ours = {"pynvml"} if name.endswith("query_gpus") else {"numpy", "onnxruntime", "torch"}

    assert imports(MODULES[name]) - sys.stdlib_module_names - ours == set()


def test_nobody_imports_what_others_run() -> None:
    folders = re.compile(r"^\s*(?:from|import) [\w.]*\b(?:children|loader)\b", re.MULTILINE)

    others = {name: path for name, path in MODULES.items() if name not in CHILDREN}
    assert [name for name, path in others.items() if folders.search(path.read_text())] == []


def test_no_class_or_alias_is_defined_twice() -> None:
    """Those that a module keeps to itself may share a name, and so may what others run."""
    names: Counter[str] = Counter()
    for path in (path for name, path in MODULES.items() if name not in CHILDREN):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                names[node.name] += 1
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                names[name] += name[0].isupper() and not name.isupper()

    assert [name for name, count in names.items() if count > 1 and name[0] != "_"] == []


def test_imports_are_relative() -> None:
    own = {"ortgpu_fix", "resolver", "data"}

    assert [name for name, path in MODULES.items() if imports(path) & own] == []


def test_every_data_file_is_installed() -> None:
    installed = {entry.name for entry in files("ortgpu_fix.data").iterdir() if entry.is_file()}
    on_disk = {path.name for path in (ROOT / "data").iterdir() if path.is_file()} - {"README.md"}

    assert installed == on_disk | {compile_tables.NAME}


def test_the_compiled_tables_are_what_the_tables_say() -> None:
    assert files("ortgpu_fix.data").joinpath(compile_tables.NAME).read_bytes() == (
        compile_tables.compiled()
    )


def test_the_reference_is_what_the_program_says() -> None:
    """The commands, the exit codes and the errors; `scripts/docs.py` writes them."""
    assert docs.main(["--check"]) == 0
    text = (docs.REFERENCE / "error-codes.md").read_text(encoding="utf-8")
    assert text.count("\n| `no-kernel-image` |") == 1


def test_one_name_per_module() -> None:
    assert ortgpu_fix.matrix.model.__name__ == "ortgpu_fix.matrix.model"
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
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("ortgpu_fix.")}
late = {"apply", "index", "lock", "log_lines", "requirements", "uv", "verify"}
print(rooms & late, file=sys.stderr)
"""


def test_a_plan_starts_fast() -> None:
    """Making a dataclass takes 0.7 ms, a named tuple a seventh: a plan meets sixty records."""
    argv = [sys.executable, "-c", SLOW_TO_START]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)

    assert done.stderr.splitlines() == ["set()"] * 3


def test_the_help_starts_faster() -> None:
    """On Windows each module costs an opened file more than elsewhere: it took a second."""
    code = (
        "import sys; from ortgpu_fix.__main__ import main; main(['--help']);"
        "late = {'ctypes', 'dataclasses', 'difflib', 'packaging', 'shutil', 'subprocess'};"
        "print(late & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (done.stderr, done.stdout[:6]) == ("set()\n", "usage:")


@pytest.mark.parametrize(
    "name",
    [
        *("checker", "judged_sets", "raw_consumers", "raw_requirements"),
        *("raw_small", "raw_tables", "raw_torch"),
    ],
)
def test_the_judge_of_plans_shares_no_code_with_the_program(name: str) -> None:
    library = {"__future__", "collections", "functools", "pathlib", "re", "sys", "typing"}
    files = {"json", "lzma", "shlex"}
    allowed = {
        *library,
        *files,
        "packaging",
        "raw_consumers",
        "raw_requirements",
        "raw_small",
        "raw_tables",
        "raw_torch",
        "tomli",
        "tomllib",
    }

    assert imports(ROOT / "tests" / "support" / f"{name}.py") <= allowed


def test_the_map_names_every_package_and_nothing_else() -> None:
    text = (RESOLVER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_/]+)/` \|", text, re.MULTILINE)
    packages = {path.parent.relative_to(RESOLVER) for path in RESOLVER.rglob("__init__.py")}

    assert {Path(name) for name in rows} == packages - {Path()}


def test_every_file_that_the_map_names_is_there() -> None:
    guides = (RESOLVER / "README.md", ROOT / "CONTRIBUTING.md")
    text = "".join(path.read_text(encoding="utf-8") for path in guides)
    places = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|toml|md))`", text)
    roots = (RESOLVER, ROOT, RESOLVER / "resolve")

    assert len(places) > 30
    assert [name for name in places if not any((root / name).is_file() for root in roots)] == []


def test_every_table_is_told() -> None:
    text = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    tables = {path.name for path in (ROOT / "data").glob("*.toml")}

    assert set(re.findall(r"`([a-z_]+\.toml)`", text)) == tables


def made_by_the_list(value: ast.expr, function: ast.AST) -> bool:
    """Tell whether an environment is what `child_environment` made, with more set in it."""
    if isinstance(value, ast.BinOp):
        return made_by_the_list(value.left, function)
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "child_environment"
    if not isinstance(value, ast.Name):
        return False
    given = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == value.id for each in node.targets)
    ]
    taken = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return all(made_by_the_list(each, function) for each in given) if given else value.id in taken


def inherited_environments(tree: ast.AST) -> list[int]:
    """Return the lines on which a child gets an environment that is not made by the list."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner = {node for outer in functions for node in ast.walk(outer) if node is not outer}
    return [
        word.value.lineno
        for function in functions
        if function not in inner
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "env" and not made_by_the_list(word.value, function)
    ]


USERS_PROGRAM = {"guests.run.runner", "project.tools", "utils.process"}
"""The program that `run` starts and the tool of a project are not ours: their environment is the
user's."""


def test_the_environment_of_a_child_is_made_in_one_place() -> None:
    """`run` of `utils.process` has no other, for `env` has no default there."""
    found = {
        name: lines
        for name, path in MODULES.items()
        if name not in CHILDREN | USERS_PROGRAM
        if (lines := inherited_environments(parsed(path)))
    }

    assert found == {}


def printing(tree: ast.AST) -> list[int]:
    """Return the lines that write to a terminal by themselves."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and re.match(
            r"print\(|[\w.]+\.print\(|[\w.]+\.print_(?:exc|exception|last|stack|tb)\(|"
            r"(?:sys\.)?std(?:out|err)\.write\(|os\.write\([12],|logging\.|warnings\.warn\(",
            ast.unparse(node),
        )
    ]


PASSING_ON = {"uv.guard", "guests.run.runner", "utils.child_output"}
"""The first writes where we read; the others pass on what the user's program wrote."""


def test_all_that_is_printed_is_cleaned_in_one_place() -> None:
    """No address shows its password, and no name moves the cursor: also where a user debugs."""
    found = {
        name: lines
        for name, path in MODULES.items()
        if name not in CHILDREN | PASSING_ON | {"cli.console"}
        if (lines := printing(parsed(path)))
    }

    assert found == {}


IN_SHELLS = {"messages.shells", "lock.formats.dockerfile", "companions.loader.lost"}
"""The second writes a file of a shell's commands; the third travels into other environments."""


def makes_a_command(tree: ast.AST) -> list[int]:
    """Return the lines that put words into a command by themselves, or quote them."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call)
        if re.match(
            r"f(['\"])(?:conda|ortgpu-fix|pip|pixi|python|uv) [^{]*\{|"
            r"'(?:conda|ortgpu-fix|pip|pixi|python|uv) [^']*' \+ |"
            r"' '\.join\([\[(]'(?:conda|ortgpu-fix|pip|pixi|python|uv)[ ']|"
            r"shlex\.(?:quote|join)\(",
            ast.unparse(node),
        )
    ]


def test_commands_to_paste_are_made_in_one_place() -> None:
    """There a name that somebody else chose is quoted, for the shells of its system."""
    found = {
        name: len(lines)
        for name, path in MODULES.items()
        if name not in IN_SHELLS
        if (lines := makes_a_command(parsed(path)))
    }

    assert found == {"cli.help": 1, "uv.program": 1}, "which name a program with its version"
