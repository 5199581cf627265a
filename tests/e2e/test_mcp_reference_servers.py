"""The protocol's reference servers from npm, end to end; their declarations under the real `tsc --strict`."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from codemode.core.types import GuestScope
from codemode.mcp.declarations import DeclaredServer, DeclaredTool, render_index, render_server
from codemode.mcp.scope import fill_defaults
from codemode.validation import compile_check
from tests.requirements import requirement
from tests.support.mcp import CONTEXT, call, call_listed, check_types, reference_server, servers_of, text_of
from tests.support.odd_schemas import ODD


def _write(folder: Path, texts: dict[str, str]) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return list(texts)


def _files(scope: GuestScope) -> dict[str, str]:
    return {file["path"].removeprefix("mcp/"): file["text"] for file in json.loads(scope.files)}


@requirement("mcp:transport:stdio", "mcp:operations:capability", "mcp:call:progress")
async def test_everything_works_end_to_end(tmp_path: Path) -> None:
    """Tools, structured content, resources, prompts, progress."""
    updates: list[Any] = []
    async with servers_of(reference_server("everything"), cache=tmp_path) as servers:
        listing = await servers.tools()
        total = text_of(await call(servers, "everything.getSum", {"a": 2, "b": 3}))
        weather = await call(servers, "everything.getStructuredContent", {"location": "Chicago"})
        links = await call(servers, "everything.getResourceLinks")
        text = await call(servers, "everything.resources.read", {"uri": "demo://resource/dynamic/text/1"})
        prompts = await call(servers, "everything.prompts.list")
        prompt = await call(servers, "everything.prompts.get", {"name": "args-prompt", "arguments": {"city": "Oslo"}})
        await call(
            servers,
            "everything.triggerLongRunningOperation",
            {"duration": 0.1, "steps": 2},
            context=CONTEXT._replace(report=lambda _, update: updates.append(update)),
        )

    assert {"mcp:everything:get-sum", "mcp:everything:echo"} < {tool.id for tool in listing.tools}
    assert (listing.failures, listing.warnings) == ((), ())
    assert total == "The sum of 2 and 3 is 5."
    assert set(weather["structuredContent"]) == {"temperature", "conditions", "humidity"}
    assert len(links["content"]) == 4  # a heading, and the default of three links
    assert "text" in text["contents"][0]
    assert "args-prompt" in {entry["name"] for entry in prompts["prompts"]}
    assert "Oslo" in prompt["messages"][0]["content"]["text"]
    assert [update["progress"] for update in updates] == [1, 2]


@requirement("mcp:transport:stdio", "mcp:start:isolated")
async def test_four_reference_servers_work_side_by_side(tmp_path: Path) -> None:
    """A folder is listed, entities are stored, a thought is thought."""
    (tmp_path / "note.txt").write_text("hello", encoding="utf-8")
    specs = [
        reference_server("everything"),
        reference_server("filesystem", str(tmp_path)),
        reference_server("memory")._replace(env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}),
        reference_server("sequential-thinking"),
    ]
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    async with servers_of(*specs, cache=tmp_path) as servers:
        listing = await servers.tools()
        folder = await call_listed(servers, listing, "filesystem.listDirectory", {"path": str(tmp_path)})
        await call_listed(servers, listing, "memory.createEntities", {"entities": [ada]})
        graph = await call_listed(servers, listing, "memory.readGraph")

    assert listing.failures == ()
    assert {tool.owner for tool in listing.tools} == {"everything", "filesystem", "memory", "sequential-thinking"}
    assert "[FILE] note.txt" in text_of(folder)
    assert json.loads(text_of(graph))["entities"] == [ada]


@requirement("mcp:types:compile", "mcp:types:output", "mcp:scope:files")
async def test_the_declarations_of_real_servers_compile_alone_and_together(tmp_path: Path) -> None:
    """And a program that uses them is checked by them."""
    specs = [reference_server(name) for name in ("everything", "memory", "sequential-thinking")]
    specs.append(reference_server("filesystem", str(tmp_path)))
    async with servers_of(*specs, cache=tmp_path) as servers:
        scope = servers.guest_scope((await servers.tools()).tools)
    program = """
        async function good(): Promise<number | undefined> {
            await MCP.everything.getSum({ a: 1, b: 2 });
            await MCP.sequentialThinking.$api("sequentialthinking", { schema: true });
            const weather = await MCP.everything.getStructuredContent({ location: "Chicago" });
            const page = await MCP.everything.resources.list();
            return weather.structuredContent?.temperature ?? page.resources[0].uri.length;
        }
    """
    wrong = "MCP.everything.getSum({ a: 1 });\nMCP.everything.getStructuredContent({ location: 'Rome' });\n"
    files = _write(tmp_path, _files(scope))
    header, *_ = _write(tmp_path, {"header.d.ts": _tool_headers(scope)[-1]})
    programs = _write(tmp_path, {"good.ts": program, "wrong.ts": wrong})

    assert files == ["index.d.ts", "everything.d.ts", "filesystem.d.ts", "memory.d.ts", "sequentialThinking.d.ts"]
    for name in (*files, header):
        assert check_types(tmp_path, name) == ""
    faults = check_types(tmp_path, *files, *programs).splitlines()
    assert [fault.split(":")[0] for fault in faults if "error TS" in fault] == ["wrong.ts(1,23)", "wrong.ts(2,39)"]


def _tool_headers(scope: GuestScope) -> list[str]:
    return [tool["header"] for server in json.loads(scope.mcp)["servers"] for tool in server["tools"]]


_WORDS = [
    *("delete", "new", "class", "function", "default", "import", "export", "await", "yield", "static", "enum", "null"),
    *("true", "this", "super", "void", "typeof", "in", "of", "undefined", "NaN", "any", "unknown", "never", "string"),
    *("number", "symbol", "object", "type", "declare", "namespace", "module", "global", "abstract", "as", "async"),
    *("get", "set", "require", "exports", "arguments", "eval", "let", "package", "interface", "is", "keyof", "infer"),
    *("readonly", "asserts", "unique", "out", "satisfies", "accessor", "using", "promise", "array", "record", "mcp"),
    *("globalThis", "constructor2", "text2"),
]


@requirement("mcp:types:words", "mcp:types:compile")
def test_every_word_can_be_the_name_of_a_tool_a_server_or_a_property(tmp_path: Path) -> None:
    """Reserved or not, in each of the three places."""
    schema = {"type": "object", "properties": {word: {"type": "string"} for word in _WORDS}, "required": _WORDS}
    tools = tuple(DeclaredTool(word, "", schema if word == "delete" else {}) for word in _WORDS)
    one = render_server(DeclaredServer("all", "all", tools, has_resources=True, has_prompts=True))
    texts = {
        f"{word}.d.ts": render_server(DeclaredServer(word, word, (DeclaredTool("t", "", {}),))).file for word in _WORDS
    }
    uses = "\n".join(f"void MCP.all.{word};" for word in _WORDS)
    names = _write(tmp_path, {"all.d.ts": one.file, "uses.ts": uses} | texts)
    alone = _write(tmp_path, {"header.d.ts": one.headers[_WORDS.index("delete")]})

    assert check_types(tmp_path, *names) == ""
    assert check_types(tmp_path, *alone) == ""


@requirement("mcp:types:schemas", "mcp:types:hostile", "executor:schema:other-dialects")
def test_an_odd_schema_takes_a_good_input_in_its_declaration_and_at_its_check(tmp_path: Path) -> None:
    """What the declarations invite to is what goes through; the other way round a cell would learn by failing."""
    tools = tuple(DeclaredTool(f"t{at}", why, schema, schema) for at, (why, schema, _) in enumerate(ODD))
    calls = "\n".join(f"void MCP.odd.t{at}({json.dumps(value)});" for at, (_, _, value) in enumerate(ODD))
    texts = {"odd.d.ts": render_server(DeclaredServer("odd", "odd", tools)).file, "calls.ts": calls}

    assert check_types(tmp_path, *_write(tmp_path, texts)) == ""
    for why, schema, value in ODD:
        assert (why, compile_check(schema)(fill_defaults(schema, value))) == (why, None)


_KEYWORDS = [
    *("type", "properties", "required", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"),
    *("$defs", "additionalProperties", "default", "description", "nullable", "patternProperties", "definitions"),
    *("additionalItems", "not", "if", "then", "else", "contains", "dependentSchemas", "unevaluatedProperties"),
    *("$schema", "$id", "$anchor", "$dynamicRef", "title", "examples", "pattern"),
]


def _hostile(random_: random.Random, depth: int = 0) -> Any:
    """Return something between a schema and nonsense; the same for the same seed."""
    scalars: list[Any] = [
        None,
        True,
        False,
        7,
        -1.5,
        10**40,
        "",
        "*/",
        "string",
        "object",
        "array",
        "null",
        "\u2028",
        "é'\"`",
    ]
    if depth > 3 or random_.random() < 0.15:
        return random_.choice(scalars)
    if random_.random() < 0.2:
        return [_hostile(random_, depth + 1) for _ in range(random_.randrange(4))]
    keys = random_.sample([*_KEYWORDS, "a", "b-c", "*/", "new", "\n", "\u2029", "__proto__", "constructor", "1"], 5)
    made = {key: _hostile(random_, depth + 1) for key in keys}
    if "type" in made:
        made["type"] = random_.choice(["object", "array", "string", ["object", "null"], "integer", made["type"]])
    if "$ref" in made:
        made["$ref"] = random_.choice(
            ["#", "#/properties/a", "#/$defs/a", "#/definitions/a", "#/items", "x", made["$ref"]]
        )
    for key in ("properties", "$defs", "definitions"):
        if key in made:
            made[key] = {name: _hostile(random_, depth + 1) for name in ("a", "b-c", "*/")}
    return made


@requirement("mcp:types:hostile", "mcp:types:compile")
@pytest.mark.parametrize("seed", range(4))
def test_hostile_schemas_never_break_a_file(tmp_path: Path, seed: int) -> None:
    """Six hundred of them, as inputs and as outputs, with hostile names and texts."""
    random_ = random.Random(seed)
    tools = tuple(
        DeclaredTool(
            f"t{at}",
            random_.choice(["*/ evil", "/** */", "a\rb\u2028c", "`${x}`"]),
            _hostile(random_),
            _hostile(random_),
        )
        for at in range(150)
    )
    server = DeclaredServer("hostile", "*/ `x` \u2028 hostile", tools, has_resources=True)
    rendered = render_server(server)
    names = _write(tmp_path, {"hostile.d.ts": rendered.file, "index.d.ts": render_index([server])})

    assert check_types(tmp_path, *names) == ""
