"""What facts do not say: an ordinary CPython, whole distributions, a machine that is no other."""

from __future__ import annotations

from ortgpu_fix.apply.before_change import Allowed
from ortgpu_fix.facts.capture import Child
from ortgpu_fix.facts.driver_replies import LibraryReply
from ortgpu_fix.facts.model import (
    Driver,
    Gpu,
    Interpreter,
    OnnxRuntime,
    Package,
    Platform,
    Provider,
)
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.resolve.options import PlanOptions


def test_a_machine_is_no_other_unless_it_says_so() -> None:
    assert not any(Platform("linux", "x86_64")[2:])
    assert not any((*Driver(), *Gpu()))
    reply = LibraryReply(state="answered")
    assert (reply.code, reply.answered(0)) == (0, True)
    assert (reply.call, reply.problem, reply.lost, reply.mig) == ("", "", "", ())
    assert Child() == Child(stdout="", returncode=None, timed_out=False)


def test_a_python_is_cpython_and_nobody_manages_it() -> None:
    python = Interpreter("3.11.7")

    assert (python.implementation, python.free_threaded) == ("cpython", False)
    assert (python.externally_managed, python.change_size) == (False, 0)
    assert not any(python[3:])


def test_a_distribution_is_whole_and_in_the_environment() -> None:
    package = Package("a", "1")

    assert (package.intact, package.provided, package.outside) == (True, False, False)
    assert (OnnxRuntime().intact, Provider().preload_dlls) == (True, False)
    row = Installed(name="a", version="1", metadata_path="/x")
    assert (row.editable, row.provided, row.missing) == (False, False, 0)


def test_without_options_the_best_is_made_of_what_is_there() -> None:
    options = PlanOptions()

    assert not options.chooses
    assert (options.autoload, options.provide, options.latest, options.conflicts) == (
        *(True, True, False, False),
    )
    assert (options.onnxruntime, options.cuda, options.torch) == ("", None, "keep")
    assert [
        PlanOptions(**chosen).chooses
        for chosen in ({"onnxruntime": "<2"}, {"latest": True}, {"cuda": "12"}, {"torch": "match"})
    ] == [True, True, True, False]


def test_nothing_is_allowed_that_the_user_did_not_allow() -> None:
    allowed = Allowed()

    assert (allowed.conflicts, allowed.externally_managed, allowed.conda) == (False, False, False)
