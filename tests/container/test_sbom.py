"""The image's bill of materials lists what is in the image, which is what the lock lists."""

import json
import re
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.utils import canonicalize_name

from tests.container.engine import ROOT, Engine

pytestmark = pytest.mark.container

SBOM_PATH = "/usr/share/precedent/sbom.cdx.json"
PLATFORM = {
    "platform_python_implementation": "CPython",
    "python_full_version": "3.13.0",
    "implementation_name": "cpython",
}


@pytest.fixture(scope="module")
def sbom(engine: Engine) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(engine.shell(f"cat {SBOM_PATH}"))
    return content


def purls(sbom: dict[str, Any], kind: str) -> set[str]:
    return {each["purl"].removeprefix(f"pkg:{kind}/") for each in sbom["components"] if f"pkg:{kind}/" in each["purl"]}


def locked(lock: str) -> set[str]:
    """Name and version of each library in the lock for CPython 3.13."""
    rows = re.findall(r"^([\w.-]+)(?:\[.*?\])?==(\S+)(?: ; (.+?))? \\$", (ROOT / lock).read_text(), re.MULTILINE)
    return {
        f"{canonicalize_name(name)}@{version}"
        for name, version, marker in rows
        if not marker or Marker(marker).evaluate(dict(PLATFORM))
    }


def test_the_bill_is_cyclonedx_and_names_each_component_once_with_its_version(sbom: dict[str, Any]) -> None:
    assert (sbom["bomFormat"], sbom["specVersion"], sbom["version"]) == ("CycloneDX", "1.6", 1)
    refs = [each["bom-ref"] for each in sbom["components"]]
    assert len(set(refs)) == len(refs) > 60
    for each in sbom["components"]:
        assert set(each) == {"type", "bom-ref", "name", "version", "purl"}
        assert each["version"], each


def test_the_libraries_are_exactly_those_of_the_lock(sbom: dict[str, Any], engine: Engine) -> None:
    script = "import importlib.metadata as m\nfor d in m.distributions(): print(d.metadata['Name'], d.version)"
    installed = engine.shell(f'/opt/precedent/bin/python -I -c "{script}"').splitlines()
    inside = {f"{canonicalize_name(name)}@{version}" for name, version in map(str.split, installed)}
    assert inside == purls(sbom, "pypi") == locked("requirements.lock")


def test_the_text_model_is_listed_by_its_hashes(sbom: dict[str, Any], engine: Engine) -> None:
    script = "import hashlib, pathlib as p; print(hashlib.sha256(p.Path('/models/{}').read_bytes()).hexdigest())"
    for name in ("model.safetensors", "tokenizer.json"):
        sha256 = engine.shell(f'/opt/precedent/bin/python -I -c "{script.format(name)}"')
        assert f"{name}@{sha256}" in purls(sbom, "generic")


def test_the_debian_packages_are_those_that_a_scanner_finds_with_their_licences(
    sbom: dict[str, Any], engine: Engine
) -> None:
    status = engine.shell("cat /var/lib/dpkg/status")
    packages = dict(re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)", status, re.MULTILINE))
    listed = {each["name"]: each["version"] for each in sbom["components"] if "pkg:deb/" in each["purl"]}
    assert listed == packages
    assert {"git", "libc6", "ca-certificates", "dash"} <= set(packages)
    assert not {name for name in packages if re.match(r"perl|apt|dpkg|gcc-\d|bash|util-linux", name)}
    licences = [f"/usr/share/doc/{name}/copyright" for name in packages]
    assert engine.shell(f"ls {' '.join(licences)}").split() == sorted(licences)
