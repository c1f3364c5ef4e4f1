"""What a hostile stranger may write: one text for each known way to break out of a comment."""

PAYLOADS = [
    # mentions
    "@octocat", "ping @octocat!", "(@octocat)", "\\@octocat", "@octo/team", "a@octocat", "&#64;octocat",
    "@<b></b>octocat", "@\u200boctocat", "@\u2060octocat", "`@octocat`", "@octocat@hubot @monalisa", "x\n@octocat",
    "trailing @", "*@octocat*",
    # references
    "#12", "\\#12", "&#35;12", "see #1, #2", "octo/hub#3", "hubot#4", "GH-5", "gh-6", "trailing #", "trailing GH-",
    "GHSA-jfh8-c2jp-5v3q", "CVE-2024-56201", "deadbeef1", "a5c3785ed8d6a35868bc169f07e40e889087fd2e",
    "octo/hub@abcdef12", "1234567 bytes", "#<!-- -->9", "(#1)", "[#1]", "_#1_", "#12abc #34",
    # closing words
    "Fixes #1", "closes: octo/hub#2", "Duplicate of #3", "duplicate  of #3",
    "\nDuplicate of https://github.com/o/r/issues/3",
    # addresses
    "https://github.com/octo/hub/issues/9", "http://evil.example/x?y=z", "www.evil.example", "HTTP://EVIL.example",
    "ftp://evil.example", "mail me@evil.example", "<https://evil.example>", "https:/\\/evil.example",
    "mailto:me@evil.example", "github.com/octo/hub/pull/9", "xhttps://evil.example", "https://www.evil.example",
    "https&#58;//evil.example",
    # links and images
    "[click](https://evil.example)", "![](https://evil.example/a.png)", "[a]: https://evil.example\n\n[a]", "[a][b]",
    "](https://evil.example)", "[x](javascript:alert(1))", "![x][y]", "[^1]\n\n[^1]: note", "text]", "a](b \"c\") [",
    # raw HTML
    "<img src=x onerror=alert(1)>", "</details>", "</summary></details></li></ul>", "<details><summary>x", "<!--",
    "-->", "<!-- precedent:1 -->", "<script>alert(1)</script>", "<a href='https://evil.example'>x</a>",
    "<h1>big</h1>", "<br/>", "&lt;img src=x&gt;", "&#60;b&#62;", "<![CDATA[ x ]]>", "<?php ?>", "<b", "a < b > c",
    "<\u200bimg src=x>", "</ul>", "<pre>",
    # blocks
    "# heading", "###### h", "x\n===", "x\n---", "***", "- - -", "___", "> quote", ">> q", "> [!NOTE]\n> alert",
    "- item", "+ item", "* item", "1. item", "7) item", "- [ ] task", "- [x] done", "  indented", "\tindented",
    ": definition", "| a | b |\n|---|---|\n| 1 | 2 |", "a\n:-:", "a\n-:", "a|b\n-|-", "```\ncode", "~~~\ncode\n~~~",
    "```mermaid\ngraph TD\n```", "````\n```\n````", "```\n</details>\n```", "``` `x", "line  \nbreak", "line\\\nbreak",
    "-", "+", "=", "#", ">", "1.", "a\\",
    # spans
    "*em*", "**strong**", "_em_", "__strong__", "~gone~", "~~gone~~", "`code`", "`` a ` b ``", "``", "`", "***x**",
    "a*b*c", "snake_case and _private", "$x^2$", "$$x$$", "$`x`$", "costs $5 or 6$", "```math\nx\n```", ":tada:",
    ":+1:", "::tada::", ":100:",
    # what cannot be seen
    "a\u202eb\u202c", "\u2066#12\u2069", "@\u00adoctocat", "\U000e0041\U000e0042", "a\0b\x07\x1b[31m",
    "x\ufe0f\ufe0e\ufe01", "\ud83d", "a\u200d\u200d\u200db", "z" + "\u0301" * 50, "\u2028# x", "a\rb\r\n# c",
    "\u3164", "\ufeff@octocat", "\x85# x",
]  # fmt: skip
