"""Core tools inside their roots, on a real file system."""

import asyncio
import contextlib
import os
import stat
import threading
from pathlib import Path

import pytest

from codemode.core.errors import CodeModeError, InvalidConfig, InvalidInput, NestedToolFailed
from codemode.core.limits import MAX_BRIDGE_BYTES
from codemode.core.redact import Redactor
from codemode.definitions import CORE_TOOLS
from codemode.executor import Executor
from codemode.manifest import load_manifest
from codemode.tools import core, roots
from codemode.tools.roots import Roots
from codemode.tools.toolset import Toolset
from tests.requirements import requirement
from tests.support.tools import make_context

CONTEXT = make_context()


@pytest.fixture
def root(tmp_path):
    """A root with a few files, and a secret beside it."""
    (tmp_path / "secret.txt").write_text("hunter2")
    made = tmp_path / "root"
    (made / "inner" / "deep").mkdir(parents=True)
    (made / "a.txt").write_text("one\ntwo words\n")
    (made / "inner" / "b.py").write_text("import os\nprint('two words')\n")
    (made / "inner" / "deep" / "c.bin").write_bytes(b"\xff\xfe")
    (made / "out").symlink_to(tmp_path)
    (made / "link.txt").symlink_to(tmp_path / "secret.txt")
    (made / "near.txt").symlink_to(made / "a.txt")
    os.mkfifo(made / "pipe")
    return made


@pytest.fixture
async def call(root, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "o.txt").write_text("other")
    listed = ", ".join(f'"{name}"' for name in CORE_TOOLS)
    (tmp_path / "codemode.toml").write_text(f'[core]\ntools = [{listed}]\nroots = ["root", "other"]\n')
    toolset = Toolset(load_manifest(tmp_path / "codemode.toml"), lambda secrets: None)
    tools = {tool.name: tool for tool in toolset.tools}

    async def run(name, **given):
        return await tools[name].invoke(given, CONTEXT)

    run.tools = tools
    yield run
    await toolset.close()


@requirement("tools:core:off-until-listed")
def test_only_listed_tools_exist(tmp_path):
    (tmp_path / "codemode.toml").write_text('[core]\ntools = ["read_file"]\nroots = ["."]\n')
    (tmp_path / "none.toml").write_text('[core]\nroots = ["."]\n')

    listed = Toolset(load_manifest(tmp_path / "codemode.toml"), lambda secrets: None).tools

    assert [tool.id for tool in listed] == ["openclaw:core:read_file"]
    assert Toolset(load_manifest(tmp_path / "none.toml"), lambda secrets: None).tools == ()


def test_tools_that_need_roots_say_so_and_ids_stay_unique(tmp_path):
    path = tmp_path / "codemode.toml"
    path.write_text('[core]\ntools = ["http_request", "exec"]\n')
    with pytest.raises(InvalidConfig, match="these tools need roots"):
        load_manifest(path)

    path.write_text(
        '[core]\ntools = ["exec"]\nroots = ["."]\n'
        '[[tool]]\nname = "exec"\nsource = "openclaw"\ndescription = "d"\nvalue = 1\n'
    )
    with pytest.raises(InvalidConfig, match=r'the id "openclaw:core:exec" is already taken by core\.tools'):
        load_manifest(path)


async def test_every_core_tool_has_a_schema_that_holds(call):
    executor = Executor(Redactor())

    assert sorted(call.tools) == sorted(CORE_TOOLS)
    for tool in call.tools.values():
        with pytest.raises(NestedToolFailed, match="is not valid"):
            await executor.call(tool, {"unknown": 1}, CONTEXT)


async def test_files_are_read_in_any_root(call, tmp_path):
    assert await call("read_file", path="a.txt") == "one\ntwo words\n"
    assert await call("read_file", path="./inner//b.py") == "import os\nprint('two words')\n"
    assert await call("read_file", path=f"{tmp_path}/other/o.txt") == "other"
    assert await call("read_file", path=f"{tmp_path}/root/a.txt") == "one\ntwo words\n"


@requirement("tools:core:roots-hold")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../secret.txt", '"../secret.txt" holds ".."'),
        ("inner/../../secret.txt", 'holds ".."'),
        ("/etc/passwd", '"/etc/passwd" is outside the roots'),
        ("<parent>/secret.txt", "is outside the roots"),
        ("<parent>/root/../secret.txt", 'holds ".."'),
        ("<parent>/rootless", "is outside the roots"),
        ("out/secret.txt", "links are not followed"),
        ("link.txt", "links are not followed"),
        ("near.txt", "links are not followed"),
        ("a.txt/x", "links are not followed"),
        ("inner", '"inner" is not a file.'),
        ("pipe", '"pipe" is not a file.'),
        ("none.txt", '"none.txt": No such file or directory.'),
        ("none/none.txt", "No such file or directory."),
        (".", '"." is a root, not a file in it'),
        ("/", "is outside the roots"),
        ("a\0b", "a path holds no NUL character"),
        ("x" * 300, "File name too long"),
        ("inner/deep/c.bin", "is not UTF-8 text"),
    ],
)
async def test_no_path_leads_out_and_each_refusal_says_why(call, tmp_path, path, message):
    given = path.replace("<parent>", str(tmp_path))
    for name, more in (("read_file", {}), ("write_file", {"text": "x"})):
        if name == "write_file" and path in {
            "link.txt",
            "near.txt",
            "pipe",
            "none.txt",
            "none/none.txt",
            "inner/deep/c.bin",
        }:
            continue
        with pytest.raises(CodeModeError) as caught:
            await call(name, path=given, **more)
        if name == "read_file":
            assert message in str(caught.value)

    assert (tmp_path / "secret.txt").read_text() == "hunter2"


