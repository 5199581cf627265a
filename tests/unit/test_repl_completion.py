"""What the REPL offers while one types: where the cursor is, what fits there, in which order."""

import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from codemode.core.types import PATH_SEPARATOR
from codemode.repl.commands import COMMANDS
from codemode.repl.completer import CellCompleter, SafeCompleter
from codemode.repl.index import MAX_SHOWN, Index, Word
from codemode.repl.inputs import keys_at, values_at
from codemode.repl.place import ITEM, Place, locate
from codemode.repl.scan import scan
from codemode.repl.vocabulary import Vocabulary
from tests.requirements import requirement
from tests.support.cells import FIXTURES, load_cell
from tests.support.repl import ORDER, catalog_with_everything

# Reading half a cell


@pytest.mark.parametrize(
    ("text", "openers", "state"),
    [
        ("f(1, [2, {a: (", ["(", "[", "{", "("], "code"),
        ("f(1)[2]{}", [], "code"),
        ('x = "a(', [], "string"),
        ("x = 'it\\'s", [], "string"),
        ("`a ${b + `c ${d", ["`", "${", "`", "${"], "code"),
        ("`a ${b} c", ["`"], "template"),
        ("`a ${{b: 1}.b} c` + (", ["("], "code"),
        ("// (", [], "comment"),
        ("// (\n(", ["("], "code"),
        ("/* ( ", [], "comment"),
        ("/* ( */ [", ["["], "code"),
        ("a = /[(/]{/g; (", ["("], "code"),
        ("a / b / (", ["("], "code"),
        ("return /(/.test(", ["("], "code"),
        (") ] } (", ["("], "code"),
        ('"half\n(', ["("], "code"),
    ],
)
def test_brackets_strings_and_comments_are_told_apart(text: str, openers: list[str], state: str) -> None:
    found = scan(text)

    assert ([frame.opener for frame in found.frames[1:]], found.state) == (openers, state)


@given(st.text(alphabet="ab.,:;(){}[]`'\"$/\\ \n={}", max_size=60))
def test_any_text_can_be_scanned_and_located(text: str) -> None:
    """Nobody types valid JavaScript all the time."""
    assert scan(text).frames[0].opener == ""
    locate(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", Place("name", "")),
        ("const x = to", Place("name", "to")),
        ("12", None),
        ("tools.", Place("member", "", ("tools",))),
        ("await tools?.loo", Place("member", "loo", ("tools",))),
        ("MCP.everyThing.getS", Place("member", "getS", ("MCP", "everyThing"))),
        ("f().", None),
        ("f().x.", None),
        ("// tools.", None),
        ("`text tools.", None),
        ("`${tools.", Place("member", "", ("tools",))),
        ('tools.call("plu', Place("text", "plu", ("tools", "call"), quote='"')),
        ("API.read('mcp/", Place("text", "mcp/", ("API", "read"), quote="'")),
        ('f(1, "x', None),
        ('("x', None),
        ("tools.a({", Place("key", "", ("tools", "a"))),
        ("tools.a({id: 1, no", Place("key", "no", ("tools", "a"), taken=frozenset({"id"}))),
        ("tools.a({'id': 1, 'no", Place("key", "no", ("tools", "a"), taken=frozenset({"id"}), quote="'")),
        ("tools.a({id, ...rest, no", Place("key", "no", ("tools", "a"), taken=frozenset({"id"}))),
        ("tools.a({id: ", Place("value", "", ("tools", "a"), keys=("id",))),
        ('tools.a({id: "o', Place("value", "o", ("tools", "a"), keys=("id",), quote='"')),
        ("tools.a({id: x ? y : z", Place("name", "z")),
        ("tools.a({x: {y: [{z", Place("key", "z", ("tools", "a"), keys=("x", "y", ITEM))),
        ("tools.a({x: [1, ", Place("value", "", ("tools", "a"), keys=("x", ITEM))),
        ("tools.a({x: [[", Place("value", "", ("tools", "a"), keys=("x", ITEM, ITEM))),
        ("tools.a({x: [1 ", Place("name", "")),
        ('tools.call("a:b:c", {k', Place("key", "k", ("tools", "call"), "a:b:c")),
        ("tools.call(id, {k", Place("name", "k")),
        ("tools.a(x, {k", Place("name", "k")),
        ("tools.a([{k", Place("name", "k")),
        ("({k", Place("name", "k")),
        ("if (x) {k", Place("name", "k")),
        ("{ f({a: () => {k", Place("name", "k")),
        ("x" * 50_001, None),
    ],
)  # fmt: skip
def test_the_cursor_is_placed(text: str, place: Place | None) -> None:
    assert locate(text) == place


