"""Settings: what a config file and the inputs may say, and that the documents say the same as the code."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.settings.schema import (
    INPUTS,
    OVERRIDES,
    Inputs,
    SettingDescription,
    Settings,
    SettingsError,
    describe,
    given_inputs,
    read_inputs,
    with_inputs,
)
from bot.settings.yaml_file import CONFIG_PATH, MAX_BYTES, load_settings
from tests.reading.linear_time import assert_linear_time
from tools import settings_docs

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTIONS = list(describe())
LEAVES = [description for description in DESCRIPTIONS if description.default is not None]


def value_at(settings: Settings, path: str) -> Any:
    value: Any = settings
    for name in path.split("."):
        value = getattr(value, name)
    return value


def as_yaml(path: str, value: str) -> str:
    *sections, name = path.split(".")
    return "".join(f"{section}:\n  " for section in sections) + f"{name}: {value}\n"


def settings_or_error(text: str) -> Any:
    """The settings, or the line of the error."""
    try:
        return load_settings(text)
    except SettingsError as error:
        return str(error)


def error_message(text: str | bytes) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(text, "p.yml")
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 400
    return message


@pytest.mark.parametrize("text", [None, "", b"", "# nothing yet\n", "---\n", "mentions:\ncomment: ~\n", "pages: {}\n"])
def test_absent_settings_keep_their_defaults(text: str | bytes | None) -> None:
    assert load_settings(text) == Settings()


def test_a_file_changes_what_it_names_and_nothing_else() -> None:
    text = "mode: summary\nsimilar:\n  max: 5\nignore: {labels: [wontfix, 'no']}\n"
    settings = load_settings(text)
    assert settings == replace(
        Settings(),
        mode="summary",
        similar=replace(Settings().similar, max=5),
        ignore=replace(Settings().ignore, labels=("wontfix", "no")),
    )


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        (b"\xef\xbb\xbfmode: off\n", "mode", "off"),
        ("comment: {language: zh}", "comment.language", "zh"),
        ("similar: {threshold: 1}", "similar.threshold", 1.0),
        *(
            (f"similar: {{model: '{folder}'}}", "similar.model", folder)
            for folder in ("", "/models", "/models/minilm", "minilm", "tools/models/all-MiniLM-L6-v2")
        ),
    ],
)
def test_a_value_is_read_as_it_is_meant(text: str | bytes, path: str, value: object) -> None:
    found = value_at(load_settings(text), path)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mentons: {}", "p.yml:1: unknown setting 'mentons'; did you mean \"mentions\"?"),
        ("\nsimilar:\n  mx: 3", "p.yml:3: unknown setting 'similar.mx'; did you mean \"similar.max\"?"),
        ("threshold: 0.5", 'did you mean "similar.threshold"?'),
        ("comment: {zzz: 1}", "known here: author, language, chars, daily_limit"),
        ("mode: loud", "p.yml:1: mode must be one of comment, summary, off, not 'loud'"),
        ("similar: {max: '3'}", "similar.max must be a whole number from 0 to 10, not '3'"),
        ("similar: {max: 1.5}", "similar.max must be a whole number from 0 to 10, not 1.5"),
        ("similar: {max: true}", "similar.max must be a whole number from 0 to 10, not true"),
        ("similar: {max: 11}", "similar.max must be from 0 to 10, not 11"),
        ("similar: {max: " + "9" * 5000 + "}", "similar.max must be"),
        ("pages: {}\nsimilar: {max: 65}", "p.yml:2: similar.max must be from 0 to"),
        ("similar: {threshold: .nan}", "similar.threshold must be a number"),
        ("pulls: yes", "pulls must be true or false, not 'yes'"),
        ("mentions: [1]", "mentions must hold settings as `name: value`, not a list"),
        ("- mode", "the file must hold settings as `name: value`, not a list"),
        ("ignore:\n  authors: octocat", "p.yml:2: ignore.authors must be a list of at most 100 items"),
        ("ignore: {authors: [octocat, [hubot]]}", "ignore.authors[1] must be an account's login, not a list"),
        ("ignore: {labels: [404]}", "ignore.labels[0] must be label names, not 404 (put it in quotes)"),
        (f"ignore: {{labels: {['x'] * 101}}}", "must be a list of at most 100 items"),
        *(
            (f"branch: {name}", "branch must be a branch name")
            for name in ("--upload-pack=touch", "a/../b", "heads/x.lock", "'a b'")
        ),
        ("pages: {docs: [../../etc/passwd]}", "pages.docs[0] must be paths below the repository"),
        ("pages: {docs: [/etc/passwd]}", "pages.docs[0] must be paths below the repository"),
        ("similar: {model: /etc}", "similar.model must be a folder below the workspace or /models, not '/etc'"),
        *(
            (f"similar: {{model: {folder}}}", "similar.model must be a folder below the workspace or /models")
            for folder in ("/modelsx", "/models/../etc", "../outside", "'C:\\models'")
        ),
        ("organisation: {results: 3}", "organisation.results must be from 0 to 2, not 3"),
        *(
            (f"organisation: {{share_with: [{name}]}}", "organisation.share_with[0] must be repositories as owner/name")
            for name in ("octo-org", "a/sdk/x", "'a/s?k'")
        ),
        ("mode: off\nmode: comment", "p.yml:2: mode is set twice"),
        ("mode: &m off", "p.yml:1: anchors and aliases are not supported"),
        ("mode: *m", "p.yml:1: anchors and aliases are not supported"),
        ("<<: {mode: off}", "unknown setting '<<'"),
        ("? [mode]\n: off", "p.yml:1: unknown setting"),
        ("mode: !!python/object/apply:os.system [id]", "p.yml:1: tags are not supported"),
        ("mode: off\n---\nmode: off", "p.yml:2: not valid YAML"),
        ("mode: {", "not valid YAML"),
        ("\tmode: off", "p.yml:1: not valid YAML: found character that cannot start any token; indent with spaces"),
        ("pages:\n\twiki: true", "p.yml:2: not valid YAML: found character that cannot start any token; indent with"),
        ("mode: off\r\tpulls: true", "; indent with spaces, not tabs"),
        ("mode: \0", "not valid YAML: it contains a character that YAML does not allow"),
        ("mode: \ud800", "not valid YAML"),
        (b"mode: off\nbranch: \xff", "p.yml:2: not UTF-8; save the file as UTF-8"),
        ("mode: \u202eoff", r"not '\u202eoff'"),
        ("#" * (MAX_BYTES + 1), "p.yml: larger than 64 KB"),
        ("#" + "ü" * (MAX_BYTES // 2), "p.yml: larger than 64 KB"),
    ],
)
def test_an_error_is_one_line_with_its_place_and_remedy(text: str | bytes, expected: str) -> None:
    assert expected in error_message(text)


def test_all_errors_of_a_file_are_reported_at_once_up_to_five() -> None:
    text = "modes: off\ncommands:\n  enabled: 3\n  foo: 1\nmode: loud\npulls: true\npulls: false\n"
    message = error_message(text)
    assert [part.partition(" ")[0] for part in message.split("; p.yml")] == ["p.yml:1:", ":3:", ":4:", ":5:", ":7:"]
    assert "more" not in message
    assert error_message(text + "zzz: 1\nyyy: 1\n").startswith(f"{message}; and 2 more")


@pytest.mark.parametrize(
    "piece", ["[", "{a: ", "- ", "? ", "[],", "{}\n", "'", '"', "a:\n ", "&a [*a,", "#\n", "| \n", "%TAG ! x\n"]
)
def test_a_hostile_file_is_refused_in_linear_time(piece: str) -> None:
    def read(text: str) -> None:
        result = settings_or_error(text[: MAX_BYTES - 1])
        assert result == Settings() or result.isprintable()

    assert_linear_time(read, piece)


@given(
    st.text(st.sampled_from("mode: off\n-[]{}'\"#&*!|>%@`,?<=~ \t0129\u202e\U0001f600"), max_size=80)
    | st.text(max_size=40)
)
def test_any_text_gives_settings_or_one_printable_line(text: str) -> None:
    result = settings_or_error(text)
    assert isinstance(result, Settings) or result.isprintable()


@pytest.mark.parametrize("description", LEAVES, ids=lambda description: description.path)
def test_each_setting_is_read_from_its_own_line(description: SettingDescription) -> None:
    for value in other_values(description):
        settings = load_settings(as_yaml(description.path, settings_docs.yaml_value(value)))
        assert value_at(settings, description.path) == value
        assert [leaf.path for leaf in LEAVES if value_at(settings, leaf.path) != leaf.default] == [description.path]


@pytest.mark.parametrize(
    "description",
    [description for description in LEAVES if " to " in description.bounds],
    ids=lambda description: description.path,
)
def test_bounds_are_accepted_and_values_beyond_them_are_not(description: SettingDescription) -> None:
    low, high = (float(bound.replace(",", "")) for bound in description.bounds.split(" to "))
    kind = type(description.default)
    for bound in (low, high):
        assert value_at(load_settings(as_yaml(description.path, str(kind(bound)))), description.path) == bound
    for beyond in (low - 1, high + 1):
        assert f"{description.path} must be from {description.bounds}" in error_message(
            as_yaml(description.path, str(kind(beyond)))
        )


def other_values(description: SettingDescription) -> list[Any]:
    if isinstance(description.default, bool):
        return [not description.default]
    if isinstance(description.default, int | float):
        low, high = (type(description.default)(bound.replace(",", "")) for bound in description.bounds.split(" to "))
        return [value for value in (low, high) if value != description.default]
    if isinstance(description.default, tuple):
        if "two numbers" in description.bounds:
            return [("#12 #7: one crash",)]
        if "owner/name" in description.bounds:
            return [("octo-org/sdk-*",)]
        return [("what about {topic}",) if "{topic}" in description.bounds else ("octocat",)]
    choices = description.bounds.split(", ")
    return [choice for choice in choices if choice != description.default] if len(choices) > 1 else ["hubot"]


def test_the_example_lists_every_setting_with_its_default() -> None:
    text = (ROOT / "config.example.yml").read_text(encoding="utf-8")
    assert load_settings(text, "config.example.yml") == Settings()
    assert Inputs().config == CONFIG_PATH
    assert CONFIG_PATH in text
    listed = yaml.safe_load(text)
    for description in DESCRIPTIONS:
        value = listed
        for name in description.path.split("."):
            value = value[name]
        assert description.default is None or value == (
            list(description.default) if isinstance(description.default, tuple) else description.default
        )
        assert f"# {description.explanation}" in text


def test_the_inputs_of_the_action_match_those_that_the_code_reads() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert sorted(action["inputs"]) == sorted(INPUTS)
    for name, declared in action["inputs"].items():
        assert set(declared) == {"description", "default"}
        if name in OVERRIDES:
            assert OVERRIDES[name] in declared["description"]
    defaults = {name: declared["default"] for name, declared in action["inputs"].items() if name != "token"}
    assert read_inputs(defaults) == Inputs()
    assert with_inputs(Settings(), defaults) == Settings()


def test_inputs_are_read_from_the_environment_variables_of_the_runner() -> None:
    environ = {"INPUT_DRY-RUN": " true ", "INPUT_MODE": "", "INPUT_ISSUE": "42", "DRY_RUN": "x", "PATH": "/bin"}
    assert given_inputs(environ) == {"dry-run": "true", "issue": "42"}


def test_inputs_override_the_settings_that_they_name() -> None:
    inputs = {"mode": "off", "branch": "memory/v1", "bot-login": "hubot[bot]", "run": "rebuild"}
    comment = replace(Settings().comment, author="hubot[bot]")
    assert with_inputs(Settings(), inputs) == replace(Settings(), mode="off", branch="memory/v1", comment=comment)
    assert with_inputs(Settings(), {"mode": "", "branch": ""}) == Settings()


def test_the_other_inputs_are_read_with_their_types() -> None:
    inputs = read_inputs(
        {"token": "t" * 600, "run": "answer", "issue": "42", "dry-run": "True", "config": "bots/p.yml"}
    )
    assert inputs == Inputs(token="t" * 600, run="answer", issue=42, dry_run=True, config="bots/p.yml")
    assert "ttt" not in repr(inputs)
    assert read_inputs({"issue": "#42"}).issue == 42
    assert read_inputs({"dry-run": "", "run": "", "issue": ""}) == read_inputs({"dry-run": "false"}) == Inputs()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("mode", "loud", "input \"mode\" must be one of comment, summary, off, not 'loud'"),
        ("branch", "../x", 'input "branch" must be a branch name'),
        ("bot-login", "a b", 'input "bot-login" must be an account\'s login'),
        ("run", "everything", 'input "run" must be one of "", catch-up, rebuild, answer'),
        ("issue", "##4", 'input "issue" must be a whole number'),
        ("issue", "-4", 'input "issue" must be a whole number'),
        ("issue", "٤", 'input "issue" must be a whole number'),
        ("issue", "9" * 5000, 'input "issue" must be a whole number'),
        ("dry-run", "yes", 'input "dry-run" must be true or false'),
        ("config", "../p.yml", 'input "config" must be'),
    ],
)
def test_a_wrong_input_is_named(name: str, text: str, expected: str) -> None:
    read = with_inputs if name in OVERRIDES else lambda _, inputs: read_inputs(inputs)
    with pytest.raises(SettingsError) as caught:
        read(Settings(), {name: text})
    assert expected in str(caught.value)
    assert str(caught.value).isprintable()
