"""`download --libraries` as a user types it, with the invented matrix and an index that has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import documents
import evidence_samples as samples
import pytest
from command import run_here
from standins import with_standins

import synthetic
from ortgpu_fix.cli.inputs import PlanInputs
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.guests.libraries import command
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.resolve.options import PlanOptions
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import as_wheel

Run = Callable[..., "subprocess.CompletedProcess[str]"]
COMPLETE = "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"


def library(folder: Path, name: str) -> bytes:
    """Compile a shared library of this name, with a function in it."""
    argv = [
        "gcc",
        "-shared",
        "-fPIC",
        "-x",
        "c",
        "-",
        f"-Wl,-soname,{name}",
        "-o",
        str(folder / name),
    ]
    subprocess.run(argv, input=b"int it(void) { return 7; }", check=True)
    return (folder / name).read_bytes()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalIndex, list[Path]]]:
    folder, built = tmp_path_factory.mktemp("index"), tmp_path_factory.mktemp("built")
    cublas = library(built, "libcublas.so.12")
    wheels = [
        make_wheel(
            folder,
            "nvidia-cublas-cu12",
            version,
            files={
                "nvidia/cublas/lib/libcublas.so.12": cublas,
                f"nvidia_cublas_cu12-{version}.dist-info/License.txt": b"terms",
            },
        )
        for version in ("12.2.5", "12.8.4")
    ]
    wheels.append(
        make_wheel(
            folder,
            "nvidia-cudnn-cu12",
            "9.28.0",
            files={"nvidia/cudnn/lib/libcudnn.so.9": library(built, "libcudnn.so.9")},
        )
    )
    with LocalIndex(folder) as served:
        yield served, wheels


@pytest.fixture
def run(
    tmp_path: Path, index: tuple[LocalIndex, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run the command on a machine with CUDA 12.8, in an empty folder."""
    served, paths = index
    wheels = {(str(row.name), row.version): row for row in map(as_wheel, paths)}
    matrix = with_standins(synthetic.matrix(), wheels)

    def start(
        *words: str, facts: Facts | None = None, wish: str = ""
    ) -> subprocess.CompletedProcess[str]:
        inputs = PlanInputs(
            facts=facts or synthetic.facts(driver="12.8"),
            options=PlanOptions(onnxruntime=wish),
            matrix=matrix,
            target=None,
            elsewhere=True,
        )
        monkeypatch.setattr(command, "gather_inputs", lambda *_: inputs)
        line = ["download", "--libraries", *words, "--index-url", served.url]
        environ = os.environ | {"LANG": "C.UTF-8", "HOME": str(tmp_path)}
        return run_here(*line, cwd=tmp_path, env=environ)

    return start


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="needs gcc, on Linux"
)


def test_the_libraries_their_licences_and_a_manifest_are_written(run: Run, tmp_path: Path) -> None:
    done = run("-d", "gpu libs", wish="==1.26.0")

    into = tmp_path / "gpu libs"
    document = json.loads((into / "ortgpu-fix-libraries.json").read_text())
    documents.check(document, "libraries")
    assert done.returncode == 0, done.stderr
    assert sorted(str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()) == [
        "libcublas.so.12",
        "libcudnn.so.9",
        "licenses/nvidia-cublas-cu12-License.txt",
        "ortgpu-fix-libraries.json",
    ]
    assert (document["onnxruntime"], document["cuda"]) == ("1.26.0", "12")
    assert [(row["name"], row["version"]) for row in document["wheels"]] == [
        ("nvidia-cublas-cu12", "12.8.4"),
        ("nvidia-cudnn-cu12", "9.28.0"),
    ]
    assert done.stdout.splitlines() == [
        "Set this before the program starts:",
        f"export LD_LIBRARY_PATH='{into}'\"{COMPLETE}\"",
    ]


def test_a_directory_of_the_user_s_stays_whatever_its_name(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "libs" / ".wheels" / "own.txt"
    own.parent.mkdir(parents=True)
    own.write_text("mine")

    done = run("-d", "libs", wish="==1.26.0")

    assert (done.returncode, own.read_text()) == (0, "mine"), done.stderr
    assert not (tmp_path / "libs" / ".ortgpu-fix-wheels").exists()


def test_a_program_in_c_runs_after_the_line_that_is_printed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text("int it(void); int main(void) { return it(); }")
    library(tmp_path, "libcublas.so.12")
    links = ["-L.", "-l:libcublas.so.12"]
    subprocess.run(["gcc", "app.c", *links, "-o", "app"], cwd=tmp_path, check=True)
    (tmp_path / "libcublas.so.12").unlink()
    provider = samples.elf(links=["libcublas.so.12", "libcudnn.so.9"])
    (tmp_path / "libonnxruntime_providers_cuda.so").write_bytes(provider)
    (tmp_path / "libonnxruntime.so.1.22.0").write_bytes(b"\0VERS_1.22.0\0")

    done = run("-d", "libs", "--for", "app")
    script = "\n".join(done.stdout.splitlines()[1:])

    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "libs/ortgpu-fix-libraries.json").read_text())["onnxruntime"] == (
        "1.22.0"
    )
    assert subprocess.run([tmp_path / "app"], stderr=-1, check=False).returncode == 127
    assert subprocess.run(["sh", "-c", script], check=False).returncode == 7


def test_a_version_that_pypi_lacks_is_told_with_what_it_was_taken_as(
    run: Run, tmp_path: Path
) -> None:
    done = run("-d", "libs", "--ort", "1.26.2", wish="==1.26.2")

    assert "PyPI has no onnxruntime-gpu 1.26.2 for this platform, so 1.26.0" in done.stderr
    document = json.loads((tmp_path / "libs/ortgpu-fix-libraries.json").read_text())
    assert document["onnxruntime"] == "1.26.2"


def test_where_no_driver_is_new_enough_nothing_is_written(run: Run, tmp_path: Path) -> None:
    done = run("-d", "libs", facts=synthetic.facts(driver="9.1"))

    assert done.returncode == 3
    assert "driver" in done.stdout
    assert not (tmp_path / "libs").exists()


def test_on_windows_the_dlls_go_beside_the_program(tmp_path: Path) -> None:
    facts = synthetic.facts(driver="12.8")
    windows = facts._replace(platform=facts.platform._replace(system="windows", libc=None))
    texts = list(command.how_found(None, tmp_path / "libs", windows, load_texts("en")))

    assert texts[0] == "Put the DLLs next to the program's .exe:"
    assert texts[1].startswith("copy ")
    assert texts[1].endswith("C:\\PROGRAM")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "`download` needs `-d DIR`"),
        (("-d", "x", "--provider", "tensorrt"), "--libraries, --provider tensorrt"),
        (("-d", "x", "--for", "y", "--ort", "1.26.0"), "--for, --ort"),
    ],
)
def test_what_does_not_go_together(run: Run, words: tuple[str, ...], told: str) -> None:
    done = run(*words)

    assert done.returncode == 2
    assert told in done.stderr


def test_for_needs_libraries(tmp_path: Path) -> None:
    done = run_here("download", "-d", "x", "--for", "y", cwd=tmp_path, env=dict(os.environ))

    assert (
        done.returncode,
        "`--for` can only be used with `download --libraries`" in done.stderr,
    ) == (2, True)
