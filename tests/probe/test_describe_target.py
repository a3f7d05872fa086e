"""What environments say of themselves: real interpreters, real folders, true RECORDs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from environments import (
    make_venv,
    own_base,
    put,
    put_onnxruntime,
    site_packages,
)

from ortgpu_fix.facts import target as environment
from ortgpu_fix.facts.target import Target, parse_target
from ortgpu_fix.probe.background import describe_target
from ortgpu_fix.probe.children import describe_target as inside
from ortgpu_fix.utils import process as run
from support.pythons import find_python


def describe(interpreter: Path) -> Target:
    return parse_target(
        describe_target(interpreter, runner=run.run, environ=os.environ), str(interpreter)
    )


@pytest.mark.parametrize("version", ["3.8", "3.12"])
def test_every_python(version: str, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    interpreter = make_venv(python, tmp_path / "venv")
    put_onnxruntime(site_packages(interpreter))

    target = describe(interpreter)

    assert target.version.startswith(f"{version}.")
    assert target.executable == str(interpreter)
    assert target.implementation == "cpython"
    assert not target.free_threaded
    assert target.bits == 64
    assert target.kind == "venv"
    assert not target.externally_managed
    assert target.pth
    assert target.prefix == str(tmp_path / "venv")
    assert target.purelib == str(site_packages(interpreter))
    assert target.scripts == str(interpreter.parent)
    assert target.libc is None or target.libc.split()[0] in {"glibc", "musl"}
    assert [one.key for one in target.installed if one.key != "pip"] == ["onnxruntime-gpu"]
    assert target.build is not None
    assert target.build.intact


def test_distributions_as_they_are_found(venv: Path) -> None:
    site = site_packages(venv)
    put(site, "Fast.Embed", "0.9.1", requires=["onnxruntime>=1.17.0,!=1.20.0"], installer="uv")
    put(site, "mine", "2024.01-local build", extra={"direct_url.json": '{"url": "file:///x"}'})
    put(
        site,
        "linked",
        "1",
        extra={
            "direct_url.json": '{"dir_info": {"editable": true}, "url": "file:///home/alice/x"}'
        },
    )
    put(site, "onnxruntime", "1.26.0", extra={"ORTGPU_FIX_PROVIDED": ""})
    target = describe(venv)
    found = {one.key: one for one in target.installed}

    assert found["fast-embed"].name == "Fast.Embed"
    assert found["fast-embed"].requires == ("onnxruntime>=1.17.0,!=1.20.0",)
    assert found["fast-embed"].installer == "uv"
    assert found["mine"].version == "2024.01-local build"
    assert not found["mine"].editable
    assert found["linked"].editable
    assert found["onnxruntime"].provided
    assert target.build is None


@pytest.mark.parametrize("stand_in", ["1.18.1", "1.9.0"])
def test_a_stand_in_beside_a_real_one_is_not_in_use(venv: Path, stand_in: str) -> None:
    """An image's layer, or `pip install --target`, leaves the older metadata; a base's is its own.

    Seen on a machine with an H200: the plan kept a stand-in whose files were the CPU build's.
    """
    site = site_packages(venv)
    put(site, "onnxruntime", stand_in, extra={"ORTGPU_FIX_PROVIDED": ""})
    put(site, "onnxruntime", "1.30.0")

    target = describe(venv)

    rows = [(one.version, one.provided) for one in target.installed if one.key == "onnxruntime"]
    assert rows == [("1.30.0", False), (stand_in, True)]
    [package] = [one for one in environment.packages_of(target) if one.name == "onnxruntime"]
    assert (package.version, package.provided) == ("1.30.0", False)


def test_long_requirements_and_windows_line_ends(venv: Path) -> None:
    info = put(site_packages(venv), "app", "1")
    (info / "METADATA").write_bytes(
        b"Metadata-Version: 2.1\r\nName: app\r\nVersion: 1\r\n"
        b"Requires-Dist: onnxruntime-gpu\r\n  >=1.20\r\n\r\nRequires-Dist: in-the-text\r\n"
    )
    app = describe(venv).find("app")

    assert app is not None
    assert app.requires == ("onnxruntime-gpu >=1.20",)


def test_old_forms_of_metadata(venv: Path) -> None:
    site = site_packages(venv)
    info = site / "old-1.0.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 1.2\nName: old\nVersion: 1.0\n")
    (info / "requires.txt").write_text(
        'numpy>=1.21\n\n[:python_version < "3.11"]\ntomli\n\n[gpu]\nonnxruntime-gpu\n'
    )
    (site / "flat-2.0.egg-info").write_text("Name: flat\nVersion: 2.0\n")
    source = site.parent / "source"
    (source / "dev.egg-info").mkdir(parents=True)
    (source / "dev.egg-info" / "PKG-INFO").write_text("Name: dev\nVersion: 3.0\n")
    (site / "zdev.egg-link").write_text(f"{source}\n.")
    egg = site / "egg-4.0.egg" / "EGG-INFO"
    egg.mkdir(parents=True)
    (egg / "PKG-INFO").write_text("Name: egg\nVersion: 4.0\n")
    found = {one.key: one for one in describe(venv).installed}

    assert found["old"].requires == ("numpy>=1.21", 'tomli; python_version < "3.11"')
    assert found["flat"].version == "2.0"
    assert found["dev"].editable
    assert found["egg"].version == "4.0"


def test_broken_metadata_do_not_stop_it(venv: Path) -> None:
    site = site_packages(venv)
    (site / "empty-1.0.dist-info").mkdir()
    (site / "noversion-1.0.dist-info").mkdir()
    (site / "noversion-1.0.dist-info" / "METADATA").write_bytes(b"Name: noversion\n\xff\xfe\n")
    left_by_pip = put(site, "onnxruntime-gpu", "1.19.2")
    left_by_pip.rename(site / "~nnxruntime_gpu-1.19.2.dist-info")
    put(site, "whole", "1")
    target = describe(venv)

    assert [one.key for one in target.installed] == ["whole"]
    assert sorted(Path(path).name for path in target.broken) == [
        "empty-1.0.dist-info",
        "noversion-1.0.dist-info",
        "~nnxruntime_gpu-1.19.2.dist-info",
    ]


def test_both_builds_in_one_folder(venv: Path) -> None:
    """The CPU build came last and lies over the other; its own files are whole."""
    site = site_packages(venv)
    put_onnxruntime(site)
    put_onnxruntime(site, "onnxruntime", "1.22.1", cuda=None)
    target = describe(venv)

    assert target.build is not None
    assert (target.build.distribution, target.build.version) == ("onnxruntime", "1.22.1")
    assert target.build.intact
    assert {one.key for one in target.installed} == {"onnxruntime", "onnxruntime-gpu"}


@pytest.mark.parametrize(
    ("name", "lost", "intact"),
    [
        ("onnxruntime-gpu", None, True),
        ("onnxruntime-gpu", "libonnxruntime_providers_cuda.so", False),
        ("onnxruntime", "onnxruntime_pybind11_state.so", False),
    ],
)
def test_a_build_without_a_list_of_its_files(
    venv: Path, name: str, lost: str | None, *, intact: bool
) -> None:
    """Package managers of systems take RECORD away: what is lost was told as whole."""
    site = site_packages(venv)
    info = put_onnxruntime(site, name, "1.26.0", "12.8" if name == "onnxruntime-gpu" else None)
    (info / "RECORD").unlink()
    if lost:
        (site / "onnxruntime/capi" / lost).unlink()
    build = describe(venv).build

    assert build is not None
    assert (build.distribution, build.version) == (name, "1.26.0")
    assert build.intact is intact


@pytest.mark.parametrize("last", ["onnxruntime", "onnxruntime-gpu"])
def test_an_old_build_is_known_by_whose_files_are_there(venv: Path, last: str) -> None:
    """1.18.1 has no build_and_package_info.py: the mended folder read as damaged for ever."""
    site = site_packages(venv)
    put(site, "onnxruntime-extensions", "0.13", files={"onnxruntime_extensions/__init__.py": b""})
    for name in sorted({"onnxruntime", "onnxruntime-gpu"}, key=lambda name: name == last):
        put_onnxruntime(site, name, "1.18.1", described=False)
    build = describe(venv).build

    assert build is not None
    assert (build.distribution, build.version, build.cuda) == (last, "1.18.1", None)
    assert build.intact


@pytest.mark.parametrize("edited", [False, True])
def test_a_build_of_another_name_with_the_description_of_its_origin(
    venv: Path, *, edited: bool
) -> None:
    """onnxruntime-gpu-extended 1.23.2.12.9 says that it is onnxruntime-gpu 1.23.2."""
    site = site_packages(venv)
    shutil.rmtree(put_onnxruntime(site))
    folder = site / "onnxruntime"
    own = {str(path.relative_to(site)): path.read_bytes() for path in folder.rglob("*.*")}
    put(site, "onnxruntime-gpu-extended", "1.26.0.12", files=own)
    if edited:
        (folder / "__init__.py").write_bytes(b"edited = 1\n")
    build = describe(venv).build

    assert build is not None
    assert build.intact is not edited
    known = ("onnxruntime-gpu", "1.26.0") if edited else ("onnxruntime-gpu-extended", "1.26.0.12")
    assert (build.distribution, build.version) == known


def test_the_libraries_of_a_plugin(venv: Path) -> None:
    site = site_packages(venv)
    library = "onnxruntime_ep_cuda/libonnxruntime_providers_cuda.so"
    put(site, "onnxruntime-ep-cuda12", "0.1.0", files={library: b"code"})
    [whole] = describe(venv).installed
    (site / library).unlink()
    [gutted] = describe(venv).installed

    assert (whole.libraries, whole.missing, gutted.missing) == ((library,), 0, 1)


def test_a_gutted_folder(venv: Path) -> None:
    """What uninstalling the CPU build leaves of the GPU build."""
    site = site_packages(venv)
    put_onnxruntime(site)
    (site / "onnxruntime/__init__.py").unlink()
    (site / "onnxruntime/capi/build_and_package_info.py").unlink()
    build = describe(venv).build

    assert build is not None
    assert build.distribution is None
    assert not build.intact


def test_what_onnxruntime_requires_without_its_files_is_not_intact(venv: Path) -> None:
    """Its metadata say that it is there, and `import onnxruntime` fails."""
    name = "Some_Lib"
    site = site_packages(venv)
    put_onnxruntime(site)
    put(site, "onnxruntime-extended", "1.0", requires=["some.lib>=1; python_version > '3'"])
    files = {
        f"{name}/core/more.py": b"",
        f"{name}/__init__.py": b"",
        f"{name}/core/__init__.py": b"",
    }
    put(site, name, "2.0", files=files)
    put(site, "app", "1", files={"app/__init__.py": b""})
    key = name.lower().replace("_", "-")

    whole = describe(venv)
    assert [row.missing for row in whole.installed if row.key == key] == [0]
    shutil.rmtree(site / name)
    shutil.rmtree(site / "app")

    found = environment.packages_of(describe(venv))
    assert {row.name for row in found if not row.intact} == {key}


def test_of_a_module_in_a_folder_of_several_one_file_is_looked_at(venv: Path) -> None:
    site = site_packages(venv)
    files = {"google/_upb/_message.so": b"", "google/protobuf/__init__.py": b"", "../x.py": b""}
    put(site, "protobuf", "6.31.1", files=files)
    put(site, "flatbuffers", "25.2.10", files={"flatbuffers.py": b""})  # no package in it

    assert [row.missing for row in describe(venv).installed] == [0, 0]
    (site / "google" / "protobuf" / "__init__.py").unlink()
    assert [(row.key, row.missing) for row in describe(venv).installed] == [
        ("flatbuffers", 0),
        ("protobuf", 1),
    ]


def test_the_size_of_nvidias_wheels_and_who_asked_for_them(venv: Path) -> None:
    """uv marks all that it installs as asked for, and pip what was."""
    site = site_packages(venv)
    files = {"nvidia/cublas/lib/libcublas.so.12": b"x" * 5_000, "nvidia/cublas/a.h": b"y" * 300}
    asked = {"REQUESTED": ""}
    put(site, "nvidia-cublas-cu12", "12.8.4.1", files=files, extra=asked)
    put(site, "nvidia-curand-cu12", "10.3.9.90", extra=asked, installer="uv")
    put(site, "nvidia-cufft-cu12", "11.3.3.83")
    put(site, "app", "1", extra=asked)

    rows = {row.name: row for row in environment.packages_of(describe(venv))}
    assert rows["nvidia-cublas-cu12"].size == 5_300
    assert [name for name, row in rows.items() if row.requested] == ["nvidia-cublas-cu12"]


def test_a_build_of_ones_own(venv: Path, tmp_path: Path) -> None:
    """An editable install: the folder lies elsewhere, and belongs to a distribution here."""
    site = site_packages(venv)
    put_onnxruntime(tmp_path / "source")
    shutil.rmtree(tmp_path / "source" / "onnxruntime_gpu-1.26.0.dist-info")
    put(site, "onnxruntime-gpu", "1.26.0")
    (site / "source.pth").write_text(f"{tmp_path / 'source'}\n")
    build = describe(venv).build

    assert build is not None
    assert build.version == "1.26.0"
    assert build.intact


def test_libraries_that_another_distribution_took_along(venv: Path) -> None:
    """cudnn-cu13 was installed over cudnn-cu12 and removed: pip still lists the first."""
    site = site_packages(venv)
    libraries = {f"nvidia/cudnn/lib/libcudnn{part}.so.9": b"cu12" for part in ("", "_ops")}
    libraries["nvidia/cudnn/include/cudnn.h"] = b"header"
    put(site, "nvidia-cudnn-cu12", "9.10.2.21", files=libraries)
    put(site, "nvidia-cublas-cu12", "12.8.4.1", files={"nvidia/cublas/lib/libcublas.so.12": b"x"})
    (site / "nvidia/cudnn/lib/libcudnn.so.9").unlink()
    (site / "nvidia/cudnn/lib/libcudnn_ops.so.9").write_bytes(b"of cu13")
    (site / "nvidia/cudnn/include/cudnn.h").unlink()
    target = describe(venv)

    assert {one.key: one.missing for one in target.installed} == {
        "nvidia-cublas-cu12": 0,
        "nvidia-cudnn-cu12": 2,
    }
    packages = {package.name: package for package in environment.packages_of(target)}
    assert sorted(packages["nvidia-cudnn-cu12"].libraries) == [
        "nvidia/cudnn/lib/libcudnn.so.9",
        "nvidia/cudnn/lib/libcudnn_ops.so.9",
    ]
    assert not packages["nvidia-cudnn-cu12"].intact
    assert packages["nvidia-cublas-cu12"].intact


def test_a_python_that_does_not_import_site_reads_no_pth_files(tmp_path: Path) -> None:
    """As an embeddable one does not, whose `._pth` file has no `import site`."""
    version = "3.8"
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    told = {}
    for option in ("-S", "-E"):
        (tmp_path / option).mkdir()
        wrapper = tmp_path / option / "python"
        wrapper.write_text(f'#!/bin/sh\nexec {python} {option} "$@"\n')
        wrapper.chmod(0o755)
        told[option] = describe(wrapper).pth

    assert told == {"-S": False, "-E": True}


def test_what_a_pth_file_prints_does_not_matter(venv: Path) -> None:
    site = site_packages(venv)
    (site / "loud.pth").write_text(
        "import atexit, sys; sys.stdout.write('loading…'.encode().hex());"
        " atexit.register(print, '{\"bye\": 1}')\n"
    )
    put(site, "whole", "1")

    assert describe(venv).find("whole") is not None


def test_the_current_folder_is_not_imported_from(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the current folder')\n")
    monkeypatch.chdir(tmp_path)

    assert describe(venv).kind == "venv"


def test_the_callers_pythonpath_is_not_the_environments(venv: Path, tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", "stranger", "1")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "elsewhere")}
    answer = describe_target(venv, runner=run.run, environ=environ)

    assert parse_target(answer, "").find("stranger") is None


def test_a_user_site_in_another_folder_counts_as_in_the_users_python(tmp_path: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    put(tmp_path / "base" / "lib" / version / "site-packages", "onnxruntime", "1.20.0")
    environ = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "PYTHONUSERBASE": str(tmp_path / "base"),
    }

    seen = parse_target(describe_target(own_base(), runner=run.run, environ=environ), "")

    found = seen.find("onnxruntime")
    assert found is not None
    assert found.version == "1.20.0"


@pytest.mark.parametrize(
    ("said", "libc"),
    [
        ("musl libc (x86_64)\nVersion 1.2.4\nDynamic Program Loader\n", "musl 1.2.4"),
        ("something else\n", None),
    ],
)
def test_musl(said: str, libc: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = tmp_path / "ld-musl-x86_64.so.1"
    loader.write_text(f"#!/bin/sh\nprintf '{said}' >&2\nexit 1\n")
    loader.chmod(0o755)
    monkeypatch.setattr(inside, "LOADERS", str(tmp_path))
    monkeypatch.delattr(os, "confstr")

    assert inside.libc() == libc


def test_looking_writes_nothing(venv: Path) -> None:
    """A `.pth` line imports a module at every start; its bytecode is not ours to write."""
    site = site_packages(venv)
    (site / "started.py").write_text("")
    (site / "started.pth").write_text("import started\n")
    before = sorted(site.rglob("*"))

    describe(venv)

    assert sorted(site.rglob("*")) == before


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of Unix")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(venv: Path) -> None:
    """It was said that the interpreter does not answer."""
    site = site_packages(venv)
    put_onnxruntime(site)
    (site / "a-1.dist-info").mkdir()
    os.mkfifo(site / "a-1.dist-info" / "METADATA")
    info = next(site.glob("onnxruntime_gpu-*.dist-info"))
    listed = "onnxruntime/pipe,sha256=x,0\nonnxruntime/a,,²\n"
    (info / "RECORD").write_text(f"{(info / 'RECORD').read_text()}{listed}")
    os.mkfifo(site / "onnxruntime" / "pipe")

    target = describe(venv)

    assert [Path(path).name for path in target.broken] == ["a-1.dist-info"]
    assert target.build is not None
    assert not target.build.intact
