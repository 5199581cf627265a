"""Requests to the four providers: their shapes, the fail-closed check, dumps and sizes."""

import builtins
import importlib.util
import json
from collections.abc import Iterator

import pytest

from codemode.core.errors import Internal, InvalidInput
from codemode.core.limits import Limits
from codemode.core.redact import Redactor
from codemode.core.types import GuestScope, Json, ToolSpec, VisibleTool
from codemode.payload import sizes
from codemode.payload.closed import assert_surface, offered_tools
from codemode.payload.dump import LEVELS, MAX_DUMP_BYTES, dump_body, fit, parse_level
from codemode.payload.messages import AssistantMessage, ChatRequest, ToolResult, ToolUse, UserMessage
from codemode.payload.providers import PROVIDERS, build_direct_tools, build_payload, parse_provider
from codemode.payload.sizes import Comparison, Size, measure, pretty_text
from codemode.surface import LANGUAGES, build_surface
from codemode.transcript import Transcript
from tests.requirements import requirement
from tests.support.golden import assert_golden

pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated")  # bpe-openai's own, on Python 3.11
SURFACE = build_surface({"mcp": 1}, GuestScope(), LANGUAGES, Limits())
EXEC_USE = ToolUse("call_1", "exec", {"code": "return 1"})
WAIT_USE = ToolUse("call_2", "wait", {"runId": "cm_1"})
GREETING = (UserMessage("hi"),)
CONVERSATION = (
    UserMessage("How many orders are open?"),
    AssistantMessage("Let me look.", (EXEC_USE, WAIT_USE)),
    ToolResult(EXEC_USE, '{"status":"completed","value":1}'),
    ToolResult(WAIT_USE, '{"status":"failed","error":"no such run"}', failed=True),
    AssistantMessage("One."),
)


async def never(_input: dict[str, Json], _context: object) -> Json:
    raise NotImplementedError


def tool(name: str, number: int = 0) -> ToolSpec:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    return ToolSpec(f"client:app{number}:{name}", name, f"Does {name}.", "client", "app", schema, never)


def request_of(*tools: VisibleTool, messages=GREETING, system: str = "") -> ChatRequest:
    return ChatRequest("some-model", messages, tools, system)


# Shapes


@requirement("payload:shapes:four", "surface:tools:exactly-two")
@pytest.mark.parametrize("name", PROVIDERS)
def test_each_provider_gets_its_own_request(name: str) -> None:
    """The golden files were written once and read against the provider's documentation."""
    body = build_payload(PROVIDERS[name], request_of(*SURFACE, system="Be brief."), active=True)

    assert offered_tools(body) == ["exec", "wait"]
    assert_golden(f"payload/{name}.json", json.dumps(body, indent=2, ensure_ascii=False) + "\n")


@requirement("payload:shapes:conversation")
@pytest.mark.parametrize("name", PROVIDERS)
def test_calls_and_results_take_the_shape_of_each_provider(name: str) -> None:
    body = build_payload(PROVIDERS[name], request_of(*SURFACE, messages=CONVERSATION), active=True)
    body.pop("tools")

    assert_golden(f"payload/{name}.conversation.json", json.dumps(body, indent=2, ensure_ascii=False) + "\n")


OPENAI_CALL = {"id": "call_1", "type": "function", "function": {"name": "exec", "arguments": '{"code": "return 1"}'}}
REPLIES: dict[str, Json] = {
    "openai": {
        "choices": [{"message": {"role": "assistant", "content": "Let me look.", "tool_calls": [OPENAI_CALL]}}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 4},
    },
    "openai-responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "exec", "arguments": '{"code": "return 1"}'},
        ],
        "usage": {"input_tokens": 30, "output_tokens": 4},
    },
    "anthropic": {
        "content": [
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "call_1", "name": "exec", "input": {"code": "return 1"}},
        ],
        "usage": {"input_tokens": 30, "output_tokens": 4},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "Let me look."},
                        {"functionCall": {"name": "exec", "args": {"code": "return 1"}}},
                    ],
                }
            }
        ],
        "usageMetadata": {"promptTokenCount": 30, "candidatesTokenCount": 4},
    },
}


@requirement("payload:shapes:conversation")
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_reply_is_read_back_from_each_provider(name: str) -> None:
    reply = PROVIDERS[name].parse_reply(REPLIES[name])

    assert reply.message == AssistantMessage("Let me look.", (EXEC_USE,))
    assert (reply.input_tokens, reply.output_tokens) == (30, 4)


