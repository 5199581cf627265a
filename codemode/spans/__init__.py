"""Runs and nested calls as OpenTelemetry spans: only for who has installed `codemode[otel]` and asks for them."""
