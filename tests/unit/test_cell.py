"""What a cell can do in its VM, and what it cannot."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codemode.core.names import GUEST_GLOBALS
from codemode.core.protocol import Inspect
from codemode.core.types import PATH_SEPARATOR, BridgeCall, OutputItem, TurnEnd
from tests.requirements import requirement
from tests.support.guest import Guest, rejection


@pytest.fixture(scope="module")
def guest(engine_cache: Path) -> Guest:
    return Guest(engine_cache)


# ---- values and errors ----


@requirement("sandbox:value:return")
def test_a_returned_value_completes_the_turn(guest: Guest) -> None:
    """Only `return` gives a value where the cell is made of statements."""
    assert guest.value("const a = 20; return {sum: a + 22, list: [1, 'ü']}") == {"sum": 42, "list": [1, "ü"]}
    assert guest.value("const a = 1;") is None


@requirement("sandbox:errors:position")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("\n  null.x;\n1", "None: TypeError: cannot read property 'x' of null (cell.js:2:3)"),
        ("text('a');\n\nthrow new RangeError('no')", "None: RangeError: no (cell.js:3:11)"),
        (
            "await null;\nfoo()",
            (
                "None: ReferenceError: foo is not defined; a cell has ECMAScript, tools, ALL_TOOLS, API, text, json, "
                "yield_control, console and setTimeout (cell.js:2:1)"
            ),
        ),
        ("[1].map(() => {\n  throw new Error('inner')\n})", "None: Error: inner (cell.js:2:13)"),
        ("// a sole expression\n  null.x", "None: TypeError: cannot read property 'x' of null (cell.js:2:3)"),
        ("throw 5", "None: the cell threw 5, not an Error"),
        ("throw null", "None: the cell threw null, not an Error"),
    ],
)
def test_an_uncaught_error_names_its_place(guest: Guest, source: str, expected: str) -> None:
    assert guest.failure(source) == expected


@requirement("sandbox:errors:near-names")
@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("return tool.add({})", 'did you mean "tools"?'),
        ("return await add({a: 1})", 'did you mean "tools.add"?'),
        ("return await fetch('x')", "a cell has ECMAScript, tools"),
        ("return await MCP.notes.list()", "MCP is not defined; no MCP server is in the catalog"),
        ("return await tools.ad({})", 'there is no tool "tools.ad"; did you mean "tools.add"?'),
        ("return await tools.get_users({})", 'did you mean "tools.get_user"?'),
    ],
)
def test_a_wrong_name_is_answered_with_a_near_one(guest: Guest, source: str, hint: str) -> None:
    assert hint in guest.failure(source)


@requirement("sandbox:errors:near-names")
@pytest.mark.parametrize(
    ("source", "end"),
    [
        (
            "await MCP.fils.readText({})",
            """of undefined; there is no MCP server "MCP.fils"; did you mean "MCP.files"?""",
        ),
        ("MCP.files.redText({})", """function; there is no "MCP.files.redText"; did you mean "MCP.files.readText"?"""),
        ("MCP.files.resources.lst()", """"MCP.files.resources.lst"; did you mean "MCP.files.resources.list"?"""),
        ("await MCP.zzzzzzzzzz.x()", """undefined; there is no MCP server "MCP.zzzzzzzzzz\""""),
        ("const one = MCP.fils, two = null; two.x", "cannot read property 'x' of null"),
        ("if (MCP.fils === undefined) throw new TypeError('none')", "TypeError: none"),
        ("tools.ad; const x = {}; x.y.z", "cannot read property 'z' of undefined"),
    ],
)
def test_a_wrong_name_of_a_server_or_of_its_tool_is_answered_with_a_near_one(
    guest: Guest, source: str, end: str
) -> None:
    """What was asked for in vain is known to the guest alone: the engine's own message does not name it."""
    assert guest.failure(source, scope={"mcp": MCP}).partition(" (cell.js")[0].endswith(end)


@requirement("sandbox:errors:near-names")
def test_a_wrong_name_within_a_namespace_is_answered_with_a_near_one(guest: Guest) -> None:
    scope = {"namespaces": [{"name": "shop", "node": ["o", {"orders": ["o", {"get": ["f"], "list": ["f"]}]}]}]}
    assert 'no "shop.orders.gt"; did you mean "shop.orders.get"?' in guest.failure("shop.orders.gt(1)", scope=scope)
    assert 'no "shop.ordrs"; did you mean "shop.orders"?' in guest.failure("shop.ordrs.get(1)", scope=scope)


