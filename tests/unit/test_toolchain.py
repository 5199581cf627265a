"""The toolchain, on the real engine: forms, guard, structure, positions and TypeScript."""

import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codemode.core.errors import CodeModeError, ErrorCode, ModuleAccessDenied, TransformFailed
from codemode.core.limits import WORKER_STACK_BYTES
from codemode.core.types import Json
from codemode.sandbox.engine import EVAL_COMPILE_ONLY, EVAL_GLOBAL, REJECTED, ThrownValue, Vm
from codemode.sandbox.image import Workshop
from codemode.sandbox.toolchain import CellSyntaxError, Fault, Place, Prepared, Toolchain, build_toolchain
from tests.requirements import requirement

CELLS = Path(__file__).parents[2] / "fixtures" / "cells"
MEMORY_BYTES = 64 << 20
EXPLAIN = 4


class Outcome(NamedTuple):
    """What a cell's script came to: a value as text, or an error and where it arose."""

    value: str | None = None
    error: str | None = None
    place: Place | None = None


class Rig:
    """Prepares and runs cells, each in a VM of its own, with nothing else around them."""

    def __init__(self, cache: Path) -> None:
        workshop = Workshop(cache)
        self.machine = workshop.machine()
        self.image = workshop.image("prelude.js")
        self.toolchain = build_toolchain(workshop)

    def prepare(self, source: str, language: str = "javascript", vm: Vm | None = None) -> Prepared:
        vm = vm or self.vm()
        return self.toolchain.prepare(source, language, lambda script: self.compile(vm, script), soon())

    def refusal(self, source: str, language: str = "javascript") -> CodeModeError:
        with pytest.raises(CodeModeError) as caught:
            self.prepare(source, language)
        return caught.value

    def run(self, source: str, language: str = "javascript") -> Outcome:
        vm = self.vm()
        prepared = self.prepare(source, language, vm)
        promise = vm.evaluate(prepared.script.encode(), prepared.filename, EVAL_GLOBAL)
        vm.drain()
        result = vm.promise_result(promise)
        if vm.promise_state(promise) != REJECTED:
            return Outcome(vm.read_text(result).decode())
        fields = self.explain(vm, result)
        reported = [place_in(fields["stack"])]
        return Outcome(None, fields["message"], self.toolchain.locate(prepared, reported, soon())[0])

    def vm(self) -> Vm:
        vm = Vm(self.machine, self.image, MEMORY_BYTES)
        vm.arm(soon())
        return vm

    def compile(self, vm: Vm, script: str) -> Fault | None:
        try:
            vm.free(vm.evaluate(script.encode(), "cell.js", EVAL_COMPILE_ONLY))
        except ThrownValue as thrown:
            fields = self.explain(vm, thrown.handle)
            return Fault(fields["message"], place_in(fields["stack"]))
        return None

    def explain(self, vm: Vm, thrown: int) -> dict[str, Json]:
        return json.loads(vm.read_text(vm.call(vm.entries[EXPLAIN], thrown)))


class Refusing:
    """A parser that must not be asked."""

    def ask(self, name: str, request: Json, deadline: float) -> Json:
        raise NotImplementedError(f"{name} was asked about {request['source']!r}")


def soon() -> float:
    return time.monotonic() + 30


def place_in(stack: str) -> Place:
    found = re.search(r"cell\.(?:js|ts):(\d+):(\d+)", stack)
    return Place(int(found[1]), int(found[2])) if found else Place(1, 1)


def without_brackets(script: str) -> str:
    """Leave out what an expression that is no statement gains by its way through TypeScript."""
    return re.sub(r"[()\s;]", "", script)


T = TypeVar("T")


def on_a_large_stack(task: Callable[[], T]) -> T:
    """Run a task as the worker does: deep recursion in the engine needs native stack."""
    before = threading.stack_size(WORKER_STACK_BYTES)
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(task).result()
    finally:
        threading.stack_size(before)


@pytest.fixture(scope="module")
def rig(engine_cache: Path) -> Rig:
    return Rig(engine_cache)


# ---- source forms ----


