"""Which tools a query means."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.search_set import (
    Rank,
    by_kind,
    load_held_out,
    load_queries,
    load_tools,
    many_tools,
    measure,
    rank_by_bm25,
    rank_by_overlap,
)
from codemode import search_words
from codemode.search import SearchIndex
from codemode.search_words import STOP_WORDS, one_slip_away, related_stems, split_words, stem
from tests.requirements import requirement
from tests.support.tools import make_tool


def index(*tools) -> SearchIndex:
    return SearchIndex(sorted(tools, key=lambda tool: tool.id))


def named(*names: str) -> SearchIndex:
    return index(*(make_tool(f"client:app:{name}", description="") for name in names))


def ids(found: SearchIndex, query: str, limit: int = 10) -> list[str]:
    return [ranked.tool.id.removeprefix("client:app:") for ranked in found.rank(query, limit)]


@requirement("search:terms:word-starts")
@pytest.mark.parametrize("query", ["invoice", "inv", "INVOICE", "i", "invoices"])
@pytest.mark.parametrize("field", ["name", "label", "description", "owner"])
def test_a_term_that_equals_or_begins_a_word_of_any_field_counts(query, field):
    fields = {"label": "zzz", "description": "zzz"}
    owner, name = "zzz", "zzz"
    if field == "name":
        name = "send_invoice"
    elif field == "owner":
        owner = "invoice"
    else:
        fields[field] = "send an invoice"
    found = index(make_tool(f"client:{owner}:{name}", **fields), make_tool("client:b:b", label="b", description="b"))

    assert [ranked.tool.owner for ranked in found.rank(query, 5)] == [owner]


def test_a_term_inside_a_word_does_not_count():
    assert ids(named("invoice"), "voice") == []


@requirement("search:terms:rare-count-more")
def test_a_rare_term_outweighs_a_common_one():
    found = named("list_orders", "list_users", "list_teams", "list_groups", "export_ledger")

    assert ids(found, "list ledger")[0] == "export_ledger"


@requirement("search:order:exact-name-first")
@pytest.mark.parametrize("query", ["get_user", "get user", "getUser", "get-user", "GET_USER"])
def test_the_tool_of_that_name_comes_first(query):
    chatty = make_tool("client:app:a", label="get user get user", description="get user " * 20)

    assert ids(index(chatty, make_tool("client:app:get_user", description="")), query)[0] == "get_user"


@requirement("search:order:ties-by-id")
def test_ties_are_in_id_order():
    tools = [make_tool(f"client:app:{letter}", description="same words") for letter in "dacb"]

    assert ids(index(*tools), "same words") == ["a", "b", "c", "d"]
    assert ids(index(*tools), "same words", 2) == ["a", "b"]


def test_a_name_weighs_more_than_a_description():
    found = index(
        make_tool("client:app:a", description="about refunds"), make_tool("client:app:refund", description="pays")
    )

    assert ids(found, "refunds") == ["refund", "a"]


def test_what_answers_more_of_the_query_comes_first():
    found = named("create_thing", "create_user_group", "user_list")

    assert ids(found, "create user")[0] == "create_user_group"


@requirement("search:words:camel-and-snake")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("createPullRequest", ["create", "pull", "request"]),
        ("create_pull_request", ["create", "pull", "request"]),
        ("create-pull.request", ["create", "pull", "request"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("parseXML2JSON", ["parse", "xml2", "json"]),
        ("getS3Object", ["get", "s3", "object"]),
        ("OAuth2", ["o", "auth2"]),
        ("IDs", ["i", "ds"]),
        ("SHOUTED_NAME", ["shouted", "name"]),
        ("2fast", ["2fast"]),
        ("it's", ["it"]),
        ("a customer\u2019s 's plan", ["a", "customer", "s", "plan"]),
        ("", []),
        ("___", []),
    ],
)
def test_names_are_taken_apart(text, words):
    assert [word.text for word in split_words(text)] == words


@requirement("search:words:camel-and-snake")
@pytest.mark.parametrize("query", ["pull request", "pullRequest", "pull_request", "request pull"])
def test_any_spelling_of_a_name_finds_it(query):
    assert ids(named("createPullRequest", "other"), query) == ["createPullRequest"]


@requirement("search:words:non-ascii")
@pytest.mark.parametrize(
    ("description", "query"),
    [
        ("Café öffnen", "cafe offnen"),
        ("Cafe offnen", "café"),
        ("Заказы клиента", "заказы"),
        ("Заказы клиента", "клиент"),
        ("注文を検索する", "検索"),
        ("주문 검색", "검색"),
        ("ค้นหาคำสั่งซื้อ", "คำสั่ง"),
        ("Ürün ara", "URUN"),
        ("straße", "STRASSE"),
    ],
)
def test_other_scripts_and_accents_match(description, query):
    found = index(make_tool("client:app:a", description=description), make_tool("client:app:b", description="other"))

    assert ids(found, query) == ["a"]


@requirement("search:words:inflections")
@pytest.mark.parametrize(
    "words",
    [
        ("order", "orders", "ordered", "ordering"),
        ("create", "creates", "created", "creating", "creation", "creations"),
        ("delete", "deleted", "deletes", "deleting", "deletion"),
        ("category", "categories"),
        ("branch", "branches"),
        ("box", "boxes"),
        ("class", "classes"),
        ("run", "runs", "running"),
        ("status",),
        ("deploy", "deploys", "deployed", "deployment", "deployments"),
        ("translate", "translation", "translating", "translator"),
        ("reply", "replies"),
        ("assign", "assigned", "assigning", "assignment"),
        ("summary", "summaries"),
        ("query", "queries"),
        ("invoice", "invoices", "invoicing"),
    ],
    ids=lambda words: words[0],
)
def test_inflections_share_a_stem(words):
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize(
    "pair", [("order", "ordinary"), ("issue", "is"), ("user", "use"), ("news", "new"), ("pass", "pas")]
)
def test_different_words_keep_different_stems(pair):
    assert stem(pair[0]) != stem(pair[1])


@requirement("search:query:bounded")
def test_slips_are_tried_for_a_few_words_only_and_for_none_that_no_name_could_be(monkeypatch):
    """A word of 100,000 letters has seven million slips, which took the host ten gigabytes."""
    tried: list[str] = []

    def recorded(word: str):
        tried.append(word)
        return one_slip_away(word)

    monkeypatch.setattr("codemode.search.one_slip_away", recorded)
    nonsense = [f"{'q' * 38}w", "q" * 60, *(f"qz{letter}xv" for letter in "abcdefghijklmnop")]
    assert ids(named("lookup_order"), " ".join(nonsense)) == []
    assert len(set(tried)) <= 2 * 8  # a word and its stem
    assert max(map(len, tried)) == 39
    assert ids(named("lookup_order"), "qzaxv loookup") == ["lookup_order"]


@requirement("search:query:bounded")
def test_what_follows_five_hundred_characters_of_a_query_is_not_read():
    found = named("lookup_order")
    assert ids(found, "x " * 240 + "order") == ["lookup_order"]
    assert ids(found, "x " * 250 + "order") == []
    assert found.explain("x " * 250 + "order", 5) == []


@requirement("search:terms:one-slip")
@pytest.mark.parametrize("query", ["serch", "seaarch", "saerch", "searxh", "search"])
def test_one_slip_finds_the_word(query):
    assert ids(named("search_files", "other"), query) == ["search_files"]


@requirement("search:terms:one-slip")
@pytest.mark.parametrize(
    ("name", "query"),
    [("send_invoice", "invoces"), ("send_invoice", "invocing"), ("remove_file", "delte")],
)
def test_a_slip_in_an_inflection_or_in_another_word_for_it_finds_the_word(name, query):
    assert ids(named(name, "other"), query) == [name]


def test_a_slip_weighs_less_than_the_word_and_more_than_another_word_for_it():
    found = named("delete_file", "remove_file")

    assert [ranked.tool.name for ranked in found.rank("delte", 2)] == ["delete_file", "remove_file"]


def test_what_is_too_long_for_a_word_has_no_slips():
    name = "x" * 60

    assert ids(named(name), f"{name[1:]}y") == []


def test_a_letter_that_begins_very_many_words_finds_enough():
    tools = [make_tool(f"client:app:a{at:03}_tool", description="") for at in range(300)]

    assert len(index(*tools).rank("a", 250)) >= 200


def test_two_slips_and_short_words_find_nothing():
    assert ids(named("search_files", "get"), "saerhc") == []
    assert ids(named("get"), "gte") == []
    assert ids(named("write_remark"), "nope") == []


def test_a_term_that_matches_something_is_no_slip():
    found = named("invoke", "invoice")

    assert ids(found, "invoice") == ["invoice"]


@given(st.text("abc", min_size=1, max_size=6), st.text("abc", max_size=1), st.integers(0, 6))
def test_a_word_is_one_slip_away_from_each_of_its_slips(word, letter, at):
    at = min(at, len(word))

    assert word in set(one_slip_away(word[:at] + letter + word[at:])) | {word}


@requirement("search:terms:families")
def test_a_paraphrase_reaches_the_tool_that_it_means():
    found = index(
        make_tool("client:git:create_pull_request", description="Create a pull request"),
        make_tool("client:git:create_branch", description="Create a branch"),
        make_tool("client:mail:send_email", description="Send an email"),
        make_tool("client:files:delete_file", description="Delete a file"),
    )

    assert found.rank("open a merge proposal", 1)[0].tool.name == "create_pull_request"
    assert found.rank("erase a document", 1)[0].tool.name == "delete_file"


def test_a_family_is_mutual_and_does_not_hold_the_word_itself():
    assert stem("delete") in related_stems(stem("remove"))
    assert stem("remove") in related_stems(stem("deleted"))
    assert stem("remove") not in related_stems(stem("remove"))


@pytest.mark.parametrize("query", ["roll back", "roll-back", "rollback"])
def test_two_words_that_are_one_elsewhere_find_its_family(query):
    assert ids(named("undo_release", "other"), query) == ["undo_release"]


def test_two_words_count_as_one_only_for_what_neither_finds_itself():
    found = named("create_page", "open_browser")

    assert {reason.term for reason in found.explain("web page", 1)[0].reasons} == {"web", "page"}


def test_a_second_word_for_the_same_thing_is_more_evidence():
    tools = [
        make_tool("client:app:a", description="receipts"),
        make_tool("client:app:b", description="receipt, invoice"),
    ]

    assert ids(index(*tools), "bill") == ["b", "a"]


def test_each_family_holds_two_words_and_is_no_part_of_another():
    lines = Path(search_words.__file__).with_name("search_families.txt").read_text(encoding="ascii").splitlines()
    families = [frozenset(stem(word) for word in line.split()) for line in lines if line and not line.startswith("#")]

    assert [family for family in families if len(family) < 2] == []
    assert [
        family
        for at, family in enumerate(families)
        if any(family <= other for other in families[:at]) or any(family < other for other in families[at:])
    ] == []


@pytest.mark.parametrize("query", ["", "   ", "_-.", "\0", "zzzzzz", "🦀"])
def test_a_query_without_a_match_finds_nothing(query):
    assert ids(named("search_files", "$"), query) == []


def test_an_empty_index_answers():
    assert index().rank("x", 5) == []


def test_stop_words_count_little_but_count():
    found = named("what_is_it", "find_order")

    assert ids(found, "what is the order") == ["find_order", "what_is_it"]
    assert ids(found, "what") == ["what_is_it"]


@requirement("search:explain:reasons")
def test_explain_gives_the_reasons_of_the_same_ranking():
    found = named("create_orders", "create_invoice", "delete_order")

    explained = found.explain("make ordr inv", 5)

    assert [entry.tool.id for entry in explained] == [ranked.tool.id for ranked in found.rank("make ordr inv", 5)]
    reasons = {(entry.tool.name, reason.term, reason.how) for entry in explained for reason in entry.reasons}
    assert ("create_orders", "make", "family") in reasons
    assert ("create_orders", "ordr", "slip") in reasons
    assert ("create_invoice", "inv", "prefix") in reasons
    assert all(0 < entry.coverage <= 1 for entry in explained)
    assert {reason.found for entry in explained for reason in entry.reasons} == {"create", "order", "invoice"}


@requirement("search:explain:reasons")
@pytest.mark.parametrize("query", ["create order", "createOrder", "___"])
def test_explain_says_that_the_query_is_the_name(query):
    first, *others = named("create_order", "create_orders", "___", "$").explain(query, 5)

    assert first.reasons[0].how == "name"
    assert first.reasons[0].found == first.tool.name
    assert first.reasons[0].points > first.score / 2
    assert "name" not in {reason.how for entry in others for reason in entry.reasons}


def test_tools_may_be_asked_for_by_kind():
    found = index(make_tool("client:app:send_mail"), make_tool("mcp:mail:send_mail"))

    assert [ranked.tool.source for ranked in found.rank("send mail", 5, mcp=True)] == ["mcp"]
    assert [ranked.tool.source for ranked in found.rank("send mail", 5, mcp=False)] == ["client"]
    assert len(found.rank("send mail", 5)) == 2


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_any_text_can_be_searched_for(query):
    found = named("createPullRequest", "注文", "a")

    assert all(ranked.score > 0 for ranked in found.rank(query, 5))


def test_shuffled_tools_give_the_same_ranking():
    tools = load_tools()
    shuffled = random.Random(1).sample(tools, len(tools))

    for query in ("create issue", "file", "send"):
        ours, theirs = index(*tools).rank(query, 20), index(*shuffled).rank(query, 20)
        assert [ranked.tool.id for ranked in ours] == [ranked.tool.id for ranked in theirs]


def test_every_process_ranks_alike():
    """Sets of strings have another order in each process; a ranking must not follow it."""
    code = (
        "from bench.search_set import load_queries, load_tools; from codemode.search import SearchIndex; "
        "found = SearchIndex(load_tools()); "
        "print([[(r.tool.id, r.score) for r in found.rank(q.text, 10)] for q in load_queries()])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, check=True
        ).stdout
        for seed in ("1", "2")
    }

    assert len(printed) == 1


def test_a_large_index_still_finds_the_needle():
    tools = [*many_tools(3000), make_tool("client:shop:refund_payment", description="Give a customer money back")]
    found = index(*tools)

    assert found.rank("refund payment", 1)[0].tool.name == "refund_payment"
    assert "refund_payment" in [ranked.tool.name for ranked in found.rank("the refund of a payment for a customer", 5)]


def places(tools) -> dict[str, Rank]:
    found = SearchIndex(tools)
    return {
        "ours": lambda query: [ranked.tool.id for ranked in found.rank(query, 10)],
        "BM25": rank_by_bm25(tools),
        "overlap": rank_by_overlap(tools),
    }


@requirement("search:quality:recall")
def test_recall_on_the_query_set_is_high_and_above_the_plain_rankings():
    ranks, queries, held_out = places(load_tools()), load_queries(), load_held_out()

    for some, enough in ((queries + held_out, 0.95), (queries, 0.95), (held_out, 0.92)):
        recall = {name: measure(rank, some).recall_at_5 for name, rank in ranks.items()}
        assert recall["ours"] >= enough
        assert recall["ours"] > recall["BM25"] > recall["overlap"]


@pytest.mark.parametrize("kind", sorted(by_kind(load_queries())))
def test_no_kind_of_query_does_worse_than_with_a_plain_ranking(kind):
    some = by_kind(load_queries() + load_held_out())[kind]
    recall = {name: measure(rank, some).recall_at_5 for name, rank in places(load_tools()).items()}

    assert recall["ours"] == max(recall.values())


@pytest.mark.parametrize("queries", [load_queries(), load_held_out()], ids=["queries", "held out"])
def test_the_query_set_is_what_it_says(queries):
    names = {tool.id: content(tool.name) for tool in load_tools()}
    paraphrases = [query for query in queries if query.kind == "paraphrase"]

    assert len(names) >= 300
    assert len(queries) >= 60
    assert len({query.text for query in load_queries() + load_held_out()}) == len(load_queries() + load_held_out())
    assert {wanted for query in queries for wanted in query.wanted} <= names.keys()
    assert len(paraphrases) * 3 >= len(queries)
    assert [
        (query.text, wanted)
        for query in paraphrases
        for wanted in query.wanted
        if not content(query.text).isdisjoint(names[wanted])
    ] == []


def content(text: str) -> set[str]:
    """Return the stems of the words that say something."""
    return {word.stem for word in split_words(text) if word.text not in STOP_WORDS}