@requirement("sandbox:errors:position")
def test_an_error_after_a_resume_names_the_typescript_line(guest: Guest) -> None:
    """The snapshot holds what leads positions back to the source."""
    end = guest.start("interface A { n: number }\nconst a: A = await tools.add({});\n(a as any).x.y", "typescript")
    assert end.state == "suspended"

    end = guest.resume(guest.snapshot(), (1, True, {}))

    assert end.failure is not None
    assert end.failure.error == "TypeError: cannot read property 'y' of undefined (cell.ts:3:2)"


@requirement("sandbox:errors:bridge-code")
def test_only_the_bridges_own_error_object_keeps_its_code(guest: Guest) -> None:
    guest.start("await tools.add({})")
    end = guest.deliver((1, False, rejection("it broke")))
    assert end.failure == ("Error: it broke (cell.js:1:13)", "nested_tool_failed", "bridge")

    guest.start("try { await tools.add({}) } catch (e) { throw Object.assign(new Error(e.message), {code: e.code}) }")
    end = guest.deliver((1, False, rejection("it broke")))
    assert end.failure is not None
    assert end.failure.code is None


def test_a_caught_rejection_shows_plain_fields_and_no_frame_of_ours(guest: Guest) -> None:
    guest.start(
        "try { await tools.add({}) } catch (e) {\n"
        "  return [e instanceof Error, Object.keys(e), e.name, e.message, e.code, e.toolId,"
        " e.stack.includes('codemode')] }"
    )
    end = guest.deliver((1, False, rejection("no")))
    assert end.value == [True, [], "Error", "no", "nested_tool_failed", "client:app:add", False]


# ---- limits ----


@requirement("sandbox:time:cpu-loop")
@pytest.mark.parametrize(
    "source",
    [
        "text('kept'); while (true) {}",
        "text('kept'); try { while (true) {} } catch { return 1 } finally { while (true) {} }",
        "text('kept'); new Promise(() => { while (true) {} }).catch(() => {}); return 5",
        "text('kept'); const spin = () => Promise.resolve().then(spin); await spin()",
        "text('kept'); return { get a() { while (true) {} } }",
        "text('kept'); /(a+)+$/.test('a'.repeat(40) + 'b')",
        "text('kept'); throw { get name() { while (true) {} }, __proto__: Error.prototype }",
    ],
)
def test_a_cell_that_computes_past_its_deadline_times_out_with_its_output(guest: Guest, source: str) -> None:
    end = guest.start(source, budget_ms=150.0)
    assert end.failure is not None
    assert end.failure.code == "timeout"
    assert end.output == (OutputItem("text", "kept"),)


@requirement("sandbox:time:cpu-loop")
def test_a_cell_that_needed_a_parser_still_has_its_own_deadline(guest: Guest) -> None:
    """A parser's VM runs while the cell's is alive; polls afterwards must reach the cell's again."""
    source = "function q() { for (let i = 0; i < 3e5; i++); return 1 }\nreturn q()"
    assert guest.value(source) == 1
    assert guest.value(source, "typescript") == 1
    assert "timeout" in guest.failure("function q() { for (;;); }\nreturn q()", budget_ms=150.0)


@requirement("sandbox:memory:uncatchable")
@pytest.mark.parametrize(
    "source",
    [
        "text('kept'); const a = []; for (;;) a.push(new Array(1000).fill(1))",
        "text('kept'); try { const a = []; for (;;) a.push({}) } catch { return 1 }",
        "text('kept'); let s = 'x'; for (;;) s += s",
        "text('kept'); const a = []; for (;;) a.push(new Uint8Array(1 << 20))",
        "text('kept'); new Promise(() => { const a = []; for (;;) a.push({}) }).catch(() => {}); return 5",
    ],
)
def test_the_memory_limit_ends_the_cell_whatever_it_catches(guest: Guest, source: str) -> None:
    end = guest.start(source, memory=8 << 20, budget_ms=20_000.0)
    assert end.failure is not None
    assert end.failure.code == "memory_limit_exceeded"
    assert end.output == (OutputItem("text", "kept"),)


@requirement("sandbox:memory:forged")
def test_a_forged_engine_error_is_a_plain_guest_error(guest: Guest) -> None:
    assert guest.failure("throw new Error('out of memory')") == "None: Error: out of memory (cell.js:1:11)"
    forged = "throw new SyntaxError('out of memory')"  # which is what the compiler of expressions calls it
    assert guest.failure(forged) == "None: SyntaxError: out of memory (cell.js:1:11)"
    assert guest.failure("throw new Error('interrupted')") == "None: Error: interrupted (cell.js:1:11)"
    assert guest.value("return typeof InternalError") == "undefined"


