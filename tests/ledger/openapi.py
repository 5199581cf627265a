"""Promises of OpenAPI documents: which operations become tools, and what they send."""

REQUIREMENTS = {
    "openapi:document:read": ("issue 4", "Each operation of an OpenAPI 3 document is a tool client:<owner>:<name>."),
    "openapi:document:refused": (
        "issue 4",
        "A document that cannot be read, is YAML, Swagger 2, or names no server is invalid_config in one sentence.",
    ),
    "openapi:operation:isolated": ("contract 2", "An operation that cannot be a tool is reported; the others stay."),
    "openapi:operation:names": (
        "contract 2",
        "No two tools of a document have one name: an operationId that is taken, or names nothing, gives way.",
    ),
    "openapi:operation:schema": (
        "issue 4",
        "Path, query and header parameters and the body are the properties of a tool's input.",
    ),
    "openapi:operation:request": (
        "issue 4",
        "An input is sent as the document says: path, query styles, headers, JSON or form body, the server's URL.",
    ),
    "openapi:operation:headers": (
        "issue 4",
        "The manifest's headers go with every request, win over parameters, and their variables are secret.",
    ),
    "openapi:document:hostile": (
        "ours",
        "Values too deep or too long for Python cost one operation.",
    ),
    "openapi:document:inert": ("ours", "No text of a document stands for a variable of the environment."),
    "openapi:references:local": ("issue 4", "Local references are followed; others leave their operation out."),
    "openapi:schemas:references": ("issue 4", "Schemas that are referred to, recursive ones too, are in $defs."),
    "openapi:schemas:bounded": ("ours", "An operation brings at most 100 schemas that it refers to, the nearest."),
    "openapi:schemas:old-words": ("ours", "nullable and flags as exclusive bounds of 3.0 become JSON Schema."),
}