@requirement("tools:core:roots-hold")
async def test_writing_to_a_link_replaces_the_link_and_not_what_it_points_to(call, root, tmp_path):
    await call("write_file", path="link.txt", text="mine")

    assert (tmp_path / "secret.txt").read_text() == "hunter2"
    assert not (root / "link.txt").is_symlink()
    assert (root / "link.txt").read_text() == "mine"


@requirement("tools:core:roots-hold")
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_folder_that_becomes_a_link_while_it_is_used_leads_nowhere(root, tmp_path, monkeypatch, moment):
    (tmp_path / "b.py").write_text("hunter2")
    real_open = os.open

    def swap():
        (root / "inner").rename(root / "aside")
        (root / "inner").symlink_to(tmp_path)

    def open_and_swap(path, flags, mode=0o777, *, dir_fd=None):
        if path != "inner":
            return real_open(path, flags, mode, dir_fd=dir_fd)
        if moment == "before":
            swap()
        file = real_open(path, flags, mode, dir_fd=dir_fd)
        if moment == "after":
            swap()
        return file

    monkeypatch.setattr(os, "open", open_and_swap)

    if moment == "before":
        with pytest.raises(NestedToolFailed, match="links are not followed"):
            Roots([root]).read("inner/b.py")
    else:
        assert Roots([root]).read("inner/b.py") == b"import os\nprint('two words')\n"


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_descriptor_is_left_open(call):
    before = open_descriptors()
    for path in ("a.txt", "inner", "pipe", "none", "out/x"):
        with contextlib.suppress(NestedToolFailed):
            await call("read_file", path=path)
    await call("list_files", deep=True)

    assert open_descriptors() == before


@requirement("tools:core:write-whole")
async def test_a_file_is_written_with_its_folders(call, root):
    assert await call("write_file", path="new/folder/x.txt", text="é") == {"path": "new/folder/x.txt", "bytes": 2}
    assert await call("write_file", path="a.txt", text="") == {"path": "a.txt", "bytes": 0}

    assert (root / "new" / "folder" / "x.txt").read_text() == "é"
    assert (root / "a.txt").read_text() == ""
    assert [path.name for path in root.iterdir() if path.name.startswith(".")] == []


@requirement("tools:core:write-whole")
async def test_what_cannot_be_written_leaves_nothing_behind(call, root):
    with pytest.raises(NestedToolFailed, match='"inner" is a folder'):
        await call("write_file", path="inner", text="x")
    with pytest.raises(NestedToolFailed, match="File name too long"):
        await call("write_file", path="y" * 300, text="x")

    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "inner", "link.txt", "near.txt", "out", "pipe"]


async def test_what_is_no_file_is_not_replaced_by_one(call, root):
    with pytest.raises(NestedToolFailed, match='"pipe" is not a file'):
        await call("write_file", path="pipe", text="x")

    assert (root / "pipe").is_fifo()


async def test_a_file_with_a_name_of_the_greatest_length_is_written(call, root):
    name = "😀" * 63

    assert await call("write_file", path=name, text="x") == {"path": name, "bytes": 1}
    assert (root / name).read_text() == "x"


@requirement("tools:core:mode-kept")
@pytest.mark.parametrize("mode", [0o755, 0o600, 0o444])
async def test_who_may_use_a_file_stays_when_it_is_written_anew(call, root, mode):
    (root / "a.txt").chmod(mode)
    await call("write_file", path="a.txt", text="new")

    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == mode
    assert (root / "a.txt").read_text() == "new"


async def test_a_hard_link_is_taken_off_by_writing_and_the_other_name_keeps_its_content(call, root, tmp_path):
    (root / "hard.txt").hardlink_to(tmp_path / "secret.txt")
    await call("write_file", path="hard.txt", text="new")

    assert (root / "hard.txt").read_text() == "new"
    assert (tmp_path / "secret.txt").read_text() == "hunter2"


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="Linux tells of itself there")
def test_a_file_that_tells_no_size_is_bounded_too(monkeypatch):
    assert b"Linux" in Roots([Path("/proc")]).read("version")
    monkeypatch.setattr(roots, "MAX_BRIDGE_BYTES", 5)
    with pytest.raises(NestedToolFailed, match='"version" has more than 5 bytes'):
        Roots([Path("/proc")]).read("version")