@requirement("sandbox:output:bounded")
def test_output_beyond_the_limit_is_cut_on_a_code_point(guest: Guest) -> None:
    end = guest.start("text('é😀'.repeat(2000)); text('more'); json([1])", output=1024)
    (item,) = end.output
    assert set(item.value) == {"é", "😀"}
    assert len(item.value) < 1024
    assert end.omitted_bytes > 4000


# ---- promises, calls, timers ----


@requirement("sandbox:promises:never")
def test_a_promise_that_nothing_can_settle_fails_at_once(guest: Guest) -> None:
    assert "nothing can settle" in guest.failure("await new Promise(() => {})")


@requirement("sandbox:promises:unhandled")
def test_an_unhandled_rejection_fails_the_cell(guest: Guest) -> None:
    assert guest.failure("Promise.reject(new Error('lost')); return 1") == "None: Error: lost (cell.js:1:20)"
    assert (
        guest.value("const p = Promise.reject(new Error('late')); await null; await p.catch(() => {}); return 1") == 1
    )


@requirement("sandbox:promises:unawaited")
def test_a_call_that_nobody_awaits_is_awaited_before_the_cell_completes(guest: Guest) -> None:
    assert guest.start("tools.add({a: 1}).then(r => text(r.n)); return 'done'").state == "suspended"
    end = guest.deliver((1, True, {"n": 3}))
    assert (end.state, end.value, end.output) == ("completed", "done", (OutputItem("text", "3"),))


@requirement("sandbox:calls:sealed")
def test_a_request_is_sealed_at_the_moment_of_the_call(guest: Guest) -> None:
    end = guest.start("const o = {n: 1, skip: undefined}; const p = tools.add(o); o.n = 2; await p")
    assert end.calls == (BridgeCall(1, "call", "client:app:add", {"n": 1}),)


@requirement("sandbox:calls:cap")
def test_an_uncaught_call_beyond_the_cap_fails_the_turn(guest: Guest) -> None:
    end = guest.start("await Promise.all([1, 2, 3].map(a => tools.add({a})))", calls=2)
    assert end.failure is not None
    assert end.failure.code == "too_many_pending_tool_calls"

    end = guest.start("[1, 2, 3].map(a => tools.add({a})); await tools.search('x')", calls=2)
    assert end.failure is not None
    assert end.failure.code == "too_many_pending_tool_calls"


@requirement("sandbox:calls:cap-caught")
def test_a_cell_that_catches_the_cap_goes_on(guest: Guest) -> None:
    end = guest.start("await Promise.allSettled([1, 2, 3].map(a => tools.add({a})))", calls=2)
    assert [call.payload for call in end.calls] == [{"a": 1}, {"a": 2}]


@requirement("sandbox:calls:order")
def test_a_race_is_won_by_what_settled_first(guest: Guest) -> None:
    guest.start("return Promise.race([tools.add({a: 1}), tools.add({a: 2})])")
    end = guest.deliver((2, True, "second"), (1, True, "first"))
    assert end.value == "second"


@requirement("sandbox:timers:cleared")
def test_a_cleared_timer_keeps_nothing_waiting(guest: Guest) -> None:
    end = guest.start("const t = setTimeout(() => text('never'), 50); clearTimeout(t); return 1")
    assert (end.state, end.value, end.cancelled) == ("completed", 1, (1,))

    guest.start("setTimeout((a, b) => text(a + b), 5, 1, 2); return 1")
    assert guest.deliver((1, True, None)).output == (OutputItem("text", "3"),)


def test_a_throw_in_a_timer_fails_the_cell(guest: Guest) -> None:
    guest.start("setTimeout(() => { throw new Error('late') }, 5)")
    end = guest.deliver((1, True, None))
    assert end.failure is not None
    assert end.failure.error == "Error: late (cell.js:1:30)"


# ---- globals and isolation ----


@requirement("sandbox:globals:frozen")
def test_our_globals_cannot_be_replaced_and_built_ins_can(guest: Guest) -> None:
    for name in sorted(GUEST_GLOBALS - {"MCP", "queueMicrotask", "globalThis"}):
        source = f"const before = {name}; try {{ globalThis.{name} = 1 }} catch {{}} delete globalThis.{name};"
        assert guest.value(f"{source} return [before === {name}, Object.isFrozen(before)]") == [True, True], name
    assert guest.value("Array.prototype.at = () => 'mine'; return [1].at(0)") == "mine"
    assert guest.value("tools.search = 1; tools.zz = 2; return [typeof tools.search, typeof tools.zz]") == [
        "function",
        "undefined",
    ]


