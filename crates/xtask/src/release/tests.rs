//! Tests of what needs no build: the workflows, the list of crates, the list of dependencies.

use super::program::check_list;
use super::rehearsal::{ONLY_A_TAG, matrix, workflow_text};
use super::shipped::check_file;
use super::*;
use crate::{Args, Task, test};
use clap::Parser;

const WORKFLOWS: [&str; 3] = ["ci.yml", "publish.yml", "release.yml"];

fn repo() -> Repo {
    Repo::find().expect("this checkout")
}

fn texts() -> Vec<String> {
    let repo = repo();
    WORKFLOWS.map(|name| workflow_text(&repo, name).expect("a workflow")).into()
}

/// The tasks that a workflow names: `cargo xtask TASK` and `.ci/run STEP`, which is
/// `cargo xtask test STEP`.
fn tasks(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let commands = lines.flat_map(|line| line.split("&&"));
    commands
        .filter_map(|command| {
            if let Some((_, rest)) = command.split_once("cargo xtask") {
                return Some(["xtask"].into_iter().chain(rest.split_whitespace()).collect());
            }
            let (_, rest) = command.split_once(".ci/run")?;
            Some(["xtask", "test"].into_iter().chain(rest.split_whitespace()).collect())
        })
        .collect()
}

#[test]
fn workflows_name_tasks_that_exist() {
    let texts = texts();
    let all: Vec<Vec<&str>> = texts.iter().flat_map(|text| tasks(text)).collect();
    assert!(all.len() >= 8, "{all:?}");
    for task in all {
        let args = Args::try_parse_from(&task).unwrap_or_else(|e| panic!("{task:?}: {e}"));
        if let Task::Test { steps, .. } = args.task {
            test::Selection::Named(steps).check().unwrap_or_else(|e| panic!("{task:?}: {e}"));
        }
    }
}

/// `cargo xtask release --dry-run` makes what the workflows make.
#[test]
fn workflows_make_every_part() {
    let texts = texts();
    let all: Vec<Vec<&str>> = texts.iter().flat_map(|text| tasks(text)).collect();
    for part in Part::value_variants() {
        let name = part.name();
        let made = all.iter().any(|t| t[1] == "release" && t.contains(&name.as_str()));
        assert!(made, "no workflow runs `cargo xtask release {name}`");
    }
}

#[test]
fn what_only_a_tag_does_is_in_the_workflows() {
    let texts = texts();
    for (action, what) in ONLY_A_TAG {
        assert!(texts.iter().any(|text| text.contains(action)), "{action}: {what}");
    }
}

/// Without a tag, only `--dry-run` makes everything.
#[test]
fn a_release_without_dry_run_is_refused() {
    let error = run(&repo(), &Options::default()).expect_err("only a tag publishes").to_string();
    assert!(error.contains("--dry-run"), "{error}");
}

/// A published crate cannot depend on one that is not published.
#[test]
fn published_crates_depend_on_published_ones() {
    let repo = repo();
    let names = published(&repo);
    assert!(names.contains(&"vramscope-cli") && !names.contains(&"xtask"));
    for package in repo.metadata.packages.iter().filter(|p| names.contains(&p.name.as_str())) {
        let own = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
        for needed in own.filter(|d| d.kind != cargo_metadata::DependencyKind::Development) {
            let name = needed.name.as_str();
            assert!(names.contains(&name), "{} depends on {name}", package.name);
        }
    }
    // The converse: a crate that nothing published needs is not published.
    for name in names.iter().filter(|&&name| name != "vramscope-cli") {
        let needs = |package: &cargo_metadata::Package| {
            names.contains(&package.name.as_str())
                && package.dependencies.iter().any(|needed| needed.name == *name)
        };
        assert!(repo.metadata.packages.iter().any(needs), "only the workspace needs {name}");
    }
}

