"""The effective tools of a run."""

import json
import random

import pytest

from codemode.catalog import Catalog, Note, build_catalog
from codemode.core.errors import ErrorCode, NestedToolFailed
from codemode.core.limits import Limits
from codemode.core.types import PATH_SEPARATOR, GuestScope, NamespaceTarget
from codemode.policy import Policy
from tests.requirements import requirement
from tests.support.tools import make_tool

ORDER = make_tool(
    "plugin:shop:lookup_order",
    label="Look up",
    description="One order",
    parameters={"type": "object", "required": ["id"]},
)
SHELL = make_tool("openclaw:core:exec", description="Run a program")
ISSUE = make_tool("mcp:git-hub:create_issue", description="Create an issue")
TWINS = [make_tool("client:left:twin"), make_tool("client:right:twin")]


def build(*tools, policy=None, limits=None) -> Catalog:
    return build_catalog(tools, policy or Policy(), limits)


def rejection(action, *args) -> str:
    with pytest.raises(NestedToolFailed) as caught:
        action(*args)
    assert caught.value.code is ErrorCode.NESTED_TOOL_FAILED
    return str(caught.value)


@requirement("catalog:entries:compact")
def test_entries_are_compact_and_hold_no_mcp_tool():
    assert build(ORDER, ISSUE, SHELL).entries() == [
        {
            "id": "openclaw:core:exec",
            "name": "exec",
            "description": "Run a program",
            "source": "openclaw",
            "sourceName": "core",
        },
        {
            "id": "plugin:shop:lookup_order",
            "name": "lookup_order",
            "label": "Look up",
            "description": "One order",
            "source": "plugin",
            "sourceName": "shop",
        },
    ]


def test_size_and_sources_count_every_tool():
    catalog = build(ORDER, ISSUE, SHELL, *TWINS)

    assert catalog.size == len(catalog.tools) == 5
    assert catalog.sources == {"openclaw": 1, "plugin": 1, "mcp": 1, "client": 2}


@requirement("catalog:order:code-units")
def test_ids_are_in_code_unit_order():
    names = ["b", "a", "B", "_", "é", "z", "\ufb01", "\U0001f600", "a1", "a:b"]
    expected = sorted((f"client:app:{name}" for name in names), key=lambda id_: id_.encode("utf-16-be"))

    catalog = build(*(make_tool(f"client:app:{name}") for name in names))

    assert [tool.id for tool in catalog.tools] == expected
    assert expected != sorted(expected)


@requirement("catalog:order:deterministic")
def test_the_order_of_tools_does_not_matter():
    tools = [ORDER, SHELL, ISSUE, *TWINS, make_tool("client:app:lookup-order"), make_tool("client:app:2x")]
    texts = set()
    for seed in range(5):
        catalog = build(*random.Random(seed).sample(tools, len(tools)))
        texts.add((catalog.scope_text(), catalog.scope_digest, catalog.notes))

    assert len(texts) == 1


@requirement("catalog:left-out:control-tools")
def test_control_names_are_left_out_and_reported_but_not_a_shell_tool():
    control = ["wait", "tool_search", "tool_search_code", "tool_search_more", "tool_describe", "tool_call"]

    catalog = build(*(make_tool(f"client:app:{name}") for name in control), SHELL, make_tool("mcp:x:wait"))

    assert [tool.id for tool in catalog.tools] == ["mcp:x:wait", "openclaw:core:exec"]
    assert {(note.tool_id, note.kind) for note in catalog.notes} == {
        (f"client:app:{name}", "left-out") for name in control
    }
    assert catalog.notes[-1].text == '"wait" is the name of a control tool of code mode'


@requirement("catalog:left-out:denied")
def test_a_denied_tool_is_nowhere():
    catalog = build(ORDER, SHELL, policy=Policy(deny=["lookup_*"]))

    assert catalog.size == 1
    assert "lookup_order" not in json.dumps([catalog.entries(), catalog.names(), catalog.notes])
    assert catalog.search("order").entries == []
    assert rejection(catalog.resolve, ORDER.id) == 'no tool is called "plugin:shop:lookup_order".'
    assert rejection(catalog.describe, "lookup_order") == 'no tool is called "lookup_order".'
    assert catalog.tool(ORDER.id) is None


@requirement("catalog:left-out:duplicates")
def test_of_two_tools_with_one_id_the_first_stays():
    second = ORDER._replace(description="Another", origin="tool[1] in x.toml")

    catalog = build(ORDER, second)

    assert catalog.describe(ORDER.id)["description"] == "One order"
    assert catalog.notes == (
        Note(ORDER.id, "duplicate", "a second definition of tool[1] in x.toml was left out; the first stays"),
    )


