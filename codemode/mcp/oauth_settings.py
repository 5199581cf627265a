"""How a definition says that people sign in at its server: `auth = "oauth"`, and as other clients spell it.

Most servers need nothing said: they ask for a sign-in themselves, and register us. What a
definition can add is a client that was registered by hand, its scopes, and the port that its
redirect goes to.
"""

from collections.abc import Mapping
from typing import NamedTuple

from codemode.core.names import did_you_mean
from codemode.core.tables import Where, shown
from codemode.core.types import Json

_CLIENT_ID = ("clientId", "client_id", "CLIENT_ID")
_CLIENT_SECRET = ("clientSecret", "client_secret", "CLIENT_SECRET")
_SCOPES = ("scopes", "scope")
_PORT = ("callbackPort", "callback_port")
_KNOWN = (*_CLIENT_ID, *_CLIENT_SECRET, *_SCOPES, *_PORT)
_TOLERATED = frozenset(
    {
        "enabled", "type", "authServerMetadataUrl", "authorizationUrl", "tokenUrl", "issuer", "audiences",
        "redirectUri", "registrationUrl", "tokenParamName",
    }
)  # fmt: skip  # of other clients; what they say is discovered


class OAuthSettings(NamedTuple):
    """What is said of signing in; texts hold their placeholders.

    is_wanted: Said so. Without it a sign-in is offered only where the server asks for one.
    port: Of the redirect; 0 for any.
    """

    is_wanted: bool = False
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    port: int = 0


def parse_oauth(facts: Mapping[str, Json], has_credentials: bool, where: Where) -> OAuthSettings | None:
    """Return what `auth`, `oauth` and `scopes` of a definition say; None where nobody is to sign in.

    Args:
        facts: `auth` is `"oauth"`, `"none"` or a table; `oauth` is a flag or a table.
        has_credentials: The definition brings an Authorization header of its own.
        where: The definition.

    Raises:
        InvalidConfig: Another value, or an unknown key in one of the tables.

    Contract: mcp:auth:spellings
    """
    said: Json = None
    for key in ("auth", "oauth"):
        said = facts.get(key, said)
        if key in facts and not (isinstance(said, (dict, bool)) or said in ("oauth", "none")):
            where.at(key).fail(
                'allowed is "oauth", "none", true, false or a table such as { clientId = "…", scopes = ["…"] };'
                " a token belongs into headers, as Authorization."
            )
    table = said if isinstance(said, dict) else {}
    if said in (False, "none") or table.get("enabled") is False or (said is None and has_credentials):
        return None
    scopes = facts.get("scopes", [])
    return _parse_table({"scopes": scopes, **table} if scopes else table, said is not None, where)


def _parse_table(table: Mapping[str, Json], is_wanted: bool, where: Where) -> OAuthSettings:
    for key in table:
        if key not in _KNOWN and key not in _TOLERATED:
            where.at("auth").fail(f'unknown key "{key}"; known keys are clientId, clientSecret, scopes, callbackPort.'
                                  f"{did_you_mean(key, _KNOWN)}")  # fmt: skip
    scopes, port = _first(table, _SCOPES, ""), _first(table, _PORT, 0)
    client_id, client_secret = _first(table, _CLIENT_ID, ""), _first(table, _CLIENT_SECRET, "")
    if not (isinstance(client_id, str) and isinstance(client_secret, str)):
        where.at("auth").fail("clientId and clientSecret are texts.")
    if not isinstance(scopes, str) and not (isinstance(scopes, list) and all(isinstance(one, str) for one in scopes)):
        where.at("auth").fail(f"found {shown(scopes)} as scopes; allowed is a text or a list of texts.")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
        where.at("auth").fail(f"found {shown(port)} as callbackPort; allowed is a port, 1 to 65535.")
    scope = scopes if isinstance(scopes, str) else " ".join(scopes)
    return OAuthSettings(is_wanted, client_id, client_secret, scope, port)


def _first(table: Mapping[str, Json], keys: tuple[str, ...], default: Json) -> Json:
    return next((table[key] for key in keys if key in table), default)