@requirement("toolchain:form:expression")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 1", "2"),
        ("1 + 1;", "2"),
        (" \n1 + 1 ; // a comment\n", "2"),
        ("// first\n'a' + 'b'", "ab"),
        ("await Promise.resolve(3)", "3"),
        ("[1, 2].map((n) => n * 2)", "2,4"),
        ("(1, 2)", "2"),
        ("1, 2", "2"),
        ('"use strict"', "use strict"),
        ("`a\n${1}`", "a\n1"),
        ("(async () => { return 4 })()", "4"),
        ("{ toString: () => 'an object' }", "an object"),
        ("{ a: 7 }.a", "7"),
        ("({ a: 7 }).a", "7"),
        ("new Date(0).getTime()", "0"),
        ("let_ => 1, 5", "5"),
        ("'import'", "import"),
        ("1 /* import */", "1"),
    ],
)
def test_a_single_expression_is_the_value(rig: Rig, source: str, value: str) -> None:
    assert rig.run(source).value == value


@requirement("toolchain:form:function")
@pytest.mark.parametrize(
    "source",
    [
        "() => 'called'",
        "async () => 'called'",
        "async () => {\n  return 'called';\n};",
        "(async () => 'called');",
        "((() => 'called'))",
        "_ => 'called'",
        "function () { return 'called' }",
        "async function main() { return 'called' }",
        "// a comment\nfunction main() { return 'called' } // another",
    ],
)
def test_a_sole_function_is_called(rig: Rig, source: str) -> None:
    assert rig.run(source).value == "called"


@requirement("toolchain:form:statements")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("return 5", "5"),
        ("const a = 5; return a", "5"),
        ("const a = 5; a", "undefined"),
        ("1; 2", "undefined"),
        ("1\n2", "undefined"),
        ("function f() { return 1 }\nf()", "undefined"),
        ("function f() { return 1 }\n(2)", "undefined"),
        ("{ const a = 1 }", "undefined"),
        ("label: 1", "undefined"),
        ("let a\nreturn a", "undefined"),
        ("let\na = 3\nreturn a", "3"),
        ("// nothing but a comment", "undefined"),
        ("if (true) return 'if'", "if"),
        ("for (const n of [1]) return n", "1"),
    ],
)
def test_statements_give_a_value_by_return_only(rig: Rig, source: str, value: str) -> None:
    assert rig.run(source).value == value


def test_a_generator_is_a_value_and_is_not_called(rig: Rig) -> None:
    assert rig.run("function* g() {}").value == "function* g() {}"


@pytest.mark.parametrize("ending", ["", ";", ";;", " ;\n", " // c", "\n/* c */", "; // c\n\n"])
def test_what_follows_an_expression_does_not_change_it(rig: Rig, ending: str) -> None:
    assert rig.run(f"'é'{ending}").value == "é"


# ---- structure ----


@requirement("toolchain:structure:escape")
@pytest.mark.parametrize(
    "source",
    [
        "})(); text('out'); (async () => {",
        "}); text('out'); (() => {",
        "} text('out'); {",
        "} function g() {",
        "return (1)); text('out'); ((2",
        "1)); text('out'); ((2",
        "1)(); (2",
        "return 1 }, async () => { return 2",
        "*/ } /*",
        "`}",
        "return 1 //\n})(",
        "}",
        ")",
        "<!--\n})(",
    ],
)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_no_bracket_ends_the_wrapper_early(rig: Rig, source: str, language: str) -> None:
    error = rig.refusal(source, language)

    assert isinstance(error, TransformFailed if language == "typescript" else CellSyntaxError)


# ---- module guard ----