# Finding words


def found(words: list[str], typed: str, count: int = 100) -> list[str]:
    return [word.text for word in Index([Word(word) for word in words]).find(typed, count)]


@requirement("repl:completion:fuzzy")
def test_what_begins_with_the_letters_comes_first_then_parts_then_pieces_then_scattered() -> None:
    words = ["list_orders", "order", "plugin:shop:order_x", "reorder", "one_red_rope_deer", "unrelated"]

    assert found(words, "order") == ["order", "plugin:shop:order_x", "list_orders", "reorder", "one_red_rope_deer"]


@requirement("repl:completion:fuzzy")
def test_letters_closest_together_come_first_and_capitals_do_not_matter() -> None:
    assert found(["l_o_o_k", "loXok", "LOOK"], "look") == ["LOOK", "loXok", "l_o_o_k"]
    assert found(["getSum", "MCP"], "mc") == ["MCP"]


def test_nothing_typed_gives_the_first_words_in_their_order() -> None:
    assert found(["b", "a", "C"], "", 2) == ["a", "b"]
    assert found([], "x") == []


@given(
    st.lists(st.text(alphabet="abc_:", min_size=1, max_size=8), unique=True, max_size=20), st.text("abc_:", max_size=4)
)
def test_exactly_the_words_that_hold_the_letters_are_found(words: list[str], typed: str) -> None:
    def holds(word: str) -> bool:
        letters = iter(word)
        return all(letter in letters for letter in typed)

    assert sorted(found(words, typed)) == sorted(word for word in words if holds(word))


def test_ten_thousand_words_are_found_to_the_last_one() -> None:
    """Speed is measured elsewhere; here the search over one text must not lose any."""
    chosen = random.Random(1)
    words = sorted({"".join(chosen.choices(string.ascii_lowercase, k=9)) for _ in range(10_000)})
    index = Index([Word(word) for word in words])
    index.warm()

    assert all(index.find(word, 1)[0].text == word for word in words[::500])
    assert len(index.find("e")) == MAX_SHOWN


# Inputs of tools


@requirement("repl:completion:keys")
def test_the_keys_of_an_input_come_with_their_types_required_ones_first() -> None:
    words = keys_at(ORDER, ())

    assert words[0] == Word("id", "string, required · Such as o-1001.")
    assert [word.text for word in words[1:3]] == ["note", "status"]
    assert words[2].meta == '"open" | "paid"'


@requirement("repl:completion:keys")
def test_references_arrays_and_alternatives_are_followed() -> None:
    assert [word.text for word in keys_at(ORDER, ("lines", ITEM))] == ["sku", "count"]
    assert [word.text for word in keys_at(ORDER, ("address",))] == ["city"]


def test_values_are_those_that_the_schema_lists() -> None:
    assert [word.text for word in values_at(ORDER, ("status",))] == ['"open"', '"paid"']
    assert [word.text for word in values_at(ORDER, ("gift",))] == ["true", "false"]
    assert [word.text for word in values_at(ORDER, ("kind",))] == ['"order"']
    assert values_at(ORDER, ("note",)) == []


@pytest.mark.parametrize(
    "schema",
    [None, True, {"$ref": "#/a"}, {"$ref": "http://elsewhere"}, {"properties": []}, {"$ref": "#"}, {"anyOf": [True]}],
)
def test_a_schema_that_leads_nowhere_offers_nothing(schema: object) -> None:
    assert keys_at(schema, ()) == []
    assert keys_at(schema, ("a", ITEM)) == []
    assert values_at(schema, ("a",)) == []


# The completer


@pytest.fixture
def completer() -> CellCompleter:
    catalog = catalog_with_everything()
    vocabulary = Vocabulary(catalog, {"Shop": "Orders and prices."})
    vocabulary.warm()
    vocabulary.open(catalog.scope, [PATH_SEPARATOR.join(("Shop", "orders", "cancel"))])
    vocabulary.declare({"total", "orders"})
    return CellCompleter(vocabulary, lambda kind: [Word(f"a-{kind}")])


