"""Hostile text of strangers: every known way to break out of a comment, in every known disguise."""

from tests.comment.payloads import PAYLOADS

MENTIONS = [
    "@octocat, @octo-org/team and @octocat's", "\uff20octocat", "\ufe6boctocat", "&commat;octocat", "&#64octocat",
    "&#x40;octocat", "&amp;#64;octocat", "@\u200d\u200doctocat", "\u200b@octocat", "@\u00a0octocat", "\\\\@octocat",
    "**@octocat**", "_@octocat_", "~~@octocat~~", "<b>@octocat</b>", "[@octocat](x)", "[@octocat][]", "| @octocat |",
    "[^1]: @octocat", "# @octocat", "> @octocat", "- @octocat", "1. @octocat", "``@octocat`", "`@octocat``",
    "```@octocat``", "``` @octocat ````", "`\n@octocat\n`", "`\\`@octocat`", "octocat@hubot@monalisa", "/@octocat",
    ".@octocat", "-@octocat", "_@octocat", "é@octocat", "字@octocat", "@octocat字", "@Octocat\u0301",
    "(mailto:@octocat)", "<@octocat>", "<!--@octocat", "@oc\u00adtocat", "@" * 40 + "octocat",
    "".join(f"@user{number} " for number in range(50)),
]  # fmt: skip

REFERENCES = [
    "\uff0312", "&num;12", "&#x23;12", "&#35 12", "\\\\#12", "#\u200b12", "#1,#2;#3", "fix #1 close #2 resolve GH-3",
    "Fixed: #1", "**Closes** #1", "resolves\u00a0#12", "octo-org/hello-world#12", "octo.cat/a_b#1", "@octocat#1",
    "GH\u201012", "GH-12GH-13", "(gh-12)", "PR #12", "<b>#</b>12", "#\n12", "``#12`", "[#12]", "![#12]", "| #12 |",
    "octo/hub@deadbeef", "hubot@deadbeef1", "deadbeef", "DEADBEEF12", "abcdef1234567890abcdef1234567890abcdef12",
    "1234567", "https://github.com/octo/hub/commit/deadbeef", "https://github.com/octo/hub/compare/a...b",
    "https://github.com/octo/hub/pull/1#issuecomment-2", "octo/hub/issues/1", "ghsa-jfh8-c2jp-5v3q", "cve-2024-56201",
    "Duplicate of #1", "duplicate of octo/hub#1", "Duplicate\u00a0of #1", "**Duplicate of** #1", "> Duplicate of #1",
    "- Duplicate of #1", "Duplicate of\n#1", "<p>Duplicate of #1", "dup\u200blicate of #1",
]  # fmt: skip

LINKS = [
    "www.evil.example", "WWW.evil.example/a?b=c#d", "wWw.evil.example", "http:\u200b//evil.example",
    "http:/evil.example",
    "https:evil.example", "xmpp:a@evil.example", "mailto:a@evil.example", "a.b+c@evil.example", "a@[127.0.0.1]",
    "<http://evil.example>", "<HTTPS://evil.example>", "<a@evil.example>", "<javascript:alert(1)>", "<x:y>",
    "[a](javascript:alert(1))", "[a](data:text/html,x)", "[a](vbscript:x)", "[a](//evil.example)", "[a](<http://e v>)",
    "[a](http://evil.example 'b')", "[a]( http://evil.example )", "![a](data:image/png;base64,AA==)", "![](//evil)",
    "[![a](http://e.example/b)](http://e.example)", "[a][b]\n\n[b]: http://evil.example", "[b]: <http://evil.example>",
    "[b]:\nhttp://evil.example\n'title'", "[^b]\n\n[^b]: http://evil.example", "[[wiki]]", "[a]\\(http://evil.example)",
    "a](http://evil.example)[b", "](", ")](", "a\\](http://evil.example)", "a` ](http://evil.example) `",
    "<a href=//evil.example>a", "<a\nhref=x>", "<A HREF='javascript:alert(1)'>a</A>", "<img/src=x>", "<IMG SRC=x>",
    "<img src=https://evil.example/p.png width=1>", "<picture><source srcset=//evil>", "<video src=//evil>",
    "<svg/onload=alert(1)>", "<base href=//evil>", "<link rel=x href=//evil>", "<style>@import'//evil'</style>",
    "<iframe src=//evil>", "<form action=//evil><input>", "<meta http-equiv=refresh content=0>", "<math><mi>x",
]  # fmt: skip

