"""Threads in languages other than English are found in a real index."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.thread import Thread
from bot.index import build_index, open_index
from bot.index.document import document_of
from bot.index.protocol import Index
from bot.recall.library import similar_query
from bot.recall.reasons import surface_forms
from tests.index.word_query import word_query
from tests.reading.linear_time import assert_linear_time

START = datetime(2020, 1, 1, tzinfo=UTC)

CHINESE = {
    "save": ("保存文件后编辑器崩溃", "打开一个很大的文件，修改以后点击保存，编辑器立刻崩溃，没有任何错误提示。"),
    "open": ("打开文件很慢", "打开一百兆的日志文件需要三十秒，界面没有响应。"),
    "login": ("登录超时", "在公司网络里登录账号总是超时，重试几次也不行。"),
    "garbled": ("终端里中文显示乱码", "在终端里输出中文，显示的都是问号和乱码，编码已经设置成了 UTF-8。"),
    "theme": ("深色主题下按钮看不清", "切换到深色主题以后，按钮的文字和背景颜色几乎一样。"),
    "pool": ("parseConfig 读取配置失败", "升级以后 parseConfig 读取配置失败，报 ENOENT，connectionPool 没有初始化。"),
    "update": ("自动更新失败", "点击检查更新以后一直转圈，最后提示下载失败。"),
    "export": ("导出表格丢失最后一行", "把结果导出成表格，最后一行数据总是丢失。"),
}
JAPANESE = {
    "connect": ("データベースに接続できない", "起動するとデータベースへの接続に失敗します。設定は変更していません。"),
    "query": ("データベースの検索が遅い", "件数が多いと検索に十秒以上かかります。"),
    "print": ("印刷すると文字化けする", "日本語の文書を印刷すると、見出しが文字化けします。"),
    "image": ("画像のアップロードが途中で止まる", "大きな画像をアップロードすると、途中で止まったままになります。"),
    "login": ("ログイン画面が表示されない", "アプリを起動してもログイン画面が真っ白のままです。"),
    "restart": ("再起動すると設定が消える", "ウィンドウの大きさや言語の設定が、再起動すると初期値に戻ってしまいます。"),
    "notice": ("通知が二回届く", "同じメッセージの通知が必ず二回届きます。"),
}
KOREAN = {
    "crash": ("앱이 실행 직후 종료됨", "업데이트한 다음부터 앱을 실행하면 바로 종료됩니다. 오류 메시지는 없습니다."),
    "login": ("로그인 화면에서 멈춤", "비밀번호를 입력하고 로그인을 누르면 화면이 멈춥니다."),
    "server": ("서버 연결이 자주 끊어짐", "와이파이를 사용할 때 서버와의 연결이 몇 분마다 끊어집니다."),
    "photo": ("사진이 회전되어 저장됨", "세로로 찍은 사진을 저장하면 가로로 회전되어 있습니다."),
    "alarm": ("알림이 오지 않음", "화면이 꺼져 있으면 새 메시지 알림이 오지 않습니다."),
    "search": ("검색 결과가 비어 있음", "한글로 검색하면 결과가 항상 비어 있습니다. 영어로는 잘 됩니다."),
    "font": ("글꼴 크기가 적용되지 않음", "설정에서 글꼴 크기를 바꾸어도 목록에는 적용되지 않습니다."),
}
THAI = {
    "login": ("เข้าสู่ระบบไม่ได้", "หลังอัปเดตแล้วเข้าสู่ระบบไม่ได้ ขึ้นว่ารหัสผ่านผิด"),
    "upload": ("แอปปิดตัวเองเมื่ออัปโหลดไฟล์", "อัปโหลดไฟล์ใหญ่แล้วแอปปิดตัวเองทุกครั้ง"),
    "notice": ("การแจ้งเตือนไม่ทำงาน", "ไม่มีการแจ้งเตือนเมื่อมีข้อความใหม่"),
    "database": ("เชื่อมต่อฐานข้อมูลล้มเหลว", "เริ่มเซิร์ฟเวอร์แล้วเชื่อมต่อฐานข้อมูลไม่ได้"),
}
RUSSIAN = {
    "connect": ("Ошибка подключения к базе данных", "При запуске сервер не может подключиться к базе, всё падает."),
    "slow": ("Медленный запрос к базе данных", "Запрос выполняется больше минуты, если в таблице много строк."),
    "update": ("Программа не обновляется", "Нажимаю «Обновить», загрузка доходит до конца, но версия остаётся старой."),
    "save": ("Не сохраняются настройки", "После перезапуска все настройки сбрасываются, файл настроек пустой."),
    "trace": (
        "Падает при открытии пустого архива",
        """Открываю пустой архив и получаю:
```
Traceback (most recent call last):
  File "reader.py", line 40, in read_header
IndexError: list index out of range
```""",
    ),
    "print": ("Печать обрезает поля", "При печати на принтере обрезаются поля справа, в просмотре всё правильно."),
    "letter": ("Буквы в отчёте отображаются неверно", "Вместо русских букв в отчёте видны вопросительные знаки."),
}
PORTUGUESE = {
    "settings": ("Configuração não é salva", "Depois de reiniciar o aplicativo, as configurações voltam ao padrão."),
    "upload": ("Envio de arquivos grandes falha", "Quando envio um arquivo de mais de 2 GB, a conexão é encerrada."),
    "printer": ("Impressão sai em branco", "A página sai em branco quando imprimo pela segunda vez."),
    "refused": (
        "Servidor não inicia depois da atualização",
        """Depois da atualização o servidor não inicia e mostra:
```
Error: connect ECONNREFUSED 127.0.0.1:5432
    at TCPConnectWrap.afterConnect (net.js:1141:16)
```""",
    ),
    "language": ("Idioma volta para o inglês", "Escolho português nas opções, mas os menus continuam em inglês."),
    "map": ("Mapa não carrega no celular", "No celular o mapa fica cinza e não carrega nenhuma região."),
    "search": ("Busca ignora acentos", "A busca por nomes não encontra ninguém quando o nome tem acento."),
}
ENGLISH = {
    "settings": ("Settings are lost", "After a restart all the settings are back to their defaults."),
    "crash": ("Crash on saving a file", "The editor crashes whenever a large file is saved."),
    "refused": ("Connection refused", "The client cannot connect to the server in a container."),
    "config": ("Configuration ignored", "The configuration in the home directory is ignored since the update."),
    "naive": ("A naïve date breaks the export", "A naïve date without a zone breaks the export of tables."),
}
ARCHIVES = {
    "zh": CHINESE,
    "ja": JAPANESE,
    "ko": KOREAN,
    "th": THAI,
    "ru": RUSSIAN,
    "pt": PORTUGUESE,
    "en": ENGLISH,
}

REPHRASED = [
    ("zh-save", "编辑器在保存大文件时崩溃", "每次保存比较大的文件编辑器就崩溃退出。"),
    ("zh-garbled", "中文乱码", "终端输出的中文全部变成乱码，不知道编码要怎么设置。"),
    ("zh-export", "导出的表格少一行", "导出以后发现数据的最后一行不见了。"),
    ("zh-pool", "parseConfig 报 ENOENT", "新版本启动时 parseConfig 抛出 ENOENT，无法读取配置。"),
    ("ja-connect", "起動時にデータベース接続エラー", "アプリの起動時に接続エラーになり、データベースが使えません。"),
    ("ja-image", "画像が送れない", "大きい画像のアップロードがいつも途中で止まってしまう。"),
    ("ja-restart", "設定が保存されない", "再起動のたびに言語の設定が初期値に戻ります。"),
    ("ko-crash", "업데이트 후 앱 실행 불가", "앱을 업데이트하고 나서 실행하자마자 종료되어 버립니다."),
    ("ko-server", "연결 끊김", "와이파이에서 서버 연결이 계속 끊어져요."),
    ("ko-photo", "저장한 사진의 방향이 이상함", "사진을 저장했더니 회전된 상태로 보입니다."),
    ("ru-connect", "Сервер не подключается к базе", "После запуска сервера вижу ошибку подключения, база доступна."),
    ("ru-save", "Сброс настроек", "Настройки не сохраняются: при каждом перезапуске файл пустой."),
    ("ru-trace", "IndexError на пустом архиве", "Программа упала на пустом архиве: IndexError в read_header."),
    ("pt-settings", "As configurações se perdem", "Reiniciei o aplicativo e minha configuração voltou ao padrão."),
    ("pt-upload", "Falha ao enviar arquivo grande", "O envio de um arquivo grande falha e a conexão cai."),
    ("pt-refused", "ECONNREFUSED ao iniciar", "Atualizei o servidor e agora ele mostra ECONNREFUSED no início."),
    ("en-settings", "Restart loses settings", "All my settings go back to the defaults when I restart."),
]

SEARCHED = [
    ("zh-garbled", "乱码"),
    ("zh-login", "登录 超时"),
    ("zh-garbled", "亂碼"),
    ("zh-login", "登錄超時"),
    ("zh-pool", "connectionPool"),
    ("zh-pool", "配置parseConfig"),
    ("ja-print", "文字化け"),
    ("ja-image", "ｱｯﾌﾟﾛｰﾄﾞ"),
    ("ja-login", "ログイン"),
    ("ko-crash", "앱 종료"),
    ("ko-search", "검색"),
    ("ko-alarm", "알림은"),
    ("ko-font", "글꼴이"),
    ("th-login", "รหัสผ่าน"),
    ("th-upload", "อัปโหลด"),
    ("th-notice", "แจ้งเตือน"),
    ("th-database", "ฐานข้อมูล"),
    ("ru-save", "НАСТРОЙКА"),
    ("ru-letter", "отчет"),
    ("ru-update", "обновление программы"),
    ("ru-trace", "read_header"),
    ("pt-settings", "configuracao"),
    ("pt-settings", "CONFIGURAÇÃO"),
    ("pt-printer", "impressao página"),
    ("pt-upload", "arquivo"),
    ("pt-upload", "arquivos"),
    ("pt-refused", "econnrefused"),
    ("pt-language", "ingles"),
    ("en-naive", "naive"),
    ("en-crash", "crashing"),
]


def threads(archives: Mapping[str, Mapping[str, tuple[str, str]]]) -> Iterator[Thread]:
    texts = ((f"{name}-{key}", text) for name, archive in archives.items() for key, text in archive.items())
    for day, (key, (title, body)) in enumerate(texts):
        yield Thread(key, title, body, "octocat", START + timedelta(days=day))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """All archives in one index: a repository where people write in their own languages."""
    folder = tmp_path_factory.mktemp("index")
    build_index(folder, map(document_of, threads(ARCHIVES)))
    opened_index = open_index(folder)
    yield opened_index
    opened_index.close()


@pytest.mark.parametrize(("expected", "title", "body"), REPHRASED)
def test_the_same_problem_in_other_words_is_the_first_hit(index: Index, expected: str, title: str, body: str) -> None:
    question = Thread("NEW-1", title, body, "hubot", START + timedelta(days=999))
    assert index.search(similar_query(question))[0].entry.id == expected


@pytest.mark.parametrize(("expected", "words"), SEARCHED)
def test_a_search_finds_another_inflection_spelling_or_case(index: Index, expected: str, words: str) -> None:
    assert index.search(word_query(words))[0].entry.id == expected


@pytest.mark.parametrize(("expected", "title", "body"), [case for case in REPHRASED if case[0][:2] in ("zh", "ja")])
def test_words_shown_of_a_sentence_without_spaces_are_in_both_threads(
    index: Index, expected: str, title: str, body: str
) -> None:
    question = Thread("NEW-1", title, body, "hubot", START + timedelta(days=999))
    stored_text = "\n".join(next((stored.title, stored.body) for stored in threads(ARCHIVES) if stored.id == expected))
    shown_words = surface_forms(f"{title}\n{body}", index.search(similar_query(question))[0].terms).values()
    assert shown_words
    assert all(word in stored_text for word in shown_words)


def test_a_sentence_without_an_end_is_read_in_linear_time() -> None:
    assert_linear_time(lambda text: surface_forms(f"{text}。字", ["字字", "节字"]), "字", "字节")
