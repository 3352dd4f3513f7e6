"""The files of a program that may be changed: its script, and the modules below its folder."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

from .rewrite import Declined, Tree


@dataclasses.dataclass(frozen=True)
class Change:
    """A file with other content."""

    path: pathlib.Path
    before: str
    after: str


class Sources:
    """The script of a program and the modules below its folder that it imports.

    A path that a recording names is compared with these files. It is never opened.
    """

    def __init__(self, script: pathlib.Path, arguments: list[str]) -> None:
        self.script = script.resolve()
        #: The arguments of the script, which an edit may change.
        self.arguments = arguments
        self.root = self.script.parent
        self._texts: dict[pathlib.Path, str] = {}
        self._trees: dict[pathlib.Path, Tree] = {}
        self.files = self._imported()

    def _imported(self) -> list[pathlib.Path]:
        found, pending = [self.script], [self.script]
        while pending:
            path = pending.pop()
            try:
                module = ast.parse(self.text(path))
            except (SyntaxError, ValueError):
                continue
            for name in _imports(module, path.parent.relative_to(self.root).parts):
                for one in self._files_of(name):
                    if one not in found:
                        found.append(one)
                        pending.append(one)
        return found

    def _files_of(self, name: tuple[str, ...]) -> Iterator[pathlib.Path]:
        """The file of a module, and those of its packages, below the folder."""
        for end in range(1, len(name) + 1):
            for path in (
                self.root.joinpath(*name[:end], "__init__.py"),
                self.root.joinpath(*name[:end]).with_suffix(".py"),
            ):
                # Not by way of a link to another folder.
                if path.is_file() and self.root in path.resolve().parents:
                    yield path.resolve()

    def text(self, path: pathlib.Path) -> str:
        """The text of a file."""
        if path not in self._texts:
            with open(path, encoding="utf-8", newline="") as file:
                self._texts[path] = file.read()
        return self._texts[path]

    def tree(self, path: pathlib.Path) -> Tree:
        """A new tree of a file, which takes the changes of one edit."""
        if path not in self._trees:
            self._trees[path] = Tree(self.text(path))
        return self._trees[path]

    def find(self, recorded: str) -> pathlib.Path | None:
        """The file that a recording names: one of the program's, or ``None``."""
        same = [path for path in self.files if os.path.realpath(recorded) == str(path)]
        if same:
            return same[0]
        # A recording of another machine has other folders: its last parts tell, if one file fits.
        parts = pathlib.PurePath(recorded).parts
        ends = [path for path in self.files if path.relative_to(self.root).parts == parts[-1:]]
        return ends[0] if len(ends) == 1 and not os.path.exists(recorded) else None

    def changes(self) -> list[Change]:
        """The files whose trees were changed."""
        found = []
        for path, tree in self._trees.items():
            before, after = self.text(path), tree.changed()
            if before != after:
                compile(after, str(path), "exec", dont_inherit=True)
                found.append(Change(path, before, after))
        return found

    def with_changes(self, changes: list[Change], arguments: list[str]) -> Sources:
        """The program with these changes, for the next edit."""
        new = Sources.__new__(Sources)
        new.script, new.root, new.files = self.script, self.root, self.files
        new.arguments = list(arguments)
        new._texts = {**self._texts, **{change.path: change.after for change in changes}}
        new._trees = {}
        return new

    def diff(self, changes: list[Change], base: pathlib.Path) -> str:
        """The changes as ``git apply`` and ``patch -p1`` read them, with paths from ``base``."""
        text = ""
        for change in changes:
            name = os.path.relpath(change.path, base)
            lines = difflib.unified_diff(
                change.before.splitlines(keepends=True),
                change.after.splitlines(keepends=True),
                f"a/{name}",
                f"b/{name}",
            )
            for one in lines:
                text += one if one.endswith("\n") else f"{one}\n\\ No newline at end of file\n"
        return text

    @contextlib.contextmanager
    def changed(self, changes: list[Change]) -> Iterator[pathlib.Path]:
        """A folder like the program's with the changed files: all others are links.

        Yields its script.
        """
        with tempfile.TemporaryDirectory(prefix="vramscope-fix-") as folder:
            root = pathlib.Path(folder)
            # Python looks for modules in the folder that a link to a script leads to.
            files = {self.script: self.text(self.script)}
            _links(self.root, root, {**files, **{one.path: one.after for one in changes}})
            yield root / self.script.name


def _links(of: pathlib.Path, to: pathlib.Path, changed: dict[pathlib.Path, str]) -> None:
    for entry in os.scandir(of):
        path, new = of / entry.name, to / entry.name
        if path in changed:
            new.write_text(changed[path], encoding="utf-8", newline="")
        elif any(path in one.parents for one in changed):
            new.mkdir()
            _links(path, new, changed)
        elif entry.name != "__pycache__":
            new.symlink_to(path)


def _imports(module: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The modules that a module names: each also with the names that it takes from it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield tuple(one.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            # Relative to the package that the module is in.
            begin = package[: len(package) + 1 - node.level] if node.level else ()
            name = (*begin, *(node.module or "").split(".")) if node.module else begin
            for one in node.names:
                yield (*name, one.name)


def write(changes: list[Change], *, force: bool) -> None:
    """Writes changed files in the place of their own.

    Raises:
        Declined: A file has changes that no commit has, or is in no repository.
    """
    for change in changes:
        with open(change.path, encoding="utf-8", newline="") as file:
            if file.read() != change.before:
                raise Declined(f"{change.path.name} was changed meanwhile")
        if not force:
            _check_committed(change.path)
    for change in changes:
        with open(change.path, "w", encoding="utf-8", newline="") as file:
            file.write(change.after)


def _check_committed(path: pathlib.Path) -> None:
    command = ["git", "-C", str(path.parent), "status", "--porcelain", "--", path.name]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        told = None
    if told is None or told.returncode:
        raise Declined(f"{path.name} is in no git repository: --force writes it nevertheless")
    if told.stdout.strip():
        raise Declined(f"{path.name} has changes without a commit: commit them, or add --force")
