"""The programs that we stand beside: where each is found, in an environment of its own, never ours.

A peer's program in `peer_programs/` does the same small things as our bench does and prints what
each took, in milliseconds, as one JSON object: `evaluate` (a new context and `1 + 1`), `call` (one
of 200 awaited calls of a host function that does nothing), `parallel` (one of 16 at once), `suspend`
and `resume` (a program that holds 200 small objects, to bytes and back in a fresh context) and
`bytes`. What a peer cannot do is left out.
"""

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent
FOLDER = ROOT.parent / ".bench"
_MINUTES_S = 300


class Peer(NamedTuple):
    """One program: its package, its wall between host and guest, its program here, its hello world."""

    name: str
    package: str
    wall: str
    program: str
    hello: str

    @property
    def folder(self) -> Path:
        """The environment; `CODEMODE_BENCH_PEERS` names another parent folder."""
        return Path(os.environ.get("CODEMODE_BENCH_PEERS", FOLDER)) / self.name

    @property
    def is_node(self) -> bool:
        """Whether it runs under Node.js."""
        return self.program.endswith(".mjs")

    def command(self) -> tuple[str, ...] | None:
        """Return what runs a program of this peer, or None where it is not installed."""
        node = shutil.which("node")
        if self.is_node:
            installed = node is not None and (self.folder / "node_modules" / self.name).is_dir()
            return (str(node), "--input-type=module", "-e") if installed else None
        python = self.folder / "bin" / "python"
        return (str(python), "-c") if python.exists() and (self.folder / ".installed").exists() else None

    def missing(self) -> str:
        """Say how to get it."""
        if self.is_node and shutil.which("node") is None:
            return f"{self.name}: Node.js is not installed"
        return f"{self.name} is not installed; make bench-peers installs it"


QUICKJS_RS = Peer(
    "quickjs-rs",
    "quickjs-rs==0.2.6",
    "in-process WebAssembly",
    "quickjs_rs.py",
    "import quickjs_rs; runtime = quickjs_rs.Runtime(); print(runtime.new_context().eval('1+1'))",
)
PEERS = (
    QUICKJS_RS,
    Peer(
        "langchain-quickjs",
        "langchain-quickjs==0.3.10",
        "in-process WebAssembly, a thread",
        "langchain_quickjs.py",
        "from langchain_quickjs._repl import _Registry\n"
        "registry = _Registry(memory_limit=64 << 20, timeout=10.0, capture_console=True, max_stdout_chars=4000)\n"
        "print(registry.get('hello').eval_sync('1 + 1').result)\nregistry.close()",
    ),
    Peer(
        "pydantic-monty",
        "pydantic-monty==1.4.0",
        "a process; Python, not JavaScript",
        "pydantic_monty.py",
        "from pydantic_monty import Monty\nwith Monty() as pool, pool.checkout() as session:\n"
        "    print(session.feed_run('1 + 1'))",
    ),
    Peer(
        "quickjs-wasi",
        "quickjs-wasi@3.7.0",
        "in-process WebAssembly, Node.js",
        "quickjs_wasi.mjs",
        "import { readFile } from 'node:fs/promises'; import { QuickJS } from 'quickjs-wasi';"
        "const wasm = await readFile(new URL(import.meta.resolve('quickjs-wasi/quickjs.wasm')));"
        "const vm = await QuickJS.create(wasm); console.log(vm.evalCode('1 + 1').toNumber())",
    ),
)


def install() -> dict[str, str]:
    """Make the environments that are missing; return why one could not be made, by name."""
    failures = {}
    for peer in PEERS:
        if peer.command() is not None:
            continue
        try:
            _install_node(peer) if peer.is_node else _install_python(peer)
        except (OSError, subprocess.CalledProcessError) as error:
            failures[peer.name] = f"{peer.name} could not be installed: {error}"
    return failures


def measure(peer: Peer, count: int) -> dict[str, list[float]] | str:
    """Return what the peer's program measured, or why there is nothing."""
    command = peer.command()
    if command is None:
        return peer.missing()
    text = (ROOT / "peer_programs" / peer.program).read_text(encoding="utf-8")
    done = subprocess.run(
        [*command, text, str(count)], cwd=peer.folder, capture_output=True, text=True, timeout=_MINUTES_S, check=False
    )
    try:
        measured: dict[str, list[float]] = json.loads(done.stdout)
    except ValueError:
        return f"{peer.name} failed: {(done.stderr.strip() or 'without a word').splitlines()[-1][:200]}"
    return measured


def _install_python(peer: Peer) -> None:
    venv.create(peer.folder, with_pip=True, clear=True)
    subprocess.run([peer.folder / "bin" / "python", "-m", "pip", "install", "--quiet", peer.package], check=True)
    (peer.folder / ".installed").touch()


def _install_node(peer: Peer) -> None:
    peer.folder.mkdir(parents=True, exist_ok=True)
    flags = ("--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", ".")
    subprocess.run(["npm", "install", *flags, peer.package], cwd=peer.folder, check=True)
