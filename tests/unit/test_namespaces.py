"""Namespaces: the gate, the serialiser, paths and mappers, and what cells make of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from codemode.bridge import Bridge
from codemode.catalog import Catalog, build_catalog
from codemode.composition import open_pool
from codemode.core.errors import InvalidConfig, InvalidInput, NestedToolFailed
from codemode.core.limits import MAX_BRIDGE_BYTES, Limits
from codemode.core.redact import Redactor
from codemode.core.tables import Where
from codemode.core.types import PATH_SEPARATOR, BridgeCall, Completed, Failed, GuestScope, Json, Keep, RunContext
from codemode.executor import Executor
from codemode.namespaces import Namespace, Namespaces, check_global_name, namespace_tool
from codemode.policy import Policy
from codemode.store.memory import MemoryStore
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.sessions import open_test_session, toolbox
from tests.support.tools import make_context, make_tool

LIST, UPDATE = make_tool("plugin:github:list"), make_tool("plugin:github:update")
CONTEXT = make_context()
WHERE = Where("a plugin", "namespace issues")


def namespace(scope: Any = None, **fields: Any) -> Namespace:
    """Return the namespace `Issues` of the plugin github, whose scope is, or is made by, `scope`."""
    given = scope if callable(scope) else lambda ctx: {"list": namespace_tool("list")} if scope is None else scope
    return Namespace(
        **{
            "id": "issues",
            "plugin_id": "github",
            "global_name": "Issues",
            "description": "Issues of this repository.",
            "required_tool_names": ("list", "update"),
            "create_scope": given,
        }
        | fields
    )


def catalog(*tools: Any, policy: Policy | None = None) -> Catalog:
    return build_catalog(tools or (LIST, UPDATE), policy or Policy())


async def node(scope: Any) -> Json:
    """Return the node that the guest builds the namespace from."""
    opened, _ = await Namespaces([namespace(scope)]).open(catalog(), CONTEXT)
    (face,) = json.loads(opened.scope.namespaces)
    assert face["name"] == "Issues"
    return face["node"]


async def refusal(scope: Any, **fields: Any) -> str:
    with pytest.raises(InvalidConfig) as caught:
        await Namespaces([namespace(scope, **fields)]).open(catalog(), CONTEXT)
    return caught.value.message.removeprefix("the namespace issues of the plugin github: ")


def path(*steps: str) -> str:
    return PATH_SEPARATOR.join(("Issues", *steps))


async def mapped(mapper: Callable[[list[Json]], Any] | None, *arguments: Json) -> Json:
    """Return the input that a call with these arguments gives its tool."""
    opened, _ = await Namespaces([namespace({"list": namespace_tool("list", mapper)})]).open(catalog(), CONTEXT)
    return opened.scope.targets[path("list")].to_input(list(arguments))


# ---- who sees it ----


@requirement("namespaces:gate:all-tools", "namespaces:prompt:only-visible")
@pytest.mark.parametrize(
    ("tools", "deny", "visible"),
    [
        ((LIST, UPDATE), (), True),
        ((LIST,), (), False),
        ((LIST, UPDATE), ("plugin:github:update",), False),
        ((LIST, UPDATE), ("list",), False),
    ],
)
async def test_a_namespace_is_visible_while_all_its_tools_are(tools, deny, visible):
    """Its text in exec's description and its global come and go together."""
    seen = catalog(*tools, policy=Policy(deny=deny))
    namespaces = Namespaces([namespace(prompt="Use Issues.list(params).")])
    opened, written = await namespaces.open(seen, CONTEXT)

    expected = ("- Issues: Issues of this repository.\n  Use Issues.list(params).",) if visible else ()
    assert namespaces.prompts(seen) == expected
    assert (opened.scope.namespaces != "[]", bool(opened.scope.targets), written is not None) == (visible,) * 3


@requirement("namespaces:gate:owner")
@pytest.mark.parametrize("other", ["plugin:evil:list", "client:github:list", "openclaw:github:list", "mcp:github:list"])
async def test_a_tool_of_another_owner_makes_nothing_visible(other):
    """Neither a plugin with a tool of that name, nor a source whose sourceName happens to be the plugin's id."""
    seen = catalog(UPDATE, make_tool(other))
    called = []
    opened, written = await Namespaces([namespace(called.append)]).open(seen, CONTEXT)

    assert (opened, written, called) == (seen, None, [])