#[test]
fn the_rows_of_a_matrix_have_its_values() {
    let text = "include:\n  - { os: a, target: x-y, linux: true }\n  - { os: b, target: z }\n";
    assert_eq!(matrix(text, "target").collect::<Vec<_>>(), ["x-y", "z"]);
    let repo = repo();
    let targets = workflow_text(&repo, "publish.yml").expect("a workflow");
    assert!(matrix(&targets, "target").any(|target| target == "x86_64-unknown-linux-gnu"));
    let systems = workflow_text(&repo, "release.yml").expect("a workflow");
    assert!(matrix(&systems, "name").any(|name| name == "linux-x86_64"));
}

/// `cargo binstall` finds the archives by the names that the workflow gives them.
#[test]
fn installers_know_the_names_of_the_archives() {
    let repo = repo();
    let workflow = workflow_text(&repo, "release.yml").expect("a workflow");
    let manifest = std::fs::read_to_string(repo.path("crates/vramscope-cli/Cargo.toml"))
        .expect("the manifest of the program");
    for system in matrix(&workflow, "name") {
        let name = format!("/v{{ version }}/vramscope-v{{ version }}-{system}.tar.gz\"");
        assert!(manifest.contains(&name), "{name}");
    }
    assert_eq!(manifest.matches("pkg-url = ").count(), matrix(&workflow, "name").count());
    assert!(matrix(&workflow, "name").any(|name| name == program::system()));
}

#[test]
fn a_list_of_dependencies_names_what_cargo_lock_has() {
    let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"x\"\n";
    let list = |components: &str| format!(r#"{{"components": [{components}]}}"#);
    let named = |name: &str| list(&format!(r#"{{"name": "{name}", "version": "1.0.0"}}"#));
    assert!(check_list(&named("a"), lock).is_ok());
    assert!(check_list(&named("b"), lock).is_err());
    assert!(check_list(&list(""), lock).is_err());
    assert!(check_list("{", lock).is_err());
}

#[test]
fn a_file_that_names_a_folder_of_this_machine_is_refused() {
    let folders = crate::machine::folders(&repo()).expect("folders");
    assert!(folders.len() >= 8, "{folders:?}");
    let check = |bytes: &[u8]| check_file("a.js", bytes, &folders);
    assert!(check(b"/vramscope/crates/x.rs, ../src/y.ts, https://example.org").is_ok());
    for folder in &folders {
        // Texts of a program follow each other without a separator.
        let bytes = [b"\xff\0a message", folder.as_bytes(), b"/x-1.0.0/src/lib.rs\nmore"].concat();
        let error = check(&bytes).expect_err(folder).to_string();
        assert!(error.contains("a.js names") && error.contains(folder.as_str()), "{error}");
        assert!(!error.contains("more"), "{error}");
    }
}

#[test]
fn a_program_for_newer_systems_is_refused() {
    let check = |symbols: &str| check_file("a.so", format!("\x7fELF\0{symbols}").as_bytes(), &[]);
    assert!(check("GLIBC_2.2.5\0GLIBC_2.17\0").is_ok());
    for symbols in ["GLIBC_2.17\0GLIBC_2.18\0", "GLIBC_2.34\0GLIBC_2.4\0", "GLIBC_3.0\0", ""] {
        assert!(check(symbols).is_err(), "{symbols}");
    }
}

/// `cargo install` and `maturin build --release` make what is small, and a module that unwinds.
#[test]
fn the_profile_release_has_no_symbols_and_unwinds() {
    let manifest = std::fs::read_to_string(repo().path("Cargo.toml")).expect("the manifest");
    let profile = |name: &str| {
        let (_, rest) = manifest.split_once(&format!("[profile.{name}]\n")).expect(name);
        rest.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let release = profile("release");
    assert!(release.iter().any(|line| line == "strip = true"), "{release:?}");
    assert!(!release.iter().any(|line| line.starts_with("debug") || line.starts_with("panic")));
    let profiling = ["inherits = \"release\"", "debug = \"line-tables-only\"", "strip = false"];
    assert_eq!(profile("profiling"), profiling);
}