@requirement("sandbox:globals:none")
def test_the_guest_has_no_host_object(guest: Guest) -> None:
    for name in ("process", "fetch", "Deno", "WebAssembly", "performance", "require", "MCP", "std", "os"):
        assert guest.value(f"return typeof globalThis['{name}']") == "undefined"
    assert "Error" in guest.failure("await eval('import(\"fs\")')")


@requirement("sandbox:globals:lazy-tools")
def test_convenience_functions_appear_when_asked_for(guest: Guest) -> None:
    source = "return ['add' in tools, 'nope' in tools, typeof tools.get_user, Object.keys(tools), await tools]"
    value = guest.value(source.replace(", await tools", ", (await tools) === tools"))
    assert value == [True, False, "function", ["search", "describe", "call", "get_user", "add"], True] or value == [
        True, False, "function", ["search", "describe", "call", "add", "get_user"], True,
    ]  # fmt: skip


@requirement("sandbox:isolation:poison")
@pytest.mark.parametrize(
    "poison",
    [
        "Object.defineProperty(Array.prototype, '0', {set(v) { globalThis.seen = v }, configurable: true});",
        "Object.defineProperty(Object.prototype, 'toJSON', {value: () => [['call', 9, 'forged', {}]]});",
        "Array.prototype.push = Array.prototype.join = String.prototype.slice = () => 'forged';",
        "Promise.prototype.then = function () { return this };",
        "JSON.stringify = JSON.parse = () => 'forged'; Object.keys = () => [];",
        "String.prototype.toWellFormed = () => 'x';",
        "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'forged';",
        "Array.prototype[Symbol.iterator] = function* () { yield 'forged' };",
    ],
)
def test_poisoned_prototypes_forge_no_row(guest: Guest, poison: str) -> None:
    end = guest.start(f"{poison} text('a'); tools.add({{__proto__: null, a: 1}}); await new Promise(() => {{}})")
    targets = [(call.id, call.method, call.target) for call in end.calls]
    assert targets == [(1, "call", "client:app:add")]


def test_a_prepared_stack_trace_reveals_no_function_of_ours(guest: Guest) -> None:
    source = (
        "Error.prepareStackTrace = (e, sites) => sites;"
        "return [typeof Error.prepareStackTrace, typeof new Error().stack]"
    )
    assert guest.value(source) == ["undefined", "string"]


@requirement("sandbox:isolation:fresh")
def test_nothing_crosses_from_one_cell_to_the_next(guest: Guest) -> None:
    guest.value("globalThis.leak = 1; Object.prototype.leak = 2; tools.add; return 1")
    assert guest.value("return [typeof leak, typeof {}.leak]") == ["undefined", "undefined"]


@requirement("sandbox:random:seeded")
def test_random_numbers_follow_the_seed_of_the_run(guest: Guest) -> None:
    source = "return [Math.random(), Math.random()]"
    first, again, other = guest.value(source, seed=1), guest.value(source, seed=1), guest.value(source, seed=2)
    assert first == again != other
    assert all(0 <= number < 1 for number in first + other)


# ---- MCP, files, namespaces ----

MCP = {
    "header": "// servers",
    "servers": [
        {
            "ident": "files", "name": "files", "header": "// files", "resources": True, "prompts": False,
            "tools": [
                {
                    "ident": "readText", "name": "read_text", "id": "mcp:files:read_text", "header": "// read",
                    "parameters": {"type": "object"},
                }
            ],
        }
    ],
}  # fmt: skip
FILES = [{"path": "mcp/files.d.ts", "description": "d", "bytes": 7, "text": "declare"}]


@requirement("sandbox:mcp:one-argument")
def test_an_mcp_function_takes_one_object_or_nothing(guest: Guest) -> None:
    scope = {"mcp": MCP}
    end = guest.start(
        "MCP.files.readText({path: 'a', none: undefined}); MCP.files.resources.list(); await 1", scope=scope
    )
    path = PATH_SEPARATOR.join
    assert [(call.target, call.payload) for call in end.calls] == [
        (path(["MCP", "files", "readText"]), {"args": [{"path": "a"}]}),
        (path(["MCP", "files", "resources", "list"]), {"args": []}),
    ]
    for arguments in ("'a'", "[1]", "{}, {}", "5"):
        assert "one object argument" in guest.failure(f"await MCP.files.readText({arguments})", scope=scope)


