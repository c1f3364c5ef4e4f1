"""The whole story in Chinese and Japanese through the Action: an issue, a comment, a reply and the help."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.acceptance.stage import Stage, with_memory

pytestmark = pytest.mark.slow

LOG = "```\nTypeError: cannot read properties of undefined (reading 'ERR_EXPORT_EMPTY')\n```"


@dataclass(frozen=True)
class Story:
    """The titles and texts of earlier issues and of a new one, words to search for, and what our comments say."""

    earlier: tuple[tuple[str, str, str], ...]
    new: tuple[str, str]
    search: str
    comment: tuple[str, ...]
    reply: tuple[str, ...]
    nothing: str
    refused: str
    help: tuple[str, ...]


CHINESE = Story(
    earlier=(
        ("导出表格时最后一行丢失", f"把结果导出成表格，最后一行数据总是丢失。\n\n{LOG}", "已修复，感谢反馈。"),
        ("登录超时", "在公司网络里登录账号总是超时，重试几次也不行。", "代理的问题。"),
        ("深色主题下按钮看不清", "切换到深色主题以后，按钮的文字和背景颜色几乎一样。", "已关闭。"),
    ),
    new=("导出的表格少了最后一行", f"导出表格以后，发现最后一行数据丢失。\n\n{LOG}"),
    search="深色主题",
    comment=("**过往的类似 issue**", "2025年4月2日", "*相似之处：*", "本评论由机器人 Precedent 自动生成"),
    reply=("深色主题下按钮看不清", "2025年6月2日"),
    nothing="本仓库的记录中没有提到「量子」。",
    refused="未作任何更改：只有仓库管理员可以这样做。",
    help=("请在新评论的行首写下其中一个命令：", "`/precedent off`: 不再在本 issue 发言"),
)
JAPANESE = Story(
    earlier=(
        (
            "表のエクスポートで最後の行が消える",
            f"結果を表にエクスポートすると最後の行が消えます。\n\n{LOG}",
            "修正しました。",
        ),
        (
            "ログインがタイムアウトする",
            "社内のネットワークからログインすると必ずタイムアウトします。",
            "プロキシの問題でした。",
        ),
        ("ダークテーマでボタンが見えない", "ダークテーマに切り替えるとボタンの文字が読めません。", "閉じます。"),
    ),
    new=("エクスポートした表の最後の行がない", f"表をエクスポートしたところ、最後の行が消えていました。\n\n{LOG}"),
    search="ダークテーマ",
    comment=("**過去の類似 Issue**", "2025年4月2日", "*理由：*", "このコメントは bot「Precedent」が"),
    reply=("ダークテーマでボタンが見えない", "2025年6月2日"),
    nothing="このリポジトリの記録に「量子」は見つかりませんでした。",
    refused="何も変更していません。この操作はリポジトリの管理者だけが行えます。",
    help=(
        "新しいコメントの行頭に、次のいずれかを書いてください:",
        "`/precedent off`: この Issue では今後コメントしない",
    ),
)


@pytest.fixture(params=[CHINESE, JAPANESE], ids=["zh", "ja"])
def story(request: pytest.FixtureRequest) -> Story:
    told: Story = request.param
    return told


@pytest.fixture
def stage(empty_stage: Stage, story: Story) -> Stage:
    """A repository with the earlier issues, and a new one (4) that is answered."""
    stage = empty_stage
    stage.github.set_permission("octocat", "write")
    for month, (title, body, ending) in enumerate(story.earlier, 4):
        number = stage.github.open_issue("hubot", title, body, at=f"2025-{month:02}-01T10:00:00Z")
        stage.github.comment(number, "octocat", ending, at=f"2025-{month:02}-02T10:00:00Z")
        stage.github.close(number, "octocat", at=f"2025-{month:02}-02T10:00:30Z")
    with_memory(stage)
    stage.github.open_issue("monalisa", *story.new)
    stage.deliver("issues", "opened", 4)
    return stage


def ask(stage: Stage, text: str) -> str:
    """The reply to a comment on the new issue by a stranger."""
    before = stage.comments(4)
    comment = stage.github.comment(4, "stranger", text)
    stage.deliver("issue_comment", "created", 4, comment)
    (reply,) = [each for each in stage.comments(4) if each not in before]
    return reply


def test_the_story_is_told_in_the_language_of_the_issue(stage: Stage, story: Story) -> None:
    (comment,) = stage.comments(4)
    assert story.earlier[0][0] in comment
    assert [part for part in story.comment if part not in comment] == []
    reply = ask(stage, f"/precedent search {story.search}")
    assert [part for part in story.reply if part not in reply] == []
    assert story.nothing in ask(stage, "/precedent search 量子")
    assert story.refused in ask(stage, "/precedent forget")
    helped = ask(stage, "/precedent help")
    assert [part for part in story.help if part not in helped] == []


def test_a_bare_log_is_answered_in_the_language_of_the_other_issues(stage: Stage, story: Story) -> None:
    number = stage.github.open_issue("monalisa", "TypeError ERR_EXPORT_EMPTY", LOG)
    stage.deliver("issues", "opened", number)
    (comment,) = stage.comments(number)
    assert story.comment[-1] in comment