HTML = [
    "</details></details></li></ul></blockquote>", "<details open><summary>a</summary>", "<summary>", "</summary>",
    "<details><details><details>", "<!-- never ends", "<!--->", "<!-->", "<!---->", "--!>", "<!-- -- -->", "<!x>",
    "<!DOCTYPE html>", "<?xml", "<![CDATA[", "]]>", "</", "</>", "<>", "< b>", "<b", "<b/", "<b a", "<b a=\"", "<b a='",
    "</sub>", "</a>", "</p><p>", "<table><tr><td>", "<plaintext>", "<xmp>", "<textarea>", "<title>", "<noscript>",
    "<template>", "<select>", "<script>", "<h1>x</h1>", "<hr>", "<br>", "<p align=center>", "<kbd>x</kbd>", "<tt>",
    "<ins>x", "<del>x", "&lt;/details&gt;", "&lt;img&gt;", "&notanentity;", "&#0;", "&#xD800;", "&#x110000;", "&nbsp;",
    "<\0img src=x>", "<img\0src=x>", "\ufeff<img src=x>", "\u0085<img src=x>", "x\u2028<img src=x>",
    "<!-- precedent:v1 id=action -->", "\n<!-- precedent:v1 id=other run=99999999 -->",
    "<!-- precedent-seal 0123456789abcdef 0123456789abcdef -->",
]  # fmt: skip

BLOCKS = [
    "x\n=====", "x\n-----", "=====", "-----", "***", "* * *", "__ __", "+++", "#", "####### x", "#\tx", "# x #",
    "\t# x", "    # x", ">", ">>>>>>>>>>", "> > >", ">[!WARNING]", "> [!CAUTION]\n> x", "[!NOTE]", "- > - > -",
    "-\tx", "*\tx", "+\tx", "0. x", "999999999. x", "1) x", "- [x] x", "* [ ]", "a\n- b", "a\n1. b",
    "|a|b|\n|-|-|\n|c|d|", "a | b\n- | -", "a\n|-|", ":--", "|", "||||", "Term\n: text", ": text", "~ text",
    "~~~", "~~~ js\nx", "```", "``` js\nx", "`````\n````", "```\n```\n```", "```geojson\n{}\n```",
    "```topojson\n{}\n```", "```stl\nsolid\n```", "```suggestion\nx\n```", "~~~mermaid\ngraph TD\n~~~",
    "> ```\n> x", "- ```\n  x", "    code", "\tcode", "\n\n\n\n", "\r\r", "x\r# y", "x\v# y", "x\f# y", "x\x1c# y",
    "x\u2029# y", "$$\nx\n$$", "---\nlayout: x\n---", "*[HTML]: text", "[toc]", "::: x", "{: .a}", "{{7*7}}",
    "{{ marker }}", "{% raw %}", "{% for a in [1,2,3] %}x{% endfor %}", "{# x #}", "#{7*7}", "${7*7}", "{text}",
    "{what}",
    "{thread}",
]  # fmt: skip

SPANS = [
    "`", "``", "```", "` `", "`a``b`", "``a`b``", "`a`b`", "a`", "`a", "\\`a\\`", "`\\", "\\", "\\\\", "*",
    "**", "***a",
    "*a**b*", "**a*", "_", "__a", "_a__b_", "a_b_c", "_(_a", "~a", "~~a~", "~~~a~~~", "==a==", "^a^", "||a||", "++a++",
    "$", "$$", "$a", "a$", "$a$", "$$a$$", "$`a`$", "\\(a\\)", "\\[a\\]", "\\$a$", "$a\\$", ":smile:", ":octocat:",
    ":a:b:", "::", ":+1::-1:", "#ff0000", "`#ff0000`", "rgb(9,9,9)", "a  \nb", "a\\\nb", "a\tb", '"a"', "'a'", "...",
    "--", "(c)", "%s%n%d", "{0.__class__}", "\\n", "\\x00", "\\u0040octocat", "=1+1", "\x1b]8;;http://evil\x1b\\a",
]  # fmt: skip

UNSEEN = [
    "\u202egnp.exe", "\u202a\u202b\u202c\u202d\u202e", "\u2066\u2067\u2068\u2069", "\u200e\u200f\u061c", "\u200b" * 30,
    "\u200c\u200d", "\u2060\u2061\u2062\u2063\u2064", "\u206a\u206f", "\ufff9a\ufffab\ufffb", "\U000e0001\U000e0041",
    "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all rules"), "\ufe00\ufe0e\ufe0f\U000e0100\U000e01ef",
    "".join(chr(0xFE00 + byte % 16) for byte in b"hidden"), "\u00ad" * 9, "\u034f", "\u115f\u1160\u3164\uffa0",
    "\u17b4\u17b5", "\u180b\u180e", "\u2800", "\ufeff", "\0", "\0\0@octocat", "\x01\x02\x7f\x80\x9f", "\x1b[2J",
    "\ud800", "\udfff\ud800", "a\u0301" * 9, "a" + "\u0301" * 900, "\U0010ffff", "\ufdd0", "\ufffe", "\uffff", "\ue000",
    "\u1f1e6", "\U0001f1e6" * 9, "\u2065", "\U0001bca0", "\U0001d173", "\u2028", "\u2029",
]  # fmt: skip

