"""Servers over stdio, good and bad, as real processes."""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from codemode.core.errors import InvalidConfig, NestedToolFailed
from codemode.core.redact import MASK, Redactor
from codemode.mcp.connections import McpServers
from codemode.mcp.failures import ServerFailure, ServerUnavailable
from codemode.mcp.listings import Listing, ListingCache
from codemode.mcp.process import MARK, ServerProcess
from codemode.mcp.servers import ServerSpec
from tests.requirements import requirement
from tests.support.mcp import (
    CONTEXT,
    call,
    call_listed,
    connection_of,
    define,
    eventually,
    noted,
    odd,
    servers_of,
    shelf,
    text_of,
)


async def _failure(tmp_path: Path, *servers_specs) -> ServerFailure:
    async with servers_of(*servers_specs, cache=tmp_path) as servers:
        (failure,) = (await servers.tools()).failures
    return failure


@requirement("mcp:transport:stdio", "mcp:call:native-result")
async def test_a_result_is_exactly_what_the_server_sent(tmp_path: Path) -> None:
    """Unknown fields stay, and so does what breaks the tool's own output schema."""
    async with servers_of(shelf(), cache=tmp_path) as servers:
        result = await call(servers, "shelf.wrongBook")

    assert result == {"content": "not even a list", "structuredContent": {"title": 7}, "extra": [1, {"deep": None}]}


@requirement("mcp:call:defaults")
async def test_defaults_reach_the_server_filled_in(tmp_path: Path) -> None:
    """Nested ones too; a default of null is nothing to send."""
    async with servers_of(shelf(), cache=tmp_path) as servers:
        result = await call(servers, "shelf.findBooks", {"author": "Mary", "options": {}})

    assert result["structuredContent"]["got"] == {"author": "Mary", "options": {"limit": 2}, "language": "en"}


@requirement("mcp:call:is-error-resolves")
async def test_is_error_resolves_and_a_protocol_error_rejects(tmp_path: Path) -> None:
    """A tool that failed has an answer; a server that refuses has none."""
    async with servers_of(shelf(), cache=tmp_path) as servers:
        result = await call(servers, "shelf.getBook", {"id": "99"})
        with pytest.raises(NestedToolFailed, match=r"answered resources/read with error -32002: Resource not found\."):
            await call(servers, "shelf.resources.read", {"uri": "shelf://99"})

    assert result == {"content": [{"type": "text", "text": "no such book"}], "isError": True}


@requirement("mcp:call:is-error-resolves")
@pytest.mark.parametrize("code", [-32000, -32001])
async def test_a_servers_error_is_not_taken_for_our_own(tmp_path: Path, code: int) -> None:
    """The SDK says "closed" and "timed out" with codes that servers use for other things.

    What a server that lives wrote to stderr when it started has nothing to do with its answer.
    """
    async with servers_of(odd("refuses_with_the_codes_of_a_client"), cache=tmp_path) as servers:
        with pytest.raises(NestedToolFailed, match=rf"answered tools/call with error {code}: Session not found\.\Z"):
            await call(servers, "odd.refuse", {"code": code})


@requirement("mcp:operations:capability", "mcp:operations:catalog")
async def test_resources_and_prompts_are_native_and_catalog_tools(tmp_path: Path) -> None:
    """Pages of resources are the guest's to follow, as MCP has them."""
    async with servers_of(shelf(), odd("plain"), cache=tmp_path) as servers:
        first = await call(servers, "shelf.resources.list")
        second = await call(servers, "shelf.resources.list", {"cursor": first["nextCursor"]})
        book = await call(servers, "shelf.resources.read", {"uri": "shelf://3"})
        prompt = await call(servers, "shelf.prompts.get", {"name": "author", "arguments": {"author": "Woolf"}})
        ids = [tool.id for tool in (await servers.tools()).tools if "/" in tool.name]

    assert [entry["name"] for entry in first["resources"] + second["resources"]] == [
        "Frankenstein",
        "Middlemarch",
        "Mrs Dalloway",
    ]
    assert book["contents"][0]["text"] == "Mrs Dalloway"
    assert prompt["messages"][0]["content"]["text"] == "Tell me about Woolf."
    assert ids == [f"mcp:shelf:{name}" for name in ("prompts/get", "prompts/list", "resources/list", "resources/read")]


