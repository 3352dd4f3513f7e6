//! Answers are read by their fields: the page neither parses nor sorts them, and the session parses
//! nothing that a report wrote for a reader.

use super::Source;

/// Code that may do what a rule forbids.
struct Exception {
    /// The file.
    file: &'static str,
    /// What the code reads or orders instead of an answer.
    reason: &'static str,
}

/// Calls that a rule forbids in a part of the code.
struct Rule {
    /// The start of the files' names.
    root: &'static str,
    /// The ends of the files' names.
    ends: &'static [&'static str],
    /// The calls.
    calls: &'static [&'static str],
    /// The remedy.
    remedy: &'static str,
    /// The files that may have the calls.
    exceptions: &'static [Exception],
}

const RULES: [Rule; 2] = [
    Rule {
        root: "web/viewer/src/",
        ends: &[".ts", ".tsx"],
        calls: &["JSON.parse(", ".sort(", ".toSorted("],
        remedy: "let Rust answer in the form and order in which it is shown",
        exceptions: &[
            Exception { file: "host/consent.ts", reason: "the page's own local storage" },
            Exception { file: "run-store.ts", reason: "files of the run, by their numbers" },
            Exception { file: "view-selection.ts", reason: "markers that the user set" },
            Exception {
                file: "places/compare/compare-pair.ts",
                reason: "rows of the run, to choose two",
            },
        ],
    },
    Rule {
        root: "crates/vramscope-session/src/",
        ends: &[".rs"],
        calls: &[
            ".parse()",
            ".parse::<",
            "from_str_radix(",
            ".split_once(",
            ".rsplit_once(",
            ".splitn(",
            ".strip_prefix(",
        ],
        remedy: "carry a field in the report's record, or parse with a type of the report",
        exceptions: &[
            Exception { file: "coordinator.rs", reason: "paths in an index" },
            Exception { file: "run_order.rs", reason: "paths of the files of a run" },
            Exception { file: "scheduler.rs", reason: "references of blocks in requests" },
            Exception { file: "queries/block_detail.rs", reason: "references of blocks" },
            Exception { file: "queries/fleet.rs", reason: "sizes of groups that the user types" },
            Exception { file: "queries/list.rs", reason: "the filter that the user types" },
            Exception { file: "queries/settings.rs", reason: "settings in the recording" },
        ],
    },
];

/// Calls that a rule forbids, and exceptions that nothing needs any more.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    RULES.iter().flat_map(|rule| broken(rule, sources)).collect()
}

fn broken(rule: &Rule, sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut needed: Vec<&str> = Vec::new();
    for source in sources {
        let Some(file) = source.name.strip_prefix(rule.root).filter(|file| is_product(rule, file))
        else {
            continue;
        };
        let exception = rule.exceptions.iter().find(|exception| exception.file == file);
        for (line, call) in calls(rule, &source.text) {
            match exception {
                Some(Exception { file, .. }) => needed.push(file),
                None => broken.push(format!("{}:{line} has {call}: {}", source.name, rule.remedy)),
            }
        }
    }
    for Exception { file, reason } in rule.exceptions.iter().filter(|e| !needed.contains(&e.file)) {
        broken.push(format!(
            "tidy/answers.rs lets {}{file} read {reason}: it does not, so remove the exception",
            rule.root
        ));
    }
    broken
}

/// Whether a file is product code: no test, and not generated.
fn is_product(rule: &Rule, file: &str) -> bool {
    let is_test = file.ends_with(".test.ts") || file.ends_with("tests.rs");
    rule.ends.iter().any(|end| file.ends_with(end)) && !is_test && !file.contains("generated/")
}

/// The forbidden calls of a text with their lines, from 1.
fn calls(rule: &Rule, text: &str) -> Vec<(usize, &'static str)> {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    let of_line = |(number, line): (usize, &str)| {
        let code = code(line);
        let found = rule.calls.iter().filter(move |call| code.contains(**call));
        found.map(move |call| (number, *call)).collect::<Vec<_>>()
    };
    (1..).zip(text.lines()).flat_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        root: "web/",
        ends: &[".ts"],
        calls: &[".sort("],
        remedy: "remedy",
        exceptions: &[Exception { file: "known.ts", reason: "a reason" }],
    };

    fn source(name: &str, text: &str) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    #[test]
    fn calls_are_found_in_code() {
        let text = "// a.sort()\nrows\n  .sort(by);\n";
        let sources = [source("web/a.ts", text), source("web/known.ts", text)];
        assert_eq!(broken(&RULE, &sources), ["web/a.ts:3 has .sort(: remedy"]);
    }

    #[test]
    fn tests_and_generated_files_are_exempt() {
        let names = ["web/a.test.ts", "web/generated/a.ts", "other/a.ts", "web/a.md"];
        let mut sources = Vec::from(names.map(|name| source(name, "a.sort();")));
        sources.push(source("web/known.ts", "a.sort();"));
        assert!(broken(&RULE, &sources).is_empty());
    }

    #[test]
    fn an_exception_that_nothing_needs_is_reported() {
        let found = broken(&RULE, &[source("web/known.ts", "// no call\n")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("remove the exception"), "{found:?}");
    }
}
