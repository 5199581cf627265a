"""Whatever a model sends as arguments, and whatever stands in a request, ends as the contract says."""

import copy
import json
import string
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemode.core.errors import InputError, Internal
from codemode.core.limits import Limits
from codemode.core.redact import Redactor
from codemode.core.types import GuestScope, Json, ToolSpec
from codemode.payload.closed import assert_surface, offered_tools
from codemode.payload.dump import MAX_DUMP_BYTES, dump_body, fit
from codemode.payload.messages import ChatRequest, UserMessage
from codemode.payload.providers import MAX_NAME_CHARS, PROVIDERS, build_direct_tools, build_payload
from codemode.payload.sizes import measure, pretty_text
from codemode.surface import LANGUAGES, build_surface, parse_exec_input, parse_wait_input
from tests.requirements import requirement

T = TypeVar("T")
SURFACE = build_surface({"mcp": 1}, GuestScope(), LANGUAGES, Limits())
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30)
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
arguments = st.dictionaries(
    st.sampled_from(["code", "command", "language", "runId", "run_id", "Code", ""]), json_values, max_size=4
)
lines = st.lists(st.text(alphabet=string.ascii_letters + string.digits + string.punctuation + " \t", max_size=20))
relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


# Arguments


def taken_or_refused(parse: Callable[[], T]) -> T | None:
    """Return what was parsed, or None where it was refused in words; anything else fails the test."""
    try:
        return parse()
    except InputError as refused:
        return None if refused.message else pytest.fail("a refusal without a word")


@requirement("surface:exec:arguments")
@given(raw=json_values | arguments)
@relaxed
def test_any_arguments_of_exec_are_taken_or_refused_in_one_sentence(raw: Json) -> None:
    taken = taken_or_refused(lambda: parse_exec_input(raw, LANGUAGES))

    assert taken is None or (taken.code.strip() and taken.language in LANGUAGES)


@requirement("surface:wait:input")
@given(raw=json_values | arguments)
@relaxed
def test_any_arguments_of_wait_are_taken_or_refused(raw: Json) -> None:
    run_id = taken_or_refused(lambda: parse_wait_input(raw))

    assert run_id is None or run_id in {str(value).strip() for value in raw.values()}


@requirement("surface:exec:fence")
@given(body=lines, mark=st.sampled_from(["```", "````", "~~~"]), word=st.sampled_from(["", "js", "typescript", " ts "]))
@relaxed
def test_a_fence_never_moves_a_line(body: list[str], mark: str, word: str) -> None:
    """Every line of the body stands after the blanking where it stood before."""
    body = [line.replace("`", "'").replace("~", "-") for line in body] + ["return 1;"]
    fenced = "\n".join([mark + word, *body, mark])

    assert parse_exec_input({"code": fenced}, LANGUAGES).code.split("\n")[1:-1] == body


@requirement("surface:exec:shell")
@given(
    name=st.from_regex(r"[a-z_$][a-zA-Z0-9_$]*", fullmatch=True), argument=st.text(alphabet="abc123'\" ", max_size=10)
)
@relaxed
def test_a_call_is_never_taken_for_a_shell_line(name: str, argument: str) -> None:
    code = f"{name}({argument})"

    assert parse_exec_input({"code": code}, LANGUAGES).code == code


# The closed request


@requirement("payload:closed:exact")
@given(provider=st.sampled_from(sorted(PROVIDERS)), extra=json_values, where=st.integers(0, 2))
@relaxed
def test_nothing_can_be_added_to_the_tools_unseen(provider: str, extra: Json, where: int) -> None:
    """Whatever is put among the tools, at any place, is an offer, and the request is refused."""
    body = build_payload(PROVIDERS[provider], ChatRequest("m", (UserMessage("hi"),), SURFACE), active=True)
    changed = copy.deepcopy(body)
    changed["tools"].insert(where, extra)

    if offered_tools({"tools": [extra]}):
        with pytest.raises(Internal, match="must offer exactly exec and wait"):
            assert_surface(changed)
    else:  # a group that holds nothing offers nothing
        assert isinstance(extra, dict)


@requirement("payload:closed:exact")
@given(
    name=st.text(max_size=12),
    group=st.sampled_from(["tools", "functions", "functionDeclarations", "function_declarations"]),
)
@relaxed
def test_any_other_name_is_refused_wherever_it_is_grouped(name: str, group: str) -> None:
    entries = [{"name": "exec"}, {"name": "wait"}, {"name": name}]

    for body in ({group: entries}, {"tools": [{group: entries}]}, {"tools": [{group: [{group: entries}]}]}):
        with pytest.raises(Internal):
            assert_surface(body)


# Names of direct mode


async def never(_input: dict[str, Json], _context: object) -> Json:
    raise NotImplementedError


@requirement("payload:direct:names")
@given(names=st.lists(st.text(max_size=80), max_size=25), provider=st.sampled_from(sorted(PROVIDERS)))
@relaxed
def test_direct_names_are_always_allowed_unique_and_kept_where_they_can_be(names: list[str], provider: str) -> None:
    rule = PROVIDERS[provider].name_rule
    specs = [ToolSpec(f"client:app:{n}", name, "", "client", "app", {}, never) for n, name in enumerate(names)]
    shown = [tool.name for tool in build_direct_tools(specs, PROVIDERS[provider])]

    assert len(set(shown)) == len(shown) == len(names)
    assert all(rule.match(name) and len(name) <= MAX_NAME_CHARS for name in shown)
    assert all(name in shown for name in names if rule.match(name))


# Dumps


@requirement("payload:levels:bound")
@given(body=st.dictionaries(st.text(max_size=8), json_values, max_size=5), room=st.integers(60, 2000))
@relaxed
def test_a_dump_fits_whatever_it_holds_and_stays_json(body: dict[str, Json], room: int) -> None:
    shown = fit(body, room)

    assert len(pretty_text(shown).encode("utf-8", "surrogatepass")) <= room
    assert json.loads(pretty_text(shown)) == shown
    if len(pretty_text(body).encode("utf-8", "surrogatepass")) <= room:
        assert shown == body


@requirement("payload:levels:redacted")
@given(before=st.text(max_size=20), after=st.text(max_size=20), level=st.sampled_from(["tools", "full-redacted"]))
@relaxed
def test_a_known_secret_is_in_no_dump_wherever_it_stands(before: str, after: str, level: str) -> None:
    secret = "s3cret-value-that-must-not-leave"
    body: Json = {
        "tools": [{"name": "x", "description": before + secret + after, secret: [secret]}],
        "m": {"k": secret},
    }

    assert secret not in json.dumps(dump_body(body, level, Redactor([secret])))  # type: ignore[arg-type]


@requirement("payload:sizes:labelled")
@given(value=json_values, more=st.text(min_size=1, max_size=50))
@relaxed
def test_more_text_is_never_fewer_bytes(value: Json, more: str) -> None:
    assert measure([value, more]).bytes > measure([value]).bytes
    assert measure([value]).tokens >= 0


def test_the_bound_of_a_dump_is_that_of_the_contract() -> None:
    assert MAX_DUMP_BYTES == 256 * 1024