DENIED = [
    ('import fs from "fs"', "import", "1:1"),
    ('import "fs"', "import", "1:1"),
    ('import { readFile } from "fs"', "import", "1:1"),
    ("export const a = 1", "export", "1:1"),
    ("export default 1", "export", "1:1"),
    ("export {}", "export", "1:1"),
    ('export * from "fs"', "export", "1:1"),
    ('const a = 1\nif (a) await import("fs")', "import()", "2:14"),
    ("return import.meta.url", "import.meta", "1:8"),
    ('require("fs")', "require", "1:1"),
    ('(0, require)("fs")', "require", "1:5"),
    ('r\\u0065quire("fs")', "require", "1:1"),
    ('r\\u{65}quire("fs")', "require", "1:1"),
    ("return typeof require.resolve", "require", "1:15"),
    ("return { require }", "require", "1:10"),
    ("return [...module.paths]", "module", "1:12"),
    ("module.exports = {}", "module", "1:1"),
    ("exports.a = 1", "exports", "1:1"),
    ("return `${require}`", "require", "1:11"),
    ("{ const require = 1 }\nrequire", "require", "2:1"),
    ("((require) => 1)(require)", "require", "1:18"),
    ("class A { [require]() {} }", "require", "1:12"),
    ("const f = (a = require) => a", "require", "1:16"),
    ("for (const a of module) a", "module", "1:17"),
    ("const { a = require } = {}", "require", "1:13"),
    ("try {} catch (require) {}\nrequire", "require", "2:1"),
]


@requirement("toolchain:guard:denied")
@pytest.mark.parametrize(("source", "what", "at"), DENIED)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_a_cell_that_asks_for_a_module_is_denied(rig: Rig, source: str, what: str, at: str, language: str) -> None:
    error = rig.refusal(source, language)

    assert (type(error), error.code, error.phase) == (ModuleAccessDenied, ErrorCode.MODULE_ACCESS_DENIED, "transform")
    assert f"`{what}` is denied (cell.{language[0]}s:{at})" in error.message


@pytest.mark.parametrize(
    "source",
    ['import type { Stats } from "fs"', "export type A = string", "export interface A {}", "export enum A { B }"],
)
def test_type_imports_and_exports_are_denied_too(rig: Rig, source: str) -> None:
    assert rig.refusal(source, "typescript").code == ErrorCode.MODULE_ACCESS_DENIED


@requirement("toolchain:guard:allowed")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("return typeof require", "undefined"),
        ("return typeof (module)", "undefined"),
        ("return typeof exports", "undefined"),
        ("const require = () => 1; return require()", "1"),
        ("const { require } = { require: 2 }; return require", "2"),
        ("const { a: module = 3 } = {}; return module", "3"),
        ("const [exports] = [4]; return exports", "4"),
        ("function module() { return 5 } return module()", "5"),
        ("return ((exports) => exports)(6)", "6"),
        ("var f = function require() { return typeof require }; return f()", "function"),
        ("if (true) { function require() { return 7 } } return require()", "7"),
        ("for (const module of [8]) return module", "8"),
        ("try { throw 9 } catch (require) { return require }", "9"),
        ("switch (1) { case 1: let module = 10; return module }", "10"),
        ("var require; { require = 11 } return require", "11"),
        ("class module { static x = 12 } return module.x", "12"),
        ("return ({ require: 13 }).require", "13"),
        ("return ({ import: 14, export: 1 }).import", "14"),
        ("const api = { import() { return 15 } }; return api.import()", "15"),
        ("class A { require() { return 16 } static module = 1 } return new A().require()", "16"),
        ("module: for (;;) break module; return 17", "17"),
        ("return 'import x from \"y\"'", 'import x from "y"'),
        ("return `require(${18})`", "require(18)"),
        ("return /import|export/.source", "import|export"),
        ("// import fs from 'fs'\nreturn 19", "19"),
        ("return '\\u0041'", "A"),
    ],
)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_the_guard_lets_pass_what_asks_for_nothing(rig: Rig, source: str, value: str, language: str) -> None:
    assert rig.run(source, language).value == value


def test_a_denial_after_types_has_the_place_of_the_source(rig: Rig) -> None:
    error = rig.refusal("const é: string = 'é'; return require", "typescript")

    assert "(cell.ts:1:31)" in error.message


def test_a_type_may_speak_of_a_module(rig: Rig) -> None:
    assert rig.run('let a: import("fs").Stats | 1 = 1; return a', "typescript").value == "1"


# ---- errors ----


