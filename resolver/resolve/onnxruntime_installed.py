"""The installed onnxruntime that has the GPU, and by which way: onnxruntime-gpu is one of them.

Others are a build of another name with the same files (onnxruntime-gpu-extended,
onnxruntime-training), a plugin in a distribution of its own beside the plain onnxruntime
(onnxruntime-ep-*), and one within it, which `import onnxruntime` registers.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..facts.model import CPU_BUILD, GPU_BUILD, Facts, Package, Provider
from ..matrix.model import Matrix
from ..matrix.model import Plugin as PluginRow
from ..versions import at_least
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

    @property
    def packages(self) -> tuple[Package, ...]:
        """The distributions that are this way onto the GPU."""
        return (self.package, self.plugin) if self.plugin else (self.package,)


def with_owners_here(facts: Facts, matrix: Matrix) -> Matrix:
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

    Where onnxruntime-gpu is installed, whole or not, it is that. Another way is one where it is
    whole, alone in its folder, and where nothing was asked for instead of it.
    """
    if options.provider == RTX:  # a plugin that is asked for: see `plugins`
        return None
    folder, gpu_build = facts.onnxruntime, facts.package(GPU_BUILD)
    if gpu_build is not None:
        return InstalledOnnxRuntime(gpu_build, folder and folder.provider)
    asked = options.chooses or options.providers or options.torch != "keep"
    owners = [row for row in facts.packages if row.name in matrix.owners and not row.provided]
    if asked or folder is None or not folder.intact or len(owners) != 1 or owners[0].outside:
        return None
    [package] = owners
    if folder.distribution not in {None, package.name}:
        return None
    if (folder.provider and folder.provider.links) or (package.name != CPU_BUILD and folder.cuda):
        return InstalledOnnxRuntime(package, folder.provider)
    plugins = _plugins(facts, matrix) if package.name == CPU_BUILD else ()
    return next((InstalledOnnxRuntime(package, *plugin) for plugin in plugins), None)


def _plugins(
    facts: Facts, matrix: Matrix
) -> Iterator[tuple[Provider | None, Package, PluginRow | None]]:
    """Yield the plugins that use CUDA, with what was read of each, and what is known of it."""
    for package in facts.packages:
        row = matrix.plugins.get(package.name)
        reads = package.provider is not None and bool(package.provider.links)
        if package.intact and (row is not None or reads):
            yield package.provider, package, row
