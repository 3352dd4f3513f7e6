//! Adds a finding and a change of the program to a copy of the tree, by the recipes of
//! ARCHITECTURE.md, and checks what follows from the lists: tests, answers, schemas and documents.

use crate::{cmd, files, repo::Repo};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Files by their names.
type Tree = BTreeMap<String, Vec<u8>>;

const FINDING: &str = "crates/vramscope-inference/src/claims/findings/large_block.rs";
const FINDINGS: &str = "crates/vramscope-inference/src/claims/findings/mod.rs";
const PAGE: &str = "crates/vramscope-inference/src/claims/findings/pages/large_block.md";
const CHANGE: &str = "crates/vramscope-inference/src/claims/changes/optimizer_lean.rs";
const CHANGES: &str = "crates/vramscope-inference/src/claims/changes/mod.rs";
const TWINS: &str = "test_data/recipes/manifest.json";

/// A list, the text that follows a row, and the row.
const ROWS: [(&str, &str, &str); 5] = [
    (FINDINGS, "mod no_grad;\n", "mod large_block;\n"),
    (
        FINDINGS,
        "        }\n    };\n}\npub(super) use all_findings;",
        "            /// One block that makes half of the peak.\n            \
         LargeBlock: \"large_block\", \"Large block\", Blocks => [\n                \
         LargeBlock(super::large_block::LargeBlock)\n            ];\n",
    ),
    (
        FINDINGS,
        "        }\n    };\n}\npub(super) use all_detectors;",
        "            LargeBlock: Gpu, large_block::large_block();\n",
    ),
    (CHANGES, "mod optimizer_muon;\n", "mod optimizer_lean;\n"),
    (CHANGES, "    &optimizer_muon::MUON,\n", "    &optimizer_lean::LEAN,\n"),
];

/// A recording with the finding, and one of a program that was recorded with the change, too.
const RECORDINGS: [&str; 2] =
    ["test_data/findings/side_stream_strands.pickle.gz", "test_data/recipes/ddp.pickle.gz"];

pub(crate) fn run(repo: &Repo) -> Result<()> {
    println!("\n==> rooms: a finding and a change, added to a copy of the tree");
    let mut tree = Tree::new();
    for name in files::tracked(repo)?.into_iter().filter(|name| !name.starts_with("web/")) {
        let bytes = std::fs::read(repo.path(&name))?;
        tree.insert(name, bytes);
    }
    add(&mut tree)?;
    let root = repo.target.join("rooms");
    for (name, bytes) in &tree {
        files::update(&root.join(name), bytes)?;
    }
    let cargo = |args: &[&str]| {
        let mut cargo = cmd::cargo(args, &root);
        cargo.env("CARGO_TARGET_DIR", root.join("target"));
        cargo
    };
    let report = ["test", "--quiet", "--package", "vramscope-report", "--test", "all"];
    cmd::run(&mut cargo(&[
        "test",
        "--quiet",
        "-p",
        "vramscope-inference",
        "--lib",
        "large_block",
    ]))?;
    cmd::run(cargo(&report).args(["recipes::peaks_of_changed"]))?;
    cmd::run(cargo(&report).args(["lists::"]).env("UPDATE_DOCUMENTS", "1"))?;
    cmd::run(&mut cargo(&["build", "--quiet", "--package", "vramscope-cli"]))?;
    let program = root.join("target/debug/vramscope");
    let script = ["-B", "scripts/reference.py"];
    cmd::run(cmd::command("python3", &script, &root).arg(&program).arg(root.join("reference")))?;
    check(&root, &program)
}

/// Adds the two rooms, their rows and the twin.
fn add(tree: &mut Tree) -> Result<()> {
    tree.insert(FINDING.to_owned(), include_bytes!("rooms/large_block.rs").to_vec());
    tree.insert(PAGE.to_owned(), b"One block makes half of the peak.\n".to_vec());
    tree.insert(CHANGE.to_owned(), include_bytes!("rooms/optimizer_lean.rs").to_vec());
    for (name, before, row) in ROWS {
        let bytes = tree.get_mut(name).with_context(|| format!("{name} is missing"))?;
        let text = std::str::from_utf8(bytes)?;
        ensure!(text.matches(before).count() == 1, "{name} has not one `{}`", before.trim());
        *bytes = text.replace(before, &format!("{row}{before}")).into_bytes();
    }
    let bytes = tree.get_mut(TWINS).with_context(|| format!("{TWINS} is missing"))?;
    let mut twins: Value = serde_json::from_slice(bytes)?;
    let programs = twins["programs"].as_array_mut().context("the programs of twins")?;
    for program in programs {
        // The change is one that exists, so it needs what that one needs.
        let pairs = program["pairs"].as_array_mut().context("the changes of a program")?;
        let found = pairs.iter().find(|pair| pair["recipe"] == "optimizer:sgd").cloned();
        if let Some(mut pair) = found {
            pair["recipe"] = "optimizer:lean".into();
            pairs.push(pair);
        }
    }
    *bytes = serde_json::to_vec(&twins)?;
    Ok(())
}

/// Checks that documents and answers have both.
fn check(root: &Path, program: &Path) -> Result<()> {
    let read = |name: &str| {
        let path = root.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let program = program.to_string_lossy();
    let ask = |args: &[&str]| cmd::output(&mut cmd::command(&program, args, root));
    let [fires, changed] = RECORDINGS;
    let lean = ["what-if", changed, "--apply", "optimizer:lean", "--format", "json"];
    let seen = [
        ("findings.md", read("reference/findings.md")?, "**Large block.** One block makes half"),
        ("json.md", read("reference/json.md")?, "| `large_block` | One block that makes half"),
        ("names.py", read("python/vramscope/reader/names.py")?, "\"large_block\","),
        ("changes.md", read("reference/changes.md")?, "## `optimizer:lean`"),
        ("the schema", ask(&["schema", "diagnose"])?, "\"large_block\""),
        (
            "diagnose",
            ask(&["diagnose", fires, "--format", "json"])?,
            "One block makes half of the peak",
        ),
        ("what-if", ask(&lean)?, "optimizer = Lean(model.parameters(), lr=lr)"),
    ];
    for (what, text, expected) in seen {
        if !text.contains(expected) {
            bail!("{what} has no `{expected}`");
        }
    }
    println!("a finding and a change of three files each have answers, schemas and documents");
    Ok(())
}
