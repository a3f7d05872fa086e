"""`--apply`: do the plan, verify it, undo it if it fails.

Raises the Errors of what it calls, those of `apply_plan.apply` above all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...apply.apply_plan import apply
from ...apply.before_change import Allowed, check_environment_owner, check_plan_allowed
from ...apply.chosen_wheels import ChosenWheel
from ...apply.rollback import pending_recovery, recover_interrupted
from ...apply.state_folder import Site
from ...companions.build import LocalWheel, build_companions
from ...companions.contents import LIBRARIES
from ...errors import Error
from ...facts.target import Target
from ...index.client import Index
from ...messages.catalog import Language, Texts
from ...plan.model import Plan
from ...probe.interpreter import require_environment
from ...probe.machine import described_target, target_of
from ...project.model import FOLDER
from ...project.tools import Locked
from ...report.plan import plan_sections
from ...report.plan_document import plan_json
from ...report.project import project_json, project_section
from ...report.resolved import resolved_json, resolved_sections
from ...report.verification import verification_sections
from ...resolve.opened import plan_for
from ...resolve.plugins import with_plugins
from ...resolve.situation import with_driver_cuda
from ...resolve.unknown_releases import with_installed_releases
from ...utils.process import run as run_process
from ...uv.program import find_uv
from ...verify.runner import verify
from ...verify.verification import Verification, verification_exit_code
from .. import console
from ..command_line import texts_for, typed_command
from ..confirmation import Asking, check_answerable, confirm, warn_of_leftovers
from ..inputs import PlanInputs, gather_inputs, index_config_of, require_known
from ..project import ProjectPlan, locked, require_project, tool_of
from ..requests import ApplyRequest, PlanRequest
from .plan import plan_exit_code, project_of, wheels_at_hand, with_runs_on


def run(request: ApplyRequest, environ: Mapping[str, str], language: Language) -> int:
    """Carry out the plan, verify it, undo it if it fails.

    Raises as `require_environment` and `require_known`.
    """
    asked, asking = request.plan, Asking(request.yes, request.plan.json)
    texts = texts_for(asked.options, "en" if asked.json else language)
    require_environment(asked.machine.python, environ, Path.cwd())
    asked = _recover(asked, asking, environ, texts)
    inputs = gather_inputs(asked, environ, on_target=True)
    require_known(inputs.facts)
    plan = plan_for(inputs.facts, inputs.options, inputs.matrix)
    plan = with_runs_on(plan, inputs, asked)
    sections = plan_sections(
        plan,
        with_driver_cuda(inputs.facts, inputs.matrix),
        texts,
        verbose=asked.verbose,
        asked=inputs.options.chooses,
        command="",
        at_hand=wheels_at_hand(plan, asked.sources.find_links),
    )
    found = project_of(plan, inputs, asked.install)
    require_project(asked.install, found)
    writes = found if asked.install.write and found and found.changes else None
    if plan.verdict != "fixable" and not (plan.verdict == "healthy" and writes):
        document = plan_json(plan, texts)
        if asked.json:
            console.print_json(document | _project_document(found, written=False))
        else:
            console.print_sections(sections)
        return plan_exit_code(plan)
    assert inputs.target is not None  # noqa: S101 - `on_target` reads it
    with _broken_pipe_as_interruption():
        if not asked.json:
            shown = sections
            if found and found.changes:
                shown = (*shown, project_section(found.project, found.changes, texts))
            console.print_sections(shown)
            console.print_result("")
        check_environment_owner(inputs.target, allowed_by(asked.install.allow))
        check_plan_allowed(plan, allowed_by(asked.install.allow))
        check_answerable(asking)  # before anything is asked of an index
        verification, chosen = _do(
            plan, inputs, inputs.target, asked, asking, environ, texts, writes
        )
    document = plan_json(plan, texts) | {
        "resolved": resolved_json(chosen),
        "verification": verification.to_json(),
    }
    if asked.json:
        console.print_json(document | _project_document(found, written=writes is not None))
    else:
        console.print_result("")
        console.print_sections(
            verification_sections(
                verification,
                texts,
                verbose=asked.verbose,
                elsewhere=inputs.elsewhere,
                command=typed_command(asked.options),
            )
        )
        console.print_result("\n" + texts.label("applied", build=plan.build))
        for finding in plan.findings:
            if finding.code.startswith("managed-by-") and not writes:
                console.print_result(f"{texts.summary(finding)}. {texts.remedy(finding)}")
        if writes:
            console.print_result(texts.label("project-written", folder=FOLDER))
    return 0


@contextlib.contextmanager
def _broken_pipe_as_interruption() -> Iterator[None]:
    """Raise Error `apply-interrupted` where nobody reads what is done: `--apply | head`."""
    try:
        yield
    except BrokenPipeError as error:
        raise Error("apply-interrupted") from error


def _project_document(found: ProjectPlan | None, *, written: bool) -> dict[str, object]:
    """Return the field `project` of the document, where there is a project."""
    if found is None:
        return {}
    return {"project": project_json(found.project, found.changes, written=written)}


def _do(  # noqa: PLR0917
    plan: Plan,
    inputs: PlanInputs,
    target: Target,
    asked: PlanRequest,
    asking: Asking,
    environ: Mapping[str, str],
    texts: Texts,
    writes: ProjectPlan | None,
) -> tuple[Verification, Sequence[ChosenWheel]]:
    # Of this machine nothing is known where the facts are another's; the child finds what is here.
    driver = None if inputs.elsewhere else inputs.facts.driver
    # With the libraries' companion an unchanged application must find them: no help, then.
    plain = inputs.options.autoload and target.pth and _loads_itself(plan, inputs)
    seen: list[Verification] = []
    chosen: list[ChosenWheel] = []
    uv = find_uv(environ, run_process)
    tool, made = None, Locked((), ())
    if writes:
        tool = tool_of(writes, Path(target.prefix), environ, uv, offline=asked.sources.offline)
        made = locked(writes, tool, plan)

    def agreed(wheels: Sequence[ChosenWheel]) -> None:
        chosen.extend(wheels)
        if not asked.json:
            console.print_sections(resolved_sections(wheels, texts, verbose=asked.verbose))
            if made.more and tool:
                more = ", ".join(made.more)
                console.print_result(texts.label("project-more", tool=tool.name, more=more))
        confirm(asking, texts)

    def verified() -> tuple[bool, str]:
        verification = verify(
            target.executable,
            driver=driver,
            runner=run_process,
            environ=environ,
            plain=plain,
            ignore_gpus=sorted(inputs.options.ignored_gpus),
            provider=inputs.options.provider,
        )
        seen.append(verification)
        right = verification_exit_code(verification, elsewhere=inputs.elsewhere) == 0
        said = [texts.verdict(verification.verdict, verification.values)]
        if verification.verdict == "crashed":
            said += verification.evidence[-1:]  # how it ended, or what it printed last
        return right, ": ".join(said)

    sources = index_config_of(asked.sources, environ, Path(target.prefix))
    allowed = allowed_by(asked.install.allow)
    with console.progress(texts, quiet=asked.json) as progress:
        done = apply(
            plan,
            target,
            index=Index(sources),
            uv=uv,
            verify=verified,
            progress=progress,
            allowed=allowed,
            confirm=agreed,
            companions=writes.wanted.wheels if writes else companions_of(plan, inputs),
            files=made.changes,
            homes=writes.homes if writes else {},
        )
    if done.conflicts:
        said = "; ".join(str(one) for one in done.conflicts)
        console.print_notice(texts.label("conflicts-allowed", conflicts=said))
    warn_of_leftovers(done.untidy, Site.of(target), texts)
    return seen[-1], chosen


def allowed_by(allow: Sequence[str]) -> Allowed:
    """Return what the values of `--allow` allow."""
    return Allowed(
        conflicts="conflicts" in allow,
        externally_managed="system" in allow,
        conda="conda" in allow,
        providers="provider" in allow,
    )


def _loads_itself(plan: Plan, inputs: PlanInputs) -> bool:
    """Return whether the companion that loads the libraries is there once the plan is done."""
    coming = {companion.name for companion in plan.companions}
    return LIBRARIES in coming or inputs.facts.package(LIBRARIES) is not None


def companions_of(plan: Plan, inputs: PlanInputs) -> list[LocalWheel]:
    """Make the companions that the plan says are to come."""
    wanted = {companion.name for companion in plan.companions}
    platform = inputs.facts.platform.key
    matrix, _ = with_installed_releases(inputs.facts, inputs.matrix, inputs.options)
    matrix = with_plugins(inputs.facts, matrix, inputs.options)
    made = build_companions(plan.selection, matrix, platform, matrix.modules, plan.placeholder)
    return [wheel for wheel in made if wheel.name in wanted]


def _recover(
    asked: PlanRequest, asking: Asking, environ: Mapping[str, str], texts: Texts
) -> PlanRequest:
    """Put back what an interrupted run left half done, before anything is planned on it.

    Return the request without the children that described another environment than this.
    """
    machine = asked.machine
    if machine.processes is not None:
        target = described_target(machine.processes)
    else:
        target = target_of(machine.python, environ=environ, cwd=Path.cwd(), runner=run_process)
    site = Site.of(target)
    if pending_recovery(site):
        confirm(asking, texts, "ask-recover", path=target.prefix)

    said, changed = texts.label("recovered", path=target.prefix), "changed" in asked.install.allow
    if recover_interrupted(site, lambda: console.print_notice(said), allow_changed=changed):
        return asked._replace(machine=machine._replace(processes=None))
    return asked
