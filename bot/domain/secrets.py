"""Masks what looks like a secret, so that none is stored, found or quoted, and no server refuses to take it."""

from __future__ import annotations

import re
from functools import cache

# The documented shapes of well-known issuers, as in the lists of gitleaks (https://github.com/gitleaks/gitleaks) and of
# GitHub's push protection (https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns).
# A group is what comes before the secret and stays: the name of a setting, or the account in an address.
_SHAPES = (
    r"gh[opsur]_[A-Za-z0-9]{36,255}",
    r"github_pat_[A-Za-z0-9_]{60,255}",
    r"gl(?:pat|ptt|dt|rt|ft|soat|cbt|imt|agent|oas|ffct|sa)[-_][\w-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?",
    r"GR1348941[\w-]{20}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
    r"ABSK[A-Za-z0-9+/]{109,269}={0,2}",
    r"((?i:aws_?secret_?access_?key)[\"'\s:=>]{1,9})[A-Za-z0-9/+]{40}(?![\w/+])",
    r"xox[a-eoprs]-[\w%-]{10,250}",
    r"xapp-\d-[\w-]{10,250}",
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{20,120}",
    r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}",
    r"whsec_[A-Za-z0-9+/=]{32,88}",
    r"AIza[\w-]{35}",
    r"ya29\.[\w-]{20,400}",
    r"GOCSPX-[\w-]{28}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[\w-]{50,400}",
    r"rubygems_[0-9a-f]{48}",
    r"SG\.[\w-]{16,32}\.[\w-]{16,64}",
    r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}",
    r"sk-(?:proj-|ant-|svcacct-|admin-|or-v1-)[\w-]{20,300}|sk-[A-Za-z0-9]{32,64}",
    r"gsk_[A-Za-z0-9]{52}",
    r"xai-[A-Za-z0-9]{80}",
    r"pplx-[A-Za-z0-9]{48}",
    r"(?:hf|api_org)_[A-Za-z]{34}",
    r"do[opr]_v1_[0-9a-f]{64}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"SK[0-9a-f]{32}",
    r"[0-9]{8,10}:AA[\w-]{33}",
    r"[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,40}",
    r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[\w-]{60,80}",
    r"webhook\.office\.com/webhookb2/[\w@/-]{100,250}",
    r"key-[0-9a-f]{32}",
    r"[0-9a-f]{32}-(?:us[0-9]{1,2}|[0-9a-f]{8}-[0-9a-f]{8})(?![\w-])",
    r"sq0(?:atp|csp)-[\w-]{22,43}",
    r"EAAA[\w-]{60}(?![\w+/=-])",
    r"dckr_[po]at_[\w-]{20,80}",
    r"hv[sbr]\.[\w-]{24,300}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}",
    r"dapi[0-9a-f]{32}(?:-\d)?",
    r"glc_[A-Za-z0-9+/]{32,400}={0,3}",
    r"eyJrIjoi[A-Za-z0-9]{70,400}={0,3}",
    r"NR(?:AK|JS|II|RA)-[A-Za-z0-9-]{19,42}",
    r"sntry[su]_[A-Za-z0-9+/=_]{60,500}",
    r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}",
    r"(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})(?!\w)",
    r"AT[AC]TT3[\w=-]{100,300}",
    r"ATBB[A-Za-z0-9]{32}",
    r"sl\.(?:u\.)?[\w-]{130,1500}",
    r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    r"pul-[0-9a-f]{40}",
    r"HRKU-AA[\w-]{58}",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9]{40,44}",
    r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}",
    r"pscale_(?:tkn|oauth|pw)_[\w.=-]{32,64}",
    r"tskey-[a-z]{2,10}-[\w-]{20,80}",
    r"figd_[\w-]{40,50}",
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
    r"LTAI[A-Za-z0-9]{20}(?!\w)",
    r"AKCp[A-Za-z0-9]{69}",
    r"ops_eyJ[A-Za-z0-9+/=]{250,2000}",
    r"[\w~.]{3}[0-9]Q~[\w~.-]{31,34}",
    r"[A-Za-z0-9]{52}JQQJ9[9DH][A-Za-z0-9]{25,29}",
    r"((?:Account|SharedAccess)Key=)(?:[A-Za-z0-9+/]{86}==|[A-Za-z0-9+/]{43}=)",
    r"(sig=)[A-Za-z0-9%+/]{43,70}(?:%3[Dd]|=)",
    (
        r"((?:https?|ftps?|sftp|ssh|git|postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|smtps?)"
        r"://[^\s/:@\"'`<>]{0,100}:)(?!(?i:pass(?:word)?|pwd|secret|token)@)[^\s/:@\"'`<>*{}$]{3,200}(?=@[\w.-])"
    ),
    r"(?<![\w-])eyJ[\w-]{10,4000}+\.eyJ[\w-]{10,4000}+\.[\w-]{10,4000}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    r"Private-Lines: [0-9]{1,3}(?:\s{1,2}[A-Za-z0-9+/=]{1,64}(?=\s)){1,200}",
    (
        r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----)){40,20000}+-----END [A-Z0-9 ]{1,40}-----"
        r"|(?:[\s\\rn]{0,9}[A-Za-z0-9+/=]{16,76}){1,400})"
    ),
)

_MIN_CHARS = 10
"""No word with a secret is shorter, but most names and words are: skipping them halves the time."""


@cache
def _secret_pattern() -> re.Pattern[str]:
    """Compiled on first use, as compiling takes as long as a search."""
    return re.compile(rf"(?<![A-Za-z0-9])(?=\S{{{_MIN_CHARS}}})(?:{'|'.join(_SHAPES)})", re.ASCII)


def mask_secrets(text: str) -> str:
    """The text with ``[secret 1f3a5c]`` in place of each token, key and password; equal ones get equal digits.

    Linear in its length. Idempotent.
    """
    return _secret_pattern().sub(_mask, text) if len(text) >= _MIN_CHARS else text


def _mask(secret: re.Match[str]) -> str:
    from hashlib import blake2b  # slow to load

    before = secret[secret.lastindex] if secret.lastindex else ""
    digits = blake2b(secret[0][len(before) :].encode(), digest_size=3).hexdigest()
    return f"{before}[secret {digits}]"