@requirement("catalog:names:collisions", "catalog:names:reserved", "catalog:notes:reasons")
def test_convenience_names_and_why_some_have_none():
    names = ["get-user", "get_user", "2fast", "search", "then", "toString", "__codemode_x", "plain", "naïve", "a.b"]

    catalog = build(*(make_tool(f"client:app:{name}") for name in names))

    assert catalog.names() == {
        "_2fast": "client:app:2fast",
        "plain": "client:app:plain",
        "na_ve": "client:app:naïve",
        "a_b": "client:app:a.b",
    }
    notes = {note.tool_id.removeprefix("client:app:"): (note.kind, note.text) for note in catalog.notes}
    assert notes["2fast"] == ("normalised", "its function is tools._2fast")
    assert notes["search"] == (
        "reserved",
        'tools.search is taken by code mode; use tools.call("client:app:search", input)',
    )
    assert notes["get-user"] == (
        "collision",
        'tools.get_user would also be client:app:get_user; use tools.call("client:app:get-user", input)',
    )
    assert {kind for kind, _ in notes.values()} == {"normalised", "reserved", "collision"}
    assert "plain" not in notes


@requirement("catalog:notes:reasons")
def test_a_note_names_a_few_of_many_tools_that_share_a_name():
    catalog = build(*(make_tool(f"client:app{at:04}:get") for at in range(2000)))

    assert len(catalog.notes) == 2000
    assert catalog.notes[0].text == (
        "tools.get would also be client:app0001:get, client:app0002:get, client:app0003:get and 1,996 more; "
        'use tools.call("client:app0000:get", input)'
    )
    assert "app0000:get, client:app0001:get, client:app0002:get and" in catalog.notes[-1].text


def test_a_reserved_name_is_noted_once_for_each_tool_of_that_name():
    catalog = build(make_tool("client:a:call"), make_tool("client:b:call"))

    assert [note.kind for note in catalog.notes] == ["reserved", "reserved"]
    assert catalog.names() == {}


@requirement("catalog:resolve:id-then-name")
def test_an_exact_id_comes_before_a_name():
    tricky = make_tool("client:app:plugin:shop:lookup_order")
    catalog = build(ORDER, tricky)

    assert tricky.name == ORDER.id
    assert catalog.resolve("plugin:shop:lookup_order") is ORDER
    assert catalog.resolve("lookup_order") is ORDER


@requirement("catalog:resolve:near-ids")
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("twin", 'the name "twin" means several tools: client:left:twin, client:right:twin. Use an id.'),
        ("lookup_ordr", 'no tool is called "lookup_ordr". Near: plugin:shop:lookup_order.'),
        ("order", 'no tool is called "order". Near: plugin:shop:lookup_order.'),
        ("LOOKUP_ORDER", 'no tool is called "LOOKUP_ORDER". Near: plugin:shop:lookup_order.'),
        ("zzz", 'no tool is called "zzz".'),
        ("", 'a tool is asked for by its id or name, found "".'),
        (None, "a tool is asked for by its id or name, found null."),
        (7, "a tool is asked for by its id or name, found 7."),
        (["x" * 100], "a tool is asked for by its id or name, found "),
    ],
)
def test_what_means_no_tool_or_several_rejects(asked, message):
    text = rejection(build(ORDER, ISSUE, *TWINS).resolve, asked)

    assert text.startswith(message)
    assert len(text) < 200


@requirement("catalog:resolve:never-mcp")
def test_an_mcp_tool_is_reached_through_mcp_only():
    catalog = build(ISSUE, ORDER)

    assert rejection(catalog.resolve, ISSUE.id) == (
        "mcp:git-hub:create_issue is an MCP tool; call MCP.gitHub.createIssue(input)."
    )
    assert rejection(catalog.resolve, "create_issue") == 'no tool is called "create_issue".'
    assert rejection(catalog.describe, ISSUE.id)
    assert catalog.tool(ISSUE.id) is ISSUE


@requirement("catalog:describe:parameters")
def test_describe_adds_the_parameters():
    catalog = build(ORDER)

    assert catalog.describe(ORDER.id) == catalog.entries()[0] | {"parameters": ORDER.parameters}
    assert catalog.describe("lookup_order") == catalog.describe(ORDER.id)