@requirement("payload:shapes:conversation")
def test_arguments_that_are_no_json_reach_exec_as_the_text_they_are() -> None:
    """A model's broken JSON becomes an `invalid_input` that the model can read, not a crash."""
    call = OPENAI_CALL | {"function": {"name": "exec", "arguments": '{"code": "retur'}}
    reply = PROVIDERS["openai"].parse_reply({"choices": [{"message": {"content": None, "tool_calls": [call]}}]})

    assert reply.message.tool_uses[0].input == '{"code": "retur'


def values_in(value: Json, key: str) -> list[Json]:
    """Return what stands under a key, anywhere in a body."""
    if isinstance(value, list):
        return [found for item in value for found in values_in(item, key)]
    if not isinstance(value, dict):
        return []
    here = [value[key]] if key in value else []
    return here + [found for item in value.values() for found in values_in(item, key)]


@requirement("payload:shapes:conversation")
@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("given", ['{"code": "retur', ["a"], None])
def test_arguments_that_are_no_object_are_sent_back_within_one(name: str, given: Json) -> None:
    """A conversation may go on with another provider than the one whose model wrote them."""
    key = {"anthropic": "input", "gemini": "args"}.get(name, "arguments")
    use = ToolUse("call_1", "exec", given)
    said = (*GREETING, AssistantMessage("", (use,)), ToolResult(use, "{}", failed=True))
    body = build_payload(PROVIDERS[name], request_of(*SURFACE, messages=said), active=True)
    (sent,) = values_in(body | {"tools": []}, key)

    text = given if isinstance(given, str) else json.dumps(given)
    assert (json.loads(sent) if isinstance(sent, str) else sent) == {"INVALID_JSON": text}


@requirement("payload:shapes:conversation")
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_model_that_said_nothing_is_sent_back_as_each_provider_takes_it(name: str) -> None:
    """Anthropic and Gemini refuse a message without a part, OpenAI one that is null."""
    said = (UserMessage("Hi."), AssistantMessage(""), UserMessage("Are you there?"))
    body = build_payload(PROVIDERS[name], request_of(*SURFACE, messages=said), active=True)
    sent = body.get("messages") or body.get("input") or body.get("contents")

    assert all(each.get("content", each.get("parts")) not in ([], None) for each in sent)
    assert [each["role"] for each in sent if each["role"] != "user"] == (["assistant"] if name == "openai" else [])


@requirement("payload:shapes:conversation")
def test_gemini_gets_its_thought_signatures_back_where_they_were() -> None:
    """Of parallel calls the first alone has one; from Gemini 3 on a request without it is refused."""
    parts = [
        {"functionCall": {"name": "exec", "args": {"code": "1"}}, "thoughtSignature": "c2lnbmVk"},
        {"functionCall": {"name": "exec", "args": {"code": "2"}}},
    ]
    reply = {"responseId": "r7", "candidates": [{"content": {"parts": parts}}]}
    message = PROVIDERS["gemini"].parse_reply(reply).message
    kept = Transcript.from_json(json.loads(json.dumps(Transcript().append(message).to_json()))).messages()[0]
    (sent,) = build_payload(PROVIDERS["gemini"], request_of(*SURFACE, messages=(kept,)), active=True)["contents"]

    assert [part.get("thoughtSignature") for part in sent["parts"]] == ["c2lnbmVk", None]
    assert [part["functionCall"]["id"] for part in sent["parts"]] == ["r7_1", "r7_2"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_body_that_is_no_reply_is_a_lookup_error(name: str) -> None:
    with pytest.raises(LookupError):
        PROVIDERS[name].parse_reply({"error": {"message": "overloaded"}})


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_request_without_tools_names_none(name: str) -> None:
    assert "tools" not in build_payload(PROVIDERS[name], request_of(), active=False)


def test_an_unknown_provider_or_level_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r'no provider "antropic"; use openai, .* Did you mean "anthropic"'):
        parse_provider("antropic")
    with pytest.raises(InvalidInput, match=r'no level "full"; use summary, tools, full-redacted'):
        parse_level("full")


# The fail-closed check


def with_tools(*entries: Json, **others: Json) -> dict[str, Json]:
    return {"model": "m", "tools": list(entries), **others}


