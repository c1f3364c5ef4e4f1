"""The hosts of GitHub."""

GITHUB = "https://github.com"
GITHUB_HOST = "github.com"
GITHUB_HOSTS = (GITHUB_HOST,)


def is_hosted(host: str) -> bool:
    """Whether GitHub runs this host: github.com, or a subdomain of ghe.com (GitHub Enterprise Cloud)."""
    return host == GITHUB_HOST or host.endswith(".ghe.com")
