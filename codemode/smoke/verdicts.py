"""What a run came to beside what was expected of it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from codemode.core.types import Json
from codemode.smoke.cases import Case
from codemode.smoke.differences import NOTHING, Difference, compare, json_text
from codemode.smoke.expectations import DURATION_MS, TAGS, Expectation, expected_status
from codemode.smoke.paths import follow_path


class Observed(NamedTuple):
    """What a run came to.

    result: Its last `CodeModeResult`, with the output of all that came before.
    calls: Ids of the nested calls that were executed, each as often as it was.
    took_ms: Wall clock.
    """

    result: dict[str, Json]
    calls: tuple[str, ...]
    took_ms: float


class Verdict(NamedTuple):
    """How a case ended; one that never began has nothing observed."""

    case: Case
    state: Literal["passed", "failed", "skipped"]
    differences: tuple[Difference, ...] = ()
    observed: Observed | None = None

    def to_json(self) -> dict[str, Json]:
        """Return `{"name", "title"?, "file", "line", "state", "durationMs", "differences"}`."""
        case = self.case
        return {
            "name": case.name,
            **({"title": case.title} if case.title and case.number is None else {}),  # a list has it in the name
            "file": case.place.file.as_posix(),
            "line": case.place.line,
            "state": self.state,
            "durationMs": round(self.observed.took_ms, 1) if self.observed else 0,
            "differences": [each.to_json() for each in self.differences],
        }


def judge(case: Case, observed: Observed) -> Verdict:
    """Compare a run with all that is expected of it.

    Contract: smoke:tags:all, smoke:tags:default-status
    """
    differences = tuple(find_differences(case.expectations, observed))
    return Verdict(case, "failed" if differences else "passed", differences, observed)


def find_differences(expectations: Sequence[Expectation], observed: Observed) -> Iterator[Difference]:
    """Yield what is not as expected; where even the status is another, what only the expected one has is left out."""
    wanted, status = expected_status(expectations), observed.result["status"]
    if wanted != status:
        yield Difference("status", "", wanted, _describe(observed.result))
    for expectation in expectations:
        only_when = TAGS[expectation.tag].when
        if expectation.tag != "status" and only_when in (None, status):
            yield from _CHECKS[expectation.tag](expectation, observed)


def _describe(result: Mapping[str, Json]) -> str:
    """Return the status of a result and, where it is no good one, why."""
    if result["status"] == "failed":
        code = f" [{result['code']}]" if "code" in result else ""
        return f"failed{code}: {result['error']}"
    if result["status"] == "waiting":
        return f"waiting: {', '.join(open_requests(result)) or result['reason']}"
    return "completed"


def open_requests(result: Mapping[str, Json]) -> list[str]:
    """Return the open requests of a waiting result: `["call plugin:shop:pay", "timer"]`, sorted."""
    return sorted(f"{call['method']} {call.get('toolId', '')}".strip() for call in result["pendingToolCalls"])


def _check_field(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    found = observed.result.get(expectation.tag)
    if found != expectation.wanted:
        shown = NOTHING if found is None else _word(found)
        yield Difference(expectation.tag, "", _word(expectation.wanted), shown)


def _word(value: Json) -> str:
    return value if isinstance(value, str) else json_text(value)


def _check_json(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    yield from compare(expectation.tag, expectation.wanted, observed.result[expectation.tag])


def _check_partial(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    yield from compare("partial", expectation.wanted, observed.result["value"], partial=True)


def _check_path(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    path = expectation.path
    assert path is not None  # every @path has one
    found = follow_path(path, observed.result["value"])
    if not path.is_single:
        yield from compare("path", expectation.wanted, found, path.text)
    elif found:
        yield from compare("path", expectation.wanted, found[0], path.text)
    else:
        yield Difference("path", path.text, json_text(expectation.wanted), NOTHING)


def _check_error(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    if expectation.wanted not in observed.result["error"]:
        yield Difference("error", "", f"…{expectation.wanted}…", observed.result["error"])


def _check_pending(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    requests = open_requests(observed.result)
    if expectation.wanted not in requests:
        yield Difference("pending", "", expectation.wanted, ", ".join(requests) or NOTHING)


def _check_calls(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    wanted, found = Counter[str](expectation.wanted), Counter(observed.calls)
    for tool in dict.fromkeys([*expectation.wanted, *observed.calls]):
        if wanted[tool] != found[tool]:
            yield Difference("calls", tool, _times(wanted[tool]), _times(found[tool]))


def _times(count: int) -> str:
    return "no call" if count == 0 else "1 call" if count == 1 else f"{count} calls"


def _check_max_calls(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    if len(observed.calls) > expectation.wanted:
        yield Difference("max-calls", "", f"at most {_times(expectation.wanted)}", _times(len(observed.calls)))


def _check_duration(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    bound_ms = DURATION_MS[expectation.wanted]
    if observed.took_ms > bound_ms:
        yield Difference(
            "duration", "", f"{expectation.wanted}, at most {bound_ms:,} ms", f"{observed.took_ms:,.0f} ms"
        )


def _check_not(expectation: Expectation, observed: Observed) -> Iterator[Difference]:
    text = json_text(observed.result)
    if expectation.wanted in text or json_text(expectation.wanted)[1:-1] in text:
        yield Difference("not", "", f"nowhere {json_text(expectation.wanted)}", "it is in the result")


_CHECKS: Mapping[str, Callable[[Expectation, Observed], Iterator[Difference]]] = {
    "value": _check_json,
    "output": _check_json,
    "partial": _check_partial,
    "path": _check_path,
    "code": _check_field,
    "phase": _check_field,
    "dispatched": _check_field,
    "reason": _check_field,
    "error": _check_error,
    "pending": _check_pending,
    "calls": _check_calls,
    "max-calls": _check_max_calls,
    "duration": _check_duration,
    "not": _check_not,
}
