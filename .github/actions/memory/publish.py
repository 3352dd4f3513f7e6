"""Writes the summary of the job, and the comment of the pull request.

A pull request has one comment of the action: the first line of its text is a mark by which the next
run finds it.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

#: Comments in an answer of GitHub, the most it gives.
PAGE = 100


def request(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Asks the REST API about the repository."""
    url = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}"
    asked = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['INPUT_TOKEN']}",
            "Content-Type": "application/json",
            "User-Agent": "vramscope",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)


def comments(number: int) -> Iterator[dict[str, Any]]:
    """All comments of a pull request."""
    page = 1
    while True:
        found = request("GET", f"issues/{number}/comments?per_page={PAGE}&page={page}")
        yield from found
        if len(found) < PAGE:
            return
        page += 1


def comment(number: int, text: str) -> str:
    """Writes the comment, or writes it anew. Returns its address."""
    mark = text.partition("\n")[0]
    # A person can copy the mark into a comment, which stays as it is.
    own = (
        one
        for one in comments(number)
        if one["user"]["type"] == "Bot" and (one["body"] or "").partition("\n")[0].strip() == mark
    )
    before = next(own, None)
    if before is None:
        return str(request("POST", f"issues/{number}/comments", {"body": text})["html_url"])
    return str(request("PATCH", f"issues/comments/{before['id']}", {"body": text})["html_url"])


def main() -> None:
    """Adds the address of the reports to both texts, and publishes them."""
    reports = f"\n[Reports]({os.environ['REPORTS_URL']}) with the viewer and the recordings.\n"
    if not os.environ["REPORTS_URL"]:
        reports = ""
    with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as summary:
        summary.write(pathlib.Path(os.environ["SUMMARY"]).read_text(encoding="utf-8") + reports)
    event = json.loads(pathlib.Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if os.environ["INPUT_COMMENT"].lower() != "true" or "pull_request" not in event:
        return
    text = pathlib.Path(os.environ["COMMENT"]).read_text(encoding="utf-8") + reports
    try:
        print(comment(event["pull_request"]["number"], text))
    except urllib.error.HTTPError as error:
        answer = error.read().decode(errors="replace")
        if error.code != 403:
            sys.exit(f"::error::GitHub answers {error.code} to the comment: {answer}")
        print(
            "::notice::The token may not comment, as for a pull request from a fork, or without "
            f"the permission pull-requests: write. The summary has the text. GitHub says: {answer}"
        )


if __name__ == "__main__":
    main()
