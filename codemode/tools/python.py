"""Python tools: `module:function`, imported at the first call, from the manifest's folder too.

An async function runs in the event loop, a synchronous one in a thread. Properties arrive as
keyword arguments; a parameter `context` gets the run's context; a single parameter `input`
annotated as a dict gets the whole input.
"""

import asyncio
import importlib
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codemode.core.errors import type_and_words_of
from codemode.core.names import did_you_mean
from codemode.core.tables import Where
from codemode.core.types import Json, RunContext
from codemode.definitions import LoadedFunction, PythonTarget
from codemode.tools.threads import Threads, told_as_failure


class PythonFunction:
    """One python target: `run` it, or `load` it without running it."""

    def __init__(self, target: PythonTarget | LoadedFunction, folder: Path, where: Where, threads: Threads) -> None:
        """Keep what to import; nothing is imported yet."""
        self._target = target
        self._folder = folder
        self._where = where
        self._threads = threads
        self._loaded: Callable[..., Any] | None = None
        self._is_async = False

    async def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function: in the event loop if it is async, else in a thread.

        Raises:
            InvalidConfig: It cannot be imported; whatever the function raises passes through.

        Contract: tools:python:sync-in-a-thread, tools:python:async-natively
        """
        function = self._loaded or await self.load_in_thread()
        try:
            if self._is_async:
                return await function(*args, **kwargs)
            result = await self._threads.run(lambda: function(*args, **kwargs))
            return await result if inspect.isawaitable(result) else result
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise  # the latter two come from outside
        except BaseException as error:  # a tool must not end its host, nor its call unheard
            raise told_as_failure(error) from error

    async def load_in_thread(self) -> Callable[..., Any]:
        """Import the target without holding up the event loop, and return it."""
        function: Callable[..., Any] = await self._threads.run(self.load)
        return function

    def load(self) -> Callable[..., Any]:
        """Import the target, once, and return it.

        Raises:
            InvalidConfig: The module or the function is not there.
        """
        if self._loaded is None:
            function = self._import()
            self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
                getattr(function, "__call__", None)  # noqa: B004  # an object may be called asynchronously
            )
            self._loaded = function
        return self._loaded

    def signature(self) -> Mapping[str, inspect.Parameter]:
        """Return the loaded function's parameters; none where a built-in does not say."""
        try:
            return inspect.signature(self.load()).parameters
        except (TypeError, ValueError):
            return {}

    def _import(self) -> Callable[..., Any]:
        target = self._target
        if isinstance(target, LoadedFunction):
            return target.function
        found: Any = import_module(target.module, self._folder, self._where)
        for step in target.function.split("."):
            if not hasattr(found, step):
                known = [name for name in dir(found) if not name.startswith("_")]
                self._where.fail(f"{target.module} has no {step}.{did_you_mean(step, known)}")
            found = getattr(found, step)
        if not callable(found):
            self._where.fail(f"{target.module}:{target.function} is a {type(found).__name__}, not a function.")
        function: Callable[..., Any] = found
        return function


class PythonTool:
    """A python function as a tool: how an input becomes its arguments."""

    def __init__(self, function: PythonFunction, where: Where) -> None:
        """Keep the function; its signature is read at the first call."""
        self._function = function
        self._where = where
        self._takes: _Takes | None = None

    async def __call__(self, given: dict[str, Json], context: RunContext) -> Json:
        """Call the function with the input's properties.

        Raises:
            InvalidConfig: It cannot be imported; whatever the function raises passes through.

        Contract: tools:python:conventions, tools:python:first-call
        """
        if self._takes is None:
            await self._function.load_in_thread()
        takes = self.probe()
        arguments: dict[str, Any] = {"input": given} if takes.whole_input else dict(given)
        if takes.context:
            arguments["context"] = context
        return await self._function.run(**arguments)

    def probe(self) -> "_Takes":
        """Import the function and read how it wants to be called.

        Raises:
            InvalidConfig: The module or the function is not there, or it cannot be called so.
        """
        if self._takes is None:
            parameters = self._function.signature()
            if any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters.values()):
                self._where.fail("the function has positional-only parameters; properties come as keywords.")
            own = [parameter for name, parameter in parameters.items() if name != "context"]
            whole_input = len(own) == 1 and own[0].name == "input" and _is_dict(own[0].annotation)
            self._takes = _Takes("context" in parameters, whole_input)
        return self._takes


class _Takes(NamedTuple):
    """What a function's signature asks for."""

    context: bool
    whole_input: bool


def import_module(name: str, folder: Path, where: Where) -> Any:
    """Import a module, the manifest's folder included; the folder comes last on the path.

    Last, because a `queue.py` beside a manifest must not break everybody who imports the standard
    library's; that such a module was not reached is said instead.

    Raises:
        InvalidConfig: It does not import, or another module of that name came first.

    Contract: tools:python:folder-importable, tools:python:import-errors
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    top = name.partition(".")[0]
    local = importlib.machinery.PathFinder.find_spec(top, [str(folder)])
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a module may fail with anything while it is imported
        where.fail(f"cannot import {name}: {type_and_words_of(error)}.")
    origin = getattr(sys.modules[top].__spec__, "origin", None)
    if local is not None and local.origin is not None and origin != local.origin:
        where.fail(f"{top} is the name of another module that came first; rename {top} beside the manifest.")
    return module


def _is_dict(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.partition("[")[0].strip() in {"dict", "Dict", "typing.Dict"}
    return annotation is dict or getattr(annotation, "__origin__", None) is dict
