"""An independent judge of fleets' plans, by trying every set on every machine.

Like `checker` it shares no code with the program: it asks the raw tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from raw_tables import ORT, Machine, Row, dotted, version

ORDINARY = {"coloredlogs", "flatbuffers", "numpy", "packaging", "protobuf", "sympy"}
"""What a lock resolves itself, whatever is installed."""


def judge(
    documents: Mapping[str, Row], plan: Row, tables: Mapping[str, Row], options: Row | None = None
) -> list[str]:
    """Return what is wrong with a fleet's `plan`, as `--json` prints it, in words."""
    fleet = {
        name: Machine(_lean(document, tables), tables, options or {})
        for name, document in documents.items()
    }
    return list(_violations(fleet, plan, tables))


def _lean(document: Row, tables: Mapping[str, Row]) -> Row:
    gone = ORDINARY | {row["name"] for row in tables["distributions"]["owner"]}
    packages = [row for row in document["packages"] if row["name"] not in gone]
    return {**document, "packages": packages}


def _violations(
    fleet: Mapping[str, Machine], plan: Row, tables: Mapping[str, Row]
) -> Iterator[str]:
    releases = sorted({row["version"] for row in tables["onnxruntime"]["build"]}, key=version)
    without = {
        name
        for name, machine in fleet.items()
        if machine.document["driver"] is None or machine.gpus == []
    }
    if without != set(plan["without_gpu"]):
        yield f"without a GPU are {sorted(without)}"
    served: list[str] = []
    for group in plan["groups"]:
        if group["distribution"] != ORT:
            if set(group["machines"]) != without:
                yield f"the CPU build for {group['machines']}"
            continue
        served += group["machines"]
        yield from _group(fleet, group, tables)
        block = [fleet[name] for name in group["machines"]]
        newest = next(release for release in reversed(releases) if serves(release, block))
        if newest != group["version"]:
            yield f"{group['machines']} get {group['version']}, and {newest} serves them"
    hopeless = {
        name
        for name, machine in fleet.items()
        if name not in without and not any(serves(release, [machine]) for release in releases)
    }
    if hopeless != {row["machine"] for row in plan["impossible"]}:
        yield f"nothing serves {sorted(hopeless)}"
    if sorted(served) != sorted(fleet.keys() - without - hopeless):
        yield f"served are {served}"
        return
    count = sum(group["distribution"] == ORT for group in plan["groups"])
    if count > 1 and _splits_into(count - 1, [fleet[name] for name in served], releases):
        yield f"{count} groups, and fewer would do"
    yield from _exclusions(fleet, plan, served)


def _group(fleet: Mapping[str, Machine], group: Row, tables: Mapping[str, Row]) -> Iterator[str]:
    seen = [name for target in group["targets"] for name in target["machines"]]
    if sorted(seen) != sorted(group["machines"]):
        yield f"the targets of {group['machines']} hold {seen}"
    for target in group["targets"]:
        selected = {row["name"]: row["version"] for row in target["selection"]["packages"]}
        if selected.get(ORT) != group["version"]:
            yield f"{target['abi']} gets {selected.get(ORT)}"
        yield from _wheels(target, selected, tables)
        for name in target["machines"]:
            machine = fleet[name]
            if (machine.platform, machine.abi) != (target["platform"], target["abi"]):
                yield f"{name} is no {target['platform']} {target['abi']}"
            yield from _works(name, machine, selected)
    for one in group["targets"]:
        for other in group["targets"]:
            if one["platform"] == other["platform"] and _nvidia(one) != _nvidia(other):
                yield f"{one['abi']} and {other['abi']} get different wheels"


def _nvidia(target: Row) -> list[Row]:
    """Return the wheels that are the same for every Python."""
    return [row for row in target["selection"]["packages"] if row["name"].startswith("nvidia-")]


def _wheels(target: Row, selected: Row, tables: Mapping[str, Row]) -> Iterator[str]:
    """See that what is installed is what is selected, and that such wheels exist."""
    known = (
        {
            (row["file"], row["sha256"], row["size"])
            for build in tables["onnxruntime"]["build"]
            if (build["platform"], build["version"]) == (target["platform"], selected[ORT])
            for row in build["wheels"]
            if row["python"] == target["abi"]
        }
        | {
            (row["file"], row["sha256"], row["size"])
            for row in tables["msvc"]["wheel"]
            if row["python"] == target["abi"] and target["platform"] == "windows_x86_64"
        }
        | {
            (row["file"], row["sha256"], row["size"])
            for kind in tables["nvidia"]["distribution"]
            for row in kind["releases"]
            if (row["platform"], row["version"]) == (target["platform"], selected.get(kind["name"]))
        }
    )
    toolset = next(
        build.get("toolset", "99")
        for build in tables["onnxruntime"]["build"]
        if (build["platform"], build["version"]) == (target["platform"], selected[ORT])
    )
    runtimes = [
        row["version"]
        for row in tables["msvc"]["wheel"]
        if row["python"] == target["abi"] and dotted(row["version"])[:2] >= dotted(toolset)
    ]
    if target["platform"].startswith("windows") and runtimes:
        if selected.get("msvc-runtime") != max(runtimes, key=version):
            yield f"msvc-runtime is {selected.get('msvc-runtime')}"
    elif "msvc-runtime" in selected:
        yield f"{target['platform']} gets msvc-runtime"
    for row in target["install"]:
        if (row["file"], row["sha256"], row["size"]) not in known:
            yield f"no such wheel: {row['file']}"
    if {row["name"] for row in target["install"]} != selected.keys():
        yield f"selects {sorted(selected)}, installs {target['install']}"


