"""The two visible tools and their inputs."""

import json
from collections.abc import Iterator

import pytest

from codemode.core.errors import InvalidInput, UnsupportedLanguage
from codemode.core.limits import Limits
from codemode.core.types import GuestScope, Json, VisibleTool
from codemode.payload.sizes import measure
from codemode.surface import LANGUAGES, build_surface, parse_exec_input, parse_wait_input
from tests.requirements import requirement

NO_TOOLS = {"openclaw": 0, "plugin": 0, "mcp": 0, "client": 0}


def surface(mcp: int = 0, prompts: tuple[str, ...] = (), languages=LANGUAGES, **limits: int):
    return build_surface(NO_TOOLS | {"mcp": mcp}, GuestScope(prompts=prompts), languages, Limits(**limits))


def keys_of(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from keys_of(item)


@requirement("surface:tools:exactly-two")
def test_the_surface_is_exec_and_wait() -> None:
    assert [tool.name for tool in surface()] == ["exec", "wait"]


@requirement("surface:schema:flat")
def test_both_schemas_are_flat_objects() -> None:
    for tool in surface(mcp=1):
        assert tool.parameters["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "default", "$ref", "not"} & set(keys_of(tool.parameters))
        assert all(part["type"] == "string" for part in tool.parameters["properties"].values())


def test_exec_takes_code_command_and_language_and_wait_takes_run_id() -> None:
    exec_, wait = surface()

    assert list(exec_.parameters["properties"]) == ["code", "command", "language"]
    assert exec_.parameters["properties"]["language"]["enum"] == ["javascript", "typescript"]
    assert wait.parameters["properties"].keys() == {"runId"}
    assert wait.parameters["required"] == ["runId"]


@requirement("surface:description:constraints")
@pytest.mark.parametrize(
    "word",
    ["`return`", "import", "require", "files", "network", "setTimeout", "tools.search", "tools.describe",
     "tools.call", "ALL_TOOLS", "API.list('mcp')", "API.read", "MCP.<server>.<tool>"],
)  # fmt: skip
def test_the_description_of_exec_states_each_constraint(word: str) -> None:
    assert word in surface(mcp=1)[0].description


def test_the_description_names_the_cap_in_force() -> None:
    assert "At most 3 calls" in surface(max_pending_tool_calls=3)[0].description


@requirement("surface:description:only-visible")
def test_mcp_is_mentioned_only_where_a_server_is_visible() -> None:
    assert "MCP" not in surface(mcp=0)[0].description
    assert "mcp" not in surface(mcp=0)[0].description
    assert "MCP" in surface(mcp=1)[0].description


@requirement("surface:description:only-visible")
def test_prompts_of_visible_namespaces_are_taken_in() -> None:
    prompt = "Use Issues.list(params)."

    assert prompt in surface(prompts=(prompt,))[0].description.splitlines()
    assert "Issues" not in surface()[0].description


@requirement("surface:description:wait")
def test_the_description_of_wait_says_only_after_waiting() -> None:
    assert "only after exec or wait gave a result with status waiting" in surface()[1].description


def test_a_language_that_is_switched_off_is_not_offered() -> None:
    only_js = surface(languages=("javascript",))[0]
    only_ts = surface(languages=("typescript",))[0]

    assert "TypeScript" not in only_js.description
    assert only_js.parameters["properties"]["language"]["enum"] == ["javascript"]
    assert only_ts.parameters["required"] == ["language"]


@requirement("surface:size:constant")
def test_the_surface_does_not_grow_with_the_number_of_tools() -> None:
    sizes = {count: total_size(surface(mcp=count)) for count in (10, 1_000, 10_000)}

    assert len(set(sizes.values())) == 1


@requirement("surface:size:constant")
def test_the_surface_holds_at_most_700_tokens() -> None:
    """585 tokens with o200k as OpenAI's tools; the estimate errs by less than the room that is left."""
    tools: Json = [{"type": "function", "function": tool._asdict()} for tool in surface(mcp=10_000)]

    assert measure(tools).tokens <= 700


def total_size(tools: tuple[VisibleTool, ...]) -> int:
    return sum(len(json.dumps(tool._asdict())) for tool in tools)


# The input of exec


@requirement("surface:exec:one-text")
@pytest.mark.parametrize(
    "raw", [{"code": "return 1"}, {"code": "return 1", "command": "  \n"}, {"code": "return 1", "command": None}]
)
def test_code_alone_is_the_cell(raw: dict[str, Json]) -> None:
    assert parse_exec_input(raw, LANGUAGES).code == "return 1"


@requirement("surface:exec:one-text")
@pytest.mark.parametrize(
    "raw", [{}, {"code": ""}, {"code": " \n\t"}, {"command": ""}, {"code": None}, {"code": "```js\n\n```"}]
)
def test_an_empty_cell_is_refused_with_an_example(raw: dict[str, Json]) -> None:
    with pytest.raises(InvalidInput, match=r'exec needs a program in "code", for example: return'):
        parse_exec_input(raw, LANGUAGES)


@requirement("surface:exec:alias")
def test_command_stands_for_code_and_may_repeat_it() -> None:
    assert parse_exec_input({"command": "return 2"}, LANGUAGES).code == "return 2"
    assert parse_exec_input({"code": "return 2", "command": "return 2"}, LANGUAGES).code == "return 2"


@requirement("surface:exec:alias")
def test_code_and_a_different_command_are_refused() -> None:
    with pytest.raises(InvalidInput, match="a code and a different command"):
        parse_exec_input({"code": "return 1", "command": "return 2"}, LANGUAGES)


@requirement("surface:exec:arguments")
@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"code": 7}, '"code" must be a text; it is a number'),
        ({"command": True}, '"command" must be a text; it is a boolean'),
        ({"code": ["x"]}, '"code" must be a text; it is an array'),
        ("return 1", "exec takes one object with .* it got a text"),
        (None, "it got null"),
        ({"code": "1", "languge": "x"}, 'exec has no argument "languge".* Did you mean "language"'),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused(raw: Json, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_exec_input(raw, LANGUAGES)


@requirement("surface:exec:language")
def test_the_language_defaults_to_javascript() -> None:
    assert parse_exec_input({"code": "1"}, LANGUAGES).language == "javascript"
    assert parse_exec_input({"code": "1", "language": None}, LANGUAGES).language == "javascript"
    assert parse_exec_input({"code": "1", "language": "typescript"}, LANGUAGES).language == "typescript"


@requirement("surface:exec:language")
@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("python", 'language "python" is not supported; use "javascript" or "typescript"'),
        ("typescrpt", 'Did you mean "typescript"'),
        ("", 'language "" is not supported'),
        (7, "language a number is not supported"),
        (["javascript"], "language an array is not supported"),
    ],
)
def test_an_unknown_language_is_unsupported(language: Json, message: str) -> None:
    with pytest.raises(UnsupportedLanguage, match=message):
        parse_exec_input({"code": "1", "language": language}, LANGUAGES)