@requirement("search:arguments:checked")
@pytest.mark.parametrize(
    ("query", "limit", "message"),
    [
        (5, None, "tools.search takes a text as its query, found 5."),
        (None, None, "tools.search takes a text as its query, found null."),
        ({"q": 1}, None, "tools.search takes a text as its query, found "),
        ("x", 0, "tools.search takes a positive whole number as its limit, found 0."),
        ("x", -1, "found -1."),
        ("x", 1.5, "found 1.5."),
        ("x", "3", 'found "3".'),
        ("x", True, "found true."),
        ("x", float("inf"), "found Infinity."),
        ("x", float("nan"), "found NaN."),
    ],
)
def test_a_search_with_wrong_arguments_rejects(query, limit, message):
    assert message in rejection(build(ORDER).search, query, limit)


@requirement("search:arguments:checked")
def test_limits_have_a_default_and_a_clamp():
    tools = [make_tool(f"client:app:order_{number}") for number in range(20)]
    catalog = build(*tools, limits=Limits(search_default_limit=3, max_search_limit=5))

    assert [len(catalog.search("order", limit).entries) for limit in (None, 1, 2.0, 5, 1000)] == [3, 1, 2, 5, 5]


@requirement("search:mcp:withheld")
def test_mcp_tools_are_withheld_and_named_in_the_hint():
    target = NamespaceTarget(ISSUE, lambda arguments: {})
    path = PATH_SEPARATOR.join(["MCP", "hub2", "createIssue"])
    catalog = build(ISSUE, ORDER, make_tool("client:app:list_issues"))

    guessed = catalog.search("issue")
    known = catalog.with_scope(GuestScope(targets={path: target})).search("issue")
    only = catalog.search("create")

    assert [entry["name"] for entry in guessed.entries] == ["list_issues"]
    assert (guessed.hint or "").startswith("MCP tools match too: MCP.gitHub.createIssue. Call them as MCP.<server>")
    assert "MCP.hub2.createIssue" in (known.hint or "")
    assert only.entries == []
    assert only.hint is not None
    assert catalog.search("order").hint is None
    assert build(ORDER).search("order").hint is None


def test_explain_ranks_mcp_tools_too():
    explained = build(ISSUE, ORDER, make_tool("client:app:list_issues")).explain("issue")

    assert {entry.tool.source for entry in explained} == {"mcp", "client"}


@requirement("catalog:scope:texts")
def test_the_scope_holds_each_global_as_json_text():
    catalog = build(ORDER, ISSUE)
    scoped = catalog.with_scope(GuestScope(mcp='{"servers":[]}', files='[{"path":"é"}]', namespaces="[1]"))

    texts = json.loads(scoped.scope_text())

    assert json.loads(texts["tools"]) == catalog.entries()
    assert json.loads(texts["names"]) == {"lookup_order": ORDER.id}
    assert (texts["mcp"], texts["files"], texts["namespaces"]) == ('{"servers":[]}', '[{"path":"é"}]', "[1]")
    assert scoped.scope_text() is scoped.scope_text()
    assert scoped.scope_digest != catalog.scope_digest
    assert len(scoped.scope_digest) == 64


@requirement("search:index:lazy", "catalog:size:lazy")
def test_nothing_costly_is_built_before_it_is_asked_for_and_scopes_share_it():
    catalog = build(ORDER)
    scoped = catalog.with_scope(GuestScope())
    listing = vars(catalog)["_listing"]

    assert not {"index", "entries_text", "by_name", "by_safe_name"} & vars(listing).keys()
    catalog.search("order")
    first = listing.index
    scoped.search("order")

    assert listing.index is first
    assert vars(scoped)["_listing"] is listing


def test_a_catalog_is_extended_and_its_notes_stay():
    policy = Policy(deny=["secret"])
    catalog = build(ORDER, make_tool("client:app:wait"))

    extended = catalog.extend([ISSUE, ORDER._replace(description="late"), make_tool("mcp:x:secret")], policy)

    assert [tool.id for tool in extended.tools] == [ISSUE.id, ORDER.id]
    assert extended.describe(ORDER.id)["description"] == "One order"
    assert [(note.tool_id, note.kind) for note in extended.notes] == [
        ("client:app:wait", "left-out"),
        (ORDER.id, "duplicate"),
    ]


def test_an_empty_catalog_answers_everything():
    catalog = build()

    assert (catalog.entries(), catalog.names(), catalog.notes, catalog.size) == ([], {}, (), 0)
    assert catalog.search("x").entries == []
    assert json.loads(catalog.scope_text())["tools"] == "[]"
