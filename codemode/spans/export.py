"""Spans of the command's runs, sent to a collector with OTLP over HTTP.

Where to, which headers, and how much is sampled is OpenTelemetry's own business and said in its own
variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, …). The ids of a run's trace follow from the run's id, so the
`wait` of another process lands in the trace of its `exec`.
"""

import os
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, TraceFlags

import codemode
from codemode.spans.recorder import SpanRecorder

if TYPE_CHECKING:
    from codemode.core.events import Event

_SPAN_ID = (1 << 64) - 1
_INPUTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class RunIds(RandomIdGenerator):
    """Gives the `exec` of a run a trace id and a span id that follow from the run's id."""

    def __init__(self) -> None:
        """Begin without a run."""
        self._announced: str | None = None

    def announce(self, run_id: str) -> None:
        """Learn whose span is the next."""
        self._announced = run_id

    def find(self, run_id: str) -> SpanContext:
        """Return where the span of a run's `exec` is, whoever made it.

        Contract: spans:export:one-trace
        """
        number = _number(run_id)
        return SpanContext(number, number & _SPAN_ID, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def generate_span_id(self) -> int:
        """Return the id for the announced `exec`, once; random ones otherwise."""
        if self._announced is None:
            return super().generate_span_id()
        number, self._announced = _number(self._announced), None
        return number & _SPAN_ID

    def generate_trace_id(self) -> int:
        """Return the id for the trace of the announced `exec`; it is asked for before the span's."""
        return super().generate_trace_id() if self._announced is None else _number(self._announced)


class SpanExport:
    """A session's listener that sends what it records; close it in the end."""

    def __init__(self) -> None:
        """Begin to send in a thread of its own, as the variables say."""
        ids = RunIds()
        service = {
            "service.name": os.environ.get("OTEL_SERVICE_NAME", "codemode"),
            "service.version": codemode.__version__,
        }
        self._provider = TracerProvider(resource=Resource.create(service), id_generator=ids, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        tracer = self._provider.get_tracer("codemode", codemode.__version__)
        inputs = os.environ.get(_INPUTS, "").casefold() == "true"
        self._recorder = SpanRecorder(tracer, inputs=inputs, roots=ids)

    def __call__(self, event: "Event") -> None:
        """Take one event."""
        self._recorder(event)

    def close(self) -> None:
        """Send what is left; this may take as long as the collector takes to answer."""
        self._provider.shutdown()


def _number(run_id: str) -> int:
    return int(run_id.removeprefix("cm_").replace("-", ""), 16)
