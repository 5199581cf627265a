"""Plugins: found, loaded, registered, isolated, rolled back; what an author is told of a mistake."""

import importlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codemode.composition import open_toolbox
from codemode.core.errors import InvalidConfig
from codemode.core.redact import Redactor
from codemode.core.tables import Where
from codemode.executor import Executor
from codemode.extensions import PluginEntry
from codemode.manifest import load_manifest
from codemode.plugins import Plugin, Plugins, Registered, load_plugins, namespace_tool
from codemode.tools.python import import_module
from tests.requirements import requirement
from tests.support.cells import ROOT
from tests.support.tools import make_context

WHERE = Where("codemode.toml", "plugin[0]")
CONTEXT = make_context()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A manifest's folder; what was imported from it is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    importlib.invalidate_caches()


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")


def entry(module: str | None = None, point: str | None = None, id_: str | None = None, at: int = 0) -> PluginEntry:
    return PluginEntry(id_ or module or point or "", module, point, Where("codemode.toml", f"plugin[{at}]"))


def load(folder: Path, *entries: PluginEntry) -> Registered:
    return load_plugins(entries, lambda name, where: import_module(name, folder, where))


def complaint(folder: Path, *entries: PluginEntry) -> str:
    with pytest.raises(InvalidConfig) as caught:
        load(folder, *entries)
    return caught.value.message


def echo(**given: Any) -> Any:
    return given


def register(**fields: Any) -> Plugin:
    """Return a plugin that registered the tool `list`, with `fields` in place of what is right."""
    plugin = Plugin("acme")
    plugin.tool(**{"name": "list", "run": echo, "description": "All of them."} | fields)
    return plugin


def namespace(plugin: Plugin, **fields: Any) -> Plugin:
    """Let a plugin register the namespace `items`, with `fields` in place of what is right."""
    given = {
        "id": "items",
        "global_name": "Items",
        "description": "Items.",
        "required_tool_names": ["list"],
        "create_scope": lambda ctx: {"list": namespace_tool("list")},
    } | fields
    plugin.namespace(**{key: value for key, value in given.items() if value is not None})
    return plugin


# ---- what may be registered ----


@requirement("plugins:register:tool", "plugins:register:own-id")
def test_a_tool_belongs_to_its_plugin():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    plugin = register(parameters=schema, label="List", approval="ask", timeout_ms=500)
    (tool,) = plugin.registered().tools

    assert (plugin.id, tool.id, tool.source, tool.owner) == ("acme", "plugin:acme:list", "plugin", "acme")
    assert (tool.description, tool.label, tool.approval, tool.timeout_ms) == ("All of them.", "List", "ask", 500)
    assert tool.parameters == schema
    assert tool.parameters is not schema


@requirement("plugins:register:isolated", "plugins:register:own-id")
@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"description": ""}, 'tool list.description in the plugin acme: found ""; allowed is a text.'),
        ({"run": "echo"}, 'tool list in the plugin acme: found "echo"; allowed is a function.'),
        ({"parameters": {"type": "array"}}, "tool list.parameters in the plugin acme: not a JSON Schema of an input"),
        ({"parameters": {"properties": {"n": {"type": "int"}}}}, "/properties/n/type must be one of array"),
        ({"parameters": [1]}, "allowed is a table."),
        ({"parameters": {"default": object()}}, "the schema is not JSON"),
        ({"approval": "always"}, 'allowed is "never" or "ask" or "always-deny".'),
        (
            {"timeout_ms": 0},
            "tool list.timeout_ms in the plugin acme: found 0; allowed is a whole number of 1 or more.",
        ),
        ({"timeout_ms": True}, "allowed is a whole number."),
        ({"lable": "List"}, 'unknown key "lable"; known keys are approval, description, label'),
        ({"owner": "other"}, 'unknown key "owner"'),
        ({"source": "openclaw"}, 'unknown key "source"'),
        ({"id": "openclaw:core:exec"}, 'unknown key "id"'),
        ({"name": 3}, "tool 3.name in the plugin acme: found 3; allowed is a text."),
        ({"name": "a\nb"}, "a tool's name holds printable characters only."),
    ],
)
def test_a_tool_that_is_not_right_is_left_out_and_its_neighbours_stay(fields, complaint):
    plugin = register(**fields)
    plugin.tool("other", echo, description="Another.")
    registered = plugin.registered()

    assert [tool.name for tool in registered.tools] == ["other"]
    (note,) = registered.notes
    assert complaint in note


