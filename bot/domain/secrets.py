"""Masks what looks like a secret, so that none is stored, found or quoted, and no server refuses to take it."""

from __future__ import annotations

import re
from functools import cache

# The documented shapes of well-known issuers, as in the lists of gitleaks (https://github.com/gitleaks/gitleaks) and of
# GitHub's push protection (https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns).
_SHAPES = (
    r"gh[opsur]_[A-Za-z0-9]{36,255}",
    r"github_pat_[A-Za-z0-9_]{60,255}",
    r"gl(?:pat|ptt|dt|rt|ft|soat|cbt|imt|agent|sa)[-_][\w-]{20,300}",
    r"AKIA[A-Z0-9]{16}",
    r"ASIA[A-Z0-9]{16}",
    r"xox[abeoprs]-[\w-]{10,250}",
    r"xapp-\d-[\w-]{10,250}",
    r"hooks\.slack\.com/(?:services|workflows)/[\w/]{20,120}",
    r"[rs]k_live_[A-Za-z0-9]{16,250}",
    r"[rs]k_test_[A-Za-z0-9]{16,250}",
    r"whsec_[A-Za-z0-9+/=]{32,88}",
    r"AIza[\w-]{35}",
    r"ya29\.[\w-]{20,400}",
    r"GOCSPX-[\w-]{28}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[\w-]{50,400}",
    r"SG\.[\w-]{16,32}\.[\w-]{16,64}",
    r"sk-(?:proj-|ant-|svcacct-|admin-|or-v1-)[\w-]{20,300}|sk-[A-Za-z0-9]{32,64}",
    r"hf_[A-Za-z]{34}",
    r"dop_v1_[0-9a-f]{64}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"SK[0-9a-f]{32}",
    r"[0-9]{8,10}:AA[\w-]{33}",
    r"key-[0-9a-f]{32}",
    r"sq0(?:atp|csp)-[\w-]{22,43}",
    r"dckr_[po]at_[\w-]{20,80}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}",
    r"dapi[0-9a-f]{32}",
    r"ATATT3[\w=-]{100,300}",
    r"AccountKey=[A-Za-z0-9+/]{86}==",
    r"(?<![\w-])eyJ[\w-]{10,4000}+\.eyJ[\w-]{10,4000}+\.[\w-]{10,4000}",
    (
        r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----[\w+/=:,.\\\s]{0,20000}"
        r"(?:-----END [A-Z ]{1,40}-----)?"
    ),
)


@cache
def _secret_pattern() -> re.Pattern[str]:
    """Compiled on first use, as compiling takes as long as a search."""
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_SHAPES)})", re.ASCII)


def mask_secrets(text: str) -> str:
    """The text with ``[secret 1f3a5c]`` in place of each token and private key; equal ones get equal digits.

    Linear in its length. Idempotent.
    """
    return _secret_pattern().sub(_mask, text)


def _mask(secret: re.Match[str]) -> str:
    from hashlib import blake2b  # slow to load

    return f"[secret {blake2b(secret[0].encode(), digest_size=3).hexdigest()}]"
