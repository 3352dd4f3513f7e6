//! `vramscope explain`: its texts, and where it reads its message.

use crate::common::vramscope;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// A message of PyTorch 2.7 beside another process, as vLLM logs it.
const MESSAGE: &str = "(EngineCore_DP0 pid=39535) ERROR 03-03 19:38:29 [core.py:708] \
    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 has a total \
    capacity of 79.33 GiB of which 508.44 MiB is free. Process 62912 has 494.00 MiB memory in use. \
    Process 113443 has 78.33 GiB memory in use. Of the allocated memory 74.24 GiB is allocated by \
    PyTorch, with 57.88 MiB allocated in private pools (e.g., CUDA Graphs), and 185.89 MiB is \
    reserved by PyTorch but unallocated.";

fn output(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    let command = command.arg("explain").args(arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A message on the command line is all that is read.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

fn run(arguments: &[&str], input: &str) -> String {
    let output = output(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_message_has_a_text() {
    assert_golden!("explain__text", run(&[MESSAGE], ""));
}

#[test]
fn a_message_has_a_json() {
    assert_golden!("explain__json", run(&[MESSAGE, "--format", "json"], ""));
}

#[test]
fn a_message_has_a_markdown() {
    assert_golden!("explain__markdown", run(&[MESSAGE, "--format", "markdown"], ""));
}

#[test]
fn a_name_in_an_answer_is_explained() {
    let text = run(&["growth"], "");
    assert!(text.starts_with("Growth\n\nA memory leak: live bytes grow"), "{text}");
    let markdown = run(&["lost_free", "--format", "markdown"], "");
    assert!(markdown.starts_with("# Lost free (`lost_free`)\n\nAn allocation on"), "{markdown}");
    // A recipe has the text of its change.
    assert_eq!(run(&["batch:0.5"], ""), run(&["batch:K"], ""));
    let json: Value = serde_json::from_str(&run(&["few_steps", "--format", "json"], ""))
        .expect("JSON of one object");
    assert_eq!((&json["kind"], &json["name"]), (&json!("blind_spot"), &json!("few_steps")));
    let schema: Value =
        serde_json::from_slice(&vramscope(&["schema", "explain"], &[]).stdout).expect("a schema");
    assert!(jsonschema::is_valid(&schema, &json));
}

#[test]
fn names_are_listed_and_each_has_a_text() {
    let list = run(&["--list"], "");
    let names: Vec<&str> = list.lines().filter_map(|line| line[12..].split("  ").next()).collect();
    assert!(names.len() > 80, "{list}");
    for name in ["oom", "ring_overrun", "carving", "checkpoint:all"] {
        assert!(names.contains(&name), "{name}: {list}");
    }
    let text = run(&["checkpoint:all"], "");
    assert!(text.contains("The measured error of the active peak is 5 %."), "{text}");
}

#[test]
fn a_log_comes_from_standard_input() {
    let mut log = String::from("step 1\nstep 2\n");
    for rank in 0..4 {
        writeln!(
            log,
            "[rank{rank}]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU \
             {rank}; 15.78 GiB total capacity; 14.30 GiB already allocated; 12.75 MiB free; 14.67 \
             GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try \
             setting max_split_size_mb to avoid fragmentation."
        )
        .expect("a String takes all text");
    }
    log += "node0:31:44 [2] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n";
    assert_golden!("explain__log", run(&[], &log));
}

#[test]
fn a_text_without_a_message_is_answered() {
    assert_eq!(run(&[], "a\nb\n"), "no out-of-memory message found in 2 lines\n");
    let file = output(&["Cargo.toml"], "");
    assert_eq!(String::from_utf8_lossy(&file.stdout).lines().count(), 1);
    let hint = String::from_utf8_lossy(&file.stderr).into_owned();
    assert!(hint.contains("vramscope explain < Cargo.toml"), "{hint}");
}

#[test]
fn a_dash_is_standard_input_and_a_cut_message_says_where_it_ends() {
    let (cut, _) = MESSAGE.split_once(" allocated by PyTorch").expect("a figure");
    let log = format!("step 1\n{cut}\nstep 2\n");
    let text = run(&["-"], &log);
    assert_eq!(text, run(&[], &log));
    assert!(text.contains("error[oom]: GPU 0: 594.0 MiB asked"), "{text}");
    let end =
        "note: the message ends before the figure: reserved but unallocated. Paste all of it.";
    assert!(text.contains(end), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&run(&["-", "--format", "json"], &log)).expect("JSON");
    let message = &json["messages"][0];
    assert_eq!(message["missing"], serde_json::json!(["unallocated"]));
    assert_eq!((message["bar"].is_null(), &message["line"]), (false, &serde_json::json!(2)));
}
