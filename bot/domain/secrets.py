"""Masks what looks like a secret, so that none is stored, found or quoted, and no server refuses to take it."""

from __future__ import annotations

import re
from hashlib import blake2b

# The documented shapes of well-known issuers, as in the lists of gitleaks (https://github.com/gitleaks/gitleaks) and of
# GitHub's push protection (https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns).
_SHAPES = {
    "gh": r"gh[opsur]_[A-Za-z0-9]{36,255}",
    "github_pat_": r"github_pat_[A-Za-z0-9_]{60,255}",
    "gl": r"gl(?:pat|ptt|dt|rt|ft|soat|cbt|imt|agent|sa)[-_][\w-]{20,300}",
    "AKIA": r"AKIA[A-Z0-9]{16}",
    "ASIA": r"ASIA[A-Z0-9]{16}",
    "xox": r"xox[abeoprs]-[\w-]{10,250}",
    "xapp-": r"xapp-\d-[\w-]{10,250}",
    "hooks.slack.com/": r"hooks\.slack\.com/(?:services|workflows)/[\w/]{20,120}",
    "k_live_": r"[rs]k_live_[A-Za-z0-9]{16,250}",
    "k_test_": r"[rs]k_test_[A-Za-z0-9]{16,250}",
    "whsec_": r"whsec_[A-Za-z0-9+/=]{32,88}",
    "AIza": r"AIza[\w-]{35}",
    "ya29.": r"ya29\.[\w-]{20,400}",
    "GOCSPX-": r"GOCSPX-[\w-]{28}",
    "npm_": r"npm_[A-Za-z0-9]{36}",
    "pypi-": r"pypi-[\w-]{50,400}",
    "SG.": r"SG\.[\w-]{16,32}\.[\w-]{16,64}",
    "sk-": r"sk-(?:proj-|ant-|svcacct-|admin-|or-v1-)[\w-]{20,300}|sk-[A-Za-z0-9]{32,64}",
    "hf_": r"hf_[A-Za-z]{34}",
    "dop_v1_": r"dop_v1_[0-9a-f]{64}",
    "shp": r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "SK": r"SK[0-9a-f]{32}",
    ":AA": r"[0-9]{8,10}:AA[\w-]{33}",
    "key-": r"key-[0-9a-f]{32}",
    "sq0": r"sq0(?:atp|csp)-[\w-]{22,43}",
    "dckr_": r"dckr_[po]at_[\w-]{20,80}",
    ".atlasv1.": r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}",
    "dapi": r"dapi[0-9a-f]{32}",
    "ATATT3": r"ATATT3[\w=-]{100,300}",
    "AccountKey=": r"AccountKey=[A-Za-z0-9+/]{86}==",
    "eyJ": r"(?<![\w-])eyJ[\w-]{10,4000}+\.eyJ[\w-]{10,4000}+\.[\w-]{10,4000}",
    "PRIVATE KEY": (
        r"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----[\w+/=:,.\\\s]{0,20000}"
        r"(?:-----END [A-Z ]{1,40}-----)?"
    ),
}
_SECRET = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_SHAPES.values())})", re.ASCII)


def mask_secrets(text: str) -> str:
    """The text with ``[secret 1f3a5c]`` in place of each token and private key; equal ones get equal digits.

    Linear in its length. Idempotent.
    """
    if not any(mark in text for mark in _SHAPES):
        return text
    return _SECRET.sub(lambda match: f"[secret {blake2b(match[0].encode(), digest_size=3).hexdigest()}]", text)