@requirement("surface:exec:language")
@pytest.mark.parametrize(("given", "on"), [("typescript", "javascript"), (None, "typescript")])
def test_a_language_that_is_switched_off_is_unsupported(given: str | None, on: str) -> None:
    """The default is javascript even where only typescript is on: the cell's text may be either."""
    with pytest.raises(UnsupportedLanguage, match=r"is switched off by tools\.codeMode\.languages; use"):
        parse_exec_input({"code": "1", "language": given}, (on,))


@requirement("surface:exec:shell")
@pytest.mark.parametrize(
    "text",
    ["ls -la", "ls", "pwd", "cat /etc/passwd | grep root", "git status", "npm install left-pad && ls", "$ ls -la",
     "cd src\nls -la", "# list\nls -la", "#!/bin/bash\necho hi", "```bash\nls -la\n```", "echo \"hi\"",
     "find . -name x", "curl https://example.test", "cat ~/.ssh/id_rsa", "python3 -c 'print(1)'", "rm -rf /"],
)  # fmt: skip
def test_a_shell_command_is_refused_with_what_to_write_instead(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"not a shell; it got .* Write a program: .*tools\.search"):
        parse_exec_input({"code": text}, LANGUAGES)


@requirement("surface:exec:shell")
@pytest.mark.parametrize(
    "text",
    ["find in things", "sort(x)", "date = 3", "find => find.id", "ls - la", "return tools.exec({command: 'ls -la'})",
     "const ls = 1\nls -1", "node instanceof Object", "test.x", "# only a comment", "tools.search('ls -la')",
     "top, tail", "// ls -la\nreturn 1", "date\n.x", "`ls -la`"],
)  # fmt: skip
def test_programs_that_only_resemble_shell_commands_are_taken(text: str) -> None:
    assert parse_exec_input({"code": text}, LANGUAGES).code == text


@requirement("surface:exec:fence")
@pytest.mark.parametrize(
    ("fenced", "code"),
    [
        ("```js\nreturn 1\n```", "\nreturn 1\n"),
        ("```\nreturn 1\n```\n", "\nreturn 1\n\n"),
        ("\n~~~typescript\nreturn 1\n~~~", "\n\nreturn 1\n"),
        ("````js\nconst a = `\n```\n`\n````", "\nconst a = `\n```\n`\n"),
        ("```js\r\nreturn 1\r\n```", "\nreturn 1\r\n"),
        ("  ```js\nreturn 1\n  ```  ", "\nreturn 1\n"),
    ],
)
def test_a_fence_is_blanked_and_lines_keep_their_numbers(fenced: str, code: str) -> None:
    assert parse_exec_input({"code": fenced}, LANGUAGES).code == code
    assert fenced.splitlines().index("return 1" if "return 1" in code else "```") == code.splitlines().index(
        "return 1" if "return 1" in code else "```"
    )


@requirement("surface:exec:fence")
@pytest.mark.parametrize("text", ["```js\nreturn 1", "return `a`", "return 1\n```", "const f = `\n```\n`"])
def test_backticks_that_are_no_fence_stay(text: str) -> None:
    assert parse_exec_input({"code": text}, LANGUAGES).code == text


# The input of wait


@requirement("surface:wait:input")
@pytest.mark.parametrize("raw", [{"runId": "cm_1"}, {"run_id": "cm_1"}, {"runId": " cm_1 ", "run_id": "cm_1"}])
def test_wait_takes_a_run_id(raw: dict[str, Json]) -> None:
    assert parse_wait_input(raw) == "cm_1"


@requirement("surface:wait:input", "surface:exec:arguments")
@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, 'wait needs one "runId", that of a waiting result; it got none'),
        ({"runId": ""}, "it got none"),
        ({"runId": "cm_1", "run_id": "cm_2"}, "it got two different ones"),
        ({"runId": 7}, '"runId" must be a text; it is a number'),
        ({"runid": "cm_1"}, 'wait has no argument "runid".*Did you mean "runId"'),
        (["cm_1"], "wait takes one object"),
    ],
)
def test_wait_refuses_anything_else(raw: Json, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_wait_input(raw)
