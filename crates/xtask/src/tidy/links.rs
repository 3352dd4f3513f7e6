//! Links in Markdown: the file and the heading that a link points to must exist.

use super::{Source, extension};
use std::collections::{BTreeMap, BTreeSet};

/// Relative links and `#anchors` without a target. `names` are all files of the repository, sorted.
pub(super) fn check(sources: &[Source], names: &[String]) -> Vec<String> {
    let pages: Vec<(&str, String)> = sources
        .iter()
        .filter(|s| extension(&s.name) == "md")
        .map(|s| (s.name.as_str(), unfenced(&s.text)))
        .collect();
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(name, text)| (*name, anchors(text))).collect();
    let mut broken = Vec::new();
    for (name, text) in &pages {
        for (line, target) in links(text) {
            if let Some(why) = wrong(name, target, names, &headings) {
                broken.push(format!("{name}:{line} links to {target}: {why}"));
            }
        }
    }
    broken
}

/// Why a link of the page `from` has no target.
fn wrong(
    from: &str,
    target: &str,
    names: &[String],
    headings: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) =
        target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let Some(path) = (if path.is_empty() { Some(from.to_owned()) } else { resolved(from, path) })
    else {
        return Some("the path is outside of the repository");
    };
    let is_folder = || {
        path.is_empty()
            || names.iter().any(|n| n.strip_prefix(&path).is_some_and(|n| n.starts_with('/')))
    };
    if names.binary_search(&path).is_err() && !is_folder() {
        return Some("there is no such file or folder");
    }
    // Anchors of other files, such as lines of code, are up to the host.
    let found =
        |anchor: &str| headings.get(path.as_str()).is_none_or(|known| known.contains(anchor));
    anchor.is_some_and(|anchor| !found(anchor)).then_some("that page has no such heading")
}

/// Resolves a path in the file `from` to one from the root of the repository. `None` when the path
/// leads out of the repository.
fn resolved(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The text with the lines of fenced code blocks emptied.
fn unfenced(text: &str) -> String {
    let mut fence = None;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match fence {
            None if mark.is_some() => fence = mark,
            None => out.push_str(line),
            Some(open)
                if start.trim_end().len() >= 3
                    && start.trim_end().trim_start_matches(&open[..1]).is_empty() =>
            {
                fence = None;
            }
            Some(_) => {}
        }
        out.push('\n');
    }
    out
}

/// Targets of links with their line numbers, from 1: `[text](target)` and `[name]: target`.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let starts_line = at == 0 || text[..at].ends_with('\n');
        let mut step = rest.chars().next().map_or(1, char::len_utf8);
        if rest.starts_with('`') {
            step = code_span(rest);
        } else if let Some(target) = rest.strip_prefix("](").and_then(|after| after.split_once(')'))
        {
            found.extend(first_word(target.0).map(|target| (line, target)));
        } else if starts_line
            && let Some((_, target)) =
                rest.lines().next().and_then(|l| l.strip_prefix('[')?.split_once("]: "))
        {
            found.extend(first_word(target).map(|target| (line, target)));
        }
        line += rest[..step].matches('\n').count();
        at += step;
    }
    found
}

/// A link's target without its title and without angle brackets.
fn first_word(target: &str) -> Option<&str> {
    target.split_whitespace().next().map(|word| word.trim_matches(['<', '>']))
}

/// Length of the code span that begins here, in bytes. Of its opening backticks only, when the
/// paragraph does not close it.
fn code_span(rest: &str) -> usize {
    let ticks = |text: &str| text.len() - text.trim_start_matches('`').len();
    let open = ticks(rest);
    let paragraph = rest.split_once("\n\n").map_or(rest, |(paragraph, _)| paragraph);
    let mut at = open;
    while let Some(next) = paragraph[at..].find('`') {
        let run = ticks(&paragraph[at + next..]);
        at += next + run;
        if run == open {
            return at;
        }
    }
    open
}

/// Anchors of the headings of a page, as GitHub derives them. A repeated heading gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        let title = line.trim_start_matches('#');
        if !matches!(line.len() - title.len(), 1..=6) || !title.starts_with(' ') {
            continue;
        }
        let kept = unlinked(title.trim()).to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let numbered = (1..).map(|n| format!("{anchor}-{n}"));
        if let Some(free) =
            std::iter::once(anchor.clone()).chain(numbered).find(|a| !anchors.contains(a))
        {
            anchors.insert(free);
        }
    }
    anchors
}

/// A heading without the targets of its links.
fn unlinked(title: &str) -> String {
    let mut out = String::new();
    let mut rest = title;
    while let Some((before, after)) = rest.split_once("](") {
        out.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(pages: &[(&str, &str)]) -> Vec<String> {
        let source = |&(name, text): &(&str, &str)| Source { name: name.into(), text: text.into() };
        let sources: Vec<Source> = pages.iter().map(source).collect();
        let mut names: Vec<String> = sources.iter().map(|s| s.name.clone()).collect();
        names.sort();
        check(&sources, &names)
    }

    #[test]
    fn existing_targets_are_accepted() {
        let readme = "# Top\n[a](docs/a.md), [b](docs/), [c](./docs/a.md#two-words \"title\")\n\
                      [d](#top)\n[e](https://x.example/#y)\n";
        let page = "# A\n\n## Two words\n\n[up](../README.md) and [code](../src/lib.rs#L3)\n";
        assert_eq!(
            broken(&[("README.md", readme), ("docs/a.md", page), ("src/lib.rs", "")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn missing_targets_are_named_with_their_line() {
        let page = "text\n\n[a](b.md)\n[c](#no)\n[d](../../out.md)\n![e](doc)\n[f]: gone.md\n";
        let found = broken(&[("docs/a.md", page)]);
        let expected = [
            "docs/a.md:3 links to b.md: there is no such file or folder",
            "docs/a.md:4 links to #no: that page has no such heading",
            "docs/a.md:5 links to ../../out.md: the path is outside of the repository",
            "docs/a.md:6 links to doc: there is no such file or folder",
            "docs/a.md:7 links to gone.md: there is no such file or folder",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn code_contains_no_links() {
        let page =
            "`[a](b.md)` ``x ` [c](d.md)`` `\n```md\n# No\n[e](f.md)\n``` no end\n```\n[g](#no)\n";
        assert_eq!(
            broken(&[("a.md", page)]),
            ["a.md:7 links to #no: that page has no such heading"]
        );
        // An unclosed backtick starts no code.
        assert_eq!(broken(&[("a.md", "` [a](b.md)\n\n`\n")]).len(), 1);
    }

    #[test]
    fn anchors_are_derived_as_github_does() {
        let text = "# The program `vramscope`\n## Dump on OOM: `a_b`, (c)\n\
                    ## [Linked](x.md) one\n## Same\n### Same\n#no\n####### no\n";
        let expected =
            ["dump-on-oom-a_b-c", "linked-one", "same", "same-1", "the-program-vramscope"];
        assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), expected);
    }
}