async def test_what_was_there_beside_the_namespaces_stays():
    """MCP, files, targets and prompts of the catalog's scope are untouched."""
    before = GuestScope(mcp='{"servers":[]}', files='[{"path":"a"}]', prompts=("- MCP",), targets={"MCP": ...})
    opened, _ = await Namespaces([namespace()]).open(catalog().with_scope(before), CONTEXT)

    assert opened.scope._replace(namespaces="[]", targets=before.targets) == before
    assert opened.scope.targets.keys() == {"MCP", path("list")}


async def test_two_namespaces_of_two_plugins_stand_side_by_side():
    """The order is that of registration."""
    other = namespace(plugin_id="jira", id="jira", global_name="Tickets", required_tool_names=("list",))
    seen = catalog(LIST, UPDATE, make_tool("plugin:jira:list"))
    opened, written = await Namespaces([namespace(), other]).open(seen, CONTEXT)

    assert [face["name"] for face in json.loads(opened.scope.namespaces)] == ["Issues", "Tickets"]
    assert opened.scope.targets[path("list")].tool.id == "plugin:github:list"
    assert opened.scope.targets[f"Tickets{PATH_SEPARATOR}list"].tool.id == "plugin:jira:list"
    assert written.keys() == {"issues", "jira"}


# ---- its name ----


@requirement("namespaces:global:identifier")
@pytest.mark.parametrize("name", ["", "my issues", "9lives", "a.b", "class", "await", "é", "a-b"])
def test_a_global_is_an_identifier(name):
    with pytest.raises(InvalidConfig, match="allowed is a JavaScript identifier"):
        check_global_name(name, WHERE)


@requirement("namespaces:global:built-ins")
@pytest.mark.parametrize(
    "name", ["tools", "namespaces", "text", "json", "yield_control", "MCP", "__codemode", "__openclaw_x", "require"]
)
def test_a_global_is_none_of_ours(name):
    with pytest.raises(InvalidConfig, match="which cells know already"):
        check_global_name(name, WHERE)


@requirement("namespaces:global:built-ins")
async def test_a_global_is_none_of_those_that_the_engine_has(pool):
    """The names come from the engine itself, so a new one there is noticed here."""
    async with open_test_session(pool, toolbox()) as session:
        result = await session.exec({"code": "return Object.getOwnPropertyNames(globalThis)"})
    assert isinstance(result, Completed)
    free = []
    for name in result.value:
        try:
            check_global_name(name, WHERE)
        except InvalidConfig:
            continue
        free.append(name)

    assert len(result.value) > 60
    assert free == []


# ---- what crosses ----


@requirement("namespaces:scope:values")
async def test_plain_values_cross_as_one_value():
    """What holds nothing callable needs no nodes of its own."""
    scope = {"repository": {"name": "x", "stars": 3, "tags": ["a", None, True, 1.5]}, "empty": {}, "none": []}

    assert await node(scope) == ["v", scope]


@requirement("namespaces:scope:values")
async def test_callables_stand_anywhere_in_objects_and_arrays():
    scope = {"all": [{"run": namespace_tool("list")}, "x"], "deep": {"er": {"est": namespace_tool("update")}}, "n": 1}

    assert await node(scope) == [
        "o",
        {
            "all": ["a", [["o", {"run": ["f"]}], ["v", "x"]]],
            "deep": ["o", {"er": ["o", {"est": ["f"]}]}],
            "n": ["v", 1],
        },
    ]
    opened, _ = await Namespaces([namespace(scope)]).open(catalog(), CONTEXT)
    assert opened.scope.targets.keys() == {path("all", "0", "run"), path("deep", "er", "est")}


@requirement("namespaces:scope:values")
async def test_a_shared_reference_is_copied_and_is_no_cycle():
    shared = {"labels": ["bug"], "list": namespace_tool("list")}
    made = await node({"a": shared, "b": [shared, shared]})

    copy = ["o", {"labels": ["v", ["bug"]], "list": ["f"]}]
    assert made == ["o", {"a": copy, "b": ["a", [copy, copy]]}]


