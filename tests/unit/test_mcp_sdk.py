"""Lines of a server as messages, and errors of the SDK as sentences."""

import socket

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from codemode.mcp import sdk
from codemode.mcp.failures import ServerFailure, describe_exit, explain_status
from codemode.mcp.greeting import PROTOCOL_VERSIONS
from codemode.mcp.signin import SignInFailed
from tests.requirements import requirement


@requirement("mcp:call:malformed")
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}\n', JSONRPCResponse),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}', JSONRPCError),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', JSONRPCRequest),
        (b'{"jsonrpc":"2.0","method":"n"}\r\n', JSONRPCNotification),
        (b'{"jsonrpc":"2.0","id":1,"result":[]}', JSONRPCError),
        (b'{"id":1,"error":"text"}', JSONRPCError),
        (b'{"jsonrpc":"2.0","id":1,"result":{"t":"\xff"}}', JSONRPCResponse),
        (b'{"jsonrpc":"2.0","id":"a","result":{"t":"\\ud83d"}}', JSONRPCResponse),
        (b"hello\n", type(None)),
        (b"\n", type(None)),
        (b"7", type(None)),
        (b'{"id":1,"method":7}', type(None)),
        (b'{"id":null,"result":{}}', type(None)),
        (b"[" * 100_000, type(None)),
    ],
)
def test_a_line_is_a_message_or_nothing(line: bytes, kind: type) -> None:
    """An answer that cannot be read is an error under its id."""
    assert type(sdk.parse_message(line)) is kind


def test_the_first_words_know_the_versions_that_the_sdk_knows() -> None:
    """A server that one of them takes, the other takes too."""
    assert tuple(reversed(HANDSHAKE_PROTOCOL_VERSIONS)) == PROTOCOL_VERSIONS


_ASKED = httpx2.Request("POST", "http://me:secret@shop.test:81/mcp")


def _caused(cause: Exception) -> httpx2.ConnectError:
    error = httpx2.ConnectError("all connection attempts failed", request=_ASKED)
    error.__cause__ = cause
    return error


@requirement("mcp:start:failure-kinds")
@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MCPError(CONNECTION_CLOSED, "Connection closed"), "offline", "closed the connection during the handshake."),
        (MCPError(CONNECTION_CLOSED, "SSE stream failed: x"), "offline", "closed the connection during the handshake."),
        (
            MCPError(-32700, "Failed to parse JSON: 1\n2"),
            "protocol",
            "answered the handshake with what is not MCP.",
        ),
        (MCPError(CONNECTION_CLOSED, "no"), "protocol", "answered the handshake with error -32000: no."),
        (httpx2.ConnectError("refused"), "offline", "cannot be reached: refused."),
        (ConnectionRefusedError(), "offline", "cannot be reached: its address refuses connections."),
        (httpx2.ConnectError("x", request=_ASKED), "offline", "cannot be reached: x."),
        (_caused(socket.gaierror(-2, "?")), "offline", "cannot be reached: no host is known as shop.test:81."),
        (ConnectionResetError(), "offline", "cannot be reached: ConnectionResetError."),
        (httpx2.ReadTimeout("slow"), "timeout", "did not answer an HTTP request in time."),
        (RuntimeError("odd"), "protocol", "does not speak MCP as expected: odd."),
        (ExceptionGroup("g", [ExceptionGroup("h", [OSError("deep")])]), "offline", "cannot be reached: deep."),
    ],
)
def test_an_error_of_the_sdk_has_a_kind_and_a_sentence(error: Exception, kind: str, words: str) -> None:
    """Groups show what is in them."""
    assert sdk.explain(error, 200) == (kind, words)


@requirement("mcp:start:failure-kinds", "mcp:auth:oauth")
def test_a_bad_status_explains_more_than_an_error_but_for_a_sign_in() -> None:
    """What was answered while somebody signed in is not what failed."""
    assert sdk.explain(MCPError(CONNECTION_CLOSED, "no"), 503) == ("http", "answered with HTTP 503.")
    assert sdk.explain(ExceptionGroup("g", [SignInFailed("says no.")]), 404) == ("auth", "says no.")
    assert sdk.explain(OAuthFlowError("bad state."), 404) == ("auth", "could not be signed in at: bad state.")


@requirement("mcp:start:failure-kinds")
def test_an_http_status_has_a_kind() -> None:
    """401 and 403 are about credentials, the rest about the address."""
    assert [explain_status(status)[0] for status in (401, 403, 404, 500)] == ["auth", "auth", "http", "http"]


@requirement("mcp:start:failure-kinds")
def test_an_exit_status_is_told_in_words() -> None:
    """Signals by name."""
    assert [describe_exit(status) for status in (0, 3, -9, -99)] == [
        "exited with status 0",
        "exited with status 3",
        "was ended by SIGKILL",
        "was ended by signal 99",
    ]


@requirement("mcp:start:failure-kinds")
def test_a_sentence_ends_with_the_last_words_on_stderr() -> None:
    """In one line, and not too long; as JSON, absent facts are left out."""
    short = ServerFailure("s", "exited", "It died.", 1, "Traceback\n  boom", "f.toml")
    long = short._replace(stderr="x" * 1000)

    assert short.sentence() == "It died. Its stderr ends with: Traceback boom"
    assert long.sentence() == f"It died. Its stderr ends with: …{'x' * 300}"
    assert ServerFailure("s", "auth", "No.").to_json() == {
        "server": "s",
        "kind": "auth",
        "message": "No.",
        "origin": "",
    }