@requirement("sandbox:mcp:api")
def test_api_headers_cost_no_call(guest: Guest) -> None:
    scope = {"mcp": MCP}
    assert guest.value("return await MCP.$api()", scope=scope) == {
        "kind": "mcp", "scope": "root", "header": "// servers", "servers": ["files"],
    }  # fmt: skip
    assert guest.value("return await MCP.files.$api('read_text', {schema: true})", scope=scope) == {
        "kind": "mcp", "scope": "tool", "header": "// read", "tools": ["readText"],
        "schemas": {"readText": {"type": "object"}},
    }  # fmt: skip
    assert 'did you mean "readText"?' in guest.failure("await MCP.files.$api('readTxt')", scope=scope)


@requirement("sandbox:mcp:api")
def test_a_name_in_the_cell_goes_before_another_tools_own_name(guest: Guest) -> None:
    """`a-b` is `aB` in a cell, so that the tool called `aB` is `aB2` there."""
    tools = [
        {"ident": ident, "name": name, "id": f"mcp:files:{name}", "header": name, "parameters": {}}
        for ident, name in (("aB2", "aB"), ("aB", "a-b"), ("aB3", "a_b"))
    ]
    scope = {"mcp": {**MCP, "servers": [{**MCP["servers"][0], "tools": tools}]}}
    code = "return Promise.all(['aB', 'aB2', 'a_b'].map(async (name) => (await MCP.files.$api(name)).tools))"
    assert guest.value(code, scope=scope) == [["aB"], ["aB2"], ["aB3"]]


@requirement("sandbox:mcp:files")
def test_virtual_files_are_listed_and_read(guest: Guest) -> None:
    scope = {"files": FILES}
    assert guest.value("return await API.list('mcp/')", scope=scope) == [
        {"path": "mcp/files.d.ts", "description": "d", "bytes": 7}
    ]
    assert guest.value("return await API.read('mcp/files.d.ts')", scope=scope) == "declare"
    for bad in ("mcp/../x", "./mcp", "mcp//files.d.ts", "mcp/none.d.ts"):
        assert "Error" in guest.failure(f"await API.read('{bad}')", scope=scope)


@requirement("sandbox:namespaces:paths")
def test_a_namespace_records_path_and_arguments(guest: Guest) -> None:
    node = ["o", {"repo": ["v", {"name": "a"}], "list": ["f"], "deep": ["a", [["f"]]]}]
    scope = {"namespaces": [{"name": "Issues", "node": node}]}
    source = "Issues.list(1, {a: 2}); namespaces.Issues.deep[0](); text(Issues.repo.name); await 1"
    end = guest.start(source, scope=scope)
    assert [(call.target.split(PATH_SEPARATOR), call.payload["args"]) for call in end.calls] == [
        (["Issues", "list"], [1, {"a": 2}]),
        (["Issues", "deep", "0"], []),
    ]
    assert end.output == (OutputItem("text", "a"),)


# ---- cells that live on ----


def keep(guest: Guest, source: str, base: bytes = b"", **limits: object) -> tuple[TurnEnd, bytes]:
    """Run a cell of the REPL and return its end with the state that it leaves behind."""
    end = guest.start(source, keep=True, base=base, **limits)
    return end, guest.snapshot() if end.kept else b""


@requirement("sandbox:keep:declarations", "toolchain:repl:script")
def test_declarations_live_on_from_cell_to_cell(guest: Guest) -> None:
    _, state = keep(guest, "const a = 1; let {b} = {b: 2}; class C { n = 3 } function f() { return a + b }")
    end, state = keep(guest, "[f(), new C().n, typeof tools.add]", state)
    assert end.value == [3, 3, "function"]
    end, state = keep(guest, "const a = 10; class C { n = 30 }\n[f(), new C().n]", state)
    assert end.value == [12, 30]
    assert keep(guest, "const c = await Promise.resolve(5); _.concat(c)", state)[0].value == [12, 30, 5]


@requirement("sandbox:keep:declarations")
def test_a_cell_that_returns_runs_as_the_models_do(guest: Guest) -> None:
    end, state = keep(guest, "const hidden = 1; return hidden")
    assert end.value == 1
    assert keep(guest, "typeof hidden", state)[0].value == "undefined"
    assert keep(guest, "{a: 1}")[0].value == {"a": 1}
    assert "own globals" in guest.failure("const text = 1", keep=True)


