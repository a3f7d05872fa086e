"""TensorRT-RTX: a plain onnxruntime with a plugin, where `--provider tensorrt-rtx` asks for it.

Each plugin with the onnxruntime that it would be registered in is a build, so that the same rules
judge it. An installed onnxruntime stays where the plugin works with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet

from ..facts.model import CPU_BUILD, Facts, Package
from ..facts.wheel_tags import abi
from ..matrix.model import (
    DEFAULT_INDEX,
    INSTALLED,
    Build,
    BuildWheel,
    LibraryNeed,
    Matrix,
    PluginWheel,
    Release,
)
from ..plan.reasons import Finding, Named, finding
from ..versions import allows, major, newest_first, numbers
from .components import Component
from .options import RTX, PlanOptions
from .situation import Situation

PROVIDERS = {RTX: "NvTensorRTRTXExecutionProvider"}
"""By what `--provider` names: the provider of a plugin."""


def with_plugins(facts: Facts, matrix: Matrix, options: PlanOptions) -> Matrix:
    """Return `matrix` with the builds that have the asked provider, where a plugin has that.

    An installed plugin goes first, then the one for the newest CUDA.
    """
    wanted = PROVIDERS.get(options.provider)
    if wanted is None:
        return matrix
    wheels = [wheel for wheel in matrix.plugin_wheels if wheel.provider == wanted]
    wheels = [wheel for wheel in wheels if wheel.platform == facts.platform.key] or wheels
    wheels.sort(key=lambda wheel: newest_first(wheel.version))
    newest = {wheel.name: wheel for wheel in wheels}.values()
    order = sorted(
        newest, key=lambda wheel: (_installed(wheel.name, facts) is None, -numbers(wheel.cuda)[0])
    )
    builds = (_build(wheel, facts, matrix, options) for wheel in order)
    return matrix._replace(builds=tuple(filter(None, builds)))


def plugin_for(build: Build, situation: Situation) -> Component | None:
    """Return the wheel of the plugin of `build`; None where it has none."""
    plugin = build.plugin
    if plugin is None:
        return None
    release = Release(
        name=plugin.name,
        version=plugin.version,
        platform=plugin.platform,
        python=None,
        glibc=plugin.glibc,
        size=plugin.size,
        sha256=plugin.sha256,
        file=plugin.file,
        index_url=DEFAULT_INDEX if plugin.file else INSTALLED,
    )
    return Component(
        release=release, installed=_installed(plugin.name, situation.facts) is not None
    )


def displaced_by_plugin(plugin: Component | None, situation: Situation) -> set[str]:
    """Return the installed plugins that have their files where those of `plugin` come."""
    if plugin is None or plugin.installed:
        return set()
    wanted = PROVIDERS[situation.options.provider]
    names = {wheel.name for wheel in situation.matrix.plugin_wheels if wheel.provider == wanted}
    return {name for name in names - {plugin.release.name} if situation.package(name)}


def plugin_findings(situation: Situation, plugin: Component) -> Iterator[Finding]:
    """Say which plugin gives the GPU, or is to give it."""
    by = Named(plugin.release.name, plugin.release.version)
    provider = PROVIDERS[situation.options.provider]
    if plugin.installed:
        yield finding("plugin-ready", "info", by=by, provider=provider)
    else:
        yield finding("plugin-missing", "error", by=by, provider=provider)


def _installed(name: str, facts: Facts) -> Package | None:
    package = facts.package(name)
    return package if package is not None and package.intact else None


def _build(row: PluginWheel, facts: Facts, matrix: Matrix, options: PlanOptions) -> Build | None:
    """Return `row` with the installed onnxruntime where it works with that, else the newest."""
    tag = abi(facts.python.version, free_threaded=facts.python.free_threaded)
    plugin, installed = _installed(row.name, facts), _complete_onnxruntime(facts, matrix)
    if plugin is not None and plugin.version != row.version:
        row = row._replace(version=plugin.version, size=0, sha256="", file="")
    wish = SpecifierSet(options.onnxruntime)
    if installed and not options.latest and allows(row.onnxruntime & wish, installed.version):
        wheel = BuildWheel(python=tag, size=0, sha256="", file="", requires=installed.requires)
        return _registering(row, installed.version, (wheel,), matrix)._replace(index_url=INSTALLED)
    able = [
        one
        for one in matrix.onnxruntime
        if one.platform == row.platform and allows(row.onnxruntime, one.version)
    ]
    if not able:
        return None
    best = max(
        able,
        key=lambda one: (
            allows(wish, one.version),
            one.python == tag,
            newest_first(one.version),
        ),
    )
    wheels = tuple(
        BuildWheel(str(one.python), one.size, one.sha256, one.file, one.requires)
        for one in able
        if one.version == best.version
    )
    made = _registering(row, best.version, wheels, matrix)
    return made._replace(glibc=max(row.glibc, best.glibc, key=lambda floor: numbers(floor or "")))


def _registering(
    plugin: PluginWheel, version: str, wheels: tuple[BuildWheel, ...], matrix: Matrix
) -> Build:
    return Build(
        version=version,
        platform=plugin.platform,
        cuda=plugin.cuda,
        cudnn="",
        needs=tuple(
            LibraryNeed(name, "links", matrix.providers.get((major(plugin.cuda), name)), None)
            for name in plugin.needs
        ),
        sass=plugin.sass,
        ptx=plugin.ptx,
        glibc=plugin.glibc,
        preload_dlls=False,
        wheels=wheels,
        toolset=plugin.toolset,
        plugin=plugin,
    )


def _complete_onnxruntime(facts: Facts, matrix: Matrix) -> Package | None:
    """Return the installed plain onnxruntime, if it is whole and alone in its folder."""
    plain, folder = facts.package(CPU_BUILD), facts.onnxruntime
    owners = [package for package in facts.packages if package.name in matrix.owners]
    if plain is None or owners != [plain] or plain.provided or plain.outside:
        return None
    if folder is None or not folder.intact or folder.distribution not in {None, CPU_BUILD}:
        return None
    return plain if folder.version in {None, plain.version} else None
