"""Mappers: taken apart into JSON, made again, and refused where that would not be the same function."""

import functools
import json
import sys
import types
from typing import Any

import pytest

from codemode.mappers import MapperLost, NotPortable, read_mapper, write_mapper
from tests.requirements import requirement
from tests.support.tools import make_context

CONTEXT = make_context(agent_id="other")
LOOSE = {"mapper": lambda args: {"loose": args}}


def named(args: list) -> dict:
    return {"named": args}


def doubled(function):
    @functools.wraps(function)
    def wrapper(args: list) -> dict:
        return function(args) | {"wrapped": True}

    return wrapper


@doubled
def decorated(args: list) -> dict:
    return {"decorated": args}


class Mappers:
    @staticmethod
    def static(args: list) -> dict:
        return {"static": args}

    @classmethod
    def of_class(cls, args: list) -> dict:
        return {"class": cls.__name__, "args": args}

    def bound(self, args: list) -> dict:
        return {}


def there_and_back(mapper: Any) -> Any:
    return read_mapper(json.loads(json.dumps(write_mapper(mapper))), CONTEXT)


def within(word: str, context: Any = CONTEXT) -> list:
    """Functions as plugins write them, in a scope that knows a word and the run's context."""
    settings = {"limit": 3, "tags": ["a"]}

    def helper(args: list) -> list:
        return [word, *args]

    def local(args: list) -> dict:
        return {"local": helper(args)}

    return [
        lambda args: {"word": word, "args": args},
        lambda args: {"first": args[0], "limit": settings["limit"], "tags": settings["tags"]},
        lambda args: {"by": context.agent_id},
        local,
        *[lambda args, each=each: {"each": each} for each in ("x", "y")],
        lambda args: {"inner": [one + word for one in args]},
    ]


@requirement("namespaces:mapper:portable")
@pytest.mark.parametrize(
    ("mapper", "expected"),
    [
        (named, {"named": [1]}),
        (decorated, {"decorated": [1], "wrapped": True}),
        (Mappers.static, {"static": [1]}),
        (Mappers.of_class, {"class": "Mappers", "args": [1]}),
        (len, 1),
    ],
    ids=["function", "decorated", "static", "class", "built-in"],
)
def test_what_a_module_can_name_is_stored_by_its_name(mapper, expected):
    written = write_mapper(mapper)

    assert written.keys() == {"module", "name"}
    assert there_and_back(mapper)([1]) == expected


@requirement("namespaces:mapper:portable")
def test_a_function_within_a_function_is_made_again_with_what_it_captured():
    """By place, so each of several lambdas of one name is the right one; the context is the new run's."""
    plain, with_settings, with_context, local, x, y, inner = map(there_and_back, within("hello"))

    assert plain([1]) == {"word": "hello", "args": [1]}
    assert with_settings([1]) == {"first": 1, "limit": 3, "tags": ["a"]}
    assert with_context([]) == {"by": "other"}
    assert local([1]) == {"local": ["hello", 1]}
    assert (x([]), y([])) == ({"each": "x"}, {"each": "y"})
    assert inner(["!"]) == {"inner": ["!hello"]}


@requirement("namespaces:mapper:portable")
def test_what_was_captured_is_a_copy():
    """The new function shares nothing with the old one."""
    old = within("hello")[1]
    new = there_and_back(old)
    new([1])["tags"].append("b")

    assert old([1])["tags"] == ["a"]


@requirement("namespaces:mapper:portable")
def test_a_function_within_a_decorated_one_is_found_beneath_the_decorator(monkeypatch):
    made = module(monkeypatch, "@keep\ndef create(ctx):\n    return lambda args: ctx.agent_id\n")

    assert there_and_back(made.create(CONTEXT))([]) == "other"


def module(monkeypatch: pytest.MonkeyPatch, text: str, name: str = "written_here") -> Any:
    """Return a module of this text; `keep` is a decorator in it."""
    made = types.ModuleType(name)
    made.__dict__["keep"] = functools.wraps
    header = "import functools\ndef keep(f):\n    return functools.wraps(f)(lambda *given: f(*given))\n"
    exec(compile(header + text, name, "exec"), made.__dict__)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def selfish() -> Any:
    def again(args: list) -> Any:
        return again(args[1:]) if args else {}

    return again


def capturing(value: Any) -> Any:
    return lambda args: {"value": value}


def with_keyword_default() -> Any:
    return lambda args, *, sure=True: {"sure": sure}


@requirement("namespaces:mapper:portable")
@pytest.mark.parametrize(
    ("mapper", "complaint"),
    [
        (LOOSE["mapper"], r"<lambda> is neither a function of tests\.unit\.test_mappers nor written within one"),
        (Mappers().bound, r"Mappers\.bound is neither"),
        (functools.partial(named), "a partial cannot be found again by its name"),
        (capturing(object()), "it captured value, a object"),
        (capturing(b"x"), "it captured value, a bytes"),
        (capturing((1, 2)), "it captured value, a tuple that JSON would change"),
        (capturing({1: 2}), "it captured value, a dict that JSON would change"),
        (capturing(float("nan")), "it captured value, a float that JSON would change"),
        (capturing(LOOSE["mapper"]), "<lambda> is neither"),
        (with_keyword_default(), "has defaults of keywords"),
        (selfish(), r"again cannot be found again"),
    ],
)
def test_what_would_not_be_the_same_function_is_refused(mapper, complaint):
    with pytest.raises(NotPortable, match=complaint):
        write_mapper(mapper)


def test_a_variable_without_a_value_cannot_be_stored():
    def mapper(args: list) -> Any:
        return later

    with pytest.raises(NotPortable, match="it captured later, which has no value yet"):
        write_mapper(mapper)
    later = 1


@requirement("namespaces:wait:tool-gone")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "create = 3",
        "def create(ctx):\n    return 1\n",
        "def create(ctx):\n    def other(args):\n        return ctx\n    return other\n",
        "def create(ctx):\n    return lambda args: 1\n",
    ],
)
def test_a_function_that_is_written_otherwise_now_is_lost_not_mistaken(monkeypatch, text):
    """Another name, or other captured variables, at the same place: the plugin has changed."""
    before = module(monkeypatch, "def create(ctx):\n    return lambda args: ctx.agent_id\n")
    written = write_mapper(before.create(CONTEXT))
    module(monkeypatch, text)

    with pytest.raises(MapperLost, match=r"written_here\.create is not there any more"):
        read_mapper(written, CONTEXT)


@requirement("namespaces:wait:tool-gone")
def test_a_function_whose_module_is_gone_is_lost():
    with pytest.raises(MapperLost, match=r"no_such_module_here\.create is not there any more"):
        read_mapper({"module": "no_such_module_here", "name": "create"}, CONTEXT)
    with pytest.raises(MapperLost, match="gone is not there"):
        read_mapper({"module": __name__, "name": "gone"}, CONTEXT)
