"""What becomes of a cell's text before it runs."""

REQUIREMENTS = {
    "toolchain:form:expression": ("contract 3", "A cell that is one single expression completes with its value."),
    "toolchain:form:function": ("contract 3", "A sole function or arrow expression is called."),
    "toolchain:form:statements": ("contract 3", "Otherwise only `return` gives a value."),
    "toolchain:structure:escape": ("contract 4", "Closing brackets that end the wrapper early are a syntax error."),
    "toolchain:guard:denied": (
        "contract 11",
        "Declarations of import and export, import(), import.meta and free require, module, exports are denied.",
    ),
    "toolchain:guard:allowed": (
        "contract 11",
        "typeof, local bindings, properties, text, regular expressions, comments and templates are fine.",
    ),
    "toolchain:errors:position": (
        "contract 3",
        "Errors carry the position in the author's own source, syntax errors too, and no code for JavaScript.",
    ),
    "toolchain:errors:hint": ("contract 11", "TypeScript syntax in a JavaScript cell says --language typescript."),
    "toolchain:errors:depth": ("contract 6", "Source that is nested too deeply is a syntax error, not a crash."),
    "toolchain:typescript:lines": ("issue 3", "Types are stripped and every line keeps its number."),
    "toolchain:typescript:javascript": ("issue 3", "JavaScript passes through the TypeScript transform unchanged."),
    "toolchain:typescript:statements": (
        "ours",
        "Where a type ended a statement, the statement still ends there.",
    ),
    "toolchain:typescript:position": ("contract 3", "A TypeScript cell's positions are those of its source."),
    "toolchain:typescript:refused": (
        "contract 11",
        "Syntax that the transform does not support is typescript_transform_failed with its position.",
    ),
    "toolchain:cost:parsers": (
        "contract 11",
        "Only a TypeScript cell loads the TypeScript compiler, and a plain cell loads no parser at all.",
    ),
    "toolchain:repl:complete": ("contract 13", "The parser decides whether an input of the REPL is complete."),
    "toolchain:repl:script": (
        "contract 13",
        "A cell of the REPL becomes a global script whose declarations may be repeated.",
    ),
    "toolchain:repl:names": ("contract 13", "The names that a cell declares at its top level are known."),
}
