"""What looks like a secret is masked before anything is stored."""

import pytest

from bot.domain.secrets import mask_secrets
from bot.domain.thread_json import thread_from_archive
from tests.reading.linear_time import assert_linear_time

LETTERS = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5kL7nP9rS1tV3xY5z"
HEXADECIMAL = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "GitHub": ["ghp_" + LETTERS[:36], "ghs_" + LETTERS[:40], f"github_{'pat'}_{LETTERS[:22]}_{LETTERS}{LETTERS[:9]}"],
    "GitLab": ["glpat-" + LETTERS[:20], "glrt-" + LETTERS[:30] + ".01.0a1b2c3d4", "GR1348941" + LETTERS[:20]],
    "AWS": ["AKIA" + "ABCDEFGHIJ234567", "ASIA" + "ABCDEFGHIJ234567", "ABSK" + LETTERS * 3],
    "Azure": [
        "aB3" + "8Q~" + LETTERS[:34], "AccountKey=" + LETTERS + LETTERS[:34] + "==",
        "SharedAccessKey=" + LETTERS[:43] + "=", "&sig=" + LETTERS[:42] + "%2B%3D", LETTERS + "JQQJ99" + LETTERS[:26],
    ],
    "Slack": [
        "xoxb-" + "123456789012-" + LETTERS[:24], "xoxe-1-" + LETTERS, "xapp-1-" + LETTERS,
        "hooks.slack.com/" + "services/T0000/B0000/" + LETTERS[:24],
    ],
    "other chats": [
        "MTAx" + LETTERS[:22] + "." + LETTERS[:6] + "." + LETTERS[:38], "123456789:AA" + LETTERS[:33],
        "discord.com/api/" + "webhooks/123456789012345678/" + LETTERS + LETTERS[:16],
        "webhook.office.com/" + "webhookb2/" + LETTERS + "@" + LETTERS + "/IncomingWebhook/" + LETTERS,
    ],
    "Stripe": ["sk_live_" + LETTERS[:24], "rk_test_" + LETTERS[:24], "whsec_" + LETTERS[:32]],
    "Google": ["AIza" + LETTERS[:35], "GOCSPX-" + LETTERS[:28], "ya29." + LETTERS],
    "registries": [
        "npm_" + LETTERS[:36], "pypi-" + LETTERS + LETTERS, "dckr_pat_" + LETTERS[:27], "dckr_oat_" + LETTERS[:32],
        "rubygems_" + HEXADECIMAL[:48], "AKCp" + LETTERS + LETTERS[:17],
    ],
    "models": [
        "sk-proj-" + LETTERS, "sk-" + LETTERS[:48], "sk-ant-api03-" + LETTERS, "hf_" + "aBcDeFgHiJkLmNoPq" * 2,
        "gsk_" + LETTERS, "xai-" + LETTERS + LETTERS[:28], "pplx-" + LETTERS[:48],
    ],
    "mail": [
        "SG." + LETTERS[:22] + "." + LETTERS[:43], "key-" + HEXADECIMAL[:32], HEXADECIMAL[:32] + "-us12",
        HEXADECIMAL[:32] + "-0a1b2c3d-4e5f6071", "xkeysib-" + HEXADECIMAL + "-" + LETTERS[:16], "SK" + HEXADECIMAL[:32],
    ],
    "clouds": [
        "dop_v1_" + HEXADECIMAL, "dor_v1_" + HEXADECIMAL, "dapi" + HEXADECIMAL[:32] + "-2",
        "HRKU-AA" + LETTERS + LETTERS[:6], "hvs." + LETTERS + LETTERS, "hvb." + LETTERS,
        LETTERS[:14] + ".atlasv1." + LETTERS + LETTERS[:12],
        "LTAI" + LETTERS[:20], "pul-" + HEXADECIMAL[:40], "pscale_pw_" + LETTERS[:43], "tskey-auth-" + LETTERS[:30],
    ],
    "operations": [
        "glsa_" + LETTERS[:32] + "_0a1b2c3d", "glc_" + LETTERS, "eyJrIjoi" + LETTERS + LETTERS,
        "NRAK-" + "A1B2C3D4E" * 3, "sntrys_eyJ" + LETTERS + LETTERS, "sntryu_" + HEXADECIMAL,
        "dt0c01." + "A1B2C3D4" * 3 + "." + "A1B2C3D4" * 8,
        "dp.pt." + LETTERS[:43],
    ],
    "tools": [
        "lin_api_" + LETTERS[:40], "ntn_" + LETTERS[:46], "secret_" + LETTERS[:43], "ATATT3" + LETTERS * 3,
        "ATBB" + LETTERS[:32], "sl.u." + LETTERS * 3, "PMAK-" + HEXADECIMAL[:24] + "-" + HEXADECIMAL[:34],
        "figd_" + LETTERS[:42], "pat" + LETTERS[:14] + "." + HEXADECIMAL, "ops_eyJ" + LETTERS * 6,
    ],
    "shops": ["shpat_" + HEXADECIMAL[:32], "sq0atp-" + LETTERS[:22], "EAAA" + LETTERS + LETTERS[:8]],
    "names": [
        "aws_secret_access_key = " + LETTERS[:40], '"AwsSecretAccessKey": "' + LETTERS[:39] + '/"',
        "https://hubot:" + "hunter22@example.com", "postgres://hubot:" + "p-4.ss!@db.example.com/main",
    ],
    "keys": [
        "eyJ" + LETTERS[:30] + ".eyJ" + LETTERS[:40] + "." + LETTERS[:43],
        "AGE-SECRET-KEY-1" + LETTERS.upper() + "ABCDEF",
        *(
            f"-----BEGIN {kind}PRIVATE " + f"KEY{block}-----\n{head}MIIEow{LETTERS}\n{LETTERS}==\n{end}"
            for kind, block, head, end in (
                ("RSA ", "", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n", "-----END RSA PRIVATE KEY-----"),
                ("PGP ", " BLOCK", "Version: GnuPG v1 (GNU/Linux)\n\n", "-----END PGP PRIVATE KEY BLOCK-----"),
                ("OPENSSH ", "", "", ""),
            )
        ),
        "Private-Lines: 2\n" + LETTERS + "\n" + LETTERS + "==\nPrivate-MAC: 0a1b",
    ],
}  # fmt: skip
HARMLESS = (
    "ghp_short", "sk-spinner sk-circle-fade-dot", "AKIA is a prefix", "npm_config_registry", "pypi-server", "key-value",
    "SG.US", "eyJ is how it begins", "commit 9c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9d", "dapi", "xoxo",
    "glfw-3.3-static-libs",
    "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----", "BEGIN PRIVATE KEY", "at 12345678:AB",
    "-----BEGIN PRIVATE KEY----- is missing in the file, so the server says no", "https://user:password@example.com",
    "http://localhost:8080/a@b", "git@github.com:octo-org/app.git", "https://${USER}:${TOKEN}@example.com",
    "secret_access_key", "sha256:" + HEXADECIMAL, "md5 " + HEXADECIMAL[:32] + "-dirty", "&sig=abc", "hvs.Close()",
)  # fmt: skip


