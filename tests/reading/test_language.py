"""The language in which an issue is written, as far as comments have words for it."""

import pytest

from bot.reading.language import language_of, most_frequent
from tests.reading.linear_time import assert_linear_time

LOG = "```\n" + "java.lang.IllegalStateException: the renderer was closed before it was ready\n" * 9 + "```"
FORM = "### Describe the bug\n\n{}\n\n### Steps to reproduce\n\n{}\n\n### Expected behavior\n\n_No response_"


@pytest.mark.parametrize(
    ("title", "body", "language"),
    [
        ("升级后图片无法显示", "", "zh"),
        ("[android] list 组件滑动卡顿", f"在 weex 中使用 list 组件，滑动时会卡顿。\n\n{LOG}", "zh"),
        ("weex-toolkit beta 安装失败", "npm install -g weex-toolkit@beta then weex create app, see the picture", "zh"),
        ("Crash on start", "升级到最新版本以后，一启动就崩溃，重装也没有用。", "zh"),
        ("[Bug]: Crash on start", FORM.format("一启动就崩溃，重装也没有用。", "1. 打开应用\n2. 崩溃"), "zh"),
        ("Login loops", "The page says 登录失败 and asks again, whatever password I type into it.", "en"),
        ("Search for 登录 fails", "Whenever I search for 登录 nothing is found, but the page has it.", "en"),
        ("更新后還是無法登入", "一直顯示錯誤訊息。", "zh"),
        ("ログイン後に白い画面になる", "更新後、毎回白い画面になります。再起動しても同じです。", "ja"),
        ("起動時エラー", f"最新版に更新したところ、起動できなくなりました。\n\n{LOG}", "ja"),
        ("업데이트 후 로그인이 안 됩니다", "", "ko"),
        ("Crash on start", FORM.format("업데이트 후 실행이 안 됩니다.", "1. 앱 실행"), "ko"),
        ("Не запускается после обновления", f"После обновления программа не запускается.\n\n{LOG}", "ru"),
        ("Ошибка при создании объекта", "Объект не создаётся, если имя пустое.", "ru"),
        ("The label «Настройки» is cut off", "In the Russian version the label is too long for its button.", "en"),
        ("Не запускається після оновлення", "Після оновлення програма більше не запускається.", "en"),
        ("Програмата не се стартира", "След обновяването програмата се затваря със съобщение за грешка.", "en"),
        ("Erro ao salvar", f"Quando tento salvar o arquivo, aparece um erro.\n\n{LOG}", "pt"),
        ("Error al guardar", "Cuando intento guardar el archivo, me sale un mensaje y no se guarda.", "es"),
        ("Crash on start", FORM.format("Desde la actualización ya no se puede abrir la aplicación.", "1. Abrir"), "es"),
        ("Erreur au démarrage", "Depuis la mise à jour, l'application ne démarre plus chez moi.", "fr"),
        ("Absturz beim Start", "Seit der neuen Version startet das Programm nicht mehr, es kommt ein Fehler.", "de"),
        ("Absturz", f"Nach dem Update geht bei mir nichts mehr.\n\n{LOG}", "de"),
        ("Errore all'avvio", "Dopo l'aggiornamento il programma non si avvia più, anche se lo reinstallo.", "en"),
        ("The button não mostrar does nothing", "It should hide the page for all of us, but it is still there.", "en"),
        ("Login loops", "After the upgrade I am sent back to the page where I came from.", "en"),
    ],
)  # fmt: skip
def test_an_issue_is_in_the_language_that_people_wrote_it_in(title: str, body: str, language: str) -> None:
    assert language_of(title, body) == language


@pytest.mark.parametrize(("title", "body"), [("Login loops", LOG), ("中文", ""), ("Erro", ""), ("", "")])
def test_a_few_words_or_a_log_tell_no_language(title: str, body: str) -> None:
    assert language_of(title, body) == ""


def test_the_most_frequent_language_is_that_of_more_than_half_of_the_clear_texts() -> None:
    cases = {"zh zh en": "zh", "zh en": "en", "ja ja ko zh en": "en", "ru ru ru en zh": "ru", "": "en", "de": "de"}
    assert {texts: most_frequent(["", *texts.split(), ""]) for texts in cases} == cases


def test_the_language_of_any_text_is_known_in_linear_time() -> None:
    pieces = ("中", "中a ", "Ж", "ъ ъъ", "não ", "é", "カ", "한 ", "<!--")
    assert_linear_time(lambda text: language_of(text, text), *pieces)
