"""A file of Python as a syntax tree that keeps every character, and changes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Optional, TypeVar, Union

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import (
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameProvider,
)

Node = TypeVar("Node", bound=cst.CSTNode)
#: Statements in the place of a statement; ``None`` is the statement itself.
Statements = Sequence[Optional[cst.BaseStatement]]
Block = Union[cst.BaseSuite, cst.Module]


class Declined(Exception):
    """No edit can be made with certainty: the reason."""


class Tree:
    """The syntax tree of a file, and what is to be changed in it."""

    def __init__(self, text: str) -> None:
        try:
            wrapper = MetadataWrapper(cst.parse_module(text))
        except cst.ParserSyntaxError as error:
            raise Declined(f"line {error.raw_line} is no Python that LibCST reads") from None
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._names = wrapper.resolve(QualifiedNameProvider)
        self._nodes: dict[cst.CSTNode, cst.CSTNode] = {}
        self._statements: dict[cst.BaseSmallStatement, Statements] = {}
        self._imports: list[tuple[str, str | None]] = []

    # What is there.

    def all(self, kind: type[Node], below: cst.CSTNode | None = None) -> Iterator[Node]:
        """All nodes of a kind, in the order of the file."""
        pending: list[cst.CSTNode] = [below or self.module]
        while pending:
            node = pending.pop()
            if isinstance(node, kind):
                yield node
            pending.extend(reversed(node.children))

    def lines(self, node: cst.CSTNode) -> range:
        """The lines of a node, counted from 1."""
        at = self._positions[node]
        return range(at.start.line, at.end.line + 1)

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self.module.code_for_node(node).strip()

    def statement(self, small: cst.BaseSmallStatement) -> str:
        """The text of a simple statement, without a semicolon behind it."""
        return self.code(small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that a node is in."""
        return self._parents.get(node)

    def above(self, node: cst.CSTNode, kind: type[Node]) -> Node | None:
        """The innermost node of a kind around a node."""
        return next(self.around(node, kind), None)

    def around(self, node: cst.CSTNode, kind: type[Node]) -> Iterator[Node]:
        """The nodes of a kind around a node, from inside."""
        found = self.parent(node)
        while found is not None:
            if isinstance(found, kind):
                yield found
            found = self.parent(found)

    def name(self, node: cst.CSTNode) -> str:
        """What a name refers to by the file's imports, such as ``torch.optim.adamw.AdamW``."""
        known = self._names.get(node, ())
        # LibCST looks names up when they are asked for.
        found = sorted(one.name for one in (known() if callable(known) else known))
        return found[0] if found else ""

    def calls(self, is_named: Callable[[str], bool]) -> list[cst.Call]:
        """The calls of what has such a name by the imports."""
        return [call for call in self.all(cst.Call) if is_named(self.name(call))]

    def smalls(self, line: int) -> list[cst.BaseSmallStatement]:
        """The simple statements of a line: several, if semicolons part them."""
        return [one for one in self.all(cst.BaseSmallStatement) if line in self.lines(one)]

    def statements(self, small: cst.BaseSmallStatement) -> list[cst.CSTNode]:
        """The statements of the block that a simple statement is in: simple ones one by one."""
        block = self.block(small)
        if isinstance(block, cst.SimpleStatementSuite):
            return list(block.body)
        found: list[cst.CSTNode] = []
        for one in block.body:
            found += one.body if isinstance(one, cst.SimpleStatementLine) else [one]
        return found

    def block(self, small: cst.BaseSmallStatement) -> Block:
        """The block that a simple statement is in."""
        for node in self.around(small, cst.CSTNode):
            if isinstance(node, (cst.BaseSuite, cst.Module)):
                return node
        raise AssertionError("a statement is in a module")

    def reads(self, node: cst.CSTNode) -> set[str]:
        """The names in a node, without those of attributes and keywords."""
        skipped: set[cst.CSTNode] = {one.attr for one in self.all(cst.Attribute, node)}
        skipped |= {one.keyword for one in self.all(cst.Arg, node) if one.keyword is not None}
        return {one.value for one in self.all(cst.Name, node) if one not in skipped}

    # What is to be changed.

    def replace(self, node: cst.CSTNode, by: cst.CSTNode) -> None:
        """Puts a node in the place of another."""
        self._nodes[node] = by

    def replace_statement(self, small: cst.BaseSmallStatement, by: Statements) -> None:
        """Puts statements in the place of a simple one. None removes it."""
        self._statements[small] = by

    def parsed(self, text: str) -> list[cst.BaseStatement]:
        """Statements of a text, with the indentation and the line ends of the file."""
        return list(cst.parse_module(text, self.module.config_for_parsing).body)

    def insert_after(self, small: cst.BaseSmallStatement, text: str) -> None:
        """Puts statements of a text after a simple one."""
        self._statements[small] = [*self._statements.get(small, [None]), *self.parsed(text)]

    def insert_before(self, small: cst.BaseSmallStatement, text: str) -> None:
        """Puts statements of a text before a simple one."""
        self._statements[small] = [*self.parsed(text), *self._statements.get(small, [None])]

    def add_import(self, module: str, name: str | None = None) -> None:
        """Imports a module, or a name of it, if the file does not."""
        self._imports.append((module, name))

    def changed(self) -> str:
        """The text of the file with all changes."""
        module = self.module.visit(_Rewrite(self._nodes, self._statements))
        assert isinstance(module, cst.Module)
        context = CodemodContext()
        for name, of in self._imports:
            AddImportsVisitor.add_needed_import(context, name, of)
        return AddImportsVisitor(context).transform_module(module).code