@requirement("mcp:start:isolated", "mcp:start:failure-kinds")
async def test_a_server_that_exits_at_start_is_reported_and_the_others_are_there(tmp_path: Path) -> None:
    """Kind, status and last words, redacted."""
    async with servers_of(odd("exits_at_start"), shelf(), cache=tmp_path) as servers:
        listing = await servers.tools()

    (failure,) = listing.failures
    assert failure.to_json() == {
        "server": "odd",
        "kind": "exited",
        "message": 'MCP server "odd" exited with status 3.',
        "exitStatus": 3,
        "stderr": f"cannot find the database; token {MASK}",
        "origin": failure.origin,
    }
    assert failure.origin.endswith("codemode.toml")
    assert "find_books" in {tool.name for tool in listing.tools}


@requirement("mcp:start:failure-kinds")
@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"command": "no-such-server"}, 'the command "no-such-server" was not found; install it, or correct command.'),
        ({"command": "npx -y thing"}, "Write its arguments in args."),
        ({"command": sys.executable, "cwd": "nowhere"}, "does not exist; correct cwd."),
        ({"command": "/"}, 'cannot be started: "/" may not be executed.'),
    ],
)
async def test_a_server_that_cannot_be_started_is_offline(tmp_path: Path, facts, sentence: str) -> None:
    """The sentence says what is missing and what to do."""
    failure = await _failure(tmp_path, define("gone", facts))

    assert failure.kind == "offline"
    assert failure.message.startswith('MCP server "gone" cannot be started: ')
    assert sentence in failure.message


@requirement("mcp:start:timeout")
async def test_a_server_that_never_greets_times_out_by_name(tmp_path: Path) -> None:
    """And its process is gone."""
    failure = await _failure(tmp_path, odd("never_greets", startTimeoutMs=300))

    assert (failure.kind, failure.exit_status) == ("timeout", None)
    assert failure.message == 'MCP server "odd" did not answer within startTimeoutMs = 300 ms.'


@requirement("mcp:start:timeout")
async def test_a_server_that_greets_but_never_lists_times_out_by_name(tmp_path: Path) -> None:
    """The list belongs to the start."""
    assert await _give_up_listing(tmp_path, odd("greets_but_never_lists")) == "timeout"


async def _give_up_listing(folder: Path, spec: ServerSpec) -> str:
    async with servers_of(spec, cache=folder) as servers:
        connection = await servers._servers["odd"]._connect(to_call=False)
        connection._spec = spec._replace(start_timeout_ms=500)  # its start may take longer
        with pytest.raises(ServerUnavailable, match="did not answer tools/list within startTimeoutMs = 500 ms") as told:
            await connection.list_tools(0.0)
    return told.value.failure.kind


@requirement("mcp:start:failure-kinds")
@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("refuses_to_list", "answered tools/list with error -32601: Method not found."),
        ("greets_nonsense", "answered the handshake with protocol version 7, which is not known here."),
        ("speaks_the_future", 'answered the handshake with protocol version "2999-01-01", which is not known here.'),
        ("refuses_to_greet", "answered the handshake with error -32601: Method not found."),
        ("greets_malformed", "answered the handshake with an answer that is no JSON-RPC response."),
    ],
)
async def test_a_server_that_does_not_speak_mcp_is_a_protocol_failure(tmp_path: Path, mode: str, sentence: str) -> None:
    """In the server's name, with what it said."""
    failure = await _failure(tmp_path, odd(mode))

    assert failure.kind == "protocol"
    assert sentence in failure.message