def _works(name: str, machine: Machine, selected: Row) -> Iterator[str]:
    """See that a set works on a machine."""
    build = next((row for row in machine.builds if row["version"] == selected[ORT]), None)
    if build is None or not machine.possible(build):
        yield f"{selected[ORT]} cannot work on {name}"
        return
    for need in build["needs"]:
        if need.get("distribution") and need["distribution"] not in selected:
            yield f"nothing brings {need['library']} to {name}"
    for other, release in selected.items():
        if other not in machine.kinds:
            continue
        if not machine.fits(other, release, build):
            yield f"{other} {release} cannot serve {name}"
        if machine.follows(other, release) - selected.keys():
            yield f"{other} {release} lacks {machine.follows(other, release)} on {name}"
        for rival in _rivals(machine, other):
            if rival in machine.installed and machine.demanded(rival):
                yield f"{other} would overwrite {rival} on {name}"


def _rivals(machine: Machine, name: str) -> set[str]:
    return {other for row in machine.shared if name in row for other in row} - {name}


def serves(release: str, machines: Sequence[Machine]) -> bool:
    """Tell whether some set with this release works on every machine.

    The wheels of one platform are the same on all its machines; those of the toolkit are of one
    toolkit release, where nothing pins them.
    """
    platforms: dict[str, list[Machine]] = {}
    for machine in machines:
        build = next((row for row in machine.builds if row["version"] == release), None)
        if build is None or not machine.possible(build):
            return False
        platforms.setdefault(machine.platform, []).append(machine)
    return all(_one_set(release, block) for block in platforms.values())


def _one_set(release: str, block: Sequence[Machine]) -> bool:
    build = next(row for row in block[0].builds if row["version"] == release)
    built = dotted(build["cuda"])[:2]
    return any(
        _from_toolkit(toolkit["components"], build, block)
        for toolkit in block[0].tables["toolkits"]["toolkit"]
        if dotted(toolkit["version"])[0] == built[0] and dotted(toolkit["version"])[:2] >= built
    )


def _from_toolkit(parts: Row, build: Row, block: Sequence[Machine]) -> bool:
    waiting = {need["distribution"] for need in build["needs"] if need.get("distribution")}
    done: set[str] = set()
    while waiting:
        name = waiting.pop()
        done.add(name)
        found = next(
            (
                release
                for release in _candidates(name, parts, block)
                if all(machine.fits(name, release, build) for machine in block)
            ),
            None,
        )
        rivals = _rivals(block[0], name)
        if found is None or any(
            rival in machine.installed and machine.demanded(rival)
            for machine in block
            for rival in rivals
        ):
            return False
        waiting |= block[0].follows(name, found) - done
    return True


def _candidates(name: str, parts: Row, block: Sequence[Machine]) -> list[str]:
    if name in parts and not any(machine.demanded(name) for machine in block):
        return [parts[name]]
    found = {row["version"] for row in block[0].kinds[name]["releases"]}
    return sorted(found, key=version, reverse=True)


def _splits_into(count: int, machines: Sequence[Machine], releases: Sequence[str]) -> bool:
    """Tell whether `count` groups suffice, by trying every way to put the machines into them."""

    def place(at: int, blocks: list[list[Machine]]) -> bool:
        if at == len(machines):
            return True
        for block in blocks:
            block.append(machines[at])
            if any(serves(release, block) for release in releases) and place(at + 1, blocks):
                return True
            block.pop()
        return len(blocks) < count and place(at + 1, [*blocks, [machines[at]]])

    return place(0, [])


def _exclusions(fleet: Mapping[str, Machine], plan: Row, served: Sequence[str]) -> Iterator[str]:
    """See that who is said to exclude a release cannot run it, and nobody else is kept from it."""
    for row in plan["rejected"]:
        blamed = {name for why in row["reasons"] for name in why["machines"]}
        guilty = {name for name in served if not serves(row["version"], [fleet[name]])}
        if blamed != (guilty or set(served)):
            yield f"{row['version']} is excluded by {sorted(guilty)}, not {sorted(blamed)}"
