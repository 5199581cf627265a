"""The virtual files `mcp/index.d.ts` and `mcp/<server>.d.ts`, and the headers of `$api()`: pure text.

Each file compiles alone, and all compile together, under `tsc --strict`: one namespace for each
server, which holds its own result types. How a schema becomes a type is the business of
`schema_types`; which names the guest has is decided in `scope`.
"""

from collections.abc import Iterable
from typing import NamedTuple

from codemode.core.names import UniqueNames, is_reserved_keyword
from codemode.core.types import Json
from codemode.mcp.schema_types import (
    DICTIONARY,
    UNKNOWN,
    TypeWriter,
    all_that_hold,
    defuse,
    describe,
    has_default,
    member_name,
    properties_of,
    required_of,
)

_MAX_DESCRIPTION_CHARS = 4000
_OWN_TYPES = frozenset({"McpToolResult", "McpApiHeader", "Array", "Promise"})
_RESULT = """  type McpToolResult<Structured = unknown> = {
    content?: unknown[];
    structuredContent?: Structured;
    isError?: boolean;
    [key: string]: unknown;
  };
"""
_HEADER = """  type McpApiHeader = {
    kind: "mcp";
    scope: "root" | "server" | "tool";
    header: string;
    servers?: string[];
    tools?: string[];
    schemas?: { [tool: string]: unknown };
  };
"""
_API = """
  /** Return this TypeScript-style API header, or that of one tool. */
  function $api(toolName?: string, options?: { schema?: boolean }): Promise<McpApiHeader>;
"""
_ROOT_API = """
  /** Return this header, and the names of all servers. */
  function $api(): Promise<McpApiHeader>;
"""
_RESOURCES = """
  /** The server's resources, in MCP's own shapes. */
  namespace resources {
    function list(input?: { cursor?: string }): Promise<{
      resources: Array<{ uri: string; name: string; description?: string; mimeType?: string; [key: string]: unknown }>;
      nextCursor?: string;
      [key: string]: unknown;
    }>;
    function read(input: { uri: string }): Promise<{
      contents: Array<{ uri: string; mimeType?: string; text?: string; blob?: string; [key: string]: unknown }>;
      [key: string]: unknown;
    }>;
  }
"""
_PROMPTS = """
  /** The server's prompts, in MCP's own shapes. */
  namespace prompts {
    function list(input?: { cursor?: string }): Promise<{
      prompts: Array<{ name: string; description?: string; arguments?: unknown[]; [key: string]: unknown }>;
      nextCursor?: string;
      [key: string]: unknown;
    }>;
    function get(input: { name: string; arguments?: { [name: string]: string } }): Promise<{
      description?: string;
      messages: Array<{ role: "user" | "assistant"; content: unknown }>;
      [key: string]: unknown;
    }>;
  }
"""


class DeclaredTool(NamedTuple):
    """What a tool's declaration is made of; `ident` is its name in the guest."""

    ident: str
    description: str
    parameters: Json
    output_schema: Json = None


class DeclaredServer(NamedTuple):
    """What a server's file is made of; `ident` is its name in the guest, `name` its own.

    `operations` is how many tools of the catalog stand for its resources and prompts.
    """

    ident: str
    name: str
    tools: tuple[DeclaredTool, ...]
    has_resources: bool = False
    has_prompts: bool = False
    operations: int = 0

    @property
    def size(self) -> str:
        """How many tools the catalog has of it: `17 tools`."""
        count = len(self.tools) + self.operations
        return f"{count} tool{'' if count == 1 else 's'}"


class ServerText(NamedTuple):
    """A server's file, and the header of each tool, by the order of its tools."""

    file: str
    headers: tuple[str, ...]


def render_index(servers: Iterable[DeclaredServer]) -> str:
    """Return `mcp/index.d.ts`: which servers there are, and where each is declared.

    Contract: mcp:types:compile
    """
    lines = [f"MCP.{server.ident}: {server.size} of {server.name} (mcp/{server.ident}.d.ts)" for server in servers]
    comment = _comment(["The servers that a cell can reach:", *lines], "")
    return f"{comment}declare namespace MCP {{\n{_HEADER}{_ROOT_API}}}\n"