def offered(completer: Completer, text: str, *, asked: bool = False) -> list[Completion]:
    event = CompleteEvent(completion_requested=asked, text_inserted=not asked)
    return list(completer.get_completions(Document(text), event))


def texts(completer: Completer, text: str, *, asked: bool = False) -> list[str]:
    return [each.text for each in offered(completer, text, asked=asked)]


@requirement("repl:completion:names")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tot", "total"),
        ("MC", "MCP"),
        ("Sho", "Shop"),
        ("ALL", "ALL_TOOLS"),
        ("awa", "await"),
        ("tools.loo", "lookup_order"),
        ("tools.sea", "search"),
        ("tools.two", "two_words"),
        ("MCP.every", "everyThing"),
        ("MCP.$", "$api"),
        ("MCP.everyThing.sum", "getSum"),
        ("MCP.everyThing.res", "resources"),
        ("MCP.everyThing.resources.r", "read"),
        ("namespaces.Sh", "Shop"),
        ("Shop.or", "orders"),
        ("namespaces.Shop.orders.l", "lookup"),
        ("API.re", "read"),
        ("console.w", "warn"),
        ("JSON.s", "stringify"),
        ('tools.call("look', "plugin:shop:lookup_order"),
        ("tools.describe('two", "client:app:two words"),
        ('API.read("', "mcp/index.d.ts"),
        ('MCP.everyThing.$api("get', "getSum"),
    ],
)
def test_what_can_be_named_is_offered(completer: CellCompleter, text: str, expected: str) -> None:
    assert texts(completer, text)[0] == expected


@requirement("repl:completion:names")
@pytest.mark.parametrize(
    "text",
    ["", "1", "tools.lookup_order(", "x.", "MCP.nobody.", "MCP.everyThing.prompts.", "Shop.currency.", "f('", "// to"],
)
def test_where_nothing_fits_nothing_is_offered(completer: CellCompleter, text: str) -> None:
    assert texts(completer, text) == []


@requirement("repl:completion:names")
def test_an_mcp_tool_is_offered_under_mcp_only(completer: CellCompleter) -> None:
    assert texts(completer, 'tools.call("get_sum') == []
    assert "mcp:every-thing:get_sum" in texts(completer, ":describe get_sum")


@requirement("repl:completion:names")
@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("MCP.every", "3 tools of every-thing"),
        ("MCP.everyThing.getS", "Adds."),
        ("MCP.everyThing.resources.l", "list(): its resources"),
        ("Sho", "Orders and prices."),
        ("namespaces.Sh", "Orders and prices."),
        ("Shop.orders.canc", "One order by its id."),
        ("Shop.ord", "object"),
        ("Shop.curr", ""),
        ("ALL_T", "compact entries of all tools but those of MCP"),
    ],
)
def test_the_menu_says_what_each_name_is(completer: CellCompleter, text: str, meta: str) -> None:
    assert offered(completer, text)[0].display_meta_text == meta


@requirement("repl:completion:names")
def test_a_server_has_as_many_tools_as_the_catalog_counts(completer: CellCompleter) -> None:
    assert offered(completer, "MCP.every")[0].display_meta_text.startswith(
        str(catalog_with_everything().sources["mcp"])
    )


@requirement("repl:completion:names")
def test_a_namespace_is_known_by_name_until_it_is_opened() -> None:
    catalog = catalog_with_everything()
    vocabulary = Vocabulary(catalog, {"Shop": "Orders and prices."})
    completer = CellCompleter(vocabulary, lambda _kind: [])

    assert (texts(completer, "Sho")[0], texts(completer, "Shop."), texts(completer, "Shop.orders.lookup({")) == (
        "Shop", [], [],
    )  # fmt: skip
    vocabulary.open(catalog.scope, [])
    assert texts(completer, "Shop.") == ["currency", "orders"]
    assert texts(completer, "Shop.orders.cancel({")[:1] == ["id: "]


