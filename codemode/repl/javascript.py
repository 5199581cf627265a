"""What JavaScript itself offers in a cell: keywords, globals, and the members that one looks up.

Literal data for the completion menu; what a cell can reach beside it comes from the catalog.
"""

KEYWORDS = (
    "async", "await", "break", "case", "catch", "class", "const", "continue", "delete", "else", "export", "false",
    "finally", "for", "function", "if", "in", "instanceof", "let", "new", "null", "of", "return", "switch", "this",
    "throw", "true", "try", "typeof", "undefined", "var", "void", "while", "yield",
)  # fmt: skip

BUILT_INS = (
    "Array", "ArrayBuffer", "BigInt", "Boolean", "Date", "Error", "Infinity", "JSON", "Map", "Math", "NaN", "Number",
    "Object", "Promise", "Proxy", "RangeError", "Reflect", "RegExp", "Set", "String", "Symbol", "SyntaxError",
    "TypeError", "Uint8Array", "WeakMap", "WeakSet", "decodeURIComponent", "encodeURIComponent", "globalThis", "isNaN",
    "parseFloat", "parseInt", "queueMicrotask",
)  # fmt: skip

MEMBERS = {
    "Array": ("from", "fromAsync", "isArray", "of"),
    "Date": ("UTC", "now", "parse"),
    "JSON": ("parse", "stringify"),
    "Math": (
        "E", "PI", "abs", "ceil", "floor", "hypot", "log", "log10", "log2", "max", "min", "pow", "random", "round",
        "sign", "sqrt", "trunc",
    ),
    "Number": ("EPSILON", "MAX_SAFE_INTEGER", "MIN_SAFE_INTEGER", "isFinite", "isInteger", "isNaN", "parseFloat"),
    "Object": ("assign", "create", "entries", "freeze", "fromEntries", "groupBy", "hasOwn", "is", "keys", "values"),
    "Promise": ("all", "allSettled", "any", "race", "reject", "resolve", "try", "withResolvers"),
    "String": ("fromCharCode", "fromCodePoint", "raw"),
    "console": ("debug", "error", "info", "log", "warn"),
}  # fmt: skip

GUEST_GLOBALS = {
    "ALL_TOOLS": "compact entries of all tools",
    "API": "list(), read(path): declarations of MCP servers",
    "clearTimeout": "cancel a timer",
    "console": "log, info, warn, error, debug",
    "json": "json(value): put a JSON value out",
    "namespaces": "what plugins offer",
    "setTimeout": "setTimeout(function, ms)",
    "text": "text(value): put a text out",
    "tools": "search, describe, call, and a function for each tool",
    "yield_control": "await yield_control(): rest until :wait",
}

TOOLS_MEMBERS = {
    "call": "call(id, input): run a tool",
    "describe": "describe(id): its schema",
    "search": "search(query, {limit}): find tools",
}

API_MEMBERS = {"list": "list(prefix): paths of declarations", "read": "read(path): one of them"}
