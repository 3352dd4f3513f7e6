//! Runs commands over folders: files that are no snapshots, damaged snapshots, links and loops.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

const SNAPSHOT: &str = "rank0_memory_snapshot.pickle";

fn test_data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name)
}

fn vramscope<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command.args(arguments).output().expect("the program runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A temporary copy of `run_folder`, removed on drop.
struct Run(PathBuf);

impl Run {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("vramscope-folders-{name}-{}", std::process::id()));
        // A folder of an earlier process with this number may be left.
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).expect("a temporary folder");
        for entry in fs::read_dir(test_data("run_folder")).expect("the run folder") {
            let from = entry.expect("an entry").path();
            fs::copy(&from, path.join(from.file_name().expect("a name"))).expect("a copy");
        }
        Self(path)
    }

    fn put(&self, name: &str, from: &Path) {
        fs::copy(from, self.0.join(name)).expect("a copy");
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a path")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn foreign_files_of_a_folder_are_skipped_in_one_line() {
    let folder = test_data("run_folder");
    let folder = folder.to_str().expect("a path");
    for command in ["summary", "diagnose", "info"] {
        let output = vramscope(&[command, folder, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert_eq!(stderr(&output), "vramscope: 5 other files skipped\n", "{command}");
    }
    for command in ["summary", "info"] {
        let report = json(&vramscope(&[command, folder, "--format", "json"]));
        assert_eq!(report["skipped_files"], 5);
        assert_eq!(report["files"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_named_foreign_file_is_an_error() {
    let run = Run::new("named");
    let config = run.0.join("config.json");
    let alone = vramscope(&["summary".as_ref(), config.as_os_str()]);
    assert_eq!(alone.status.code(), Some(2));
    // Also where its folder is named as well.
    let both = vramscope(&["summary".as_ref(), run.0.as_os_str(), config.as_os_str()]);
    assert_eq!(both.status.code(), Some(2));
    let text = stderr(&both);
    assert!(text.contains("config.json: this is not a memory snapshot"), "{text}");
    assert!(text.contains("4 other files skipped"), "{text}");
}

#[test]
fn a_damaged_snapshot_in_a_folder_is_an_error() {
    for (name, from) in [
        ("rank1.pickle", "damaged/truncated.pickle"),
        ("rank1.pickle", "damaged/flipped.pickle"),
        ("rank1.pickle", "damaged/empty.pickle"),
        ("rank1.pickle.gz", "containers/cut.pickle.gz"),
        ("rank1.json", "containers/cut.json"),
        ("rank1.html", "containers/page_broken.html"),
    ] {
        let run = Run::new("damaged");
        run.put(name, &test_data(from));
        let output = vramscope(&["summary", run.text(), "--format", "json"]);
        assert_eq!(output.status.code(), Some(2), "{from}");
        let text = stderr(&output);
        assert!(text.contains(name) && text.contains("5 other files skipped"), "{from}: {text}");
        let files = json(&output)["files"].clone();
        let errors: Vec<&Value> = files
            .as_array()
            .expect("a list")
            .iter()
            .map(|file| &file["error"])
            .filter(|error| !error.is_null())
            .collect();
        assert_eq!(errors.len(), 1, "{from}");
        assert_eq!(errors[0]["kind"], "damaged", "{from}");
    }
}

#[test]
fn other_formats_are_no_snapshots() {
    for from in [
        "containers/archive.zip",
        "containers/checkpoint.pt",
        "containers/checkpoint_legacy.pt",
        "containers/other.json",
        "containers/other_segments.json",
        "containers/page.html",
        "containers/memory_timeline.html",
        "damaged/text.pickle",
        "damaged/other.pickle",
        "damaged/number.pickle",
    ] {
        let output = vramscope(&[
            "summary".as_ref(),
            test_data(from).as_os_str(),
            "--format".as_ref(),
            "json".as_ref(),
        ]);
        assert_eq!(output.status.code(), Some(2), "{from}");
        assert_eq!(json(&output)["files"][0]["error"]["kind"], "no_snapshot", "{from}");
    }
    let page = test_data("containers/memory_timeline.html");
    let output = vramscope(&["summary".as_ref(), page.as_os_str()]);
    let text = stderr(&output);
    assert!(
        text.contains("a picture of torch.profiler's export_memory_timeline; it holds no allocat"),
        "{text}"
    );
}

#[test]
fn a_folder_without_a_snapshot_is_an_error() {
    let run = Run::new("none");
    fs::remove_file(run.0.join(SNAPSHOT)).expect("it can be removed");
    let output = vramscope(&["summary", run.text()]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.contains("5 other files skipped") && text.contains("no snapshots found"),
        "{text}"
    );
}

/// `info` printed an answer without files, and no command named a folder without snapshots.
#[test]
fn paths_without_a_snapshot_are_named_and_have_no_answer() {
    let run = Run::new("named");
    let empty = run.0.join("empty");
    fs::create_dir(&empty).expect("a folder");
    let empty = empty.to_str().expect("a path");
    let snapshot = run.0.join(SNAPSHOT);
    let snapshot = snapshot.to_str().expect("a path");
    let of_one =
        [vec!["info"], vec!["ranks"], vec!["peak"], vec!["what-if"], vec!["diff", snapshot]];
    for command in of_one {
        let output = vramscope(&[&command[..], &[empty, "--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(output.stdout.is_empty(), "{command:?}");
        let text = stderr(&output);
        assert!(text.contains(&format!("{empty}: no snapshots found")), "{command:?}: {text}");
    }
    // One that can be read has an answer, and the other is named.
    let output = vramscope(&["info", snapshot, empty, "--format", "json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stdout.is_empty() && stderr(&output).contains(&format!("{empty}: no")));
}

#[test]
fn a_failed_check_is_not_masked_by_foreign_files() {
    let (a, b) = (Run::new("before"), Run::new("after"));
    for (run, from) in
        [(&a, "recorded/t26/gpt_small.pickle.gz"), (&b, "recorded/gpt_leak.pickle.gz")]
    {
        fs::remove_file(run.0.join(SNAPSHOT)).expect("it can be removed");
        run.put("rank0.pickle.gz", &test_data(from));
    }
    let check = |expression: &str| {
        let arguments = ["diff", a.text(), b.text(), "--fail-on", expression, "--format", "json"];
        vramscope(&arguments)
    };
    let output = check("peak>+2%");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("10 other files skipped"));
    assert_eq!(json(&output)["skipped_files"], 10);
    assert_eq!(check("peak>+90%").status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_file_that_is_reached_twice_counts_once() {
    use std::os::unix::fs::symlink;
    let run = Run::new("links");
    let file = run.0.join(SNAPSHOT);
    let below = run.0.join("below");
    fs::create_dir(&below).expect("a folder");
    symlink("..", below.join("loop")).expect("a link");
    symlink(&file, below.join("rank0.pickle")).expect("a link");
    fs::hard_link(&file, below.join("hard.pickle")).expect("a link");
    let folder = run.0.as_os_str();
    let output = vramscope(&[
        "summary".as_ref(),
        folder,
        file.as_os_str(),
        folder,
        below.as_os_str(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let files = json(&output)["files"].clone();
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{files}");
    assert!(stderr(&output).contains("5 other files skipped"), "{}", stderr(&output));
    // The two sides of a comparison may be one folder.
    assert_eq!(vramscope(&["diff".as_ref(), folder, folder]).status.code(), Some(0));
}

/// Runs a program that is not root, even if the tests are. Root reads everything.
#[cfg(unix)]
fn vramscope_as_user(folder: &Path, arguments: &[&str]) -> Output {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let program = folder.join("vramscope");
    fs::copy(env!("CARGO_BIN_EXE_vramscope"), &program).expect("a copy of the program");
    let is_root = fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t")));
    let mut command = Command::new(program);
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.args(arguments).current_dir("/");
    // Linux starts no program that is open for writing. A process that another test forks has the
    // copy open until it starts its own program.
    let is_busy = |result: &io::Result<Output>| {
        result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ExecutableFileBusy)
    };
    let mut result = command.output();
    for _ in 0..100 {
        if !is_busy(&result) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        result = command.output();
    }
    result.expect("the program runs")
}

#[test]
#[cfg(unix)]
fn a_folder_that_cannot_be_listed_hides_no_other_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let run = Run::new("unreadable");
    let tools = Run::new("unreadable-program");
    let closed = run.0.join("closed");
    fs::create_dir(&closed).expect("a folder");
    run.put("closed/rank9.pickle", &run.0.join(SNAPSHOT));
    let set = |mode: u32| fs::set_permissions(&closed, fs::Permissions::from_mode(mode));
    set(0o000).expect("permissions can be set");
    let output = vramscope_as_user(&tools.0, &["summary", run.text(), "--format", "json"]);
    set(0o755).expect("permissions can be set");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let named = format!("{}: cannot read the folder: Permission denied", closed.display());
    assert!(stderr(&output).contains(&named), "{}", stderr(&output));
    let files = json(&output)["files"].as_array().expect("files").clone();
    let read = |file: &&Value| file["error"].is_null();
    assert!(files.iter().filter(read).count() > 0, "{files:?}");
}