@requirement("namespaces:scope:values")
async def test_other_values_become_what_the_adapter_makes_of_them_or_null():
    """A client, a handle or bytes never cross: null stands for them."""
    scope = {
        "day": date(2026, 5, 1),
        "price": Decimal("1.50"),
        "big": 2**60,
        "nan": float("nan"),
        "pair": (1, 2),
        "bytes": b"x",
        "client": object(),
        "text": "\ud800",
    }

    assert await node(scope) == [
        "v",
        {"day": "2026-05-01", "price": "1.50", "big": str(2**60), "nan": None, "pair": [1, 2],
         "bytes": None, "client": None, "text": "\ufffd"},
    ]  # fmt: skip


def cyclic() -> dict:
    scope: dict = {"a": {"b": []}}
    scope["a"]["b"].append(scope["a"])
    return scope


def deep(levels: int) -> dict:
    scope: dict = {}
    for _ in range(levels):
        scope = {"a": scope}
    return scope


@requirement("namespaces:scope:refused")
@pytest.mark.parametrize(
    ("scope", "complaint"),
    [
        ({"a": {"list": len}}, "create_scope gave a raw function at Issues.a.list; wrap it: namespace_tool"),
        ({"a": [lambda: 1]}, "a raw function at Issues.a.0"),
        ({"a": dict}, "a raw function at Issues.a"),
        (cyclic(), "an object that holds itself at Issues.a.b.0"),
        ({"__proto__": 1}, 'the key "__proto__" at Issues;'),
        ({"a": {"constructor": 1}}, 'the key "constructor" at Issues.a;'),
        ({"a": [{"prototype": 1}]}, 'the key "prototype" at Issues.a.0;'),
        ({"": 1}, 'the key "" at Issues;'),
        ({f"a{PATH_SEPARATOR}b": 1}, "the key"),
        ({1: 2}, "a key of type int at Issues; keys are texts"),
        (deep(101), "more than 100 levels"),
        ([namespace_tool("list")], "create_scope gave a list; allowed is an object"),
        (namespace_tool("list"), "create_scope gave a NamespaceTool; allowed is an object"),
        ("text", "create_scope gave a str"),
        ({"a": "x" * MAX_BRIDGE_BYTES}, f"larger than {MAX_BRIDGE_BYTES} bytes; keep data in tools."),
    ],
)
async def test_what_may_not_cross_is_refused_with_its_path(scope, complaint):
    assert complaint in await refusal(scope)


@requirement("namespaces:scope:declared-tools")
async def test_a_path_may_target_declared_tools_only():
    """A tool of the same plugin that the namespace does not require is none of its business."""
    scope = {"remove": namespace_tool("remove")}

    assert await refusal(scope) == (
        'create_scope gave a call of "remove" at Issues.remove; required_tool_names has only list, update.'
    )


@requirement("namespaces:scope:before-guest")
async def test_a_scope_that_fails_says_whose_it_is():
    def broken(ctx: RunContext) -> dict:
        raise LookupError("no repository here")

    async def cancelled(ctx: RunContext) -> dict:
        raise asyncio.CancelledError

    assert await refusal(broken) == "create_scope failed: LookupError: no repository here."
    assert await refusal(cancelled) == "create_scope cancelled itself."


@requirement("namespaces:scope:context")
async def test_a_scope_is_made_asynchronously_if_it_likes_and_knows_its_run():
    async def create(ctx: RunContext) -> dict:
        await asyncio.sleep(0)
        return {"run": ctx.run_id, "agent": ctx.agent_id, "limit": ctx.config["timeoutMs"], "over": ctx.aborted()}

    opened, _ = await Namespaces([namespace(create)]).open(catalog(), make_context(config={"timeoutMs": 5}))
    (face,) = json.loads(opened.scope.namespaces)

    assert face["node"] == ["v", {"run": "cm_1", "agent": "main", "limit": 5, "over": False}]


# ---- where a call leads ----


@requirement("namespaces:mapper:input")
async def test_the_mapper_makes_the_input_of_the_list_of_arguments():
    assert await mapped(lambda args: {"number": args[0], "patch": args[1]}, 7, {"a": 1}) == {
        "number": 7,
        "patch": {"a": 1},
    }
    assert await mapped(lambda args: {"count": len(args)}) == {"count": 0}
    assert await mapped(lambda args: {"day": date(2026, 5, 1), "of": (1, 2)}) == {"day": "2026-05-01", "of": [1, 2]}