def line(small: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    """A simple statement on a line of its own."""
    return cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])


def expression(text: str) -> cst.BaseExpression:
    """The expression of a text."""
    return cst.parse_expression(text)


def last_name(node: cst.BaseExpression) -> str:
    """``step`` of ``self.optimizer.step``."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def argument(call: cst.Call, name: str) -> cst.Arg | None:
    """The keyword argument of a call."""
    return next((one for one in call.args if one.keyword and one.keyword.value == name), None)


def with_keyword(call: cst.Call, name: str, value: str) -> cst.Call:
    """A call with a keyword argument, before ``**`` arguments, in the layout of the others."""
    own = argument(call, name)
    if own is not None:
        return call.with_deep_changes(own, value=expression(value))
    new = cst.Arg(
        expression(value),
        keyword=cst.Name(name),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    args = list(call.args)
    at = next((index for index, one in enumerate(args) if one.star == "**"), len(args))
    if at == len(args) and args:
        # A comma after the last argument stays one, and its line end parts the lines.
        last = args[-1]
        between = next((one.comma for one in args[:-1] if isinstance(one.comma, cst.Comma)), None)
        if isinstance(last.comma, cst.Comma):
            new = new.with_changes(comma=last.comma)
            parted = between or cst.Comma(whitespace_after=call.whitespace_before_args)
            args[-1] = last.with_changes(comma=parted)
        else:
            # Not on a line of its own, if the others are: their comma has the indentation.
            args[-1] = last.with_changes(
                comma=between or cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            )
    args.insert(at, new)
    return call.with_changes(args=args)


class _Rewrite(cst.CSTTransformer):
    """Puts nodes and statements in the place of others."""

    def __init__(
        self,
        nodes: dict[cst.CSTNode, cst.CSTNode],
        statements: dict[cst.BaseSmallStatement, Statements],
    ) -> None:
        super().__init__()
        self._nodes = nodes
        self._statements = statements

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]:
        if original_node in self._nodes:
            return self._nodes[original_node]
        if isinstance(original_node, cst.SimpleStatementLine) and self._is_changed(original_node):
            assert isinstance(updated_node, cst.SimpleStatementLine)
            return self._lines(original_node, updated_node)
        if isinstance(original_node, cst.SimpleStatementSuite) and self._is_changed(original_node):
            assert isinstance(updated_node, cst.SimpleStatementSuite)
            header = updated_node.trailing_whitespace
            return cst.IndentedBlock(self._pieces(original_node, updated_node), header=header)
        return updated_node

    def _is_changed(self, of: cst.SimpleStatementLine | cst.SimpleStatementSuite) -> bool:
        return any(one in self._statements for one in of.body)

    def _pieces(
        self,
        original: cst.SimpleStatementLine | cst.SimpleStatementSuite,
        updated: cst.SimpleStatementLine | cst.SimpleStatementSuite,
    ) -> list[cst.BaseStatement]:
        found: list[cst.BaseStatement] = []
        for before, after in zip(original.body, updated.body):
            own = line(after)
            found += [one or own for one in self._statements.get(before, [None])]
        return found

    def _lines(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]:
        found = self._pieces(original, updated)
        if not found:
            return cst.RemovalSentinel.REMOVE
        first = found[0]
        leading = [*updated.leading_lines, *getattr(first, "leading_lines", ())]
        found[0] = first.with_changes(leading_lines=leading)
        last = found[-1]
        if isinstance(last, cst.SimpleStatementLine):
            found[-1] = last.with_changes(trailing_whitespace=updated.trailing_whitespace)
        return cst.FlattenSentinel(found)