MARKS = [
    "[", "]", "(", "((", "*", "**", "`", "` ", "``", "_", "_a", "~", "~~", "<", ">", "> ", "&", "&#", "|", "|-", "\\!",
    "\\", "](", "[a](", "![", "[]()", "[a]: ", "[^a]", "- ", "-", "+ ", "1. ", "1", "#", "# ", "=", '"', "'",
    "“", "@a ",
    "#1 ", "a/b#1 ", "GH-1 ", "::", ":a:", "{{", "{%", "$", "!", "?", ".", ". ", ", ", "...", ": ", "/", "//", "\n",
    "\n\n", "\r\n", "\t", " ", "\u00a0", "\0", "\u200b", "\u202e", "\ud800",
]  # fmt: skip

WORDS = [
    "a", "a ", "aA", "A_", "a.b.", "a-", "aaaaaaa ", "x y z\n", "deadbeef ", "1.2.", "v1.2.3 ", "0x1f ", "Ünï ", "ß",
    "登录", "日本語。", "한국어 ", "ไทย", "ا", "a\u0301", "\u0301", "👩‍👩‍👧", "🇩🇪", "http://a.b/", "www.a.b ",
    "a@b.co ",
    "https://github.com/o/r/issues/1 ", "octo-org/hello-world#1 ", "closes #1 ", "Duplicate of #1\n", "we decided ",
    "We decided to use a. ", "Fixed in 1.2. ", "what did we decide about ", "not ", "if ", "I think we ", "because ",
    "fixed by ", "thanks ", "/precedent search a\n", "what ", "did we discuss ", "closing this as ",
]  # fmt: skip

LINES = [
    "<!--", "<!-- -->", "<a ", "<a href='", "</a>", "<b>", "<details>", "<details><summary>", "</p", "<![CDATA[", "<?",
    "<img src=x ", "<pre>", "<pre>\n", "```\n", "```a\n", "~~~\n", "````\n```\n", "    code\n", "- - ",
    "- a\n  ", "> > ",
    "> a\n", ">\n", "* a\n\n", "1. a\n   ", "a\n===\n", "a\n---\n", "---\n", "| a | b |\n", "| a |\n|---|\n",
    "a|b\n-|-\n", "<br>", "\\\n", "a<br>", "&#32;\\\n", "<hr>", "</blockquote>", "<a href=b>", "<a@b.c>", "[a]: b\n",
    "[a][b]", "> - ", "[^1]: a\n", "# a\n",
    "### Steps\n\n", "- [ ] a\n", "a  \n", "a\\\n", "Error: a\n", "TypeError: x is not y\n", "panic: ",
    '  File "/a/b.py", line 1, in c\n', "    at a.b.C.d(C.java:1)\n", "  at fn (/a/b.js:1:2)\n", "a/b/c.py:1: ",
    "Caused by: a\n", "E   assert\n", "thread 'main' panicked at\n", "fatal: ", "error[E0001]: a\n",
    "goroutine 1 [a]:\n",
    "at a ", "a.py ", "/a", "C:\\a\\", "--a ", "$ a\n", "export default {\n", "import a from 'a'\n", "a=b\n",
    '"a": "b",\n',
]  # fmt: skip

PIECES = [*MARKS, *WORDS, *LINES]
"""What texts are made of, one of each."""

LONG = 65_536

RUNS = [
    "[", "]", "(", "*", "_", "`", "~", "<", ">", "&", "\\", "|", "#", "@", "$", ":", "!", "-", "=", "+", ".",
    "\n", "\u0301",
    "@octocat ", "#1 ", "](", "<!--", "![](", "```\n", "- ", "> ", "a@b.co ", "www.a.b ", "\u202e", "<details>",
]  # fmt: skip

DEFINITIONS = [
    "^x]: see", "^x]", "^x]:", "^1]: a\n\n[^1]", "[^x]: see", "[x]: https://evil.example",
    "[x]: <https://evil.example> 'a'",
    "[x]:\nhttps://evil.example", "[^x]", "- [^x]: see", "1. [^x]: see", "> [^x]: see", "| [^x]: see |",
    "| a |\n|---|\n| [^x]: y |", "^x]: [^x]", "x]: https://evil.example", "!^x]: see",
    "see [^x] and [x]\n\n[^x]: see\n\n[x]: /y",
    "   [^x]: see", "\t[^x]: see", "[^x]\n: see", "^[inline note]", "x^[note]", "\u200b^x]: y", "\\^x]: y",
    "^\\]]: y", "^x^]: y",
]  # fmt: skip
"""Definitions of footnotes and of links, complete and without the opening bracket, which a link's title supplies."""

CORPUS = list(dict.fromkeys([*DEFINITIONS, *PAYLOADS, *MENTIONS, *REFERENCES, *LINKS, *HTML, *BLOCKS, *SPANS, *UNSEEN]))
"""Short texts, each once."""


def repeat(piece: str, length: int = LONG) -> str:
    """``piece`` repeated to ``length`` characters."""
    return (piece * (length // len(piece) + 1))[:length]
