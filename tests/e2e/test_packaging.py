"""From lockfile to wheel to a fresh environment, with real npm, real builds and a real install."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

import hatch_build
from hatch_build import ASSETS, GUEST, INPUTS, NODE_WHEEL, AssetsError, GuestAssetsHook, build_assets
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
BOUND_S = 300
SHIPPED = {"LICENSES.txt", "MANIFEST.json", "acorn.js", "quickjs.wasm", "sucrase.js"}


class Distributions(NamedTuple):
    """What one build made."""

    sdist: Path
    wheel: Path


def copy_inputs(folder: Path) -> Path:
    for source in INPUTS:
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, folder / source)
    return folder


def without_npm(folder: Path) -> dict[str, str]:
    """Return an environment whose PATH leads to an empty folder, with the same home otherwise."""
    return os.environ | {"PATH": str(folder)}


def run(*command: str | Path, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=env, check=False, capture_output=True, text=True, encoding="utf-8", timeout=BOUND_S
    )


@pytest.fixture(scope="module", autouse=True)
def _fresh_assets() -> None:
    """Whoever runs this file alone, after a change, gets what `make test` would have built."""
    build_assets(ROOT)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of nothing but the hook's inputs, with the assets that it built from them."""
    root = copy_inputs(tmp_path_factory.mktemp("checkout"))
    assert build_assets(root) is True
    return root


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """A source distribution, and the wheel made from it, on a machine that seems to have no npm."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = run(*command, cwd=ROOT, env=without_npm(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return Distributions(next(folder.glob("*.tar.gz")), next(folder.glob("*.whl")))


# ---- the assets ----


@requirement("packaging:lock:integrity")
def test_every_locked_package_has_an_integrity_hash_and_no_address() -> None:
    lock = json.loads((ROOT / GUEST / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}

    assert packages
    assert [name for name, entry in packages.items() if not entry["integrity"].startswith("sha512-")] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []


def test_the_locked_versions_are_the_wanted_ones_exactly() -> None:
    package = json.loads((ROOT / GUEST / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((ROOT / GUEST / "package-lock.json").read_text(encoding="utf-8"))

    for name, version in (package["dependencies"] | package["devDependencies"]).items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version


@requirement("packaging:assets:manifest")
def test_the_manifest_names_the_digest_of_every_asset() -> None:
    folder = ROOT / ASSETS
    manifest = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))

    assert {path.name for path in folder.iterdir()} == SHIPPED
    assert manifest["files"].keys() == SHIPPED - {"MANIFEST.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


@requirement("packaging:assets:reproducible")
def test_the_same_inputs_give_the_same_assets(checkout: Path) -> None:
    """Built in another folder, from a cold start, the manifests are equal: so is every byte."""
    assert (checkout / ASSETS / "MANIFEST.json").read_bytes() == (ROOT / ASSETS / "MANIFEST.json").read_bytes()


@requirement("packaging:assets:no-op")
def test_fresh_assets_are_left_alone_and_damaged_ones_are_seen(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    asset = checkout / ASSETS / "acorn.js"
    whole = asset.read_bytes()

    assert build_assets(checkout) is False
    asset.write_bytes(whole + b" ")
    with pytest.raises(AssetsError, match="no npm is on the PATH"):
        build_assets(checkout)
    asset.write_bytes(whole)
    assert build_assets(checkout) is False


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"inputs": 1}'])
def test_a_manifest_that_is_damaged_is_not_fresh(checkout: Path, damage: bytes) -> None:
    manifest = checkout / ASSETS / "MANIFEST.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(damage)
    try:
        assert hatch_build.is_fresh(checkout) is False
    finally:
        manifest.write_bytes(whole)


@requirement("packaging:assets:failure")
def test_without_npm_the_build_says_what_to_install(tmp_path: Path) -> None:
    root = copy_inputs(tmp_path)
    done = run(sys.executable, "hatch_build.py", cwd=root, env=without_npm(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "cannot build the guest's assets: no npm is on the PATH; install Node.js (with npm), "
        f'or `pip install "{NODE_WHEEL}"`\n'
    )


@requirement("packaging:assets:failure")
def test_a_package_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    root = copy_inputs(tmp_path)
    lock = root / GUEST / "package-lock.json"
    lock.write_text(lock.read_text(encoding="utf-8").replace("sha512-", "sha512-AAAA"), encoding="utf-8")
    done = run(sys.executable, "hatch_build.py", cwd=root, env=dict(os.environ))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("cannot build the guest's assets: `npm ci` ended with 1 and said: code EINTEGRITY")
    assert not (root / ASSETS).exists()


@requirement("packaging:assets:failure")
def test_a_parser_that_the_bundler_does_not_know_is_refused(tmp_path: Path) -> None:
    """What is rewritten in sucrase must be there once, or another version would be rewritten wrongly."""
    root = copy_inputs(tmp_path)
    bundler = root / GUEST / "bundle.mjs"
    script = bundler.read_text(encoding="utf-8")
    assert script.count('"if (tsIsStartOfFunctionType())"') == 1
    bundler.write_text(
        script.replace('"if (tsIsStartOfFunctionType())"', '"if (of(another, version))"'), encoding="utf-8"
    )
    done = run(sys.executable, "hatch_build.py", cwd=root, env=dict(os.environ))

    assert (done.returncode, done.stdout) == (1, "")
    assert "sucrase's plugins/typescript.js has 0 of if (of(another, version))" in done.stderr
    assert not (root / ASSETS).exists()


@requirement("packaging:assets:node")
def test_the_hook_asks_for_node_only_where_it_is_needed(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = copy_inputs(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    def dependencies(root: Path) -> list[str]:
        return GuestAssetsHook(str(root), {}, None, None, str(root), "wheel").dependencies()

    assert dependencies(stale) == [NODE_WHEEL]
    assert dependencies(checkout) == []


# ---- what is built ----


@requirement("packaging:sdist:no-npm")
def test_the_source_distribution_carries_assets_and_their_sources(built: Distributions) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {f"{ASSETS.as_posix()}/{name}" for name in SHIPPED} <= names
    assert {path.as_posix() for path in INPUTS} <= names
    assert [name for name in names if "node_modules" in name or name.endswith(".pyc")] == []


@requirement("packaging:wheel:content")
def test_the_wheel_ships_what_runs_and_nothing_else(built: Distributions) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
        licences = archive.read(f"{ASSETS.as_posix()}/LICENSES.txt").decode()

    assert {f"{ASSETS.as_posix()}/{name}" for name in SHIPPED} <= names
    ours = [name for name in names if name.startswith(GUEST.as_posix())]
    assert sorted(ours) == [f"{GUEST.as_posix()}/difference.wat", f"{GUEST.as_posix()}/prelude.js"]
    assert {name.split("/")[0] for name in names} == {"codemode", built.wheel.name.rpartition("-py3")[0] + ".dist-info"}
    for shipped in ("QuickJS-NG", "acorn ", "quickjs-wasi ", "sucrase "):
        assert f"\n{shipped}" in f"\n{licences}"


@requirement("packaging:wheel:runs")
@pytest.mark.timeout(2 * BOUND_S)
def test_the_wheel_runs_a_cell_in_a_fresh_environment_without_npm(built: Distributions, tmp_path: Path) -> None:
    environment = tmp_path / "fresh"
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    here = {"cwd": tmp_path, "env": dict(os.environ)}
    installed = run(programs / "python", "-m", "pip", "install", "-q", "--no-compile", built.wheel, **here)
    assert installed.returncode == 0, installed.stderr
    home = {"HOME": str(tmp_path), "PATH": str(programs), "LANG": "C.UTF-8"}
    done = run(programs / "codemode", "run", "-e", "return 1+1", "--json", cwd=tmp_path, env=home)

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) | {"telemetry": None} == {
        "status": "completed",
        "value": 2,
        "output": [],
        "telemetry": None,
    }
