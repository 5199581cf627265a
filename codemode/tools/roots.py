"""Files inside declared roots: no path, link or race leads out of them.

Each step of a path is opened from the folder before it, without following links, so what was
checked is what is used: a folder that somebody swaps for a link in mid-walk is refused by the
kernel. Names are what a guest gives; folders of the host never appear in a message.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import NamedTuple

from codemode.core.errors import InvalidInput, NestedToolFailed
from codemode.core.limits import MAX_BRIDGE_BYTES

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_DEPTH = 64  # folders in folders: each holds a descriptor open
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


class Found(NamedTuple):
    """One entry of a folder: `path` as a guest may give it, `kind` file, folder, link or other."""

    path: str
    kind: str
    bytes: int


class Roots:
    """The folders that core tools may touch; relative paths start at the first."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """Keep the roots, absolute and without links."""
        self._roots = tuple(roots)

    @property
    def first(self) -> Path:
        """The folder that relative paths start from."""
        return self._roots[0]

    def read(self, path: str) -> bytes:
        """Return a regular file's content.

        Raises:
            InvalidInput: The path leaves the roots.
            NestedToolFailed: It is no regular file, too large, or cannot be read.

        Contract: tools:core:roots-hold
        """
        with self._parent(path) as (folder, name), _said(path):
            return read_at(folder, name, path)

    def write(self, path: str, content: bytes) -> None:
        """Write a file whole or not at all; folders on the way are created, and who may use the file stays.

        Raises:
            InvalidInput: The path leaves the roots.
            NestedToolFailed: It cannot be written, or is a folder, a device or the like.

        Contract: tools:core:roots-hold, tools:core:write-whole, tools:core:mode-kept
        """
        with self._parent(path, create=True) as (folder, name), _said(path):
            before = _look_at(folder, name)
            kind = "file" if before is None else _kind_of(before)
            if kind not in {"file", "link"}:
                raise NestedToolFailed(f'"{path}" is {"a folder" if kind == "folder" else "not a file"}.')
            temporary = f".codemode-{os.urandom(8).hex()}"
            file = os.open(temporary, _CREATE, 0o644, dir_fd=folder)
            try:
                with os.fdopen(file, "wb") as target:
                    if before is not None and kind == "file":
                        os.fchmod(file, stat.S_IMODE(before.st_mode) & 0o777)
                    target.write(content)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise

    @contextlib.contextmanager
    def walk(self, path: str, stop: Event, *, deep: bool) -> Iterator[Iterator[tuple[Found, int]]]:
        """Open a folder and yield its entries in order, each with its folder's descriptor.

        Args:
            path: The folder; "." is the first root.
            stop: Ends the walk once it is set.
            deep: Go into folders too, never through links.

        Raises:
            InvalidInput: The path leaves the roots.
            NestedToolFailed: It is no folder, or cannot be read.

        Contract: tools:core:walk-stops
        """
        steps = self._steps(path)
        shown = steps if path.startswith("/") else steps[1:]
        with self._open(steps, path) as folder:
            yield _entries(folder, "/".join(shown), _MAX_DEPTH if deep else 1, stop)

    @contextlib.contextmanager
    def _parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        steps = self._steps(path)
        if len(steps) < 2:
            raise InvalidInput(f'"{path}" is a root, not a file in it')
        with self._open(steps[:-1], path, create=create) as folder:
            yield folder, steps[-1]

    @contextlib.contextmanager
    def _open(self, steps: Sequence[str], path: str, *, create: bool = False) -> Iterator[int]:
        with contextlib.ExitStack() as stack, _said(path):
            folder = os.open(steps[0], _FOLDER)
            stack.callback(os.close, folder)
            for step in steps[1:]:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(step, dir_fd=folder)
                folder = os.open(step, _FOLDER, dir_fd=folder)
                stack.callback(os.close, folder)
            yield folder

    def _steps(self, path: str) -> list[str]:
        """Return a root and the plain names below it."""
        if "\0" in path:
            raise InvalidInput("a path holds no NUL character")
        root, rest = self.first, path
        if path.startswith("/"):
            holding = [root for root in self._roots if path == str(root) or path.startswith(f"{root}/")]
            if not holding:
                raise InvalidInput(f'"{path}" is outside the roots; give a path relative to the first root')
            root = max(holding, key=lambda candidate: len(str(candidate)))
            rest = path.removeprefix(str(root))
        names = [name for name in rest.split("/") if name not in {"", "."}]
        if ".." in names:
            raise InvalidInput(f'"{path}" holds ".."; give the path without it')
        return [str(root), *names]


def read_at(folder: int, name: str, path: str) -> bytes:
    """Return the content of a regular file in an open folder.

    Raises:
        NestedToolFailed: It is something else, or too large.
        OSError: It cannot be opened; a link cannot.
    """
    file = os.open(name, _READ, dir_fd=folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise NestedToolFailed(f'"{path}" is not a file.')
        if found.st_size > MAX_BRIDGE_BYTES:
            raise NestedToolFailed(f'"{path}" has {found.st_size} bytes; at most {MAX_BRIDGE_BYTES} are read.')
        with open(file, "rb", closefd=False) as source:
            content = source.read(MAX_BRIDGE_BYTES + 1)
        if len(content) > MAX_BRIDGE_BYTES:  # those of the system tell no size
            raise NestedToolFailed(f'"{path}" has more than {MAX_BRIDGE_BYTES} bytes; at most that many are read.')
        return content
    finally:
        os.close(file)


def _entries(folder: int, prefix: str, depth: int, stop: Event) -> Iterator[tuple[Found, int]]:
    with os.scandir(folder) as scanned:
        names = sorted(entry.name for entry in scanned)
    for name in names:
        if stop.is_set():
            return
        path = f"{prefix}/{name}" if prefix else name
        found = _look_at(folder, name)
        if found is None:
            continue  # it went away while we looked
        kind = _kind_of(found)
        yield Found(path, kind, found.st_size if kind == "file" else 0), folder
        if depth > 1 and kind == "folder":
            with contextlib.suppress(OSError):  # one that may not be read hides no other
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _entries(inner, path, depth - 1, stop)
                finally:
                    os.close(inner)


def _look_at(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def _kind_of(found: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(found.st_mode), "other")


@contextlib.contextmanager
def _said(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        links = error.errno in {errno.ELOOP, errno.ENOTDIR}  # the latter for a link where a folder is needed
        why = "it is, or leads through, a link or a file; links are not followed" if links else error.strerror
        raise NestedToolFailed(f'"{path}": {why}.') from error
