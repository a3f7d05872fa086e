"""What the raw tables say of a torch: for the checker, which shares no code with the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

Row = Mapping[str, Any]


def split(text: str) -> tuple[str, str]:
    """Return `2.7.1+cu128` as release and label."""
    release, _, label = text.partition("+")
    return release, label


def raw_builds(tables: Mapping[str, Row], platform: str) -> Iterator[Row]:
    """Yield every build for a platform: PyPI's from its row, the index's from the documents."""
    table = tables["torch"]
    toolkits = {row["version"]: row for row in tables["toolkits"]["toolkit"]}
    on_pypi = {row["version"]: row for row in table["torch"] if row["platform"] == platform}
    for release, row in on_pypi.items():
        cuda = row.get("cuda")
        yield {
            **row,
            "release": release,
            "label": "cu" + cuda.replace(".", "") if cuda else "cpu",
            "index": "pypi",
            "carried": {},
            "pins": [line for wheel in [row] for line in wheel.get("requires", ())],
            "pythons": {wheel["python"] for wheel in row["wheels"]},
        }
    for row in table["variant"]:
        for release in row["versions"] if row["platform"] == platform else ():
            pypi = on_pypi.get(release)
            number = row["local"][2:]
            toolkit = toolkits.get(row["toolkit"], {"components": {}})
            own = {**toolkit["components"], **row.get("parts", {})}
            by_toolkit = "cuda-toolkit[" in "".join((pypi or {}).get("requires", ()))
            open_ended = toolkit.get("ranges", {}) if by_toolkit else {}
            if row.get("cudnn"):
                own[f"nvidia-cudnn-cu{number[:2]}"] = row["cudnn"]
            required = row.get("libraries") == "required"
            yield {
                "release": release,
                "label": row["local"],
                "index": row["local"],
                "cuda": f"{number[:2]}.{number[2:]}",
                "sass": row["sass"],
                "ptx": row["ptx"],
                "glibc": row.get("glibc", (pypi or {}).get("glibc")),
                "cudnn": row.get("cudnn"),
                "carried": own if row.get("libraries") == "inside" else {},
                "pins": [name + open_ended.get(name, f"=={at}") for name, at in own.items()]
                if required
                else [],
                "pythons": {wheel["python"] for wheel in (pypi or {"wheels": []})["wheels"]},
            }


def cudnn_of(row: Row) -> str | None:
    """Return the cuDNN of a build: what the documents say, or what the wheel pins."""
    if row.get("cudnn"):
        return str(row["cudnn"])
    for line in row["pins"]:
        found = re.match(r"nvidia-cudnn-cu\d+ ?\(?==([\d.]+)", line)
        if found:
            return found[1]
    return None


def required_major(lines: list[str]) -> str | None:
    """Return the CUDA major that the names in requirements tell."""
    for line in lines:
        found = re.match(r"nvidia-[a-z-]+-cu(\d\d)\b|cuda-toolkit\[.*?\]==(\d\d)", line)
        if found:
            return found[1] or found[2]
    return None


def installed_torch(
    row: Row, tables: Mapping[str, Row], platform: str
) -> tuple[Row | None, str | None]:
    """Return the build that an installed torch is, and its CUDA; None for what is not known."""
    release, label = split(row["version"])
    lines = list(row.get("requires", ()))
    alike = [one for one in raw_builds(tables, platform) if one["release"] == release]
    if re.fullmatch(r"cu\d{3}(\.with\.pypi\.cudnn)?", label):
        named = [one for one in alike if one["label"] == label[:5]]
        from_pypi = [one for one in named if one["index"] == "pypi"]
        others = [one for one in named if one["index"] != "pypi"]
        order = [*from_pypi, *others] if "pypi" in label else [*others, *from_pypi]
        return (order[0] if order else None), f"{label[2:4]}.{label[4]}"
    if label.startswith(("cpu", "rocm", "xpu")):
        return None, None
    for one in alike:
        if one["index"] == "pypi" and not label:
            if one["pins"] and lines and required_major(lines) is None:
                break  # conda's
            return one, one.get("cuda")
    return None, required_major(lines)


def pinned_by(build: Row, tables: Mapping[str, Row]) -> list[str]:
    """Return the requirements of a build on NVIDIA's wheels, without a way through cuda-toolkit."""
    found: list[str] = []
    for line in build["pins"]:
        wanted = Requirement(line)
        if wanted.name != "cuda-toolkit":
            found.append(line)
            continue
        [pin] = wanted.specifier
        for row in tables["toolkits"]["toolkit"]:
            if Version(row["version"]) == Version(pin.version):
                called = {"cudart": "cuda-runtime", "nvrtc": "cuda-nvrtc"}
                names = {f"nvidia-{called.get(extra, extra)}" for extra in wanted.extras}
                found += [
                    name + row.get("ranges", {}).get(name, f"=={at}")
                    for name, at in row["components"].items()
                    if name in names
                ]
    return found