@requirement("plugins:register:isolated")
def test_a_tool_without_a_description_is_left_out():
    plugin = Plugin("acme")
    plugin.tool("list", echo)  # type: ignore[call-arg]

    assert plugin.registered().notes == (
        'tool list in the plugin acme: the key "description" is missing; it takes a text.',
    )


@requirement("plugins:register:namespace")
def test_a_namespace_is_the_plugins_own():
    plugin = namespace(register(), prompt="Use Items.list().", required_tool_names=("list", "other"))
    (made,) = plugin.registered().namespaces

    assert (made.id, made.plugin_id, made.global_name) == ("items", "acme", "Items")
    assert (made.required_tool_names, made.prompt) == (("list", "other"), "Use Items.list().")
    assert made.tool_id("list") == "plugin:acme:list"


@requirement("plugins:register:isolated", "namespaces:global:identifier", "namespaces:global:built-ins")
@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"global_name": "my items"}, 'namespace items.global_name in the plugin acme: found "my items"'),
        ({"global_name": "tools"}, "which cells know already"),
        ({"global_name": None}, 'the key "global_name" is missing'),
        ({"description": 3}, "found 3; allowed is a text."),
        ({"required_tool_names": []}, "found none; a namespace is visible by the tools that it needs."),
        ({"required_tool_names": "list"}, "allowed is a list of texts."),
        ({"required_tool_names": None}, 'the key "required_tool_names" is missing'),
        ({"create_scope": {"list": 1}}, 'namespace items.create_scope in the plugin acme: found {"list": 1}'),
        ({"plugin_id": "other"}, 'unknown key "plugin_id"'),
        ({"globalName": "Items"}, 'unknown key "globalName"; known keys are create_scope, description, global_name'),
    ],
)
def test_a_namespace_that_is_not_right_is_left_out_and_its_neighbours_stay(fields, complaint):
    plugin = namespace(namespace(register(), **fields), id="other", global_name="Other")
    registered = plugin.registered()

    assert [each.id for each in registered.namespaces] == ["other"]
    (note,) = registered.notes
    assert complaint in note


@requirement("plugins:register:isolated")
def test_of_two_namespaces_with_one_global_the_second_is_left_out():
    registered = namespace(namespace(register()), id="more").registered()

    assert [each.id for each in registered.namespaces] == ["items"]
    assert registered.notes == ("namespace more.global_name in the plugin acme: Items is the global of items already.",)


@requirement("namespaces:register:id-unique")
def test_a_second_namespace_of_one_id_is_an_error():
    plugin = namespace(register())
    with pytest.raises(InvalidConfig, match="the plugin acme has registered a namespace of this id already"):
        namespace(plugin, global_name="Other")


@requirement("plugins:register:hook")
def test_a_hook_is_called_by_its_plugin_and_its_function():
    plugin = Plugin("acme")
    plugin.hook("before_tool_call", echo, timeout_ms=50)
    (hook,) = plugin.registered().hooks

    assert (hook.where.key, hook.timeout_ms, hook.executor.function) == ("acme.echo", 50, echo)


@requirement("plugins:register:hook")
@pytest.mark.parametrize(
    ("event", "run", "timeout_ms", "complaint"),
    [
        ("after_tool_call", echo, None, 'found the event "after_tool_call"; allowed is "before_tool_call".'),
        ("before_tool_call", "echo", None, 'found "echo"; allowed is a function.'),
        ("before_tool_call", echo, 0, "allowed is a whole number of 1 or more."),
        ("before_tool_call", echo, "5", 'found "5"; allowed is a whole number'),
    ],
)
def test_a_hook_that_is_not_right_is_an_error_and_no_gap(event, run, timeout_ms, complaint):
    with pytest.raises(InvalidConfig, match=re.escape(complaint)):
        Plugin("acme").hook(event, run, timeout_ms)


# ---- how they are loaded ----

GOOD = """
    from codemode.plugins import Plugin, namespace_tool

    def register(plugin: Plugin) -> None:
        plugin.tool("list", lambda: [1, 2], description="All of them.")
        plugin.namespace(
            f"{plugin.id}-items", global_name="Items_" + plugin.id.replace(".", "_"), description="Items.",
            required_tool_names=["list"], create_scope=lambda ctx: {"list": namespace_tool("list")},
        )
"""