def function(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


@requirement("payload:closed:exact")
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_third_tool_is_refused_by_every_provider(name: str) -> None:
    extra = VisibleTool("read_file", "Reads a file.", {"type": "object"})

    with pytest.raises(Internal, match=r"must offer exactly exec and wait, but it offers exec, wait, read_file"):
        build_payload(PROVIDERS[name], request_of(*SURFACE, extra), active=True)


@requirement("payload:closed:exact")
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"model": "m"}, "no tools"),
        ({"tools": None}, "no tools"),
        ([], "<list>"),
        (with_tools(function("exec")), "exec"),
        (with_tools(function("exec"), function("exec")), "exec, exec"),
        (with_tools(function("exec"), function("wait"), function("wait")), "exec, wait, wait"),
        (with_tools(function("exec"), function("wait"), {"type": "web_search"}), "<web_search>"),
        (with_tools(function("exec"), {"type": "bash_20250124", "name": "wait"}), "<bash_20250124>"),
        (with_tools(function("exec"), function("wait"), {"googleSearch": {}}), "<googleSearch>"),
        (with_tools(function("exec"), function("wait"), "shell"), "<str>"),
        (with_tools(function("exec"), {"type": "function", "function": {"name": 7}}), "<function>"),
        ({"tools": {"exec": {}, "wait": {}}}, "<dict>"),
        (with_tools(function("exec"), function("wait"), functions=[{"name": "shell"}]), "shell"),
        (with_tools(function("exec"), function("wait"), mcp_servers=[{"url": "x"}]), "<mcp_servers>"),
        (with_tools(*(function(f"t{n}") for n in range(30))), "and 10 more"),
    ],
)
def test_anything_but_exactly_exec_and_wait_is_refused(body: Json, found: str) -> None:
    with pytest.raises(Internal) as refused:
        assert_surface(body)

    assert found in refused.value.message
    assert refused.value.message.startswith("the request was not sent: ")


@requirement("payload:closed:grouped")
@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations", "tools", "functions"])
def test_grouped_declarations_are_counted(key: str) -> None:
    exec_, wait, shell = ({"name": name} for name in ("exec", "wait", "shell"))

    assert_surface(with_tools({key: [exec_, wait]}))
    assert_surface(with_tools({key: [exec_]}, {key: [wait]}))
    with pytest.raises(Internal, match="exec, wait, shell"):
        assert_surface(with_tools({key: [exec_, wait, shell]}))
    with pytest.raises(Internal, match="<googleSearch>"):
        assert_surface(with_tools({key: [exec_, wait], "googleSearch": {}}))


@requirement("payload:closed:grouped")
def test_a_named_group_is_counted_by_what_it_holds() -> None:
    group = {"type": "namespace", "name": "code", "description": "d", "tools": [{"name": "exec"}, {"name": "wait"}]}

    assert offered_tools(with_tools(group)) == ["exec", "wait"]


@requirement("payload:closed:inactive")
def test_without_code_mode_any_tools_pass() -> None:
    direct = build_direct_tools([tool("read_file"), tool("exec")], PROVIDERS["openai"])

    assert offered_tools(build_payload(PROVIDERS["openai"], request_of(*direct), active=False)) == ["read_file", "exec"]


# Direct mode


@requirement("payload:direct:names")
@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["read_file", "list-files"], ["read_file", "list-files"]),
        (["read file", "read_file"], ["read_file_2", "read_file"]),
        (["a.b", "a b", "a/b"], ["a_b", "a_b_2", "a_b_3"]),
        (["exec", "exec"], ["exec", "exec_2"]),
        (["$price", "2fast", "größe"], ["_price", "2fast", "gr__e"]),
        (["n" * 80, "n" * 90], ["n" * 64, "n" * 62 + "_2"]),
        (["", "名前"], ["_", "__"]),
    ],
)
def test_direct_names_are_kept_or_made_safe_and_unique(names: list[str], shown: list[str]) -> None:
    specs = [tool(name, number) for number, name in enumerate(names)]

    assert [visible.name for visible in build_direct_tools(specs, PROVIDERS["openai"])] == shown


@requirement("payload:direct:names")
def test_gemini_keeps_dots_and_refuses_a_leading_digit() -> None:
    direct = build_direct_tools([tool("a.b"), tool("2fast")], PROVIDERS["gemini"])

    assert [visible.name for visible in direct] == ["a.b", "_2fast"]