@requirement("toolchain:errors:position")
@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize(
    "source",
    [
        "const r = await tools.nope({}); return r",
        "tools.nope()",
        "let a; null.x",
        "let a; a`x`",
        "let a; a.b.c",
        "let a; throw new TypeError('x')",
        "let a = 1n; return a + 1",
        "let s = 'é'; null[s]",
        "let a = []; return a[0]()",
        "[1].forEach(x => x.y())",
        "if (true) { unknown }",
    ],
)
def test_a_place_on_the_first_line_is_the_one_that_it_has_on_the_second(rig: Rig, source: str, language: str) -> None:
    """The engine counts columns of calls and of some others from 0 in its first line, and from 1 in all others."""
    first, second = rig.run(source, language).place, rig.run(f"\n{source}", language).place
    assert first is not None
    assert second == Place(2, first.column)


@requirement("toolchain:errors:position")
@pytest.mark.parametrize(
    ("source", "at"),
    [
        ("let x = 1 2", "1:11"),
        ("return 1 +", "1:11"),
        ("\n\n  let é = 'é' 2", "3:15"),
        ("'😀' 2", "1:5"),
        ("const a = 1; const a = 2", "1:20"),
        ("if (", "1:5"),
        ("(", "1:2"),
    ],
)
def test_a_syntax_error_says_where_and_has_no_code(rig: Rig, source: str, at: str) -> None:
    error = rig.refusal(source)

    assert (type(error), error.code, error.phase) == (CellSyntaxError, None, "transform")
    assert re.fullmatch(rf"SyntaxError: .+ \(cell\.js:{at}\)", error.message)


def test_what_only_the_engine_refuses_is_said_in_its_words(rig: Rig) -> None:
    fault = Fault("the engine's own reason", Place(1, len("async function cell(){const é = ".encode()) + 1))

    def compiles(script: str) -> Fault | None:
        return fault if script.startswith("async function") else None

    with pytest.raises(CellSyntaxError) as caught:
        rig.toolchain.prepare("const é = 1", "javascript", compiles, soon())

    assert caught.value.message == "SyntaxError: the engine's own reason (cell.js:1:11)"


@requirement("toolchain:errors:position")
@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("throw new Error('x')", Place(1, 11)),
        ("\n  'é€😀'; throw new Error('x')", Place(2, 20)),
        ("undefinedName", Place(1, 1)),
        ("// c\n\nundefinedName", Place(3, 1)),
        ("const f = () => {\n  throw new Error('x')\n}\nf()", Place(2, 13)),
        ("await null\nthrow new TypeError('x')", Place(2, 11)),
    ],
)
def test_a_thrown_error_leads_to_its_place(rig: Rig, source: str, place: Place, language: str) -> None:
    assert rig.run(source, language).place == place


def test_a_place_behind_the_source_is_its_end(rig: Rig) -> None:
    prepared = Prepared("", "ab\ncd", "javascript", 14)

    assert rig.toolchain.locate(prepared, [Place(9, 9), Place(1, 1), Place(2, 99)], soon()) == [
        Place(2, 3),
        Place(1, 1),
        Place(2, 3),
    ]


@requirement("toolchain:errors:hint")
@pytest.mark.parametrize(
    "source",
    [
        "const x: number = 1",
        "const x: { a: string }[] = []",
        "let x = y as string",
        "x satisfies Y",
        "interface A { a: string }",
        "type A = string",
        "enum A { B }",
        "function f(a: string) {}",
        "function f<T>(a) {}",
        "const f = (a?: string) => a",
        "return x!.y",
        "new Map<string, number>()",
        "class A { private x = 1 }",
        "class A implements B {}",
        "declare const x",
        "namespace A { }",
        "abstract class A {}",
        "const m = new Map<string, number>()",
        "await new Promise<void>((done) => done())",
        "class A { constructor(private x) {} }",
        "function f(this: Window) {}",
        "let x!: number",
        "export type A = string",
        "const x = a! + b!",
    ],
)
def test_typescript_in_a_javascript_cell_says_so(rig: Rig, source: str) -> None:
    assert rig.refusal(source).message.endswith("; if it is TypeScript, use --language typescript")


@pytest.mark.parametrize(
    "source",
    ["let x = 1 2", "foo(", "}", "const = 1", "a b", "obj = {a: 1, b: }", "a < b, c > d;;)", "a = b ! c", "f(a ? )"],
)
def test_other_errors_do_not_speak_of_typescript(rig: Rig, source: str) -> None:
    assert "TypeScript" not in rig.refusal(source).message


