"""The hosts of GitHub, and what the address of a remote says."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

GITHUB = "https://github.com"
GITHUB_HOST = "github.com"
GITHUB_HOSTS = (GITHUB_HOST,)


def is_hosted(host: str) -> bool:
    """Whether GitHub runs this host: github.com, or a subdomain of ghe.com (GitHub Enterprise Cloud)."""
    return host == GITHUB_HOST or host.endswith(".ghe.com")


SLUG = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}"
"""The pattern of OWNER/NAME, for ``re.ASCII``."""

_HOST_ALIASES = {"ssh.github.com": GITHUB_HOST, "www.github.com": GITHUB_HOST, "altssh.gitlab.com": "gitlab.com"}
_SSH_SCHEMES = ("ssh", "git", "git+ssh")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})", re.ASCII)
_SCP = re.compile(r"(?:[^@/:\s]{1,100}@)?([A-Za-z0-9.-]{1,253}):(?!/)(\S{1,300})", re.ASCII)
"""``git@HOST:OWNER/NAME.git``, which is not a URL."""


def parse_remote_url(address: str) -> tuple[str, str] | None:
    """Server and OWNER/NAME of a remote's address, in any of git's forms; None if it has neither.

    User names and secrets are dropped, and so is the ssh port: the website uses another. A host of one word is a name
    from somebody's ssh configuration.
    """
    match = _SCP.fullmatch(address)
    if "://" not in address and match:
        scheme, host, port, path = "ssh", match[1], "", match[2]
    else:
        try:
            parts = urlsplit(address)
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            return None
        scheme, host, path = parts.scheme, parts.hostname or "", parts.path
    is_web, repository = scheme in ("http", "https"), path.strip("/").removesuffix(".git")
    if not (is_web or (scheme in _SSH_SCHEMES and "." in host)) or not _HOST.fullmatch(host):
        return None
    if not re.fullmatch(SLUG, repository, re.ASCII):
        return None
    host = _HOST_ALIASES.get(host.lower(), host.lower())
    return f"{'http' if scheme == 'http' else 'https'}://{host}{port if is_web else ''}", repository