@requirement("payload:direct:names")
def test_direct_tools_keep_description_and_schema() -> None:
    (direct,) = build_direct_tools([tool("read_file")], PROVIDERS["anthropic"])

    assert direct == VisibleTool("read_file", "Does read_file.", tool("read_file").parameters)


# Levels


@requirement("payload:levels:three")
def test_the_summary_counts_and_names() -> None:
    body = build_payload(PROVIDERS["openai"], request_of(*SURFACE), active=True)
    summary = dump_body(body, "summary", Redactor())

    assert summary["model"] == "some-model"
    assert summary["toolNames"] == ["exec", "wait"]
    assert (summary["toolCount"], summary["messageCount"]) == (2, 1)
    assert summary["bytes"] == len(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())


@requirement("payload:levels:three")
@pytest.mark.parametrize("name", PROVIDERS)
def test_the_level_tools_shows_the_tools_and_full_redacted_the_whole(name: str) -> None:
    body = build_payload(PROVIDERS[name], request_of(*SURFACE, system="Be brief."), active=True)

    assert LEVELS == ("summary", "tools", "full-redacted")
    assert dump_body(body, "tools", Redactor()) == {"tools": body["tools"]}
    assert dump_body(body, "full-redacted", Redactor()) == body


@requirement("payload:levels:redacted")
@pytest.mark.parametrize("level", LEVELS)
def test_no_level_shows_a_secret(level: str) -> None:
    secret = "correct-horse-battery"
    leaky = VisibleTool("lookup", f"Uses {secret}.", {"type": "object", "description": secret})
    body = build_payload(
        PROVIDERS["openai"], request_of(leaky, messages=(UserMessage(f"key {secret}"),), system=secret), active=False
    )

    assert secret not in json.dumps(dump_body(body, parse_level(level), Redactor([secret])))


@requirement("payload:levels:bound")
@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"content": "x" * 3_000_000}]},
        {"messages": [{"content": "ü" * 200_000}], "tools": []},
        {"messages": [{"content": "word " * 10} for _ in range(50_000)]},
        {"tools": [{"properties": {f"key{n}": {"type": "string"} for n in range(50_000)}}]},
        {"x" * 300_000: 1},
    ],
)
def test_a_full_dump_is_bounded_and_still_json(body: dict[str, Json]) -> None:
    dumped = pretty_text(dump_body(body, "full-redacted", Redactor()))

    assert len(dumped.encode()) <= MAX_DUMP_BYTES
    assert json.loads(dumped) != body
    assert " more " in dumped or "omitted" in dumped


@requirement("payload:levels:bound")
def test_what_fits_is_not_cut() -> None:
    body = {"messages": [{"content": "x" * 200_000}]}

    assert fit(body, MAX_DUMP_BYTES) == body


# Sizes


@pytest.fixture(autouse=True)
def _fresh_tokenizer() -> Iterator[None]:
    sizes._tokenizer.cache_clear()
    yield
    sizes._tokenizer.cache_clear()


@requirement("payload:sizes:labelled")
def test_without_a_tokenizer_the_tokens_are_an_estimate_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        if name == "bpe_openai":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)

    assert measure("x" * 408) == Size(410, 100, "estimate")


@requirement("payload:sizes:labelled")
def test_with_a_tokenizer_the_tokens_are_counted() -> None:
    if importlib.util.find_spec("bpe_openai") is None:
        pytest.skip("bpe-openai is not installed")

    assert measure("hello world") == Size(13, 4, "o200k")


@requirement("payload:sizes:saved")
def test_a_comparison_says_what_is_saved() -> None:
    comparison = Comparison(Size(2400, 600, "o200k"), Size(40_000, 10_000, "o200k"), 120)

    assert comparison.to_json() == {
        "surface": {"tools": 2, "bytes": 2400, "tokens": 600},
        "direct": {"tools": 120, "bytes": 40_000, "tokens": 10_000},
        "saved": {"bytes": 37_600, "tokens": 9_400, "share": 0.94},
        "counter": "o200k",
    }


@requirement("payload:sizes:saved")
def test_an_empty_catalog_saves_nothing() -> None:
    assert Comparison(Size(2400, 600, "o200k"), Size(2, 0, "o200k"), 0).saved_share == 0.0