@requirement("mcp:start:failure-kinds")
async def test_what_a_server_says_of_itself_is_one_line_of_bounded_length(tmp_path: Path) -> None:
    """As where it answers with a traceback."""
    failure = await _failure(tmp_path, odd("refuses_to_greet_at_length"))

    assert failure.message.startswith(
        'MCP server "odd" answered the handshake with error -32603: Traceback: a line a line '
    )
    assert len(failure.message) < 600


@requirement("mcp:start:failure-kinds", "mcp:call:is-error-resolves")
@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("greets_nonsense", "sent what is not MCP: "),
        ("speaks_the_future", "does not speak MCP as expected: Unsupported protocol version"),
        ("refuses_to_greet", "answered the handshake with error -32601: Method not found."),
        ("greets_malformed", "error -32603: the server's answer is not a JSON-RPC response."),
        ("exits_at_start", "exited with status 3. Its stderr ends with: cannot find the database"),
    ],
)
async def test_a_listed_server_that_changed_for_the_worse_rejects_the_call(tmp_path: Path, mode, sentence) -> None:
    """Its list is from the cache; the call finds out."""
    spec = odd(mode)
    ListingCache(tmp_path).save(spec.fingerprint(), Listing(0.0, {"tools": {}}, [{"name": "hello"}]))
    async with servers_of(spec, cache=tmp_path) as servers:
        with pytest.raises(NestedToolFailed, match=re.escape(sentence)) as caught:
            await call(servers, "odd.hello")

    assert caught.value.tool_id == "mcp:odd:hello"


async def test_the_first_words_and_the_sdk_share_one_server(tmp_path: Path) -> None:
    """A listing greets; a call takes over; a later listing goes the same way; calls at once share it."""
    log = tmp_path / "log"
    async with servers_of(odd("starts_twice_into", str(log)), cache=tmp_path) as servers:
        listing = await servers.tools()
        connection = connection_of(servers._servers["odd"])
        assert connection._conversation is None
        texts = await asyncio.gather(*(call_listed(servers, listing, "odd.hello") for _ in range(5)))
        await servers.tools(refresh=True)

    assert len({text_of(text) for text in texts}) == 1
    assert log.read_text() == "started\n"


@requirement("mcp:call:death")
async def test_a_server_that_dies_between_listing_and_call_is_connected_again(tmp_path: Path) -> None:
    """Nobody was reading when it died."""
    async with servers_of(odd("dies_in_a_call"), cache=tmp_path) as servers:
        listing = await servers.tools()
        connection = connection_of(servers._servers["odd"])
        assert connection._process is not None
        os.kill(connection._process.pid, signal.SIGKILL)
        await eventually(lambda: not connection.is_alive)
        assert text_of(await call_listed(servers, listing, "odd.hello")).startswith("hello from")


@requirement("mcp:call:declined", "mcp:stdout:noise", "mcp:list:changed")
async def test_a_server_that_talks_out_of_turn_is_heard_while_it_is_listed(tmp_path: Path) -> None:
    """Questions are declined, a ping is answered, chatter is skipped, a change is noted."""
    async with servers_of(odd("talks_while_it_lists"), cache=tmp_path) as servers:
        listing = await servers.tools()
        assert connection_of(servers._servers["odd"]).tools_changed

    assert [tool.name for tool in listing.tools] == ["hello", "ping {'result': {}}", "roots -32601 Method not found"]
    assert [warning.split(" asked for ")[-1].split(" writes ")[-1][:12] for warning in listing.warnings] == [
        "lines to std",
        "roots/list; ",
    ]


@requirement("mcp:start:required")
async def test_a_required_server_that_fails_stops_the_run(tmp_path: Path) -> None:
    """The error has the server's own sentence and the file that requires it."""
    async with servers_of(odd("exits_at_start", required=True), cache=tmp_path) as servers:
        with pytest.raises(InvalidConfig, match=r"exited with status 3\..*It is required by .*codemode\.toml\."):
            await servers.tools()


