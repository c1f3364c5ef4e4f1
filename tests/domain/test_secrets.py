"""What looks like a secret is masked before anything is stored."""

import pytest

from bot.domain.secrets import mask_secrets
from bot.domain.thread_json import thread_from_archive
from tests.reading.linear_time import assert_linear_time

LETTERS = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5kL7nP9rS1tV3xY5"
HEXADECIMAL = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "GitHub": ["ghp_" + LETTERS[:36], "ghs_" + LETTERS[:40], f"github_{'pat'}_{LETTERS[:22]}_{LETTERS}{LETTERS[:9]}"],
    "GitLab": ["glpat-" + LETTERS[:20]],
    "AWS": ["AKIA" + "ABCDEFGHIJ234567", "ASIA" + "ABCDEFGHIJ234567"],
    "Slack": ["xoxb-" + "123456789012-" + LETTERS[:24], "hooks.slack.com/" + "services/T0000/B0000/" + LETTERS[:24]],
    "Stripe": ["sk_live_" + LETTERS[:24], "rk_test_" + LETTERS[:24], "whsec_" + LETTERS[:32]],
    "Google": ["AIza" + LETTERS[:35], "GOCSPX-" + LETTERS[:28]],
    "registries": ["npm_" + LETTERS[:36], "pypi-" + LETTERS + LETTERS, "dckr_pat_" + LETTERS[:27]],
    "models": ["sk-proj-" + LETTERS, "sk-" + LETTERS[:48], "sk-ant-api03-" + LETTERS, "hf_" + "aBcDeFgHiJkLmNoPq" * 2],
    "others": [
        "SG." + LETTERS[:22] + "." + LETTERS[:43], "dop_v1_" + HEXADECIMAL, "shpat_" + HEXADECIMAL[:32],
        "SK" + HEXADECIMAL[:32], "123456789:AA" + LETTERS[:33], "dapi" + HEXADECIMAL[:32], "sq0atp-" + LETTERS[:22],
        "eyJ" + LETTERS[:30] + ".eyJ" + LETTERS[:40] + "." + LETTERS[:43],
        "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow" + LETTERS + "\n" + LETTERS + "==\n-----END RSA PRIVATE KEY-----",
    ],
}  # fmt: skip
HARMLESS = (
    "ghp_short", "sk-spinner sk-circle-fade-dot", "AKIA is a prefix", "npm_config_registry", "pypi-server", "key-value",
    "SG.US", "eyJ is how it begins", "commit 9c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9d", "dapi", "xoxo",
    "glfw-3.3-static-libs",
    "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----", "BEGIN PRIVATE KEY", "at 12345678:AB",
)  # fmt: skip


@pytest.mark.parametrize("issuer", SECRETS)
def test_a_secret_is_masked_and_equal_ones_stay_equal(issuer: str) -> None:
    for secret in SECRETS[issuer]:
        shown = mask_secrets(f"It says {secret}, and again: {secret}\nWhy?")
        first, second = (part[:6] for part in shown.split("[secret ")[1:])
        assert (secret[8:] in shown, first == second, mask_secrets(shown) == shown) == (False, True, True)


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
        "sk-aaaaaaaa ",
        "12345678:AA",
        "gh",
        "a" * 50,
    ]
    assert_linear_time(mask_secrets, *pieces, *(secret[:-1] + " " for each in SECRETS.values() for secret in each))