@requirement("toolchain:errors:depth")
@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize("source", ["(" * 3000 + ")" * 3000, "[" * 50_000, "`${" * 2000, "!" * 20_000 + "1 // import"])
def test_deep_nesting_is_a_syntax_error(rig: Rig, source: str, language: str) -> None:
    error = on_a_large_stack(lambda: rig.refusal(source, language))

    assert "nested too deeply to be parsed" in error.message


# ---- TypeScript ----

STRIPPED = [
    ("const x: number = 1; return x", "1"),
    ("interface A { a: string }\ntype B = A | null\nreturn 'ok'", "ok"),
    ("enum E { A = 'a', B = A + 'b', C = `${B}c`, D = A, F = 2 }\nreturn Object.keys(E)", "2,A,B,C,D,F"),
    ("enum E { 'a b' = ('x' + 'y'), if = 4 + 1, F }\nreturn Object.entries(E)", "5,if,6,F,a b,xy,if,5,F,6"),
    ("enum E { A, B = 'x', C = 1 << 2 }\nreturn [E.A, E[0], E.B, E.C]", "0,A,x,4"),
    ("const enum E { A = 3 } return E.A", "3"),
    ("class P { constructor(private readonly x: number, public y = 2) {} }\nreturn new P(1).x + new P(1).y", "3"),
    ("class P { s = 1 }\nclass Q extends P { constructor(readonly x: number) { super() } }\nreturn new Q(4).x", "4"),
    (
        "abstract class A { abstract m(): 4 }\nclass B extends A { override m(): 4 { return 4 } }\nreturn new B().m()",
        "4",
    ),
    ("class A { declare z: string; x!: number; y?: string }\nreturn Object.keys(new A()).join()", "x,y"),
    ("class A { static #p: number = 5; static get p(): number { return this.#p } }\nreturn A.p", "5"),
    ("function f(a: string): string;\nfunction f(a: any): any { return a }\nreturn f('over')", "over"),
    ("function f(this: void, a?: string): asserts a is string {}\nreturn typeof f", "function"),
    ("const f = async <T,>(x: T): Promise<T> => x\nreturn await f(6)", "6"),
    ("const f = (a: {\n x: number\n}): {\n y: number\n} => ({ y: a.x })\nreturn f({ x: 7 }).y", "7"),
    ("return ({ a: { b: 8 } } as any)!.a!.b satisfies number", "8"),
    ("return <number>(<unknown>9)", "9"),
    ("return new Map<string, number[]>([['a', [1]]]).size", "1"),
    ("declare const a: string\ndeclare module 'x' { export const a: number }\nreturn typeof a", "undefined"),
    ("declare namespace N { function f(): void }\ndeclare global { interface Window {} }\nreturn 'ok'", "ok"),
    ("const o = { module: { a: 1 }, namespace: 2 }\nreturn o.module.a + o.namespace", "3"),
    ("const module: number = 1; return module", "1"),
    ("const type = 1, declare = 2, as = 3, of = 4\nreturn type + declare + as + of", "10"),
    ("for (const [k, v] of Object.entries({ a: 1 }) as [string, number][]) return k + v", "a1"),
    ("label: for (;;) break label\nreturn 'ok'", "ok"),
    ("interface A {}\nasync (a?: A) => 'called'", "called"),
    ("1 as number", "1"),
]
NO_STATEMENTS = [
    ("async function (x: number = 5): Promise<number> { return x };", "5"),
    ("{ a: 1 as number, toString() { return 'an object' } }", "an object"),
]


@requirement("toolchain:typescript:lines")
@pytest.mark.parametrize(("source", "value"), STRIPPED + NO_STATEMENTS)
def test_types_are_stripped_and_the_program_runs(rig: Rig, source: str, value: str) -> None:
    assert rig.run(source, "typescript").value == value


@requirement("toolchain:typescript:lines")
@pytest.mark.parametrize("source", [source for source, _ in STRIPPED])
def test_stripping_keeps_every_line(rig: Rig, source: str) -> None:
    outcome = rig.run(f"const wrapped = async () => {{\n{source}\n}}\nthrow new Error('after')", "typescript")

    assert outcome.place == Place(source.count("\n") + 4, 11)