async def test_a_failed_server_is_left_alone_for_a_while(tmp_path: Path) -> None:
    """A REPL does not wait for it before each cell; a refresh, or half a minute, tries again."""
    now = [1000.0]
    log = tmp_path / "log"
    spec = odd("starts_twice_into", str(log), env={"PYTHONPATH": "/nowhere"}, startTimeoutMs=1)
    async with servers_of(spec, cache=tmp_path, clock=lambda: now[0]) as servers:
        first = (await servers.tools()).failures
        assert (await servers.tools()).failures[0] is first[0]
        assert (await servers.tools(refresh=True)).failures[0] is not first[0]
        latest = (await servers.tools()).failures[0]
        now[0] += 31
        assert (await servers.tools()).failures[0] is not latest


@requirement("mcp:call:death", "mcp:call:reconnect")
@pytest.mark.parametrize(("tool", "how"), [("die", "exited with status 7"), ("dieBySignal", "was ended by SIGKILL")])
async def test_a_server_that_dies_in_a_call_rejects_it_and_the_next_call_works(tmp_path: Path, tool, how) -> None:
    """The rejection says how it died, and that the call may have taken effect."""
    async with servers_of(odd("dies_in_a_call"), cache=tmp_path) as servers:
        before = text_of(await call(servers, "odd.hello"))
        with pytest.raises(NestedToolFailed, match=f"{how} during tools/call, which may have taken effect") as caught:
            await call(servers, f"odd.{tool}")
        after = text_of(await call(servers, "odd.hello"))

    assert caught.value.tool_id == ("mcp:odd:die" if tool == "die" else "mcp:odd:die_by_signal")
    assert before != after


@requirement("mcp:call:death")
async def test_a_death_is_seen_although_a_child_holds_the_pipe(tmp_path: Path) -> None:
    """End of file never comes; the exit does."""
    async with servers_of(odd("dies_while_its_child_holds_stdout"), cache=tmp_path) as servers:
        with pytest.raises(NestedToolFailed, match="exited with status 9"):
            await call(servers, "odd.die")


@requirement("mcp:call:death")
@pytest.mark.parametrize("fd", [0, 1])
async def test_a_server_that_hangs_up_but_lives_on_is_given_up(tmp_path: Path, fd: int) -> None:
    """Without its stdout it cannot answer; without its stdin it cannot be asked again."""
    async with servers_of(odd("closes_its_pipes"), cache=tmp_path) as servers:
        listing = await servers.tools()
        closing = asyncio.create_task(call_listed(servers, listing, "odd.close", {"fd": fd}))
        connection = connection_of(servers._servers["odd"])
        if fd == 0:  # found out by the next word
            await eventually(lambda: not _can_write(connection._process))
        with pytest.raises(
            NestedToolFailed, match=r"closed its pipes during tools/call, which may have taken effect\."
        ):
            await closing
        assert text_of(await call_listed(servers, listing, "odd.hello")).startswith("hello from")


def _can_write(process: ServerProcess | None) -> bool:
    """Say something that no server answers, and hear whether it can be said."""
    assert process is not None
    try:
        process.write(b'{"jsonrpc":"2.0","method":"notifications/nothing"}\n')
    except BrokenPipeError:
        return False
    return True


@requirement("mcp:call:death")
async def test_all_open_calls_of_a_dead_server_reject(tmp_path: Path) -> None:
    """Not only the one that killed it."""
    log = tmp_path / "log"
    async with servers_of(odd("never_answers_a_call", str(log)), cache=tmp_path) as servers:
        listing = await servers.tools()
        calls = [asyncio.create_task(call_listed(servers, listing, "odd.wait")) for _ in range(3)]
        await eventually(lambda: noted(log, '"tools/call"') == 3)
        pid = int(text_of(await call_listed(servers, listing, "odd.hello")).split()[-1])
        os.kill(pid, signal.SIGKILL)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [NestedToolFailed] * 3
    assert all("was ended by SIGKILL" in str(outcome) for outcome in outcomes)


