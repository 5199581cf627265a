"""Redaction: nothing secret leaves."""

REQUIREMENTS = {
    "redaction:planted:everywhere": (
        "contract 10",
        "A secret in a header, env, argv, URL, input, result, manifest and cell shows only in raw output.",
    ),
    "redaction:planted:files": (
        "contract 10",
        "Once its runs have ended it is in no file: store, log, cache, recording, page.",
    ),
    "redaction:known:at-once": ("ours", "What a manifest interpolates is known before anything is used or printed."),
    "redaction:setup:errors": (
        "ours",
        "What fails while a manifest is opened, a plugin too, is told without what is known as secret.",
    ),
    "redaction:known:encoded": (
        "ours",
        "A known secret is masked in the forms that JSON, URLs, HTML, shells and source code give it.",
    ),
    "redaction:listings:brought": (
        "ours",
        "What a server or a plugin says of its tools is listed without what is known as secret; a cell sees it whole.",
    ),
    "redaction:known:backslashes": (
        "ours",
        "A text of nothing but backslashes is read once.",
    ),
    "redaction:known:wrapped": (
        "ours",
        "A known secret is masked where lines were broken within it, and each of its own lines alone.",
    ),
    "redaction:known:cut": ("ours", "What is left of a known secret where a text was cut is masked too."),
}
