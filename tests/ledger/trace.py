"""The trajectory as files: a page that a person can hover, and lines that a program can read."""

REQUIREMENTS = {
    "trace:page:complete": (
        "contract 10",
        "The page shows each run with its calls, waits and suspensions, failed or not.",
    ),
    "trace:page:self-contained": ("contract 10", "The page is one file: no script, nothing loaded from elsewhere."),
    "trace:page:escaped": ("ours", "What cells, tools and servers said stands in the page as text and nothing else."),
    "trace:page:hover": ("contract 10", "Where the pointer or the focus is, the page tells more."),
    "trace:page:scale": ("ours", "Moments keep their order on the axis; long suspensions are drawn shorter."),
    "trace:page:file": ("contract 12", "`trace RUN --html FILE` writes the page, or says why it cannot."),
    "trace:jsonl:documented": ("contract 10", "The docs name every field of the JSON Lines."),
}