@requirement("mcp:call:timeout", "mcp:call:cancelled")
async def test_a_call_that_is_never_answered_times_out_and_is_cancelled_there(tmp_path: Path) -> None:
    """The error names the setting; the server hears of it."""
    log = tmp_path / "log"
    async with servers_of(odd("never_answers_a_call", str(log), callTimeoutMs=200), cache=tmp_path) as servers:
        with pytest.raises(NestedToolFailed, match=r"did not answer tools/call within callTimeoutMs = 200 ms\."):
            await call(servers, "odd.wait")
        await eventually(lambda: noted(log, "notifications/cancelled") == 1)

    assert noted(log, "timed out after 0.2s") == 1


@requirement("mcp:call:cancelled")
async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    """As an aborted run does it."""
    log = tmp_path / "log"
    async with servers_of(odd("never_answers_a_call", str(log)), cache=tmp_path) as servers:
        listing = await servers.tools()
        waiting = asyncio.create_task(call_listed(servers, listing, "odd.wait"))
        await eventually(lambda: noted(log, '"tools/call"') == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await eventually(lambda: noted(log, "notifications/cancelled") == 1)

    assert noted(log, "caller cancelled") == 1


@requirement("mcp:call:timeout")
async def test_a_server_that_does_not_read_cannot_hold_a_call(tmp_path: Path) -> None:
    """Its pipe is full; the call's time is over all the same."""
    async with servers_of(odd("never_reads", callTimeoutMs=300), cache=tmp_path) as servers:
        listing = await servers.tools()
        outcomes = await asyncio.gather(
            call_listed(servers, listing, "odd.stopReading"),
            call_listed(servers, listing, "odd.hello", {"filler": "x" * (4 << 20)}),
            return_exceptions=True,
        )

    assert [type(outcome) for outcome in outcomes] == [NestedToolFailed] * 2
    assert all("callTimeoutMs" in str(outcome) for outcome in outcomes)


@requirement("mcp:call:progress")
async def test_progress_reaches_the_run(tmp_path: Path) -> None:
    """In order, as plain values."""
    updates: list[object] = []
    async with servers_of(odd("reports_progress"), cache=tmp_path) as servers:
        await call(servers, "odd.work", context=CONTEXT._replace(report=lambda _, update: updates.append(update)))

    assert updates == [
        {"progress": 1.0, "total": 2.0, "message": "step 1"},
        {"progress": 2.0, "total": 2.0, "message": "step 2"},
    ]


@requirement("mcp:call:declined")
async def test_a_server_that_asks_back_is_declined_and_a_person_is_told(tmp_path: Path) -> None:
    """Elicitation, sampling and roots: an error for each, at once."""
    async with servers_of(odd("asks_back"), cache=tmp_path) as servers:
        answers = json.loads(text_of(await call(servers, "odd.ask")))
        warnings = servers.warnings

    assert [answer["message"] for answer in answers] == [
        "Elicitation not supported",
        "Sampling not supported",
        "List roots not supported",
    ]
    assert [re.findall(r"asked for (\S+);", warning) for warning in warnings] == [
        ["elicitation/create"],
        ["sampling/createMessage"],
        ["roots/list"],
    ]


@requirement("mcp:stdout:noise")
async def test_chatter_on_stdout_is_skipped_with_one_warning(tmp_path: Path) -> None:
    """JSON that is no message is chatter too; the first line is quoted."""
    async with servers_of(odd("chats_on_stdout"), cache=tmp_path) as servers:
        result = text_of(await call(servers, "odd.chat"))
        warnings = (await servers.tools()).warnings

    assert result == "done"
    (warning,) = warnings
    assert warning.startswith('MCP server "odd" writes lines to stdout that are no MCP messages; they are skipped.')
    assert warning.endswith("First: Welcome to the chatty server!")


@requirement("mcp:call:malformed")
async def test_a_malformed_answer_rejects_at_once_and_an_odd_character_costs_nothing(tmp_path: Path) -> None:
    """Nobody waits for an answer that came but could not be read."""
    async with servers_of(odd("answers_malformed"), cache=tmp_path / "a") as servers:
        with pytest.raises(NestedToolFailed, match="answer is not a JSON-RPC response"):
            await call(servers, "odd.malformed")
    async with servers_of(odd("answers_half_an_emoji"), cache=tmp_path / "b") as servers:
        assert text_of(await call(servers, "odd.emoji")) == "half \ufffd"


async def test_a_result_of_many_megabytes_arrives(tmp_path: Path) -> None:
    """What is too large for the bridge is the executor's to refuse, by name and size."""
    async with servers_of(odd("answers_huge"), cache=tmp_path) as servers:
        assert len(text_of(await call(servers, "odd.huge", {"bytes": 9 << 20}))) == 9 << 20


async def test_a_message_beyond_all_bounds_ends_the_connection(tmp_path: Path, monkeypatch) -> None:
    """And says so; the next call has a new one."""
    monkeypatch.setattr("codemode.mcp.process.MAX_MCP_MESSAGE_BYTES", 1 << 16)
    async with servers_of(odd("answers_huge"), cache=tmp_path) as servers:
        with pytest.raises(NestedToolFailed, match="it sent a message of more than 65536 bytes"):
            await call(servers, "odd.huge", {"bytes": 1 << 20})
        assert text_of(await call(servers, "odd.huge", {"bytes": 3})) == "xxx"


@requirement("mcp:list:pages")
async def test_a_list_is_paged_to_its_end(tmp_path: Path) -> None:
    """And nothing is warned of."""
    async with servers_of(odd("has_pages"), cache=tmp_path) as servers:
        listing = await servers.tools()

    assert [tool.name for tool in listing.tools] == ["tool_0", "tool_1", "tool_2"]
    assert listing.warnings == ()


@requirement("mcp:list:bounded", "mcp:start:timeout")
async def test_pages_that_only_trickle_in_are_given_up(tmp_path: Path) -> None:
    """Each comes well in time, all of them would take 20 s."""
    assert await _give_up_listing(tmp_path, odd("trickles_pages")) == "timeout"


@requirement("mcp:list:pages")
@pytest.mark.parametrize(
    ("mode", "why"), [("repeats_its_cursor", "repeats a cursor"), ("has_endless_pages", "has more than 200 pages")]
)
async def test_pages_that_never_end_are_stopped(tmp_path: Path, mode: str, why: str) -> None:
    """What came before is used."""
    async with servers_of(odd(mode), cache=tmp_path) as servers:
        listing = await servers.tools()

    assert listing.tools[0].name in ("hello", "tool_0")
    assert listing.warnings == (f'MCP server "odd": its tool list {why}; what came before is used.',)


@requirement("mcp:tools:isolated")
async def test_bad_tools_never_remove_their_neighbours(tmp_path: Path) -> None:
    """Each is left out with its own sentence; odd schemas and texts are read as well as can be."""
    async with servers_of(odd("offers_hostile_tools"), cache=tmp_path) as servers:
        listing = await servers.tools()

    assert {tool.name: (tool.label, tool.parameters) for tool in listing.tools} == {
        "good": ("Good one", {"type": "object"}),
        "hello": (None, {"type": "object"}),
        "no_schema": (None, {"type": "object"}),
        "schema_is_text": (None, {"type": "object"}),
    }
    assert [warning.removeprefix('MCP server "odd": ') for warning in listing.warnings] == [
        "tool number 2 has no name; it is left out.",
        "tool number 3 has no name; it is left out.",
        "tool number 4 has no name; it is left out.",
        'tool "" has a name that is empty, too long or holds control characters; it is left out.',
        "tool number 6 has a name that is empty, too long or holds control characters; it is left out.",
        'tool "hello" is listed twice; it is left out.',
    ]


@requirement("mcp:tools:allow-deny")
async def test_a_definition_chooses_among_the_tools(tmp_path: Path) -> None:
    """Globs, in any case, over tools and operations; deny wins."""
    spec = shelf(allow=["*_BOOK*", "resources/*"], deny=["wrong_*"])
    async with servers_of(spec, cache=tmp_path) as servers:
        listing = await servers.tools()

    assert [tool.name for tool in listing.tools] == ["find_books", "get_book", "resources/list", "resources/read"]


@requirement("mcp:list:changed")
async def test_a_changed_list_shows_in_the_next_run_only(tmp_path: Path) -> None:
    """Whoever has a listing keeps it; in the next process it is known too."""
    async with servers_of(odd("changes_its_tools"), cache=tmp_path) as servers:
        before = await servers.tools()
        await call_listed(servers, before, "odd.grow")
        after = await servers.tools()
        await call_listed(servers, before, "odd.grow")
    async with servers_of(odd("changes_its_tools"), cache=tmp_path) as servers:
        later = await servers.tools()

    assert [len(listing.tools) for listing in (before, after, later)] == [2, 3, 4]
    assert await _has_no_connection(servers)


async def _has_no_connection(servers: McpServers) -> bool:
    return all(server._connection is None for server in servers._servers.values())


@requirement("mcp:start:parallel")
async def test_servers_start_in_parallel(tmp_path: Path) -> None:
    """Both are up before either has said a word, or has ended."""
    log, go = tmp_path / "log", tmp_path / "go"
    code = (
        "import pathlib, sys, time\nlog, go = map(pathlib.Path, sys.argv[1:])\n"
        "with log.open('a') as file:\n    file.write('up ')\n"
        "while not go.exists():\n    time.sleep(0.01)\n"
    )
    facts = {"command": sys.executable, "args": ["-c", code, str(log), str(go)], "startTimeoutMs": 100_000}
    async with servers_of(*(define(name, facts) for name in "ab"), cache=tmp_path) as servers:
        listing = asyncio.create_task(servers.tools())
        await eventually(lambda: log.exists() and log.read_text() == "up up ")
        assert not listing.done()
        go.touch()
        assert {failure.kind for failure in (await listing).failures} == {"exited"}


@requirement("mcp:config:environment", "mcp:config:cwd", "mcp:config:interpolation")
async def test_a_server_sees_its_own_variables_and_folder_and_not_ours(tmp_path: Path) -> None:
    """What is not its business stays with us."""
    spec = odd("shows_its_environment", "${GREETING}", env={"TOKEN": "${MY_TOKEN}"}, cwd=".")
    environment = {
        "PATH": "/usr/bin:/bin",
        "LC_TIME": "C",
        "GREETING": "hi",
        "MY_TOKEN": "secret-7",
        "OTHER_SECRET": "no",
    }
    async with servers_of(spec, cache=tmp_path, environment=environment) as servers:
        seen = json.loads(text_of(await call(servers, "odd.environment")))

    assert seen["env"].pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8"  # Python's own doing
    assert seen["env"].pop(MARK)  # by which its children are found
    assert seen["env"] == {"PATH": "/usr/bin:/bin", "LC_TIME": "C", "TOKEN": "secret-7"}
    assert seen["argv"] == ["odd.py", "shows_its_environment", "hi"]
    assert Path(seen["cwd"]).name == "servers"


@requirement("mcp:config:interpolation", "mcp:config:redacted")
async def test_an_unset_variable_stops_the_listing_and_a_set_one_is_never_shown(tmp_path: Path) -> None:
    """Key, file and variable are named; the value is masked wherever it turns up."""
    spec = odd("exits_at_start", env={"DB": "${DB_URL}"})
    async with servers_of(spec, cache=tmp_path, environment={}) as servers:
        with pytest.raises(
            InvalidConfig, match=r"mcp\.servers\.odd\.env\.DB in .*codemode\.toml: the variable DB_URL is not set"
        ):
            await servers.tools()
    async with servers_of(
        spec, cache=tmp_path, redactor=Redactor(), environment={"DB_URL": "find the database"}
    ) as servers:
        (failure,) = (await servers.tools()).failures
    assert failure.stderr == f"cannot {MASK}; token {MASK}"
