"""Languages other than English: folding, detection, and the terms that their texts share."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bot.reading import word_lists
from bot.reading.analyzer import (
    MAX_TERM_CHARS,
    bigrams,
    fold_word,
    is_english,
    matched_part,
    remove_accents,
    terms,
    tokens,
)
from bot.reading.simplified import SIMPLIFIED_FORMS, simplify
from tests.reading.linear_time import assert_linear_time


def test_a_word_folds_to_the_same_however_it_is_typed() -> None:
    cases = [
        ("Ação", "acao"),
        ("naïve", "NAIVE"),
        ("Straße", "STRASSE"),
        ("SØREN", "soren"),
        ("İstanbul", "istanbul"),
        ("Łódź", "lodz"),
        ("œuvre", "oeuvre"),
        ("tiếng", "tieng"),
        ("Ёлка", "елка"),
        ("за́мок", "замок"),
        ("Αθήνα", "αθηνα"),
        ("ΟΔΟΣ", "οδος"),
    ]
    for written, typed in cases:
        assert fold_word(written) == fold_word(typed), written
        assert fold_word(unicodedata.normalize("NFD", written)) == fold_word(written), written


def test_marks_that_make_a_different_letter_are_kept() -> None:
    cases = [("мой", "мои"), ("її", "іі"), ("が", "か"), ("パ", "ハ"), ("हिन्दी", "हनद"), ("각", "가")]
    assert [one for one, other in cases if fold_word(one) == fold_word(other)] == []


def test_capitals_are_kept_until_identifiers_are_split() -> None:
    assert remove_accents("ConexãoFalhou") == "ConexaoFalhou"
    assert terms("ConexãoFalhou") == terms("ConexaoFalhou") == ["conexaofalhou", "conexao", "falhou"]


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold_word(fold_word(text)) == fold_word(text)
    assert remove_accents(remove_accents(text)) == remove_accents(text)


@given(st.text(st.characters(max_codepoint=0x24F, categories=["L"]), min_size=1, max_size=12))
def test_capitals_never_change_the_folded_word(word: str) -> None:
    assert fold_word(unicodedata.normalize("NFKC", word.upper())) == fold_word(
        unicodedata.normalize("NFKC", word.upper().lower())
    )


def test_a_text_in_another_language_is_not_english() -> None:
    texts = [
        "Falha ao salvar o arquivo de configuração",
        "Servidor não inicia",
        "La aplicación se cierra al abrir archivos grandes",
        "Cuando abro un archivo que no existe, el programa se cierra",
        "Le serveur ne démarre plus après la mise à jour",
        "Der Server startet nach dem Update nicht mehr",
        "Quando apro la finestra il programma non risponde",
        "Nie można zapisać pliku, gdy dysk jest pełny",
    ]
    assert [text for text in texts if is_english(tokens(text), ascii_only=text.isascii())] == []


def test_english_and_undecidable_texts_count_as_english() -> None:
    texts = [
        "",
        "Crash when parsing dates",
        "The café de la Gare breaks the import of names, but without its accent all is well",
        "let de = serde::de::value; match el { Err(e) => e, Ok(o) => o }",
        "COM port on DOS: con, man bin/du, la, le, se",
        "de_DE, es_ES, pt_BR and fr_FR are missing",
        "CI fails, AI is no help",
        "Ошибка при запуске",
        "接続エラー",
    ]
    assert [text for text in texts if not is_english(tokens(text), ascii_only=text.isascii())] == []


def test_a_report_keeps_its_language_despite_an_english_log() -> None:
    log = "error: the connection was closed by the server before it could be used, and there is no other\n" * 40
    text = (
        "Depois da atualização o servidor não inicia mais e a conexão é encerrada sem aviso quando envio algo.\n" + log
    )
    assert "arquivos" not in terms(log + " arquivos")
    assert "arquivos" in terms(text + " arquivos")


WORDS = ("arquivos", "conexões", "grande", "classe", "Wörter", "fichiers", "mensajes", "finestre")


def test_a_text_a_title_and_a_search_share_the_terms_of_a_word() -> None:
    for word in WORDS:
        text = f"Quando abro a janela depois da atualização, não vejo {word} em nenhum menu."
        plain = fold_word(word)
        assert plain in terms(text), word
        for query in (word, plain, word.upper(), f"{word} crash", f"Missing {word} when the window is opened"):
            assert set(terms(query)) & set(terms(word)) <= set(terms(text)), word
            assert set(terms(word)) <= set(terms(query)), word


def test_stop_words_of_other_languages_are_left_out() -> None:
    assert terms("Não consigo abrir nenhum arquivo com acentos") == ["consigo", "abrir", "arquivo", "acento", "acentos"]
    assert terms("Он не может это сохранить") == terms("сохранить")
    assert terms("でき ません") == ["でき"]


def test_an_english_text_keeps_words_that_are_stop_words_elsewhere() -> None:
    assert terms("The die roll and the con man") == ["die", "roll", "con", "man"]


def test_forms_of_a_word_give_the_same_terms() -> None:
    cases = [
        ("ошибка подключения", "ОШИБКОЙ ПОДКЛЮЧЕНИЕ"),
        ("отчёты", "отчетов"),
        ("l'application", "application"),
        ("d’accès", "acces"),
        ("ｻｰﾊﾞｰ", "サーバー"),
        ("ＡＰＩ", "api"),
        (unicodedata.normalize("NFD", "데이터베이스"), "데이터베이스"),
    ]
    assert [one for one, other in cases if terms(one) != terms(other)] == []


def test_a_korean_word_of_one_syllable_is_found_before_its_particle() -> None:
    for ending in ["이", "를", "은", "에"]:
        assert terms("앱") == ["앱"], ending
        assert terms(f"앱{ending}") == ["앱", f"앱{ending}"], ending


def test_a_korean_word_is_a_term_without_its_particle() -> None:
    for ending in ["", "가", "를", "에서는", "으로"]:
        assert terms(f"데이터베이스{ending}")[0] == "데이터베이스", ending
    assert "회의" in terms("회의")  # its last syllable only looks like a particle


def test_a_short_word_counts_twice_where_it_is_not_a_part_of_a_longer_one() -> None:
    for word, longer in [("メモ", "メモリ"), ("메모", "메모리")]:
        assert (terms(word).count(word), terms(longer).count(word)) == (2, 1)


def test_traditional_and_simplified_characters_give_the_same_terms() -> None:
    assert terms("資料庫連線錯誤，這個檔案無法開啟") == terms("资料库连线错误，这个档案无法开启")
    assert terms("這個問題") == ["个问", "问题"]
    assert matched_part("資料庫連線錯誤", "错误", {"错误", "线错"}) == "線錯誤"


def test_no_simplified_character_is_folded_again() -> None:
    assert simplify(simplify(SIMPLIFIED_FORMS)) == simplify(SIMPLIFIED_FORMS)
    pairs = SIMPLIFIED_FORMS.split()
    assert {len(pair) for pair in pairs} == {2}
    assert pairs == sorted(set(pairs))
    assert simplify("café, naïve, ログイン, 로그인, 登录") == "café, naïve, ログイン, 로그인, 登录"


def test_code_inside_a_sentence_without_spaces_is_a_token_of_its_own() -> None:
    assert tokens("调用fileName时main.rs:12崩溃") == ["调用", "fileName", "时", "main.rs:12", "崩溃"]
    assert terms("调用fileName崩溃") == ["调用", *terms("fileName"), "崩溃"]


def test_the_matched_part_is_the_shared_words_of_a_sentence() -> None:
    cases = [
        ("起動時にデータベース接続エラー", "タベ", {"デー", "ータ", "タベ", "ベー", "ース", "起動"}, "データベース"),
        ("编辑器在保存时崩溃", "崩溃", {"崩溃", "编辑", "辑器"}, "崩溃"),
        ("连接和连接池", "连接", {"连接"}, "连接"),
        ("configurações", "configuraco", {"configuraco"}, "configurações"),
        ("настройка", "настройк", {"настройк"}, "настройка"),
        ("编辑器", "编辑", set(), "编辑器"),
    ]
    assert [token for token, term, matched, expected in cases if matched_part(token, term, matched) != expected] == []


def test_the_word_lists_are_consistent() -> None:
    assert {len(pair) for pair in word_lists.STOP_PAIRS} == {2}
    assert set(map(fold_word, word_lists.FUNCTION_WORDS)) >= word_lists.ENGLISH_HOMOGRAPHS
    assert all(word == word.lower() for word in word_lists.FUNCTION_WORDS | word_lists.RUSSIAN_STOP_WORDS)


SCRIPTS = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFFFF, exclude_categories=["Cs", "Cn"])
    | st.sampled_from("e\u0301 ")
)


@given(SCRIPTS)
def test_terms_of_any_script_are_within_bounds_and_folded(text: str) -> None:
    for term in terms(text):
        assert 1 <= len(term) <= MAX_TERM_CHARS
        assert term == term.casefold()


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=50))
def test_a_run_gives_no_more_bigrams_than_it_has_pairs(run: str) -> None:
    pairs = list(bigrams(run))
    assert len(pairs) <= max(1, len(run) - 1)
    assert all(pair in run for pair in pairs)


HOSTILE = [
    *"\u0301ёßﷺ",
    "e\u0301\u0327",
    "a\u0315\u0300\u05ae",
    "é_",
    "ñ ",
    "não ",
    "字a",
    "앱이",
    "l'é'",
    "か\u3099",
    "ｶﾞ",
]


def test_a_long_run_is_cut_in_linear_time() -> None:
    assert matched_part("字" * 65_536, "字字", {"字字"}) == "字" * 65_536
    assert_linear_time(lambda text: matched_part(text, "字字", {"字字"}), "字")


def test_hostile_text_takes_linear_time() -> None:
    assert_linear_time(terms, *HOSTILE)
