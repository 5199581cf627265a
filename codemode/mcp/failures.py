"""Why a server could not be used, as data: six kinds that a person can act on.

Whatever goes wrong between us and a server ends here, as a `ServerFailure`: one sentence, the
exit status and the last words on stderr. Listings show it, and a nested call that meets it
rejects with its sentence. Nothing here knows the SDK.
"""

from typing import Literal, NamedTuple

from codemode.core.types import Json

FailureKind = Literal["auth", "offline", "http", "exited", "timeout", "protocol"]
BAD_STATUS = 400  # HTTP: this and more is a refusal
_LINE_CHARS = 500
_LAST_WORDS_CHARS = 300  # of stderr, inside one sentence


class ServerFailure(NamedTuple):
    """One server that failed, and how.

    kind: `auth` credentials missing or refused; `offline` nothing could be reached or started;
        `http` another HTTP status; `exited` its process ended; `timeout` no answer in time;
        `protocol` an answer that is not MCP, or an error that it reported itself.
    message: One sentence that names the server, redacted.
    stderr: The end of what its process wrote to stderr, redacted.
    origin: The file that defines it.
    """

    server: str
    kind: FailureKind
    message: str
    exit_status: int | None = None
    stderr: str = ""
    origin: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the failure as listings print it; absent fields are left out."""
        shown: dict[str, Json] = {"server": self.server, "kind": self.kind, "message": self.message}
        if self.exit_status is not None:
            shown["exitStatus"] = self.exit_status
        if self.stderr:
            shown["stderr"] = self.stderr
        return shown | {"origin": self.origin}

    def in_one_line(self) -> "ServerFailure":
        """Return the failure as a listing tells it: what a server says of itself may have many lines, and long ones."""
        words = " ".join(self.message.split())
        return self._replace(message=words if len(words) <= _LINE_CHARS else f"{words[:_LINE_CHARS]}…")

    def sentence(self) -> str:
        """Return the message with the last words of the server's stderr, in one line."""
        return add_last_words(self.message, self.stderr)


def add_last_words(message: str, stderr: str) -> str:
    """Return a message with the end of a server's stderr behind it, in one line."""
    words = " ".join(stderr.split())
    if len(words) > _LAST_WORDS_CHARS:
        words = "…" + words[-_LAST_WORDS_CHARS:]
    return f"{message} Its stderr ends with: {words}" if words else message


class ServerUnavailable(Exception):
    """A server cannot be used, or a request to it failed; `failure` says why."""

    def __init__(self, failure: ServerFailure) -> None:
        """Keep the failure; the exception's text is its sentence."""
        super().__init__(failure.sentence())
        self.failure = failure


def describe_exit(status: int) -> str:
    """Return `exited with status 3` or `was ended by SIGKILL`."""
    if status >= 0:
        return f"exited with status {status}"
    import signal  # only a dead server needs its names

    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


class RequestFailed(Exception):
    """A request that got no result.

    `timeout`, `closed` connection, an answer that was `cut` off, or `refused` with an error of the server.
    """

    def __init__(self, reason: Literal["timeout", "closed", "cut", "refused"], text: str = "") -> None:
        """Keep the reason; `text` is what the server said when it refused."""
        super().__init__(text)
        self.reason = reason


def explain_status(status: int) -> tuple[FailureKind, str]:
    """Return the kind of an HTTP status, and what to say behind the server's name."""
    if status in (401, 403):
        return "auth", f"refused the credentials (HTTP {status}); check the headers of its definition."
    return "http", f"answered with HTTP {status}."