async def test_a_folder_is_listed_in_order_without_following_links(call, root):
    entries = await call("list_files")
    deep = await call("list_files", path="inner", deep=True)

    assert [(entry["path"], entry["kind"]) for entry in entries] == [
        ("a.txt", "file"),
        ("inner", "folder"),
        ("link.txt", "link"),
        ("near.txt", "link"),
        ("out", "link"),
        ("pipe", "other"),
    ]
    assert entries[0]["bytes"] == 14
    assert [entry["path"] for entry in deep] == ["inner/b.py", "inner/deep", "inner/deep/c.bin"]


async def test_a_path_that_is_listed_can_be_read(call, tmp_path):
    (entry,) = await call("list_files", path=f"{tmp_path}/other")

    assert await call("read_file", path=entry["path"]) == "other"


@pytest.mark.parametrize("path", ["a.txt", "out", "none"])
async def test_what_is_no_folder_is_not_listed(call, path):
    with pytest.raises(NestedToolFailed, match=f'"{path}"'):
        await call("list_files", path=path)


async def test_files_are_found_by_glob_and_by_text(call):
    assert await call("search_files", glob="*.py") == [{"path": "inner/b.py"}]
    assert await call("search_files", glob="inner/*") == [{"path": "inner/b.py"}, {"path": "inner/deep/c.bin"}]
    for glob in ("**/*.py", "inner/**/*.py", "./inner/*.py", "**/b.*", "inner/**/b.py"):
        assert await call("search_files", glob=glob) == [{"path": "inner/b.py"}]
    assert await call("search_files", glob="**/*.txt") == [{"path": "a.txt"}]
    assert await call("search_files", text="two words") == [
        {"path": "a.txt", "line": 2, "text": "two words"},
        {"path": "inner/b.py", "line": 2, "text": "print('two words')"},
    ]
    assert await call("search_files", glob="*.txt", text="hunter2") == []
    with pytest.raises(InvalidInput, match="an empty text is in every line"):
        await call("search_files", text="")


@requirement("tools:core:bounded")
async def test_what_is_too_much_is_refused_by_name(call, root, monkeypatch):
    (root / "large").write_bytes(b"x" * (MAX_BRIDGE_BYTES + 1))
    monkeypatch.setattr(core, "MAX_LISTED_FILES", 3)

    with pytest.raises(NestedToolFailed, match='"large" has 8388609 bytes; at most 8388608 are read'):
        await call("read_file", path="large")
    for name, given in (("list_files", {}), ("search_files", {"glob": "*"}), ("search_files", {"text": "o"})):
        with pytest.raises(NestedToolFailed, match="there are more than 3 results"):
            await call(name, **given)


async def test_lines_are_counted_as_editors_count_them(call, root):
    (root / "a.txt").write_bytes("one\x0c\u2028still one\r\nneedle\r\n".encode())

    assert await call("search_files", text="needle") == [{"path": "a.txt", "line": 2, "text": "needle"}]


@requirement("tools:core:walk-stops")
async def test_a_search_that_was_cancelled_goes_no_further(call, root, monkeypatch):
    for at in range(5):
        (root / f"b{at}.txt").write_text("x")
    began, release, read = threading.Event(), threading.Event(), []

    def read_slowly(folder, name, path):
        read.append(path)
        began.set()
        release.wait(60)
        return b""

    monkeypatch.setattr(core, "read_at", read_slowly)
    task = asyncio.create_task(call("search_files", text="x"))
    assert await asyncio.to_thread(began.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    monkeypatch.setattr("codemode.tools.threads.MAX_TOOL_THREADS", 1)
    await until_all_have_returned(call)

    assert read == ["a.txt"]


async def until_all_have_returned(call):
    """Wait for a thread, of which there is one at most: it is refused while a call that was given up holds it."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(NestedToolFailed):
                await call("read_file", path="a.txt")
                return
            await asyncio.sleep(0.005)


async def test_a_file_too_large_to_search_is_passed_over(call, monkeypatch):
    monkeypatch.setattr(core, "MAX_SEARCHED_FILE_BYTES", 20)

    assert [found["path"] for found in await call("search_files", text="two words")] == ["a.txt"]


async def test_a_shell_command_gives_status_and_output(call, root):
    done = await call("exec", command="pwd; echo bad >&2; exit 3")

    assert done == {"status": 3, "stdout": f"{root}\n", "stderr": "bad"}


async def test_exec_has_a_timeout_and_takes_no_input(call):
    assert call.tools["exec"].timeout_ms == 60_000
    assert (await asyncio.wait_for(call("exec", command="cat"), 60))["stdout"] == ""


async def test_http_request_gives_status_headers_and_body(call):
    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        body = b"\xff" if b"/binary" in head else b"hello"
        writer.write(b"HTTP/1.1 404 Not Found\r\nX-A: b\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        text = await call("http_request", url=f"{url}/text", method="POST", body="x", headers={"A": "b"})
        binary = await call("http_request", url=f"{url}/binary")

    assert (text["status"], text["headers"]["x-a"], text["body"]) == (404, "b", "hello")
    assert binary["base64"] == "/w=="
    for url in ("file:///etc/passwd", "http:///x", "http://[::1", "http://a:99999/", "/x", ""):
        with pytest.raises(InvalidInput, match="the URL must begin with http:// or https:// and name a host"):
            await call("http_request", url=url)
