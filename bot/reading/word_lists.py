"""Word lists: stop words, words common in every tracker, names that look like code, headings of issue templates."""

from __future__ import annotations

_STOP_WORDS = """
about above after again against all also although always am an and another any anybody anyone anything anyway are
aren around as at away back be because been before being below between both but by can cannot could couldn did didn
do does doesn doing don done down during each eg either else etc even ever every everything few for from further get
gets getting give given go goes going gone got had hadn has hasn have haven having he hello her here hers hi him his
how however https http ie if in indeed instead into is isn it its itself just least less let like ll lot made make
makes making many may maybe me might more most much must my myself need needs neither never no nor not nothing now
of off often ok okay on once one only onto or other others otherwise ought our ours out over own per perhaps please
pretty probably quite rather re really same say says see seem seems several shall she should shouldn since so some
somehow someone something sometimes soon still such than thank thanks that the their theirs them then there
therefore these they thing things think this those though through thus to together too toward under unless until up
upon us use used uses using ve very via want wants was wasn way we well went were weren what whatever when whenever
where whether which while who whole whom whose why will with within without won would wouldn www yes yet you your
yours yourself
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that say nothing about a subject, and fragments of contractions and addresses."""

_FUNCTION_WORDS = {
    "pt": """
ao aos após assim até cada com como da das de dela dele depois desde do dos ela elas ele eles em então entre era essa
esse esta estava este está estão eu foi foram há isso isto já mais mas mesmo meu minha muito na nas nem nenhum no nos
num numa não os ou para pela pelas pelo pelos pois por porque qual quando que quem se sem sempre ser seu seus sobre sua
suas são só também tem tenho ter toda todas todo todos tudo um uma você às
""",
    "es": """
además al algo algunos antes aunque con contra cual cuando del desde donde durante el ella ellos en eran es esto
estoy están fue ha hace hacia han hasta hay la las le les lo los me mi muy más ni nosotros otra otro pero poco puede
pueden sea según si siempre sin solo son su sus sí también tengo tiene todos una unas uno unos ya yo él
""",
    "fr": """
alors au aucun aussi autre aux avec avoir car ce cela ces cet cette comme dans des donc dont du elle elles encore est et
fait ici il ils je leur lors lorsque lui ma même ne nous ont ou où par parce pas peut plus pour pourquoi quand qui quoi
sans sera ses si sont sous suis sur tous tout toute très un une vers votre vous été être
""",
    "de": """
aber alle als am auch auf aus bei beim bin bis da damit dann das dass dem den denn der des die diese dieser dieses
durch ein eine einem einen einer eines er es für gegen gibt haben hat hier ich ihr im immer ist ja jede jetzt kann
kein keine können man mehr mein meine mich mir mit muss nach nicht nichts noch nur oder ohne schon sehr sein seit sich
sie sind so soll um und uns unter vom von vor wann war warum was weil wenn werden wie wieder wir wird wo wurde während
zu zum zur zwischen über
""",
    "it": """
ad agli ai al alla alle allo anche ancora avere ci che chi col come con contro cosa così cui da dal dalla dalle degli
dei del della delle dello di dopo dove due ed fa fino già gli ha hanno il in io la le lo loro ma mentre mi mia mio
molto nei nel nella nelle non ogni per perché però più prima quale quando quella quello questa queste questi questo
qui sarà se sempre senza si sia solo sono sopra sta stato su sua sul sulla suo tra tutti tutto una uno viene
""",
}
FUNCTION_WORDS_OF = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
"""Function words of Portuguese, Spanish, French, German and Italian, as written, by language."""

FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS_OF.values())

_REPORT_WORDS = {
    "pt": """
abrir algum alguém aparece aplicativo aplicação arquivo arquivos atualizar atualização botão conectar configuração
consegui consigo dando diretório erro erros fazer funciona funcionando instalar instalação mensagem módulo nova novo
obrigado página pasta poderia preciso projeto senha servidor tela tentando tentar tentei usando usuário versão você
""",
    "es": """
abrir actualizar actualización alguien aparece aplicación archivo archivos ayuda botón carpeta configuración contraseña
después ejecutar esta fallo funciona gracias hacer hola instalar intento mensaje necesito nueva nuevo página pantalla
probado proyecto puedo quiero sale servidor siguiente solucionar tras usando usuario ventana versión
""",
    "fr": """
affiche affichage après aucune aujourd bonjour bouton ceci cliquer connexion dernière depuis devrait dossier démarrage
erreur erreurs fichier fichiers fonctionne hui jour lancement lancer lors merci mise mot nouveau nouvelle ouvrir passe
plusieurs problème quelques serveur utilisateur utiliser veux voici
""",
    "de": """
aktualisieren aktualisierung anmelden anwendung benutzer bitte bzw danke datei dateien einstellung einstellungen fehler
fehlermeldung funktioniert habe hallo installieren kommt leider meldung möchte möglich neue neuen neustart ordner
passwort seite server starten startet taste trotzdem version wenig wäre zeigt
""",
}
REPORT_WORDS = {language: frozenset(words.split()) for language, words in _REPORT_WORDS.items()}
"""Words that people write in reports in Portuguese, Spanish, French and German, and that tell the language."""

_RUSSIAN_STOP_WORDS = """
а без более бы был была были было быть в вам вас весь во вот все всегда всего вы где да даже для до его ее если есть еще
ещё её же за здесь и из или им их к как какой когда который которая которые ли мне может можно мой мы на над надо нас
наш не него нет ни но ну о об один однако он она они оно от очень по под после потом потому почему при про просто раз с
сам себя со так такой также там тем то того тоже только том тут ты у уже хотя чего чем через что чтобы эта эти это этого
этой этом этот я
"""
RUSSIAN_STOP_WORDS = frozenset(_RUSSIAN_STOP_WORDS.split())
"""Russian words that say nothing about a subject."""

