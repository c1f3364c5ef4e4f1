"""Ways in which code and documentation drift apart: one small change each, and the tests that must detect it."""

from __future__ import annotations

from typing import NamedTuple

SETTINGS, REFERENCE = "tests/settings/test_schema.py", "tests/docs/test_reference.py"
COMMANDS, LINKS = "tests/docs/test_commands.py", "tests/docs/test_links.py"
README, OPTIONS = "tests/docs/test_readme.py", "tests/server/test_options.py"
TEMPLATES = "tests/comment/test_templates.py::test_every_block_is_documented_and_every_documented_block_exists"
TOOLS = "tests/mcp/test_tools.py::test_the_documentation_lists_the_tools_and_their_parameters"


class Drift(NamedTuple):
    """In ``file``, the only ``old`` becomes ``new``; then ``guard`` fails with a message that contains ``says``."""

    file: str
    old: str
    new: str
    guard: str
    says: str


DRIFTS = {
    # settings and their example
    "a default": Drift("bot/settings/schema.py", "setting(24, ", "setting(36, ", REFERENCE, "answer_within_hours: 36"),
    "bounds": Drift("bot/settings/schema.py", "low=1, high=168", "low=1, high=240", REFERENCE, "1 to 240"),
    "an explanation": Drift(
        "bot/settings/schema.py", "Answer pull requests too.", "Answer pulls too.", REFERENCE, "Answer pulls too"
    ),
    "a setting by another name": Drift(
        "bot/settings/schema.py", "    wiki: bool = setting(", "    wikis: bool = setting(", SETTINGS, "wikis"
    ),
    "a default in the example": Drift(
        "config.example.yml", "daily_limit: 50", "daily_limit: 60", REFERENCE, "daily_limit"
    ),
    "a comment in the example": Drift(
        "config.example.yml", "# Answer pull requests too.", "# Answer all.", REFERENCE, "Answer all"
    ),
    "a setting that the example forgets": Drift("config.example.yml", "  wiki: true\n", "", SETTINGS, "wiki"),
    "a row of the page of settings": Drift(
        "docs/settings.md", "| `comment.daily_limit` | `50` |", "| `comment.daily_limit` | `60` |", REFERENCE, "`60`"
    ),
    "a setting that a page names": Drift(
        "README.md", "`ignore.authors`", "`ignore.author`", REFERENCE, "ignore.author"
    ),
    # inputs and outputs of the action
    "an input by another name": Drift("action.yml", "  dry-run:\n", "  dryrun:\n", REFERENCE, "dryrun"),
    "the default of an input": Drift("action.yml", "default: 'false'", "default: 'true'", REFERENCE, "dry-run"),
    "what an input may be": Drift(
        "action.yml", "forget, backtest, digest.'", "forget, digest.'", REFERENCE, "backtest"
    ),
    "what an input is for": Drift(
        "action.yml", "The issue, when run is answer or forget.", "The issue.", REFERENCE, "when run is answer"
    ),
    "a choice of an input in the code": Drift(
        "bot/settings/schema.py",
        '"backtest", "digest"]',
        '"replay", "digest"]',
        REFERENCE,
        "replay",
    ),
    "an input of the code alone": Drift(
        "bot/settings/schema.py",
        "    dry_run: bool",
        '    loud: bool = setting(False, "Loud.")\n    dry_run: bool',
        SETTINGS,
        "loud",
    ),
    "an output by another name": Drift("action.yml", "  comment-id:\n", "  comment_id:\n", REFERENCE, "comment_id"),
    "an output of the code": Drift("bot/action/outputs.py", '"spoke": "true"', '"said": "true"', REFERENCE, "said"),
    "an input in the README's workflow": Drift(
        "README.md", "          dry-run: ${{", "          dryrun: ${{", REFERENCE, "README.md"
    ),
    "an output that a page's workflow uses": Drift(
        "docs/workflows.md",
        "context: ${{ steps.look.outputs.context }}",
        "context: ${{ steps.look.outputs.contexts }}",
        REFERENCE,
        "workflows.md",
    ),
    "settings that a page shows": Drift("docs/semantic.md", "\n  model: ", "\n  models: ", README, "semantic.models"),
    # commands
    "a command by another name": Drift(
        "bot/cli/options.py", '"outcomes --store DIR"', '"endings --store DIR"', COMMANDS, "no heading 'endings'"
    ),
    "an option that nobody explains": Drift(
        "bot/cli/options.py",
        '    length.add_argument("--full"',
        '    length.add_argument("--deep", action="store_true", help="all")\n    length.add_argument("--full"',
        COMMANDS,
        "--deep",
    ),
    "an option that is gone": Drift(
        "bot/cli/options.py",
        '    add("--verbose", action="store_true", help="show every check in full")\n',
        "",
        COMMANDS,
        "--verbose",
    ),
    "the default of an option": Drift(
        "bot/cli/options.py",
        "type=number(1, MAX_LIMIT), default=10",
        "type=number(1, MAX_LIMIT), default=12",
        COMMANDS,
        "search --limit",
    ),
    "the bounds of an option": Drift(
        "bot/cli/options.py",
        "type=number(1, 50), default=20",
        "type=number(1, 40), default=20",
        COMMANDS,
        "50",
    ),
    "a choice of an option": Drift(
        "bot/cli/options.py",
        '("xml", "markdown", "json")',
        '("xml", "markdown", "html", "json")',
        COMMANDS,
        "--format",
    ),
    "a default in the page of commands": Drift(
        "docs/command-line.md", "(default 12,000)", "(default 10,000)", COMMANDS, "show --chars"
    ),
    "an option that a page invents": Drift(
        "docs/command-line.md", "| `--verbose` |", "| `--complete` |", COMMANDS, "--complete"
    ),
    "a command that the README shows": Drift(
        "README.md", "precedent related auth", "precedent relate auth", COMMANDS, "relate"
    ),
    "an exit code": Drift(
        "bot/cli/commands/try_repository.py", "INTERRUPT_EXIT_CODE = 130", "INTERRUPT_EXIT_CODE = 3", COMMANDS, "130"
    ),
    "a target of the Makefile": Drift("Makefile", "bench: $(VENV)", "measure: $(VENV)", COMMANDS, "bench"),
    "the two commands of the README": Drift(
        "README.md", "make demo\nmake test\n", "make demo\nmake tests\n", README, "make tests"
    ),
    "what CI runs": Drift(".ci/run", "\nmake demo\n", "\nmake all\n", README, "make demo"),
    "a number in a help text": Drift(
        "bot/cli/options.py", "1 to 1000 (default 10)", "1 to 1000 (default 12)", COMMANDS, "search --limit"
    ),
    "a command in a sentence": Drift(
        "docs/faq.md", "`precedent calibrate` sets", "`precedent adjust` sets", COMMANDS, "adjust"
    ),
    # tools for agents
    "a parameter of a tool": Drift(
        "bot/mcp/tools.py", "    since: Annotated[", "    after: Annotated[", REFERENCE, "after"
    ),
    "the default of a parameter": Drift(
        "bot/mcp/tools.py",
        'description="maximum number of hits", ge=1, le=50',
        'description="maximum number of hits", ge=1, le=40',
        REFERENCE,
        "make docs",
    ),
    "a tool in the page": Drift("docs/mcp.md", "| `memory_what` |", "| `memory_now` |", TOOLS, "memory_now"),
    # metrics and options of the server
    "a metric": Drift(
        "bot/server/metrics.py",
        '"precedent_runs_total": (',
        '"precedent_rounds_total": (',
        REFERENCE,
        "precedent_rounds_total",
    ),
    "a label of a metric": Drift(
        "bot/server/metrics.py", '(("action", "reason"), ', '(("action", "cause"), ', REFERENCE, "cause"
    ),
    "a metric that a page invents": Drift(
        "docs/self-hosting.md", "| `precedent_workers` |", "| `precedent_helpers` |", REFERENCE, "precedent_helpers"
    ),
    "a stage that nobody explains": Drift(
        "bot/pipeline/handle.py", 'run.on_stage("ask")', 'run.on_stage("wonder")', REFERENCE, "wonder"
    ),
    "the default of a server's option": Drift(
        "bot/server/options.py", "keep_days: int = setting(30", "keep_days: int = setting(60", OPTIONS, "KEEP_DAYS"
    ),
    # templates
    "a value of templates": Drift(
        "bot/comment/template_view.py", '"also_mentioned": [', '"further": [', REFERENCE, "further"
    ),
    "a value of an item": Drift(
        "bot/comment/template_view.py", '{**blank, "decisions"', '{**blank, "verdicts"', REFERENCE, "verdicts"
    ),
    "a filter": Drift("bot/comment/template_sandbox.py", '"join": _join,', '"joined": _join,', REFERENCE, "joined"),
    "a block": Drift("docs/templates.md", "| `footer` | who", "| `foot` | who", TEMPLATES, "foot"),
    "a value that a page invents": Drift(
        "docs/templates.md", "| `elsewhere` | list", "| `nearby` | list", REFERENCE, "nearby"
    ),
    # the environment
    "a variable that is read": Drift(
        "bot/local_cache/local_memory.py", '"XDG_CACHE_HOME", ""', '"CACHE_HOME", ""', REFERENCE, "XDG_CACHE_HOME"
    ),
    "a variable that a page names": Drift("docs/settings.md", "| `COLUMNS` |", "| `COLUMN` |", REFERENCE, "COLUMN"),
    "a server's variable that a page names": Drift(
        "docs/self-hosting.md", "`PRECEDENT_LOG=text`", "`PRECEDENT_LOGS`", REFERENCE, "PRECEDENT_LOGS"
    ),
    "a page of the sample's wiki": Drift("sample/wiki/Home.md", "](Backups)", "](Backup)", LINKS, "'Backup'"),
    # what is installed and run
    "an extra that an error names": Drift("bot/cli/commands/mcp.py", "'.[mcp]'", "'.[mpc]'", README, "mpc"),
    "a module that a page runs": Drift(
        "CONTRIBUTING.md", "-m tests.kills --times", "-m tests.kill --times", LINKS, "tests.kill"
    ),
    "a site that code names": Drift(
        "bot/cli/output.py", "https://no-color.org", "https://no-colour.org", LINKS, "no-colour.org"
    ),
    # links, headings, pictures, files
    "a link": Drift(
        "README.md", "[What it may do](docs/security.md)", "[What it may do](docs/safety.md)", LINKS, "safety.md"
    ),
    "a heading": Drift("docs/self-hosting.md", "\n## Options\n", "\n## Choices\n", LINKS, "self-hosting.md#options"),
    "a site": Drift(
        "docs/mcp.md", "https://modelcontextprotocol.io/", "https://modelcontextprotocol.oi/", LINKS, "protocol.oi"
    ),
    "a picture": Drift("README.md", 'src="docs/images/what.png"', 'src="docs/images/that.png"', LINKS, "that.png"),
    "what a picture shows": Drift(
        "docs/self-hosting.md",
        'width="600" alt="The status page',
        'width="600" title="The status page',
        LINKS,
        "status.png",
    ),
    "a file that a page names": Drift(
        "CONTRIBUTING.md", "`bot/pipeline/handle.py`", "`bot/flows.py`", LINKS, "bot/flows.py"
    ),
    "a page that a help names": Drift(
        "bot/cli/options.py", "docs/agents.md has the other", "docs/shells.md has the other", LINKS, "docs/shells.md"
    ),
}
"""Name of the drift → the change."""