@requirement("repl:completion:keys")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tools.lookup_order({", ["id: ", "note: "]),
        ("tools.lookup_order({id: 1, n", ["note: ", "kind: ", "lines: "]),
        ('tools.lookup_order({"i', ['id": ']),
        ("tools.lookup_order({shi", ['"ship-to": ']),
        ("tools.lookup_order({lines: [{", ["sku: ", "count: "]),
        ('tools.call("plugin:shop:lookup_order", {', ["id: "]),
        ('tools.call("two words", {', ["a: "]),
        ("MCP.everyThing.getSum({", ["a: ", "b: "]),
        ("Shop.orders.lookup({", ["id: "]),
        ("namespaces.Shop.orders.lookup({", ["id: "]),
        ("Shop.orders.cancel({", []),  # it takes something else than the input of its tool
        ("MCP.everyThing.resources.read({", ["uri: "]),
        ("tools.lookup_order({status: ", ['"open"', '"paid"']),
        ('tools.lookup_order({status: "p', ["paid", "open"]),
        ("tools.lookup_order({gift: t", ["true", "total"]),
        ("tools.list_orders({", []),
        ("tools.nobody({", []),
    ],
)
def test_the_keys_and_values_of_an_input_are_offered(completer: CellCompleter, text: str, expected: list[str]) -> None:
    assert texts(completer, text)[: len(expected) or None] == expected


@requirement("repl:completion:keys")
def test_the_menu_says_the_type_of_each_key(completer: CellCompleter) -> None:
    first = offered(completer, "tools.lookup_order({i")[0]

    assert (first.display_text, first.display_meta_text) == ("id", "string, required · Such as o-1001.")
    assert first.start_position == -1


def test_names_wait_for_a_letter_unless_they_are_asked_for(completer: CellCompleter) -> None:
    assert texts(completer, "x + ") == []
    assert "tools" in texts(completer, "x + ", asked=True)
    assert "total" in texts(completer, "tools.lookup_order({note: ", asked=True)


@requirement("repl:completion:commands")
def test_commands_and_their_arguments_are_offered(completer: CellCompleter) -> None:
    assert texts(completer, ":") == sorted(command.name for command in COMMANDS)
    assert texts(completer, ":und")[0] == "undo"
    assert texts(completer, ":describe lookup") == ["plugin:shop:lookup_order"]
    assert texts(completer, ":types e") == ["everyThing"]
    assert texts(completer, ":wait ") == ["a-run"]
    assert texts(completer, ":stats ") == []
    assert texts(completer, ":nothing ") == []


@requirement("repl:completion:commands")
def test_files_are_offered_where_a_command_takes_one(completer: CellCompleter, tmp_path) -> None:
    (tmp_path / "cell.js").touch()

    assert texts(completer, f":load {tmp_path}/ce") == ["ll.js"]


@requirement("repl:completion:broken")
def test_a_broken_completer_offers_nothing_and_tells_of_it_once() -> None:
    class Broken(Completer):
        def get_completions(self, document, complete_event):
            yield Completion("first")
            raise KeyError("lost")

    told: list[str] = []
    completer = SafeCompleter(Broken(), told.append)

    assert texts(completer, "a") == ["first"]
    assert texts(completer, "b") == ["first"]
    assert told == ["completion broke: KeyError: 'lost'"]


def test_a_description_cannot_steer_the_terminal(completer: CellCompleter) -> None:
    nasty = CellCompleter(Vocabulary(catalog_with_everything()), lambda _kind: [Word("a", "\x1b[31mred")])

    assert "\x1b" not in offered(nasty, ":wait ")[0].display_meta_text


# Against real cells

CELLS = sorted((*FIXTURES.glob("cells/**/*.[jt]s"), *FIXTURES.glob("hostile/**/*.[jt]s")))
RUNNING = [
    path
    for path in CELLS
    if load_cell(path).one("status") in ("completed", "waiting")
    and "html_comment" not in path.name  # `<!--`: nobody types it
]


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.name)
def test_a_whole_cell_is_read_to_its_end_with_nothing_open(path: Path) -> None:
    """A cell that runs has balanced brackets; the scanner must see them as the parser does."""
    cell = load_cell(path)
    found = scan(cell.code)

    assert ([frame.opener for frame in found.frames], found.state in ("code", "comment")) == ([""], True)


@requirement("repl:completion:broken")
def test_completion_breaks_at_no_place_of_any_cell(completer: CellCompleter) -> None:
    """Each fixture is typed up to a few places in it."""
    chosen = random.Random(7)
    for path in CELLS:
        source = path.read_text(encoding="utf-8", errors="replace")
        for _ in range(3):
            texts(completer, source[: chosen.randrange(len(source) + 1)], asked=True)