@requirement("namespaces:mapper:input")
async def test_without_a_mapper_the_first_argument_is_the_input():
    assert await mapped(None, {"state": "open"}, "ignored") == {"state": "open"}
    assert await mapped(None) == {}


def first(arguments: list[Json]) -> Json:
    return {"number": arguments[0]}


def raw(arguments: list[Json]) -> Any:
    return {"raw": b"x"}


@requirement("namespaces:mapper:failure")
@pytest.mark.parametrize(
    ("mapper", "complaint"),
    [
        (first, "Issues.list cannot take these arguments: IndexError"),
        (raw, "Issues.list cannot take these arguments: NotJson: value.raw is binary"),
    ],
)
async def test_a_mapper_that_fails_rejects_the_call(mapper, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        await mapped(mapper)


@pytest.mark.parametrize("mapper", ["list", 3])
def test_a_mapper_is_a_function(mapper):
    with pytest.raises(TypeError, match="must be a plain function"):
        namespace_tool("list", mapper)


def test_a_mapper_is_not_asynchronous_and_a_tool_has_a_name():
    async def later(args: list) -> dict:
        return {}

    with pytest.raises(TypeError, match="the mapper of list must be a plain function"):
        namespace_tool("list", later)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes the name of a tool, found 3"):
        namespace_tool(3)  # type: ignore[arg-type]


@requirement("namespaces:mapper:portable", "namespaces:scope:before-guest")
async def test_a_mapper_that_holds_on_to_this_process_is_refused_at_once():
    """Otherwise the run would find out in another process, after a wait."""
    client = object()
    scope = {"list": namespace_tool("list", lambda args: {"client": id(client)})}

    assert await refusal(scope) == (
        "the mapper of Issues.list cannot go on in another process: it captured client, a object."
    )


@requirement("namespaces:call:forged")
@pytest.mark.parametrize(
    "forged",
    [
        "", "Issues", path("nothing"), path("list", "call"), path("__proto__"), path("data"), "list",
        "plugin:github:list", f"Other{PATH_SEPARATOR}list", "Issues.list", path("list").upper(),
    ],
)  # fmt: skip
async def test_a_forged_path_leads_nowhere(forged):
    """Whatever the guest believes, the host's own table decides."""
    opened, _ = await Namespaces([namespace({"list": namespace_tool("list"), "data": {"x": 1}})]).open(
        catalog(), CONTEXT
    )
    bridge = Bridge(opened, Executor(Redactor()), Limits())

    with pytest.raises(NestedToolFailed, match="nothing can be called at"):
        bridge.resolve(BridgeCall(1, "namespace", forged, {"args": []}))
    assert bridge.resolve(BridgeCall(1, "namespace", path("list"), {"args": [{"a": 1}]})) == (LIST, {"a": 1})


# ---- in another process ----


async def reopened(seen: Catalog, *registered: Namespace, scope: Any = None) -> Catalog:
    """Open with all tools, store, and open again with what is there now."""
    _, written = await Namespaces([namespace(scope)]).open(catalog(), CONTEXT)
    return Namespaces(registered).reopen(seen, json.loads(json.dumps(written)), CONTEXT)


@requirement("namespaces:wait:same")
async def test_paths_are_opened_again_without_making_the_scope():
    """The mapper, a lambda that captured the context and a value, is found where it is written."""

    def never(ctx: RunContext) -> dict:
        raise AssertionError("createScope ran a second time")

    prefix = "by "

    def create(ctx: RunContext) -> dict:
        return {"list": namespace_tool("list", lambda args: {"a": args, "by": prefix + ctx.agent_id})}

    again = await reopened(catalog(), namespace(never), scope=create)
    target = again.scope.targets[path("list")]

    assert (target.tool, target.to_input([1])) == (LIST, {"a": [1], "by": "by main"})
    assert again.scope.namespaces == "[]"  # the guest has them already


@requirement("namespaces:wait:tool-gone")
async def test_a_path_whose_tool_or_namespace_is_gone_leads_nowhere():
    denied = catalog(policy=Policy(deny=["plugin:github:list"]))
    scope = {"list": namespace_tool("list"), "update": namespace_tool("update")}

    assert (await reopened(denied, namespace(), scope=scope)).scope.targets.keys() == {path("update")}
    assert (await reopened(catalog(), scope=scope)).scope.targets == {}
    assert (await reopened(catalog(), namespace(id="other"), scope=scope)).scope.targets == {}
    assert (await reopened(catalog(), namespace(plugin_id="evil"), scope=scope)).scope.targets == {}


@requirement("namespaces:wait:tool-gone")
async def test_a_mapper_that_is_no_longer_written_rejects_its_call_only():
    seen = catalog()
    written = {"issues": {path("list"): {"tool": "list", "mapper": {"module": __name__, "name": "gone"}}}}
    target = Namespaces([namespace()]).reopen(seen, written, CONTEXT).scope.targets[path("list")]

    with pytest.raises(InvalidInput, match=r"MapperLost: tests\.unit\.test_namespaces\.gone is not there any more"):
        target.to_input([])


# ---- in cells ----


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = open_pool()
    yield pool
    await pool.close()


@requirement("namespaces:guest:global-and-map", "namespaces:call:failure")
async def test_a_cell_finds_it_as_a_global_and_in_the_map(pool):
    async def boom(given: dict, context: RunContext) -> Json:
        raise OSError("disk on fire")

    scope = {"list": namespace_tool("list"), "update": namespace_tool("update"), "all": [namespace_tool("list")]}
    box = toolbox([LIST, UPDATE._replace(invoke=boom)])
    code = """
        const caught = await Issues.update({}).catch((error) => [error.message, error.code, error.toolId]);
        let frozen = 0;
        for (const change of [() => { "use strict"; Issues = 1 }, () => { "use strict"; Issues.list = 1 },
                              () => { "use strict"; Issues.more = 1 }, () => { "use strict"; namespaces.x = 1 },
                              () => { "use strict"; delete globalThis.Issues }]) {
          try { change() } catch { frozen++ }
        }
        return {
          same: Issues === namespaces.Issues, names: Object.keys(namespaces), members: Object.keys(Issues), frozen,
          listed: [await Issues.list({ a: 1 }), await Issues.list(), await namespaces.Issues.all[0]({ b: 2 })], caught,
        };"""
    async with open_test_session(pool, box._replace(namespaces=Namespaces([namespace(scope)]))) as session:
        result = await session.exec({"code": code})

    assert isinstance(result, Completed), result
    assert result.value == {
        "same": True, "names": ["Issues"], "members": ["list", "update", "all"], "frozen": 5,
        "listed": [{"a": 1}, {}, {"b": 2}],
        "caught": ["disk on fire", "nested_tool_failed", "plugin:github:update"],
    }  # fmt: skip
    assert result.telemetry["callCount"] == 4


@requirement("namespaces:scope:once")
async def test_each_run_has_a_scope_of_its_own_but_the_cells_of_one_vm_share_theirs(pool):
    """A model's cells each have a VM of their own; those of the REPL live in one."""
    made: list[str] = []

    def create(ctx: RunContext) -> dict:
        made.append(ctx.run_id)
        return {"number": len(made), "list": namespace_tool("list", lambda args: {"by": ctx.run_id})}

    box = toolbox([LIST, UPDATE])._replace(namespaces=Namespaces([namespace(create)]))
    async with open_test_session(pool, box) as session:
        numbers, runs = [], []
        for keep in (None, None, Keep(), Keep(), None):
            base = session.kept(runs[-1]) if keep and len(runs) == 3 else None
            code = "await Issues.list(); Issues.number" if keep else "return [await Issues.list(), Issues.number][1]"
            result = await session.exec({"code": code}, keep=keep and Keep(base))
            assert isinstance(result, Completed), result
            numbers.append(result.value)
            runs.append(result.run_id)

    assert numbers == [1, 2, 3, 3, 4]
    assert made == [runs[0], runs[1], runs[2], runs[4]]


@requirement("namespaces:scope:once")
async def test_a_scope_that_is_opened_before_the_first_cell_is_that_of_all_cells(pool):
    """The first cell may begin while it is opened: then it waits for it."""
    made: list[str] = []
    may_end = asyncio.Event()

    async def create(ctx: RunContext) -> dict:
        made.append(ctx.run_id)
        await may_end.wait()
        return {"number": len(made), "list": namespace_tool("list"), "all": namespace_tool("list", lambda args: {})}

    box = toolbox([LIST, UPDATE])._replace(namespaces=Namespaces([namespace(create)]))
    async with open_test_session(pool, box) as session:
        opening = asyncio.ensure_future(session.open_scope())
        cell = asyncio.ensure_future(session.exec({"code": "Issues.number"}, keep=Keep()))
        await asyncio.sleep(0)
        may_end.set()
        scope, written = await opening
        result = await cell

    assert isinstance(result, Completed), result
    assert (result.value, made) == (1, [""])
    assert json.loads(scope.namespaces)[0]["name"] == "Issues"
    mapped = {path.replace(PATH_SEPARATOR, "."): each["mapper"] is None for path, each in written["issues"].items()}
    assert mapped == {"Issues.list": True, "Issues.all": False}


@requirement("namespaces:scope:once")
async def test_a_scope_that_could_not_be_opened_is_tried_again_by_the_first_cell(pool):
    made: list[str] = []

    def create(ctx: RunContext) -> dict:
        made.append(ctx.run_id)
        if len(made) == 1:
            raise RuntimeError("no desk today")
        return {"number": len(made), "list": namespace_tool("list")}

    box = toolbox([LIST, UPDATE])._replace(namespaces=Namespaces([namespace(create)]))
    async with open_test_session(pool, box) as session:
        with pytest.raises(InvalidConfig, match="no desk today"):
            await session.open_scope()
        result = await session.exec({"code": "Issues.number"}, keep=Keep())

    assert isinstance(result, Completed), result
    assert result.value == 2


async def test_a_session_without_plugins_has_no_scope_to_open(pool):
    async with open_test_session(pool, toolbox([LIST])) as session:
        scope, written = await session.open_scope()

    assert (json.loads(scope.namespaces), written) == ([], None)


@requirement("namespaces:scope:before-guest")
async def test_a_scope_that_may_not_cross_fails_the_run_before_the_cell_begins(pool):
    box = toolbox([LIST, UPDATE])._replace(namespaces=Namespaces([namespace({"raw": len})]))
    async with open_test_session(pool, box) as session:
        result = await session.exec({"code": "text('begun'); return 1"})

    assert isinstance(result, Failed)
    assert (result.code, result.phase, result.output, result.dispatched) == ("invalid_config", "input", (), False)
    assert "a raw function at Issues.raw" in result.error


@requirement("namespaces:scope:deadline", "namespaces:scope:context")
async def test_a_scope_that_takes_too_long_is_a_timeout_and_learns_of_it(pool):
    contexts: list[RunContext] = []

    async def create(ctx: RunContext) -> dict:
        contexts.append(ctx)
        await asyncio.Event().wait()
        return {}

    box = toolbox([LIST, UPDATE], limits={"timeout_ms": 100})._replace(namespaces=Namespaces([namespace(create)]))
    async with open_test_session(pool, box) as session:
        result = await session.exec({"code": "return 1"})

    assert isinstance(result, Failed)
    assert result.code == "timeout"
    assert "while a plugin's namespace was opened" in result.error
    assert [ctx.aborted() for ctx in contexts] == [True]


@requirement("namespaces:wait:same", "namespaces:scope:once")
async def test_a_run_that_waited_goes_on_with_the_namespace_that_it_began_with(pool):
    """In another session of the same store, which has not made its scope."""
    made: list[str] = []

    def create(ctx: RunContext) -> dict:
        made.append(ctx.run_id)
        return {"run": ctx.run_id, "list": namespace_tool("list", lambda args: {"n": args[0], "by": ctx.run_id})}

    box = toolbox([LIST, UPDATE])._replace(namespaces=Namespaces([namespace(create)]))
    store = MemoryStore()
    code = "const one = await Issues.list(1); await yield_control(); return [one, Issues.run, await Issues.list(2)]"
    async with open_test_session(pool, box, store) as session:
        waiting = await session.exec({"code": code})
    async with open_test_session(pool, box, store) as session:
        result = await session.wait({"runId": waiting.run_id})
    store.close()

    assert isinstance(result, Completed), result
    run = result.run_id
    assert result.value == [{"n": 1, "by": run}, run, {"n": 2, "by": run}]
    assert made == [run]