def render_server(server: DeclaredServer) -> ServerText:
    """Return the file of a server, and a header for each of its tools.

    Contract: mcp:types:compile, mcp:types:one-namespace
    """
    names = UniqueNames(_OWN_TYPES)
    blocks = [_render_tool(tool, names) for tool in server.tools]
    members = [_RESULT, _HEADER, _API]
    members += [_RESOURCES] if server.has_resources else []
    members += [_PROMPTS] if server.has_prompts else []
    comment = _comment([f"{server.name}: an MCP server. Each function takes one object, or nothing."], "")
    return ServerText(
        file=comment + _namespace(server.ident, "".join(members), server.tools, blocks),
        headers=tuple(
            _namespace(server.ident, _RESULT, (tool,), [block])
            for tool, block in zip(server.tools, blocks, strict=True)
        ),
    )


def _render_tool(tool: DeclaredTool, names: UniqueNames) -> str:
    taken = TypeWriter(tool.parameters, tool.ident, names.take)
    input_type = taken.write()
    named = taken.named
    result = "McpToolResult"
    if tool.output_schema is not None:
        given = TypeWriter(tool.output_schema, f"{tool.ident}Output", names.take, fills_defaults=False)
        structured = given.write()
        named = named | given.named
        result = result if structured == UNKNOWN else f"McpToolResult<{structured}>"
    types = "".join(f"  type {name} = {written};\n" for name, written in named.items())
    comment = _comment(_describe_tool(tool), "  ")
    parameter = _parameter(tool.parameters, input_type)
    return f"\n{types}{comment}  function {_function_name(tool.ident)}({parameter}): Promise<{result}>;\n"


def _parameter(schema: Json, written: str) -> str:
    """Return the parameter, optional where `{}` would do; what is no object type takes any object."""
    taken = written if written[-1] in "})" or written[0].isupper() else DICTIONARY
    is_needed = any(
        not has_default(properties_of(part).get(key))
        for part in all_that_hold([schema], schema)
        for key in required_of(part)
    )
    return f"input{'' if is_needed else '?'}: {taken}"


def _describe_tool(tool: DeclaredTool) -> list[str]:
    told = tool.description.strip()
    if len(told) > _MAX_DESCRIPTION_CHARS:
        told = f"{told[:_MAX_DESCRIPTION_CHARS]}…"
    lines = [line.rstrip() for line in told.splitlines()]
    for key, part in properties_of(tool.parameters).items():
        words = describe(part)
        if words:
            lines.append(f"@param {member_name(key)} {words}")
    return lines


def _comment(lines: list[str], indent: str) -> str:
    if not lines:
        return ""
    safe = [defuse(line) for line in lines]
    if len(safe) == 1:
        return f"{indent}/** {safe[0]} */\n"
    return "".join([f"{indent}/**\n", *(f"{indent} * {line}".rstrip() + "\n" for line in safe), f"{indent} */\n"])


def _function_name(ident: str) -> str:
    return f"{ident}_" if is_reserved_keyword(ident) else ident


def _namespace(ident: str, members: str, tools: tuple[DeclaredTool, ...], blocks: list[str]) -> str:
    """Return a server's namespace; functions that are called like a reserved word are in a second part of it.

    Only an `export` list can give them their names, and beside one nothing else is exported.
    """
    plain = "".join(block for tool, block in zip(tools, blocks, strict=True) if not is_reserved_keyword(tool.ident))
    text = f"declare namespace MCP.{ident} {{\n{members}{plain}}}\n"
    reserved = [
        (tool.ident, block) for tool, block in zip(tools, blocks, strict=True) if is_reserved_keyword(tool.ident)
    ]
    if not reserved:
        return text
    aliases = ", ".join(f"{_function_name(name)} as {name}" for name, _ in reserved)
    hidden = "".join(block for _, block in reserved)
    return f"{text}declare namespace MCP.{ident} {{{hidden}\n  export {{ {aliases} }};\n}}\n"
