"""The calls to GitHub's API that the product makes, and the faults that they can meet."""

from __future__ import annotations

from tests.faults.fault_runs import Call, Fault

CALLS = {
    call.name: call
    for call in (
        Call("list what changed", "opened", "GET /repos/*/issues"),
        Call("comments of several issues", "busy", "GET /repos/*/issues/comments"),
        Call("the event's own issue", "unlisted", "GET /repos/*/issues/2"),
        Call("an issue that is mentioned", "mentioning", "GET /repos/*/issues/2"),
        Call("comments of one issue", "commented", "GET /repos/*/issues/2/comments"),
        Call("timeline of a closed issue", "closed", "GET */timeline"),
        Call("whether a promised comment was posted", "promised", "GET */timeline"),
        Call("thumbs on our comment", "thumbs", "GET */issues/comments/*"),
        Call("what an account may do", "told to", "GET */permission"),
        Call("where the repository is", "renamed", "GET /repos/octo-org/hello-world"),
        Call("the pull request of a fix", "fixed", "GET */pulls/3"),
        Call("its files", "fixed", "GET */pulls/3/files"),
        Call("releases", "fixed", "GET */releases"),
        Call("whether a release contains it", "fixed", "GET */compare/*"),
        Call("the commit of a fix", "committed", "GET */commits/*"),
        Call("tags", "committed", "GET */tags"),
        Call("history (GraphQL)", "first", "POST /graphql"),
        Call("write a comment", "opened", "POST */issues/2/comments"),
        Call("change a comment", "edited", "PATCH */issues/comments/*"),
        Call("reply", "asked", "POST */issues/2/comments"),
        Call("react", "asked", "POST */reactions"),
        Call("open pull requests (GraphQL)", "open", "POST /graphql"),
    )
}

FAULTS = {
    fault.name: fault
    for fault in (
        Fault("401", "401"),
        Fault("permission", "permission"),
        Fault("primary limit", "primary403"),
        Fault("secondary limit", "secondary403"),
        Fault("secondary limit without a time", "secondary403", seconds=0),
        Fault("429", "429", seconds=60),
        Fault("limit with status 200", "limit200"),
        Fault("secondary limit with status 200", "secondary200"),
        Fault("404", "404"),
        Fault("404 for a moment", "404", 1),
        Fault("410", "410"),
        Fault("issues switched off", "issues-off"),
        Fault("moved to another repository", "301", to="octo-org/other#1"),
        Fault("repository renamed", "301", 1),
        Fault("archived", "archived"),
        Fault("locked", "locked"),
        Fault("interaction limit", "limited"),
        Fault("2,500 comments", "cap"),
        Fault("422", "422"),
        Fault("5xx", "5xx"),
        Fault("5xx once", "5xx", 1),
        Fault("504", "504"),
        Fault("dropped", "drop"),
        Fault("dropped once", "drop", 1),
        Fault("lost reply", "dup", 1),
        Fault("slow", "slow", 1, 0.3),
        Fault("page of a proxy", "html"),
        Fault("cut JSON", "cut"),
    )
}