@requirement("plugins:load:module", "plugins:register:own-id")
def test_a_plugin_is_a_module_and_goes_by_its_name_or_by_the_id_that_the_manifest_gives(folder):
    """One module may be loaded twice, as two plugins."""
    write(folder, "good_plugin", GOOD)
    registered = load(folder, entry("good_plugin"), entry("good_plugin", id_="mine"))

    assert [tool.id for tool in registered.tools] == ["plugin:good_plugin:list", "plugin:mine:list"]
    assert [each.id for each in registered.namespaces] == ["good_plugin-items", "mine-items"]
    assert registered.notes == ()


@requirement("plugins:load:entry-point")
@pytest.mark.parametrize("value", ["good_plugin", "good_plugin:register", "good_plugin:Things"])
def test_a_plugin_is_an_entry_point_to_a_module_a_function_or_an_object(folder, value):
    write(folder, "good_plugin", GOOD + "\n    class Things:\n        register = staticmethod(register)\n")
    offer(folder, "acme", value)

    assert [tool.id for tool in load(folder, entry(point="acme")).tools] == ["plugin:acme:list"]
    assert [tool.id for tool in load(folder, entry(point="acme", id_="mine")).tools] == ["plugin:mine:list"]


def offer(folder: Path, name: str, value: str, package: str = "acme") -> None:
    """Write what an installed package says of its entry point."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[codemode.plugins]\n{name} = {value}\n", encoding="utf-8")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@requirement("plugins:load:fails")
@pytest.mark.parametrize(
    ("text", "complaint_"),
    [
        ("x = 1", "plugin[0] in codemode.toml: the plugin bad_plugin has no function register(plugin)."),
        ("register = 3", "the plugin bad_plugin has no function register(plugin)."),
        ("1 / 0", "plugin[0].module in codemode.toml: cannot import bad_plugin: ZeroDivisionError: division by zero."),
        ("raise SystemExit(3)", "cannot import bad_plugin: SystemExit: 3."),
        (
            "def register(plugin):\n    raise ValueError('no')",
            "register of the plugin bad_plugin failed: ValueError: no.",
        ),
        ("def register(plugin):\n    raise SystemExit(3)", "register of the plugin bad_plugin failed: SystemExit: 3."),
        ("def register():\n    pass", "register of the plugin bad_plugin failed: TypeError"),
        ("async def register(plugin):\n    pass", "register of the plugin bad_plugin is asynchronous"),
        (
            "def register(plugin):\n    plugin.hook('x', print)",
            "bad_plugin.print in the plugin bad_plugin: found the event",
        ),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_an_error_of_the_manifest(folder, text, complaint_):
    write(folder, "bad_plugin", text)

    assert complaint_ in complaint(folder, entry("bad_plugin"))


@requirement("plugins:load:fails")
def test_a_plugin_that_is_not_there_is_an_error_that_says_what_was_looked_for(folder):
    offer(folder, "calendar", "no_such_module_here")

    assert "cannot import no_such_module_here" in complaint(folder, entry("no_such_module_here"))
    assert complaint(folder, entry(point="calender")) == (
        'plugin[0].entryPoint in codemode.toml: no installed package offers "calender" in codemode.plugins.'
        ' Did you mean "calendar"?'
    )
    assert "cannot load no_such_module_here: ModuleNotFoundError" in complaint(folder, entry(point="calendar"))


@requirement("plugins:load:fails")
def test_an_entry_point_that_two_packages_offer_is_not_chosen_by_chance(folder):
    offer(folder, "acme", "one:register", "first")
    offer(folder, "acme", "two:register", "second")

    assert 'several packages offer "acme" in codemode.plugins: one:register, two:register.' in complaint(
        folder, entry(point="acme")
    )


@requirement("plugins:load:rolled-back")
def test_nothing_of_a_plugin_stays_when_its_load_fails(folder):
    """What it had registered before is not there, and another plugin may take the same names."""
    write(folder, "good_plugin", GOOD)
    write(folder, "bad_plugin", GOOD + "        raise ValueError('too late')\n")
    plugins = Plugins(lambda name, where: import_module(name, folder, where))
    with pytest.raises(InvalidConfig, match="failed: ValueError: too late"):
        plugins.load(entry("bad_plugin", id_="items"))

    assert plugins.registered() == Registered()
    plugins.load(entry("good_plugin", id_="items"))
    assert [each.id for each in plugins.registered().namespaces] == ["items-items"]


@requirement("plugins:remove:clears")
def test_removing_a_plugin_clears_what_it_registered_and_nothing_else(folder):
    write(folder, "good_plugin", GOOD)
    plugins = Plugins(lambda name, where: import_module(name, folder, where))
    for id_ in ("one", "two"):
        plugins.load(entry("good_plugin", id_=id_))
    plugins.remove("one")
    left = plugins.registered()

    assert ([tool.owner for tool in left.tools], [each.plugin_id for each in left.namespaces]) == (["two"], ["two"])
    plugins.remove("never loaded")
    plugins.load(entry("good_plugin", id_="one"))
    assert [tool.owner for tool in plugins.registered().tools] == ["two", "one"]


@requirement("namespaces:register:id-unique")
def test_a_namespace_of_another_plugin_keeps_its_id(folder):
    text = GOOD.replace('f"{plugin.id}-items"', '"items"')
    write(folder, "good_plugin", text)

    assert complaint(folder, entry("good_plugin", id_="one"), entry("good_plugin", id_="two", at=1)) == (
        "namespace items in the plugin two: the plugin one has registered a namespace of this id already."
    )


@requirement("plugins:load:ids-unique")
def test_two_plugins_of_one_id_are_an_error(tmp_path):
    manifest = tmp_path / "codemode.toml"
    manifest.write_text('[[plugin]]\nmodule = "a"\n[[plugin]]\nentryPoint = "b"\nid = "a"\n', encoding="utf-8")

    with pytest.raises(InvalidConfig, match=r'plugin\[1\] in .*: the id "a" is already taken by plugin\[0\]'):
        load_manifest(manifest)


# ---- what a session makes of them ----


@requirement("plugins:register:tool", "plugins:register:hook", "plugins:register:isolated")
async def test_tools_run_as_those_of_the_manifest_do(folder):
    """Synchronous or not, with the context or the whole input; the manifest's own definition of an id comes first."""
    write(
        folder,
        "kinds_plugin",
        """
        import threading

        def sync(n: int = 0) -> dict:
            return {"n": n, "main": threading.current_thread() is threading.main_thread()}

        async def later(n: int, context) -> dict:
            return {"n": n, "agent": context.agent_id}

        def whole(input: dict) -> dict:
            return {"whole": input}

        def register(plugin):
            for run in (sync, later, whole):
                plugin.tool(run.__name__, run, description=f"The tool {run.__name__}.")
            plugin.tool("", sync, description="It has no name.")
            plugin.hook("before_tool_call", lambda event: {"input": {"n": 7}} if event["toolName"] == "sync" else None)
        """,
    )
    manifest = folder / "codemode.toml"
    manifest.write_text(
        '[[plugin]]\nmodule = "kinds_plugin"\nid = "kinds"\n'
        '[[tool]]\nname = "whole"\ndescription = "Mine."\nsource = "plugin"\nowner = "kinds"\nvalue = 1\n',
        encoding="utf-8",
    )
    async with open_toolbox(manifest) as box:
        executor = Executor(Redactor(), box.policy, box.hooks)
        call = partial(executor.call, context=CONTEXT)
        tools = {tool.name: tool for tool in box.catalog.tools}
        assert (await call(tools["sync"], {"n": 1})).text == '{"n":7,"main":false}'
        assert (await call(tools["later"], {"n": 2})).text == '{"n":2,"agent":"main"}'
        assert (await call(tools["whole"], {})).text == "1"
        assert box.notes == ('tool .name in the plugin kinds: found ""; allowed is a text.',)
        assert [note.kind for note in box.catalog.notes] == ["duplicate"]
        assert tools["later"].origin == "tool later in the plugin kinds"


@requirement("plugins:api:typed")
def test_a_type_checker_finds_what_an_author_wrote_wrong(tmp_path):
    """The package is typed: a wrong key or kind of a registration is an error before anything runs."""
    (tmp_path / "author.py").write_text(
        textwrap.dedent("""
            from codemode.plugins import Plugin, RunContext, namespace_tool

            def create_scope(ctx: RunContext) -> dict[str, object]:
                return {"agent": ctx.agent_id, "list": namespace_tool("list", lambda args: {"n": args[0]})}

            def register(plugin: Plugin) -> None:
                plugin.tool("list", print, description="All.", timeout_ms=5)
                plugin.namespace(
                    "items", global_name="Items", description="Items.", required_tool_names=["list"],
                    create_scope=create_scope,
                )
                plugin.tool("list", print, lable="x", description="All.")
                plugin.tool("list", print)
        """),
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "author.py"],
        cwd=tmp_path, env={"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=110,
        check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if line.startswith("author.py:") and ": error:" in line]

    assert [re.sub(r"author.py:(\d+):.*\[(.*)\]", r"\1 \2", line) for line in errors] == ["13 call-arg", "14 call-arg"]