@requirement("toolchain:typescript:statements")
@pytest.mark.parametrize(
    "before",
    ["const a = f as any", "const a = f satisfies unknown", "const a = f\ninterface B {}", "const a = f\ntype B = 1",
     "const a = f as any\ninterface B {}", "const a = f\ndeclare const b: string"],
)  # fmt: skip
@pytest.mark.parametrize("after", ["(1)", "[1]", "`1`"])
def test_a_type_that_ended_a_statement_still_ends_it(rig: Rig, before: str, after: str) -> None:
    source = f"const f = () => {{ throw new Error('called') }}\n{before}\n{after}\nreturn a === f"

    assert rig.run(source, "typescript").value == "true"


@requirement("toolchain:typescript:javascript")
@pytest.mark.parametrize("path", sorted(CELLS.glob("*.js")), ids=lambda path: path.stem)
def test_javascript_is_prepared_alike_as_typescript(rig: Rig, path: Path) -> None:
    source = path.read_text(encoding="utf-8")

    def outcome(language: str) -> str:
        try:
            return without_brackets(rig.prepare(source, language).script)
        except ModuleAccessDenied as error:
            return error.message.replace("cell.ts", "cell.js")

    try:
        expected = outcome("javascript")
    except CellSyntaxError:
        pytest.skip("it is no JavaScript")

    assert outcome("typescript") == expected


@requirement("toolchain:typescript:position")
@pytest.mark.parametrize(
    ("source", "token"),
    [
        ("const x: number = 1; throw new Error('x')", "Error"),
        ("const a: Array<{ b: string }> = [], é: string = 'é€😀'; throw new Error('x')", "Error"),
        (
            "interface A {\n  b: string\n}\n\nconst f = (a: A): string => { throw new Error('x') }\nf({ b: 'x' })",
            "Error",
        ),
        ("let y: any = 1; undefinedName as string", "undefinedName"),
        ("enum E { A }; throw new Error('x')", "Error"),
    ],
)
def test_positions_lead_back_through_the_types(rig: Rig, source: str, token: str) -> None:
    offset = source.index(token)
    before = source[:offset]

    assert rig.run(source, "typescript").place == Place(before.count("\n") + 1, offset - before.rfind("\n"))


@requirement("toolchain:typescript:refused")
@pytest.mark.parametrize(
    ("source", "what", "at"),
    [
        ("namespace A { export const x = 1 }", "a namespace", "1:1"),
        ("return 1\n\n  module A.B { }", "a namespace", "3:3"),
        ("declare const x: { a: 1 }\nnamespace B { let x = 1 }", "a namespace", "2:1"),
        ("declare module 'a' {}\nnamespace B {}", "a namespace", "2:1"),
        ("1\nmodule 'a' { f() }", "a namespace", "2:1"),
        ("namespace async { f() }", "a namespace", "1:1"),
        ("namespace readonly.of { f() }", "a namespace", "1:1"),
        ("enum A { b, ['x'] = 1 }", "a computed member of an enum", "1:13"),
        ("enum A { [`x`] }", "a computed member of an enum", "1:10"),
        ("() => { enum A { [`x`] } }", "a computed member of an enum", "1:18"),
        ("enum A { 1 = 2 }", "a computed member of an enum", "1:10"),
        ("import fs = require('fs')", "`import =`", "1:1"),
        ("import type fs = require('fs')", "`import =`", "1:1"),
        ("export = 1", "`export =`", "1:1"),
        ("@sealed class A {}", "a decorator", "1:1"),
        ("class A { @logged m() {} }", "a decorator", "1:11"),
        ("class A { accessor x = 1 }", "`accessor`", "1:11"),
        ("return <any>\n 1", "a type assertion that is split over lines", "1:1"),
        ("{ a: 1, b: class { accessor x = 1 } }", "`accessor`", "1:20"),
    ],
)
def test_what_cannot_be_stripped_is_refused_with_its_place(rig: Rig, source: str, what: str, at: str) -> None:
    error = rig.refusal(source, "typescript")

    assert (type(error), error.code) == (TransformFailed, ErrorCode.TYPESCRIPT_TRANSFORM_FAILED)
    assert error.message.startswith(f"{what} is not supported; ")
    assert error.message.endswith(f"(cell.ts:{at})")


