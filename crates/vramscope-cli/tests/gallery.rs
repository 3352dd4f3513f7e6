//! The stories of the gallery, `web/site/gallery/cases.json`: the program prints each figure and
//! each place for the recordings of that story, by the commands that the page shows.

use crate::common::{folder, test_data};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Deserialize)]
struct Case {
    slug: String,
    figure: String,
    says: String,
    shows: String,
    files: Vec<String>,
    twins: Vec<String>,
    commands: Vec<String>,
    story: Vec<String>,
}

impl Case {
    fn recordings(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().chain(&self.twins).map(|name| test_data(name))
    }
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/site/gallery/cases.json");
    serde_json::from_slice(&std::fs::read(path).expect("the cases")).expect("JSON of cases")
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// The output of a case's commands in a folder with its recordings.
fn printed(case: &Case) -> String {
    let folder = folder(&format!("gallery/{}", case.slug));
    for path in case.recordings() {
        std::fs::copy(&path, folder.join(name_of(&path))).expect("a recording");
    }
    let mut all = String::new();
    for line in &case.commands {
        // A shell replaces `rank*` by the names of files.
        let arguments = line.split(' ').flat_map(|word| match word.split_once('*') {
            Some((start, end)) => (case.recordings().map(|path| name_of(&path)))
                .filter(|name| name.starts_with(start) && name.ends_with(end))
                .collect(),
            None => vec![word.to_owned()],
        });
        let output = Command::new(env!("CARGO_BIN_EXE_vramscope"))
            .env("COLUMNS", "400")
            .current_dir(&folder)
            .args(arguments)
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        all.push_str(&String::from_utf8_lossy(&output.stdout));
        all.push('\n');
    }
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The figures of a text with their units, such as `4.79 GiB`, `50,304` and `17.4 %`.
fn figures(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let number = word.trim_matches(|c: char| !c.is_ascii_digit());
        if !word.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let next =
            words.get(index + 1).map_or("", |next| next.trim_matches([',', '.', ';', ')', ':']));
        found.push(match next {
            "GiB" | "MiB" | "KiB" | "B" | "%" => format!("{number} {next}"),
            _ => number.to_owned(),
        });
    }
    found
}

/// The parts of a text between backticks that name a line of a file: `train.py:108`.
fn places(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|code| code.contains(".py:"))
}

/// True if the text has this part, and not as a piece of a longer number.
fn states(text: &str, part: &str) -> bool {
    text.match_indices(part).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + part.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_digit() || c == '.' || c == ',')
            && !after.is_some_and(|c| c.is_ascii_digit())
    })
}

#[test]
fn figures_are_found_with_their_units() {
    let text = "Rank 2 has 1.31 GiB (4,096 tokens, 17.4 %), at `a.py:12` 7 times.";
    assert_eq!(figures(text), ["2", "1.31 GiB", "4,096", "17.4 %", "7"]);
    assert!(states("peak 31.31 GiB, 1.31 GiB", "1.31 GiB"));
    assert!(!states("peak 31.31 GiB", "1.31 GiB"));
    assert!(!states("a.py:120", "a.py:12"));
}

#[test]
fn every_figure_of_a_story_is_printed_for_its_recordings() {
    let mut lacks: Vec<String> = Vec::new();
    for case in cases() {
        let Case { slug, story, .. } = &case;
        assert_eq!(story.len(), 5, "{slug}");
        let printed = printed(&case);
        let mut count = 0;
        for text in story.iter().chain([&case.figure, &case.says, &case.shows]) {
            for figure in figures(text) {
                count += 1;
                if !states(&printed, &figure) {
                    lacks.push(format!("{slug}: {figure} of {text:?}"));
                }
            }
            for place in places(text) {
                if !states(&printed, place) {
                    lacks.push(format!("{slug}: {place} of {text:?}"));
                }
            }
        }
        assert!(count >= 4, "{slug} has {count} figures");
    }
    assert!(lacks.is_empty(), "not printed: {lacks:#?}");
}

#[test]
fn the_gallery_has_recordings_of_a_gpu() {
    let cases = cases();
    assert_eq!(cases.len(), 10);
    let real = cases.iter().filter(|case| case.files[0].contains("/real_")).count();
    assert!(real >= 3, "{real}");
}
