"""Lists the components of an image, as CycloneDX in JSON: Debian's packages, Python, its libraries, the text model.

python -I image_sbom.py ROOT SITE_PACKAGES MODELS > sbom.cdx.json

runs during the build, over the file system that becomes the image's. https://cyclonedx.org/docs/1.6/json/
"""

import json
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import quote

Component = dict[str, str]


def debian(root: Path) -> Iterator[Component]:
    """The packages in dpkg's status file."""
    system = dict(
        re.findall(r'^(\w+)="?([^"\n]*)', (root / "etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for paragraph in (root / "var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture): (.+)$", paragraph, re.MULTILINE))
        if fields:
            name, version = fields["Package"], fields["Version"]
            more = f"arch={fields['Architecture']}&distro={system['ID']}-{system['VERSION_ID']}"
            yield component(name, version, f"pkg:deb/debian/{quote(name)}@{quote(version)}?{more}")


def python(packages: Path) -> Iterator[Component]:
    """The interpreter that runs this, which the image has too, and the packages installed in a folder."""
    yield component("python", platform.python_version(), f"pkg:generic/python@{platform.python_version()}")
    for distribution in distributions(path=[str(packages)]):
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        yield component(name, distribution.version, f"pkg:pypi/{name}@{quote(distribution.version)}")


def model(folder: Path) -> Iterator[Component]:
    """The files of the text model, by their hashes; nothing without a model."""
    if (folder / "model.sha256").exists():
        for line in (folder / "model.sha256").read_text(encoding="ascii").splitlines():
            sha256, name = line.split()
            yield component(name, sha256, f"pkg:generic/{name}@{sha256}")


def component(name: str, version: str, purl: str) -> Component:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def bill(root: Path, packages: Path, models: Path) -> str:
    """The whole document, the same for the same content."""
    parts = sorted([*debian(root), *python(packages), *model(models)], key=lambda each: each["purl"])
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": parts}
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(bill(*map(Path, sys.argv[1:])))