_ENGLISH_HOMOGRAPHS = """
ad ai al alle am au aus aux bei bin bis car ce cet chi ci col com come con contra cosa da dal del dem den der des di
die dont dos du due ed el em en encore er era es est et eu fa ha han hat hay hier im io ja je la las le les lo los lui
ma man mas mi mia mir mit na nas ne ni non nos num os par pas per plus por pour prima que sans sea sem ser sera ses seu
si sin solo son sous sta su sur sus tem ter todo todos tra un una uns vers vom von vor war wo ya yo
"""
ENGLISH_HOMOGRAPHS = frozenset(_ENGLISH_HOMOGRAPHS.split())
"""Function words that also occur in English, in names or in code, so they do not reveal a text's language."""

_STOP_PAIRS = """
一个 一些 一下 不会 不是 之后 了一 什么 他们 以及 以后 但是 你们 其他 可以 后来 因为 如果 就是 已经 怎么 我们
所以 时候 是不 有一 没有 然后 现在 的时 的是 这个 这样 这里 进行 还是 那个
あり ある いう いて いま いる から きま こと この され した して しま する せん その たい たら った って てい
です でも とき とし ない なく なっ なり なる ので のに まし ます ませ よう られ りま れる れて
고있 그런 그리 는데 니다 되는 됩니 때문 면서 습니 아요 어요 에서 었습 으로 으면 이런 입니 있는 있습 지만 하고
하는 하면 하지 합니 해서 했습
"""
STOP_PAIRS = frozenset(_STOP_PAIRS.split())
"""Pairs of characters that every Chinese, Japanese or Korean sentence contains."""

_COMMON_WORDS = """
able actually add added bug case cases change changes code comment correct correctly current currently different
error errors example expect expected fail failed fails feature file files find first fix fixed found good great
happen happens help idea important issue issues kind know last line lines long look looks message new nice old open
output point possible problem problems program properly question reason related report result right run running
second set simple sort start sure take test tests time times try trying two version work working works wrong
arquivo archivo datei erreur erreurs erro erros fallo fehler fehlermeldung fichier problema problème versión versão
версия ошибка ошибки проблема файл
不能 代码 使用 出现 发现 复现 失败 如下 如何 实现 异常 成功 截图 执行 报错 提示 描述 支持 效果 文件 方法 无法 显示 步骤
求助 版本 正常 解决 设置 详细 请问 运行 通过 错误 问题 需要 项目
エラー 不具合 使用 再現 場合 失敗 問題 方法 発生 確認 表示 문제 발생 방법 사용 실패 에러 오류 확인
"""
COMMON_WORDS = frozenset(_COMMON_WORDS.split())
"""Words that fill every tracker: searchable, but not used as keywords."""

_PRODUCT_NAMES = """
AppImage DevTools DockerHub FreeBSD GitHub GitLab GraphQL IntelliJ JavaScript LaTeX LibreSSL LinkedIn MacBook MacOS
MacPorts MariaDB MongoDB MySQL NetBSD NixOS OpenBSD OpenGL OpenSSL PostgreSQL PowerPC PowerShell PyCharm PyPI
StackOverflow TypeScript VSCode WebKit WebSocket YouTube iOS iPad iPhone macOS node.js vue.js next.js
"""
PRODUCT_NAMES = frozenset(_PRODUCT_NAMES.split())
"""Names that look like identifiers or files but are neither."""

_TEMPLATE_HEADINGS = """
actual behavior|actual behaviour|actual outcome|actual result|actual results|additional context
additional info|additional information|additional notes|alternatives|alternatives considered|any other comments
anything else|are you willing to submit a pr|are you willing to submit pr|backtrace|browser|browser version|bug
bug description|bug report|bug summary|checklist|code|code of conduct|code sample|contact details
current behavior|current behaviour|current result|debug log|debug logs|describe alternatives you've considered
describe the bug|describe the feature|describe the issue|describe the problem|describe the solution you'd like
description|description of the issue|desktop|detailed description|device|environment|environment details
environment information|error|error log|error logs|error message|example|example code|expected
expected behavior|expected behaviour|expected outcome|expected result|expected results|feature|feature description
feature request|how are you affected|how can we reproduce|how did you install|how did you obtain it|how to reproduce
i expected to see this happen|instead, this happened|is there an existing issue for this
is your feature request related to a problem|issue|issue description|issue summary|link to reproduction
log output|logs|meta|minimal example|minimal reproducible example|minimal reproduction|minimal test case|motivation
name and version|observed behavior|observed behaviour|operating system|operating system and version|os|os version
other information|output|package version|platform|possible fix|possible solution|pre-submission checks|prerequisites
problem|problem description|proposal|proposed solution|relevant log output|reproducer|reproducible example
reproducible test case|reproduction|reproduction link|reproduction steps|result|screenshot|screenshots
screenshots or videos|severity|smartphone|stack trace|stacktrace|steps|steps to reproduce
steps to reproduce the behavior|steps to reproduce the behaviour|steps to reproduce the issue|str|suggested fix
suggested solution|summary|system info|system information|test case|testcase|to reproduce|traceback|use case
validations|version|version information|versions|want to work on this issue|what did you expect to happen
what did you expect to see|what did you do|what did you see instead|what happened|what is the current behavior
what is the expected behavior|what version are you using|what went wrong|workaround|your environment
"""
TEMPLATE_HEADINGS = frozenset(_TEMPLATE_HEADINGS.strip().replace("\n", "|").split("|"))
"""Headings and labels of issue templates, in lower case and without the punctuation around them."""