@requirement("toolchain:typescript:refused")
@pytest.mark.parametrize(
    ("source", "at"),
    [
        ("const x: = 1", "1:10"),
        ("\nlet x = 1 2", "2:11"),
        ("const a: number = 1; const a: string = 'é'", "1:28"),
        ("const é: string = 'é'; return 1 }", "1:33"),
    ],
)
def test_wrong_typescript_says_where_in_the_source(rig: Rig, source: str, at: str) -> None:
    assert rig.refusal(source, "typescript").message.find(f"(cell.ts:{at})") > 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["const a", ": number", " = 1", "\n", ";", "interface B { c: string }", "(", ")", "=>", "as any", "{", "}",
             "<T>", "type C = 1", "é", "`${", "}`", "enum D { E }", "return ", "class F ", "x!", "namespace G {}"]
        ),
        max_size=12,
    ).map(" ".join)
)  # fmt: skip
def test_any_text_is_prepared_or_refused_within_its_own_lines(rig: Rig, source: str) -> None:
    try:
        script = rig.prepare(source, "typescript").script
    except CodeModeError as error:
        places = re.findall(r"cell\.ts:(\d+):(\d+)", error.message)
        lines = source.split("\n")

        assert [1 <= int(column) <= len(lines[int(line) - 1]) + 1 for line, column in places] == [True]
    else:
        kept = source.strip(" \t\r\n;").count("\n")

        assert kept <= script.count("\n") - 1 <= source.count("\n") + 3


# ---- what a cell costs ----


@requirement("toolchain:cost:parsers")
@pytest.mark.parametrize(
    "source",
    ["return 1 + 1", "1 + 1", "const a = 'x'\nreturn a", "text('a'); return 2", "await Promise.all([1].map((n) => n))",
     "/* c */ let a = 1\nreturn a", "return importData + required", "tools.call('import_data')"],
)  # fmt: skip
def test_a_plain_cell_asks_no_parser(rig: Rig, source: str) -> None:
    vm = rig.vm()

    Toolchain(Refusing(), Refusing()).prepare(source, "javascript", lambda script: rig.compile(vm, script), soon())


@requirement("toolchain:cost:parsers")
def test_a_javascript_cell_never_asks_the_typescript_parser(rig: Rig) -> None:
    vm = rig.vm()
    toolchain = Toolchain(rig.toolchain._syntax, Refusing())

    toolchain.prepare("async () => typeof require", "javascript", lambda script: rig.compile(vm, script), soon())
    with pytest.raises(CellSyntaxError, match="--language typescript"):
        toolchain.prepare("const x: number = 1", "javascript", lambda script: rig.compile(vm, script), soon())


# ---- for the REPL ----


@requirement("toolchain:repl:complete")
@pytest.mark.parametrize(
    ("source", "complete"),
    [
        ("1 + 1", True),
        ("const a = 1", True),
        ("const a =", False),
        ("f(", False),
        ("if (x) {", False),
        ("`a", False),
        ("/* a", False),
        ("[1,\n2,", False),
        ("async () => {", False),
        ("'a", True),
        (")", True),
        ("let x = 1 2", True),
        ("", True),
    ],
)
def test_an_input_is_complete_when_more_text_cannot_mend_it(rig: Rig, source: str, complete: bool) -> None:
    error = rig.toolchain.inspect(source, [], soon()).get("error")
    assert (error is None or not error["incomplete"]) is complete


@requirement("toolchain:repl:names")
def test_the_names_declared_at_the_top_level_are_known(rig: Rig) -> None:
    source = (
        "const a = 1, { b, c: [d], ...e } = x; let f; class G { h() {} }; function i(j) { var k }\n"
        "if (f) { var l; let m } for (var n of []) {} try {} catch { var o }"
    )

    assert rig.toolchain.inspect(source, ["names"], soon())["names"] == [*"abdefGilno"]
    assert rig.toolchain.inspect("a + b", ["names"], soon())["names"] == []