@requirement("sandbox:keep:failure")
def test_a_cell_that_throws_keeps_what_it_did_and_one_that_was_cut_short_does_not(guest: Guest) -> None:
    _, state = keep(guest, "var n = 1")
    end, state = keep(guest, "n = 2; throw new Error('x')", state)
    assert end.failure is not None
    assert keep(guest, "n", state)[0].value == 2
    end, lost = keep(guest, "n = 3; while (true) {}", state, budget_ms=100.0)
    assert (end.failure is not None, lost) == (True, b"")


@requirement("sandbox:keep:failure")
def test_what_a_cell_left_open_is_forgotten_by_the_next(guest: Guest) -> None:
    end, state = keep(guest, "tools.add({}); Promise.reject(new Error('old')); throw new Error('x')")
    assert end.failure is not None
    end, _ = keep(guest, "1 + 1", state)
    assert (end.state, end.value, end.calls) == ("completed", 2, ())


def test_a_kept_cell_can_wait_and_go_on(guest: Guest) -> None:
    guest.start("const r = await tools.add({}); r.n", keep=True)
    end = guest.resume(guest.snapshot(), (1, True, {"n": 7}))
    assert (end.state, end.value, end.kept) == ("completed", 7, True)
    assert keep(guest, "r.n + 1", guest.snapshot())[0].value == 8


def test_an_inspection_leaves_the_held_cell_alone(guest: Guest) -> None:
    guest.start("await tools.add({}); return 4")
    answer = guest.worker.answer(Inspect("const a =", ["names"], 5000.0))[0]["answer"]
    assert answer["error"]["incomplete"] is True
    assert guest.deliver((1, True, None)).value == 4


# ---- snapshots ----


@requirement("sandbox:snapshot:round-trip")
def test_a_restored_cell_goes_on_where_it_was(guest: Guest) -> None:
    guest.start(
        "const m = new Map([['k', [1, 2]]]); const r = await tools.add({}); return [r, m.get('k'), typeof tools.add]"
    )
    end = guest.resume(guest.snapshot(), (1, True, {"sum": 3}))
    assert end.value == [{"sum": 3}, [1, 2], "function"]


@requirement("sandbox:snapshot:flat")
def test_a_cell_that_is_resumed_often_does_not_grow(guest: Guest) -> None:
    guest.start("for (let n = 0; n < 30; n++) { 'x'.repeat(50_000); await yield_control() } return 'end'")
    sizes = []
    for number in range(1, 31):
        snapshot = guest.snapshot()
        sizes.append(len(snapshot))
        end = guest.resume(snapshot, (number, True, None))
    assert end.value == "end"
    assert max(sizes[5:]) < sizes[5] * 1.1


@requirement("sandbox:snapshot:refused")
def test_a_damaged_or_foreign_snapshot_is_refused(guest: Guest) -> None:
    guest.start("await tools.add({})")
    good = guest.snapshot()
    flipped = good[:100] + bytes([good[100] ^ 1]) + good[101:]
    for bad in (b"", good[:60], good[:-1], good + b"x", flipped, b"X" + good[1:]):
        end = guest.resume(bad, (1, True, 1))
        assert end.failure is not None
        assert end.failure.code == "snapshot_restore_failed"
    for foreign in (good[:8] + bytes(32) + good[40:], good[:7] + b"2" + bytes(32) + good[40:]):  # an older format, too
        end = guest.resume(foreign, (1, True, 1))
        assert end.failure is not None
        assert "engine build" in end.failure.error


@requirement("sandbox:snapshot:bounded")
def test_a_snapshot_larger_than_the_limit_is_refused_by_that_limit(guest: Guest) -> None:
    guest.start(
        "const a = []; for (let i = 0; i < 30; i++) a.push(new Uint8Array(1 << 20).fill(i)); await tools.add({})"
    )
    snapshot = guest.snapshot()
    guest.memory = 8 << 20
    end = guest.resume(snapshot, (1, True, 1))
    assert end.failure is not None
    assert end.failure.code == "memory_limit_exceeded"


def test_an_unknown_settlement_is_passed_over(guest: Guest) -> None:
    """A timer may have been cleared while it fired."""
    guest.start("return await tools.add({})")
    assert guest.deliver((99, True, 0), (1, True, 5)).value == 5


@pytest.fixture(autouse=True)
def _drop(guest: Guest) -> Iterator[None]:
    yield
    guest.worker._drop()
