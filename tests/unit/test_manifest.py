"""`codemode.toml`: found, read, checked whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codemode.core.errors import InvalidConfig
from codemode.core.tables import Where
from codemode.definitions import CommandTemplate, HttpTemplate, PythonTarget, Script, check_parameters
from codemode.manifest import Manifest, find_manifest, load_manifest
from tests.requirements import requirement

CONTRACT_EXAMPLE = """
[tools]
allow = ["*"]
deny = ["openclaw:core:exec"]

[tools.codeMode]
enabled = true

[[tool]]
name = "lookup_order"
label = "Look up an order"
description = "One order by id, with its lines."
source = "plugin"
owner = "shop"
parameters = { type = "object", properties = { id = { type = "string" } }, required = ["id"] }
approval = "never"
timeoutMs = 5000
python = "shop:lookup_order"

[core]
tools = ["read_file", "exec"]
roots = ["."]

[[plugin]]
module = "acme_plugin"

[[openapi]]
spec = "petstore.json"
owner = "petstore"

[approvals]
"plugin:billing:*" = "ask"

[[hook]]
event = "before_tool_call"
python = "hooks:check"

[mcp]
include = [".mcp.json"]

[mcp.servers.everything]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-everything"]
"""


def load(folder: Path, text: str) -> Manifest:
    path = folder / "codemode.toml"
    path.write_text(text, encoding="utf-8")
    return load_manifest(path)


def tool(**fields: str) -> str:
    given = {"name": '"t"', "description": '"d"', "value": "1"} | fields
    return "[[tool]]\n" + "\n".join(f"{key} = {value}" for key, value in given.items() if value)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(InvalidConfig) as caught:
        load(folder, text)
    return str(caught.value).replace(str(folder), "<folder>")


@requirement("manifest:load:whole-example", "manifest:mcp:raw")
def test_the_contracts_example_loads_as_it_is_written(tmp_path):
    manifest = load(tmp_path, CONTRACT_EXAMPLE)

    (entry,) = manifest.tools
    assert (entry.id, entry.label, entry.timeout_ms) == ("plugin:shop:lookup_order", "Look up an order", 5000)
    assert entry.executor == PythonTarget("shop", "lookup_order")
    assert entry.parameters["required"] == ["id"]
    assert manifest.code_mode.enabled
    assert manifest.deny == ("openclaw:core:exec",)
    assert manifest.core.tools == ("read_file", "exec")
    assert manifest.core.roots == (tmp_path,)
    assert manifest.plugins[0].id == "acme_plugin"
    assert manifest.openapi[0].spec == tmp_path / "petstore.json"
    assert manifest.approvals == (("plugin:billing:*", "ask"),)
    assert manifest.hooks[0].executor == PythonTarget("hooks", "check")
    assert manifest.mcp.include == (tmp_path / ".mcp.json",)
    ((where, servers),) = manifest.mcp.servers
    assert str(where) == f"mcp.servers in {tmp_path}/codemode.toml"
    assert servers["everything"]["command"] == "npx"


@requirement("manifest:load:empty")
def test_no_manifest_is_an_empty_one():
    manifest = load_manifest(None)

    assert (manifest.tools, manifest.hooks, manifest.path, manifest.allow) == ((), (), None, ("*",))
    assert manifest.folder == Path.cwd()


def test_an_empty_file_is_an_empty_manifest(tmp_path):
    assert load(tmp_path, "") == Manifest(path=tmp_path / "codemode.toml")


@requirement("manifest:find:nearest")
def test_the_nearest_file_upward_is_found(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "codemode.toml").touch()
    (tmp_path / "a" / "codemode.toml").touch()

    assert find_manifest(inner, {}) == tmp_path / "a" / "codemode.toml"
    assert find_manifest(tmp_path, {}) == tmp_path / "codemode.toml"


@requirement("manifest:find:variable")
def test_the_variable_wins_over_the_nearest_file(tmp_path):
    (tmp_path / "codemode.toml").touch()

    assert find_manifest(tmp_path, {"CODEMODE_MANIFEST": "/else/where.toml"}) == Path("/else/where.toml")
    assert find_manifest(tmp_path, {"CODEMODE_MANIFEST": ""}) == tmp_path / "codemode.toml"


def test_a_folder_called_like_the_manifest_is_none(tmp_path):
    (tmp_path / "codemode.toml").mkdir()
    (tmp_path / "inner").mkdir()

    assert find_manifest(tmp_path / "inner", {}) != tmp_path / "codemode.toml"


@requirement("manifest:load:unreadable")
def test_a_missing_file_and_a_folder_are_said_plainly(tmp_path):
    with pytest.raises(InvalidConfig, match=r"there is no manifest .*/none\.toml; .* codemode init writes one"):
        load_manifest(tmp_path / "none.toml")
    with pytest.raises(InvalidConfig, match=r"is a folder; name a manifest in it, such as"):
        load_manifest(tmp_path)


@requirement("manifest:load:unreadable")
def test_a_file_that_is_not_utf8_says_at_which_byte(tmp_path):
    (tmp_path / "codemode.toml").write_bytes(b"# caf\xe9\n")

    with pytest.raises(InvalidConfig, match=r"is not UTF-8 text \(byte 5\)"):
        load_manifest(tmp_path / "codemode.toml")


def test_a_byte_order_mark_is_no_error(tmp_path):
    (tmp_path / "codemode.toml").write_bytes(b"\xef\xbb\xbf[tools]\n")

    assert load_manifest(tmp_path / "codemode.toml").allow == ("*",)


@requirement("manifest:load:position")
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a = 1\nb = = 2\n", "2:5"),
        ("[tools\n", "1:7"),
        ('x = "unended', "1:13"),
        ("[tools]\n[tools]\n", "2:7"),
    ],
)
def test_malformed_toml_has_line_and_column(tmp_path, text, position):
    assert complaint(tmp_path, text).startswith(f"<folder>/codemode.toml:{position}: not TOML: ")


def test_toml_that_nests_too_deeply_is_an_error_and_no_crash(tmp_path):
    assert "nested too deeply" in complaint(tmp_path, "a = " + "[" * 5000)


@requirement("manifest:load:unknown-key")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tolls]\n", '<folder>/codemode.toml: unknown key "tolls"; known keys are agents, approvals, core, hook'),
        ("[tolls]\n", 'Did you mean "tools"'),
        ('[tools]\nalow = ["*"]\n', 'tools in <folder>/codemode.toml: unknown key "alow"'),
        ("[tools.codeMode]\nenable = true\n", 'Did you mean "enabled"?'),
        ("[core]\ntool = []\n", 'core in <folder>/codemode.toml: unknown key "tool"'),
        ("[tools.sandbox.tools]\nalsoallow = []\n", "tools.sandbox.tools in <folder>/codemode.toml: unknown key"),
        ("[mcp.server.x]\n", 'Did you mean "servers"?'),
        ("[agents.main]\ncodeMode = true\n", 'agents.main in <folder>/codemode.toml: unknown key "codeMode"'),
        ("[agents]\nmain = 1\n", "agents.main in <folder>/codemode.toml: found 1; allowed is a table."),
        ("tool = 1\n", "tool in <folder>/codemode.toml: found 1; allowed is a list of tables."),
        ('[core]\ntools = ["reed_file"]\n', 'Did you mean "read_file"'),
        (
            '[core]\nroots = ["nowhere"]\n',
            'core.roots[0] in <folder>/codemode.toml: "<folder>/nowhere" is not a folder',
        ),
        ('[approvals]\n"*" = "sometimes"\n', 'found "sometimes"; allowed is "never" or "ask" or "always-deny".'),
        ('[[plugin]]\nid = "x"\n', "plugin[0] in <folder>/codemode.toml: needs exactly one of module, entryPoint"),
        ('[[hook]]\nevent = "after"\npython = "a:b"\n', 'found "after"; allowed is "before_tool_call".'),
        ('[[hook]]\nevent = "before_tool_call"\n', "needs exactly one of python, command; found none."),
        ('[[openapi]]\nspec = "a.json"\n', 'the key "owner" is missing'),
    ],
)
def test_what_is_wrong_in_a_table_is_named(tmp_path, text, message):
    assert message in complaint(tmp_path, text)


@requirement("manifest:tool:one-executor")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"value": ""}, "needs exactly one of python, command, http, value, error, hugeBytes, nonJson; found none."),
        ({"python": '"a:b"'}, "found python and value."),
        ({"value": "", "python": '"no colon"'}, 'tool[0].python in <folder>/codemode.toml: found "no colon"; allowed'),
        ({"value": "", "command": "[]"}, "found an empty list; allowed is a program and its arguments."),
        ({"value": "", "command": '"ls -l"'}, 'found "ls -l"; allowed is a list of texts.'),
        ({"value": "", "python": '"a:b"', "delayMs": "5"}, "only a scripted tool (value, error, hugeBytes, nonJson)"),
        ({"value": "", "http": '{ url = "ftp://x" }'}, "allowed is a URL that begins with http:// or https://"),
        ({"value": "", "http": '{ url = "http://x/{id}" }'}, "tool[0].http.url in <folder>/codemode.toml: {id} is no"),
        ({"value": "", "http": '{ url = "http://x", methd = "GET" }'}, 'Did you mean "method"?'),
        ({"value": "", "http": '{ url = "http://x", method = "get" }'}, 'Did you mean "GET"'),
        ({"value": "", "http": '{ url = "http://x", headers = { A = 1 } }'}, "allowed is a table of texts"),
        ({"description": ""}, 'the key "description" is missing; it takes a text.'),
        ({"name": '" "'}, 'tool[0].name in <folder>/codemode.toml: found " "; allowed is a text.'),
        ({"name": '"a\\u001fb"'}, "a tool's name holds printable characters only"),
        ({"timeoutMs": "0"}, "found 0; allowed is a whole number of 1 or more."),
        ({"approval": '"maybe"'}, 'allowed is "never" or "ask" or "always-deny".'),
        ({"source": '"mcp"'}, 'allowed is "openclaw" or "plugin" or "client".'),
    ],
)
def test_what_is_wrong_in_a_tool_is_named(tmp_path, fields, message):
    assert message in complaint(tmp_path, tool(**fields))


def test_each_executor_becomes_its_value(tmp_path):
    http = '{ url = "https://x/${V:-a}/{id}", headers = { A = "b" }, method = "POST", body = "form" }'
    schema = "{ type = 'object', properties = { id = {} } }"
    texts = [
        tool(name='"a"', value="", python='"pkg.mod:Class.method"'),
        tool(name='"b"', value="", command='["jq", "-c", ""]'),
        tool(name='"c"', value="", http=http, parameters=schema),
        tool(name='"d"', value="", error='"boom"', delayMs="50", failNth="2"),
        tool(name='"e"', value="{ ok = true }"),
    ]

    manifest = load(tmp_path, "\n".join(texts))

    assert [entry.executor for entry in manifest.tools] == [
        PythonTarget("pkg.mod", "Class.method"),
        CommandTemplate(("jq", "-c", "")),
        HttpTemplate("POST", "https://x/${V:-a}/{id}", {"A": "b"}, "form"),
        Script("error", "boom", 50, 2),
        Script("value", {"ok": True}),
    ]
    assert [entry.where.key for entry in manifest.tools] == ["tool[0]", "tool[1]", "tool[2]", "tool[3]", "tool[4]"]


@requirement("manifest:tool:owner")
def test_owners_have_defaults_but_for_plugins(tmp_path):
    texts = [tool(source=f'"{source}"') for source in ("openclaw", "client")]

    assert [entry.id for entry in load(tmp_path, "\n".join(texts)).tools] == ["openclaw:core:t", "client:app:t"]
    assert "needs an owner" in complaint(tmp_path, tool(source='"plugin"'))
    assert 'holds no ":"' in complaint(tmp_path, tool(owner='"a:b"'))
    assert "owner" in complaint(tmp_path, tool(owner='""'))


@requirement("manifest:tool:duplicate-ids")
def test_a_second_tool_of_one_id_names_the_first(tmp_path):
    text = complaint(tmp_path, tool() + "\n" + tool(owner='"other"') + "\n" + tool())

    assert text == (
        'tool[2] in <folder>/codemode.toml: the id "client:app:t" is already taken by tool[0]; rename one of the two.'
    )


@requirement("manifest:schema:large-bounds")
def test_a_bound_of_64_bits_stays_a_number_and_a_cycle_is_still_one():
    bounded = {"properties": {"n": {"type": "integer", "maximum": 2**63 - 1, "enum": [2**53, 10**400]}}}
    cycle: dict = {"properties": {}}
    cycle["properties"]["again"] = [cycle, cycle]

    checked = check_parameters(bounded, Where("codemode.toml", "tool[0].parameters"))["properties"]["n"]
    assert checked == {"type": "integer", "maximum": 2.0**63, "enum": [2**53, "1" + "0" * 400]}
    with pytest.raises(InvalidConfig, match="cycle"):
        check_parameters(cycle, Where("codemode.toml", "tool[0].parameters"))


@requirement("manifest:schema:checked")
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{ type = 'objekt' }", "/type must be one of array, boolean"),
        ("{ type = 'string' }", 'its type must be "object"'),
        ("{ type = 'object', required = 'id' }", "/required must be a list of different texts"),
        ("{ properties = { a = { minimum = 'x' } } }", "/properties/a/minimum must be a number"),
        ("{ properties = { a = { pattern = '(' } } }", "/properties/a/pattern must be a regular expression"),
        ("{ properties = { a = { '$ref' = '#/$defs/b' } } }", "/properties/a/$ref leads nowhere: #/$defs/b"),
        (
            "{ '$schema' = 'http://json-schema.org/draft-07/schema#', minLength = 'x' }",
            "/minLength: 'x' is not of type",
        ),
    ],
)
def test_a_schema_that_is_none_is_named_with_path_and_rule(tmp_path, schema, message):
    text = complaint(tmp_path, tool(parameters=schema))

    assert text.startswith("tool[0].parameters in <folder>/codemode.toml: not a JSON Schema of an input: ")
    assert message in text


def test_a_schema_of_another_dialect_follows_that_dialect(tmp_path):
    limits = "{ minimum = 1, exclusiveMinimum = true }"
    schema = f"{{ '$schema' = 'http://json-schema.org/draft-04/schema#', properties = {{ a = {limits} }} }}"

    assert load(tmp_path, tool(parameters=schema)).tools[0].parameters["properties"]["a"]["exclusiveMinimum"] is True


def test_parameters_may_come_from_a_file_beside_the_manifest(tmp_path):
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    (tmp_path / "order.json").write_text(json.dumps(schema))

    assert load(tmp_path, tool(parametersFile='"order.json"')).tools[0].parameters == schema


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read <folder>/s.json: No such file or directory."),
        (b"\xff", "<folder>/s.json is not UTF-8 text."),
        (b'{\n "a": }', "<folder>/s.json:2:7: not JSON: Expecting value."),
        (b"[" * 100_000, "<folder>/s.json is nested too deeply."),
        (b'{"a":' * 150 + b"1" + b"}" * 150, "the schema is not JSON: value.a.a.a"),
        (b"[1]", "not a JSON Schema of an input: the schema must be a table"),
    ],
)
def test_a_parameters_file_that_is_no_schema_is_said(tmp_path, content, message):
    if content is not None:
        (tmp_path / "s.json").write_bytes(content)

    assert message in complaint(tmp_path, tool(parametersFile='"s.json"'))


def test_parameters_and_their_file_exclude_each_other(tmp_path):
    assert "keep one" in complaint(tmp_path, tool(parameters="{}", parametersFile='"s.json"'))


def test_a_schema_may_hold_dates_but_no_cycle_of_levels(tmp_path):
    manifest = load(tmp_path, tool(parameters="{ properties = { day = { default = 1979-05-27 } } }"))

    assert manifest.tools[0].parameters["properties"]["day"]["default"] == "1979-05-27"


@requirement("manifest:agents:override")
def test_an_agents_settings_lie_over_the_global_ones(tmp_path):
    text = "[tools.codeMode]\nenabled = true\ntimeoutMs = 500\n[agents.qa.tools.codeMode]\ntimeoutMs = 900\n"

    manifest = load(tmp_path, text)

    assert manifest.config_for("qa").limits.timeout_ms == 900
    assert manifest.config_for("qa").enabled
    assert manifest.config_for("main").limits.timeout_ms == 500


def test_servers_may_be_written_as_codex_does(tmp_path):
    manifest = load(tmp_path, '[mcp_servers.a]\ncommand = "x"\n[mcp.servers.b]\nurl = "https://y"\n')

    assert [(where.key, list(table)) for where, table in manifest.mcp.servers] == [
        ("mcp.servers", ["b"]),
        ("mcp_servers", ["a"]),
    ]


def test_the_sandbox_gate_is_read(tmp_path):
    gate = load(
        tmp_path, '[tools.sandbox]\nenabled = true\n[tools.sandbox.tools]\nalsoAllow = ["bundle-mcp"]\n'
    ).sandbox

    assert (gate.enabled, gate.allow, gate.also_allow, gate.deny) == (True, None, ("bundle-mcp",), ())


@requirement("manifest:load:nothing-run", "manifest:load:lean")
def test_loading_imports_neither_targets_nor_heavy_libraries(tmp_path):
    (tmp_path / "codemode.toml").write_text(CONTRACT_EXAMPLE)
    program = (
        "import sys, pathlib; from codemode.manifest import load_manifest; "
        f"load_manifest(pathlib.Path({str(tmp_path / 'codemode.toml')!r})); "
        "print([name for name in sys.modules if name.partition('.')[0] in "
        "('shop', 'hooks', 'acme_plugin', 'pydantic', 'jsonschema', 'httpx2', 'mcp', 'rich', 'typer')])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "[]"
