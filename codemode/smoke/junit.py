"""Verdicts as JUnit XML, in the form that the readers of CI systems agree on.

One suite for each file, one test case for each case; times in seconds. XML 1.0 cannot carry most
control characters, not even escaped, so that they are replaced.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree as ET

from codemode.smoke.cases import shown_path
from codemode.smoke.verdicts import Verdict

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def build_junit(verdicts: Sequence[Verdict], took_ms: float) -> str:
    """Return the XML document of a whole run.

    Contract: smoke:junit:readable
    """
    root = ET.Element("testsuites", {"name": "codemode smoke", **_counts(verdicts), "time": _seconds(took_ms)})
    suites: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        suites.setdefault(shown_path(verdict.case.place.file), []).append(verdict)
    for file, members in suites.items():
        took = sum(each.observed.took_ms for each in members if each.observed)
        suite = ET.SubElement(root, "testsuite", {"name": _clean(file), **_counts(members), "time": _seconds(took)})
        for verdict in members:
            _add_case(suite, file, verdict)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _counts(verdicts: Iterable[Verdict]) -> Mapping[str, str]:
    states = [verdict.state for verdict in verdicts]
    failures, skipped = states.count("failed"), states.count("skipped")
    return {"tests": str(len(states)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}


def _add_case(suite: ET.Element, file: str, verdict: Verdict) -> None:
    case, observed = verdict.case, verdict.observed
    attributes = {
        "classname": _clean(file.rpartition(".")[0].replace("/", ".")),
        "name": _clean(case.title or case.name),
        "file": _clean(file),
        "line": str(case.place.line),
        "time": _seconds(observed.took_ms if observed else 0),
    }
    element = ET.SubElement(suite, "testcase", attributes)
    if verdict.state == "skipped":
        ET.SubElement(element, "skipped", {"message": "an earlier case failed"})
    if verdict.differences:
        lines = [
            f"@{each.tag}{' ' + each.path if each.path else ''}\n  expected {each.expected}\n  found    {each.found}"
            for each in verdict.differences
        ]
        first = lines[0].replace("\n", " ")
        failure = ET.SubElement(element, "failure", {"message": _clean(first), "type": verdict.differences[0].tag})
        failure.text = _clean("\n".join(lines))


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.3f}"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
