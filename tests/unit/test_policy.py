"""Allow, deny, approvals, sandbox."""

import pytest

from codemode.definitions import SandboxGate
from codemode.policy import Policy
from tests.requirements import requirement
from tests.support.tools import make_tool

ORDER = make_tool("plugin:shop:lookup_order")
SHELL = make_tool("openclaw:core:exec")
ISSUE = make_tool("mcp:github:create_issue")


@requirement("policy:lists:globs")
@pytest.mark.parametrize(
    ("allow", "expected"),
    [
        (["*"], True),
        ([], False),
        (["plugin:shop:*"], True),
        (["PLUGIN:Shop:LOOKUP_*"], True),
        (["lookup_order"], True),
        (["lookup_*"], True),
        (["lookup"], False),
        (["client:*", "*:lookup_order"], True),
        (["plugin:shop:lookup?order"], True),
        (["plugin:shop:[k-m]ookup_order"], True),
        (["plugin.shop.lookup_order"], False),
    ],
)
def test_a_glob_matches_id_or_name(allow, expected):
    assert Policy(allow=allow).is_allowed(ORDER) is expected


@requirement("policy:lists:deny-wins")
def test_deny_wins_over_allow():
    policy = Policy(allow=["plugin:shop:lookup_order"], deny=["LOOKUP_*"])

    assert not policy.is_allowed(ORDER)


def test_everything_is_allowed_by_default():
    assert all(Policy().is_allowed(tool) for tool in (ORDER, SHELL, ISSUE))


@requirement("policy:sandbox:gate")
@pytest.mark.parametrize(
    ("gate", "allowed"),
    [
        (SandboxGate(enabled=False, deny=("*",)), {ORDER.id, SHELL.id, ISSUE.id}),
        (SandboxGate(enabled=True), {ORDER.id, SHELL.id}),
        (SandboxGate(enabled=True, also_allow=("bundle-mcp",)), {ORDER.id, SHELL.id, ISSUE.id}),
        (SandboxGate(enabled=True, allow=("bundle-mcp",)), {ISSUE.id}),
        (SandboxGate(enabled=True, allow=("lookup_*",), also_allow=("exec",)), {ORDER.id, SHELL.id}),
        (SandboxGate(enabled=True, allow=("*",), deny=("bundle-mcp",)), {ORDER.id, SHELL.id}),
        (SandboxGate(enabled=True, deny=("exec",)), {ORDER.id}),
        (SandboxGate(enabled=True, allow=()), set()),
    ],
)
def test_a_sandboxed_session_has_one_more_gate(gate, allowed):
    policy = Policy(sandbox=gate)

    assert {tool.id for tool in (ORDER, SHELL, ISSUE) if policy.is_allowed(tool)} == allowed


def test_the_sandbox_gate_opens_nothing_that_is_denied():
    assert not Policy(deny=["*order"], sandbox=SandboxGate(enabled=True, allow=("*",))).is_allowed(ORDER)


@requirement("policy:approvals:strictest")
@pytest.mark.parametrize(
    ("own", "globs", "expected"),
    [
        ("never", [], "never"),
        ("ask", [], "ask"),
        ("never", [("plugin:*", "ask")], "ask"),
        ("ask", [("plugin:*", "never")], "ask"),
        ("never", [("*", "ask"), ("*shop*", "always-deny")], "always-deny"),
        ("never", [("client:*", "ask")], "never"),
    ],
)
def test_the_strictest_approval_holds(own, globs, expected):
    assert Policy(approvals=globs).approval_for(ORDER._replace(approval=own)) == expected


@requirement("policy:approvals:exact")
def test_an_exact_entry_decides_over_globs_and_the_tools_own():
    tool = ORDER._replace(approval="ask")

    assert Policy(approvals=[("*", "always-deny"), ("Plugin:shop:lookup_order", "never")]).approval_for(tool) == "never"
    assert Policy(approvals=[("lookup_order", "never"), (ORDER.id, "ask")]).approval_for(ORDER) == "ask"
