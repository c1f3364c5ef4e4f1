"""The language in which an issue is written, as far as comments have words for it."""

import pytest

from bot.reading.language import language_of

LOG = "```\n" + "java.lang.IllegalStateException: the renderer was closed before it was ready\n" * 9 + "```"


@pytest.mark.parametrize(
    ("title", "body", "language"),
    [
        ("升级后图片无法显示", "", "zh"),
        ("[android] list 组件滑动卡顿", f"在 weex 中使用 list 组件，滑动时会卡顿。\n\n{LOG}", "zh"),
        ("weex-toolkit beta 安装失败", "npm install -g weex-toolkit@beta then weex create app, see the picture", "zh"),
        ("Crash on start", "升级到最新版本以后，一启动就崩溃，重装也没有用。", "zh"),
        ("Login loops", "The page says 登录失败 and asks again, whatever password I type into it.", "en"),
        ("ログイン後に白い画面になる", "更新後、毎回白い画面になります。再起動しても同じです。", "en"),
        ("업데이트 후 로그인이 안 됩니다", "", "en"),
        ("Login loops", LOG, "en"),
        ("中文", "", "en"),
        ("", "", "en"),
    ],
)
def test_an_issue_counts_as_chinese_if_people_wrote_it_so(title: str, body: str, language: str) -> None:
    assert language_of(title, body) == language