@pytest.mark.parametrize("issuer", SECRETS)
def test_a_secret_is_masked_and_equal_ones_stay_equal(issuer: str) -> None:
    for secret in SECRETS[issuer]:
        shown = mask_secrets(f"It says {secret}, and again: {secret}\nWhy?")
        first, second = (part[:6] for part in shown.split("[secret ")[1:])
        assert (secret[8:] in shown, first == second, mask_secrets(shown) == shown) == (False, True, True)


def test_what_is_before_a_secret_stays_and_does_not_change_its_digits() -> None:
    token = SECRETS["GitHub"][0]
    first, second = (mask_secrets(text) for text in (f"https://x-access-token:{token}@github.com/o/r", token))
    assert first == f"https://x-access-token:{second}@github.com/o/r"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_words_stay(text: str) -> None:
    assert mask_secrets(text) == text


def test_no_title_text_or_comment_of_a_thread_has_a_secret() -> None:
    secret, at = SECRETS["GitHub"][0], "2025-01-01T00:00:00Z"
    comment = {"author": "hubot", "body": f"Use {secret}.", "created_at": at}
    thread = thread_from_archive(
        {"id": 1, "title": f"My {secret}", "body": secret, "created_at": at, "comments": [comment]}
    )
    assert secret not in f"{thread.title}{thread.body}{thread.comments[0].text}"


@pytest.mark.slow
def test_hostile_text_takes_linear_time() -> None:
    pieces = [
        "eyJ",
        "-eyJaaaaaaaaaaaa",
        "xox",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n" + "a" * 40 + "\n",
        "-",
        "sk-aaaaaaaa ",
        "12345678:AA",
        "gh",
        "a" * 50,
    ]
    assert_linear_time(mask_secrets, *pieces, *(secret[:-1] + " " for each in SECRETS.values() for secret in each))
