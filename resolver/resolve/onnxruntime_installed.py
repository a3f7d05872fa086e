"""The installed onnxruntime that has the GPU: onnxruntime-gpu, or an alternative.

Others are a build of another name with the same files (onnxruntime-gpu-extended,
onnxruntime-training), a plugin in a distribution of its own beside the plain onnxruntime
(onnxruntime-ep-*), and one within it, which `import onnxruntime` registers.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..facts.model import CPU_BUILD, GPU_BUILD, Facts, OnnxRuntime, Package, Provider
from ..matrix.model import Matrix, OtherBuild
from ..matrix.model import Plugin as PluginRow
from ..versions import at_least, newest_first
from .options import RTX, PlanOptions


class InstalledOnnxRuntime(NamedTuple):
    """The onnxruntime of an environment, and what gives it the GPU."""

    package: Package
    """The distribution with the folder `onnxruntime`."""
    provider: Provider | None = None
    """What was read of the library with the provider; None: not read, or not readable."""
    plugin: Package | None = None
    """The distribution with that library; None: it is in the folder."""
    row: PluginRow | None = None
    """What the matrix knows of the plugin."""
    cuda: str | None = None
    """The CUDA that the build is for, as it says itself, or its wheel; None: not known."""
    like: str | None = None
    """The version whose wheel the matrix knows, where nothing was read of this one."""

    @property
    def packages(self) -> tuple[Package, ...]:
        """The distributions that provide the GPU."""
        return (self.package, self.plugin) if self.plugin else (self.package,)


def with_installed_owners(facts: Facts, matrix: Matrix) -> Matrix:
    """Return `matrix` with the distributions that own the folder `onnxruntime` in this environment.

    What it belongs to is one, known or not: nightly builds, and those that people make, have names
    of their own. An installed release that is a plugin in a folder of its own is none.
    """
    name = facts.onnxruntime and facts.onnxruntime.distribution
    plugins = {
        package.name
        for package in facts.packages
        if (since := matrix.plugin_since.get(package.name)) and at_least(package.version, since)
    }
    return matrix._replace(owners=(matrix.owners | ({name} if name else set())) - plugins)


def find_onnxruntime(
    facts: Facts, matrix: Matrix, options: PlanOptions
) -> InstalledOnnxRuntime | None:
    """Return the installed onnxruntime that is to have the GPU; None where there is none.

    Where onnxruntime-gpu is installed, complete or not, it is that. An alternative counts if it is
    complete, alone in its folder, and if nothing was asked for instead of it.
    """
    if options.provider == RTX:  # a plugin that is asked for: see `plugins`
        return None
    folder, gpu_build = facts.onnxruntime, facts.package(GPU_BUILD)
    if gpu_build is not None:
        return InstalledOnnxRuntime(
            gpu_build, folder and folder.provider, cuda=folder and folder.cuda
        )
    asked = options.chooses or options.providers or options.torch != "keep"
    owners = [
        package
        for package in facts.packages
        if package.name in matrix.owners and not package.provided
    ]
    if asked or len(owners) != 1 or owners[0].outside:
        return None
    [package] = owners
    known = _known_build(package, facts, matrix) if package.intact else None
    if folder is None and known:  # a list of names: what is not in the folder is not intact
        folder = OnnxRuntime(package.name)
    if folder is None or not folder.intact or folder.distribution not in {None, package.name}:
        return None
    if known and folder.provider is None:
        read = Provider(links=known.links, sass=known.sass, ptx=known.ptx)
        cuda = folder.cuda or known.cuda
        return InstalledOnnxRuntime(package, read, cuda=cuda, like=known.version)
    if (folder.provider and folder.provider.links) or (package.name != CPU_BUILD and folder.cuda):
        return InstalledOnnxRuntime(package, folder.provider, cuda=folder.cuda)
    plugins = _plugins(facts, matrix) if package.name == CPU_BUILD else ()
    return next((InstalledOnnxRuntime(package, *plugin) for plugin in plugins), None)


def _known_build(package: Package, facts: Facts, matrix: Matrix) -> OtherBuild | None:
    """Return the row of a build with a name of its own: the newest that is not newer, or oldest."""
    place = package.name, facts.platform.key
    builds = [build for build in matrix.other_builds if (build.name, build.platform) == place]
    builds.sort(key=lambda build: newest_first(build.version))
    older = [build for build in builds if at_least(package.version, build.version)]
    return next(iter(older[-1:] or builds[:1]), None)


def _plugins(
    facts: Facts, matrix: Matrix
) -> Iterator[tuple[Provider | None, Package, PluginRow | None]]:
    """Yield the plugins that use CUDA, with what was read of each, and what is known of it."""
    for package in facts.packages:
        row = matrix.plugins.get(package.name)
        reads = package.provider is not None and bool(package.provider.links)
        if package.intact and (row is not None or reads):
            yield package.provider, package, row
