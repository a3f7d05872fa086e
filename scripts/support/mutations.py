"""The mutations of a module: small changes of its code that a test should notice.

Mutmut's operators, as far as they change a value that is computed (those for strings and arguments
end almost always as a TypeError), and our own: a condition that is always or never true; what
is left out: a statement, an element, an operand, an argument with a name.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

Operator = Callable[[Any], Iterable[cst.CSTNode]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change, in the statement that goes from line `first` on; `line` is where it is."""

    line: int
    first: int
    old: cst.CSTNode = field(repr=False)
    new: cst.CSTNode = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a mutation makes of a module: its code, and the lines before and after."""

    code: str
    before: str
    after: str


class ModuleMutations:
    """All mutations of the module with the text `source`, in the order of its lines."""

    def __init__(self, source: str) -> None:
        wrapper = MetadataWrapper(cst.parse_module(source))
        self._source, self._module = source, wrapper.module
        visitor = _Visitor()
        wrapper.visit(visitor)
        self.found = sorted(visitor.found, key=lambda mutation: mutation.line)

    def apply(self, mutation: Mutation) -> Difference:
        """Return the module with `mutation`."""
        changed = self._module.deep_replace(mutation.old, mutation.new)
        code = cst.ensure_type(changed, cst.Module).code
        lines = list(difflib.ndiff(self._source.splitlines(), code.splitlines()))
        before, after = (
            "\n".join(line[2:].strip() for line in lines if line.startswith(sign))
            for sign in ("- ", "+ ")
        )
        return Difference(code=code, before=before, after=after)


def _always_and_never(node: cst.If | cst.CompIf) -> Iterator[cst.CSTNode]:
    for name in ("True", "False"):
        yield node.with_changes(test=cst.Name(name))


def _never(node: cst.While) -> Iterator[cst.CSTNode]:
    yield node.with_changes(test=cst.Name("False"))


def _answer(node: cst.Return) -> Iterator[cst.CSTNode]:
    if isinstance(node.value, (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation)):
        for name in ("True", "False"):
            yield node.with_changes(value=cst.Name(name))


def _left_out(node: cst.BaseSmallStatement) -> Iterator[cst.CSTNode]:
    if isinstance(node, (cst.Expr, cst.AnnAssign)):
        value = node.value
        if value is None or isinstance(value, (cst.BaseString, cst.Ellipsis)):
            return  # a declaration, a docstring, a body that has nothing in it
    if not (isinstance(node, cst.Assign) and _is_type(node.value)):
        yield cst.Pass()


def _loop_left_out(_: cst.For) -> Iterator[cst.CSTNode]:
    yield cst.SimpleStatementLine([cst.Pass()])


def _argument_left_out(node: cst.Call) -> Iterator[cst.CSTNode]:
    for number, argument in enumerate(node.args):
        if argument.keyword is not None:
            yield node.with_changes(args=[*node.args[:number], *node.args[number + 1 :]])


def _element_left_out(node: cst.List | cst.Tuple | cst.Set | cst.Dict) -> Iterator[cst.CSTNode]:
    if len(node.elements) > 1:
        for number in range(len(node.elements)):
            rest = [*node.elements[:number], *node.elements[number + 1 :]]
            if len(rest) == 1 and isinstance(node, cst.Tuple):
                rest = [rest[0].with_changes(comma=cst.Comma())]
            yield node.with_changes(elements=rest)


def _operand_left_out(node: cst.BooleanOperation | cst.BinaryOperation) -> Iterator[cst.CSTNode]:
    if _is_type(node):
        return
    for operand in (node.left, node.right):
        yield operand if operand.lpar else operand.with_changes(lpar=node.lpar, rpar=node.rpar)


STATEMENTS = (
    *(cst.AnnAssign, cst.Assert, cst.Assign, cst.AugAssign, cst.Break, cst.Continue, cst.Del),
    *(cst.Expr, cst.Raise, cst.Return),
)
MUTMUT = {
    "operator_augmented_assignment",
    "operator_if_exp",
    "operator_keywords",
    "operator_match",
    "operator_name",
    "operator_number",
    "operator_remove_unary_ops",
    "operator_swap_op",
    "operator_symmetric_string_methods_swap",
}
OPERATORS: list[tuple[type | tuple[type, ...], Operator]] = [
    *(
        (kind, operator)
        for kind, operator in mutators.mutation_operators
        if operator.__name__ in MUTMUT
    ),
    ((cst.If, cst.CompIf), _always_and_never),
    (cst.While, _never),
    (cst.Return, _answer),
    (STATEMENTS, _left_out),
    (cst.For, _loop_left_out),
    ((cst.List, cst.Tuple, cst.Set, cst.Dict), _element_left_out),
    ((cst.BooleanOperation, cst.BinaryOperation), _operand_left_out),
    (cst.Call, _argument_left_out),
]
LEFT_ALONE = (
    cst.Annotation,
    cst.AssignTarget,
    cst.Decorator,
    cst.Import,
    cst.ImportFrom,
    cst.TypeAlias,
)
"""What is for the reader and the type checker, or fails at once when it is changed."""
GENERIC = frozenset(
    {
        *("Callable", "Iterable", "Iterator", "Mapping", "Sequence"),
        *("dict", "frozenset", "list", "set", "tuple"),
    }
)
"""What has its types in brackets, in an alias, too: they are for the type checker."""
BUILT_IN = frozenset({"None", "bool", "bytes", "float", "int", "str"})
ELSEWHERE = ("TYPE_CHECKING", "sys.platform", "sys.version_info")
"""Conditions with these have one answer on a machine."""
NOT_HERE = ("TYPE_CHECKING", 'sys.platform == "win32"')
"""What follows such a condition does not run where mutations are judged."""


class _Visitor(cst.CSTVisitor):
    """Collects the mutations of every node that can make a difference."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Mutation] = []
        self._statements: list[int] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, LEFT_ALONE) or (isinstance(node, cst.Subscript) and _is_type(node)):
            return False
        line = self.get_metadata(PositionProvider, node).start.line
        if isinstance(node, (cst.BaseStatement, cst.BaseSmallStatement)):
            self._statements.append(line)
        if isinstance(node, (cst.If, cst.IfExp)) and _code(node.test).startswith(NOT_HERE):
            if node.orelse is not None:
                node.orelse.visit(self)
            return False
        if isinstance(node, (cst.If, cst.IfExp)) and _is_elsewhere(node.test):
            node.body.visit(self)
            if node.orelse is not None:
                node.orelse.visit(self)
            return False
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                for new in operator(node):
                    first = self._statements[-1] if self._statements else line
                    self.found.append(Mutation(line=line, first=first, old=node, new=new))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, LEFT_ALONE):
            return
        if isinstance(original_node, (cst.BaseStatement, cst.BaseSmallStatement)):
            self._statements.pop()


def _is_type(node: cst.CSTNode) -> bool:
    """Return whether `node` is `list[...]` or the like, or `One | Another`."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        name = _code(node.right).rpartition(".")[2]
        return name in BUILT_IN or (name[:1].isupper() and not name.isupper())
    return isinstance(node, cst.Subscript) and _code(node.value) in GENERIC


def _is_elsewhere(node: cst.BaseExpression) -> bool:
    return any(word in _code(node) for word in ELSEWHERE)


def _code(node: cst.BaseExpression) -> str:
    return cst.Module(body=()).code_for_node(node)
