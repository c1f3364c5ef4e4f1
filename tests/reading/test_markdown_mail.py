"""Comments that were sent by mail."""

from bot.reading.markdown import without_mail
from tests.reading.linear_time import assert_linear_time

FOOTER = "Reply to this email directly or view it on GitHubhttps://github.com/octo-org/hello-world/issues/1"


def test_text_added_by_a_mail_program_is_left_out() -> None:
    cases = [
        f"\n\nOn Mon, Mar 18, 2013 at 4:51 AM, octocat <o@github.com> wrote:\n\n> It is lost.\n> {FOOTER}\n> .",
        "\n\nOn Thu, Apr 25, 2013 at 10:55 AM, A Person\nnotifications@github.com wrote:\n> It is lost.",
        f"\n\nSent from my iPhone - thus typos\n\nOn Oct 7, 2014, octocat wrote:\n\nIt is lost.\n\n—\n{FOOTER}.",
        f"\n\nOn Oct 7, 2014, at 12:42 PM, octocat wrote:\n\nIt is lost.\n\n—\n{FOOTER}.",
        f"\n\n—\n{FOOTER}",
        "\n--\nSent from my phone",
    ]
    assert [tail for tail in cases if without_mail(f"The cookie is kept.{tail}") != "The cookie is kept."] == []


def test_an_answer_between_quoted_lines_stays() -> None:
    text = "On 25 April 2013 10:55, octocat wrote:\n\n> Is it lost?\n\nNo.\n\n> Is it kept?\n\nYes."
    assert without_mail(text) == "No.\n\n> Is it kept?\n\nYes."


def test_other_texts_stay_as_they_are() -> None:
    texts = [
        "On 3 May we wrote: the cookie is lost.",
        "Sent from my iPhone",
        "He wrote:\n> It is lost.\n\nIs it?",
        "The app says *Sent from my phone* below each letter.",
    ]
    assert [text for text in texts if without_mail(text) != text] == []


def test_reading_takes_linear_time() -> None:
    assert_linear_time(without_mail, "On 1 wrote:\n", "On 1 ", "wrote: On ", "> \n", "Sent from my ", "\n—")
