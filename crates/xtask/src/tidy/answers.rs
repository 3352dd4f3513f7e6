//! Answers are read by their fields: the page neither parses nor sorts them, and session and report
//! parse nothing that was written for a reader.

use super::Source;

/// Code that may do what a rule forbids.
struct Exception {
    /// The file, or a folder with a slash at the end.
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

const RULES: [Rule; 3] = [
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
            ".starts_with(",
            ".split(' ')",
            ".split(\", \")",
        ],
        remedy: "carry a field in the report's record, or parse with a type of the report",
        exceptions: &[
            Exception { file: "coordinator.rs", reason: "paths in an index" },
            Exception { file: "run_order.rs", reason: "paths of the files of a run" },
            Exception { file: "scheduler.rs", reason: "references of blocks in requests" },
            Exception { file: "queries/block_detail.rs", reason: "references of blocks" },
            Exception { file: "queries/code.rs", reason: "terms of a search" },
            Exception { file: "queries/code/places.rs", reason: "names of files in the recording" },
            Exception { file: "queries/fleet.rs", reason: "sizes of groups that the user types" },
            Exception { file: "queries/list.rs", reason: "the filter that the user types" },
            Exception { file: "queries/modules.rs", reason: "names of modules in the recording" },
            Exception { file: "queries/settings.rs", reason: "settings in the recording" },
        ],
    },
    Rule {
        root: "crates/vramscope-report/src/",
        ends: &[".rs"],
        calls: &[
            ".split_once(",
            ".rsplit_once(",
            ".splitn(",
            ".strip_prefix(",
            ".starts_with(",
            ".split(' ')",
            ".split(\", \")",
        ],
        remedy: "carry the parts of a text, or an enum for its meaning",
        exceptions: &[
            Exception { file: "annotate/text.rs", reason: "source code" },
            Exception { file: "check.rs", reason: "conditions that the user types" },
            Exception { file: "check/", reason: "conditions that the user types" },
            Exception { file: "diagnose/runs.rs", reason: "paths" },
            Exception { file: "diagnostic/text.rs", reason: "words, to wrap lines" },
            Exception { file: "diff/cause.rs", reason: "settings in the recording" },
            Exception { file: "explain/", reason: "messages in a log" },
            Exception { file: "export/table.rs", reason: "texts that a spreadsheet would run" },
            Exception { file: "holders/tree.rs", reason: "holders that the user names" },
            Exception { file: "holders/words.rs", reason: "names of functions in the sidecar" },
            Exception { file: "lines/source.rs", reason: "source code" },
            Exception { file: "markdown.rs", reason: "text, to escape it" },
            Exception { file: "modules/", reason: "names of functions in the recording" },
            Exception { file: "rank_of.rs", reason: "paths" },
            Exception { file: "rank_of/", reason: "paths" },
            Exception { file: "redact/", reason: "texts of a recording to hide" },
            Exception { file: "reference.rs", reason: "references of blocks" },
            Exception { file: "search/", reason: "terms that the user types" },
            Exception { file: "shapes/", reason: "shapes and configurations in files" },
            Exception { file: "sidecar.rs", reason: "the version of PyTorch" },
            Exception { file: "sidecar/launch.rs", reason: "command lines in the sidecar" },
            Exception { file: "what_if/edits.rs", reason: "names of functions in the recording" },
            Exception { file: "what_if/options.rs", reason: "changes that the user types" },
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
        let is_in = |of: &str| of == file || of.ends_with('/') && file.starts_with(of);
        let exception = rule.exceptions.iter().find(|exception| is_in(exception.file));
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

/// The forbidden calls of a text with their lines, from 1. A module of tests ends the text.
fn calls(rule: &Rule, text: &str) -> Vec<(usize, &'static str)> {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
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
    fn modules_of_tests_and_folders_of_exceptions_are_exempt() {
        let rule = Rule { exceptions: &[Exception { file: "known/", reason: "a reason" }], ..RULE };
        let tests = "a();\n#[cfg(test)]\nmod tests {\n    a.sort();\n}\n";
        let sources = [source("web/known/a.ts", "a.sort();"), source("web/a.ts", tests)];
        assert!(broken(&rule, &sources).is_empty());
    }

    #[test]
    fn an_exception_that_nothing_needs_is_reported() {
        let found = broken(&RULE, &[source("web/known.ts", "// no call\n")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("remove the exception"), "{found:?}");
    }
}
