//! Answers in JSON have the fields that `vramscope schema` says, and no others.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

const GPT: &str = "recorded/t26/gpt_small.pickle.gz";
const LEAK: &str = "recorded/gpt_leak.pickle.gz";
const OOM: &str = "recorded/oom_expandable.pickle.gz";
const STEP: &str = "truth/gpt_step.pickle.gz";
const USES: &str = "beside/uses_kept/rank0_memory_snapshot.pickle.gz";
const RANKS: &str = "recorded/ranks_fsdp";
const SKEW: &str = "findings/ranks_fsdp2_skew";

const MESSAGE: &str = "CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 has a total \
    capacity of 79.33 GiB of which 508.44 MiB is free. Process 62912 has 494.00 MiB memory in use. \
    Process 113443 has 78.33 GiB memory in use. Of the allocated memory 74.24 GiB is allocated by \
    PyTorch, and 185.89 MiB is reserved by PyTorch but unallocated.";
const CACHE: &str = "[rank1]: ValueError: The model's max seq len (4096) is larger than the \
    maximum number of tokens that can be stored in KV cache (3664).";

/// Answers that together have all parts of the reports.
const ANSWERS: &[&[&str]] = &[
    &["summary", GPT, "recorded/misc/norecord.pickle"],
    &["summary", RANKS],
    &["peak", GPT],
    &["peak", STEP, "--by", "line"],
    &["peak", GPT, "--tree"],
    &["peak", LEAK, "--by", "shape"],
    &["peak", "truth/resnet18_step.pickle.gz", "--by", "shape"],
    &["peak", STEP, "--by", "module"],
    &["peak", STEP, "--by", "use"],
    &["peak", USES, "--by", "use", "--limit", "3"],
    &["diagnose", USES, "--all"],
    &["peak", GPT, "--band", "reserved"],
    &["steps", STEP],
    &["steps", "findings/s2_one_step_24_layers.pickle.gz"],
    &["steps", LEAK],
    &["source", LEAK],
    &["source", "beside/oom_1/rank3_memory_snapshot.pickle", "--at", "20", "--all"],
    &["state", GPT],
    &["state", GPT, "--from", "5", "--to", "peak"],
    &["blocks", GPT, "--limit", "50"],
    &["segments", OOM, "--curve", "4"],
    &["events", GPT, "--limit", "200"],
    &["diagnose", OOM],
    &["explain", MESSAGE],
    &["explain", CACHE],
    &["diagnose", SKEW],
    &["diagnose", "--all", LEAK, OOM],
    &["diagnose", "--all", SKEW],
    &["ranks", RANKS],
    &["what-if", "what_if/varlen_tight_default.pickle.gz"],
    &["what-if", GPT],
    &["what-if", RANKS],
    &["diff", GPT, "recorded/t20/linear_seed_python.pickle"],
    &["diff", LEAK, GPT],
    &["diff", LEAK, "--from", "start", "--to", "peak"],
    &["show", "category:activation", LEAK],
    &["show", "reserved-0-peak", LEAK],
    &["info", GPT],
    &["info", "recorded/gpt_max_split.pickle.gz"],
];

fn json(arguments: &[&str]) -> Value {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data");
    let resolve = |a: &&str| match data.join(a) {
        path if a.contains('/') && path.exists() => path.into_os_string(),
        _ => (*a).into(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    let output = command.args(arguments.iter().map(resolve)).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

/// Forbids fields that a schema does not name.
fn forbid_others(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(forbid_others);
            if map.contains_key("properties") {
                map.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(all) => all.iter_mut().for_each(forbid_others),
        _ => {}
    }
}

#[test]
fn answers_have_the_fields_of_their_schema() {
    let of_command = ANSWERS.iter().map(|&arguments| (arguments[0], arguments));
    // A snapshot without memory has one answer.
    let nothing = ["peak", "segments", "what-if"].map(|command| [command, "edge/nothing.pickle"]);
    for (schema, arguments) in of_command.chain(nothing.iter().map(|of| ("none", &of[..]))) {
        let mut schema = json(&["schema", schema]);
        assert!(schema["description"].is_string(), "{arguments:?}: what the answer is");
        forbid_others(&mut schema);
        let validator = jsonschema::validator_for(&schema).expect("a JSON Schema");
        let answer = json(&[arguments, &["--format", "json"][..]].concat());
        let errors: Vec<String> = validator
            .iter_errors(&answer)
            .map(|error| format!("{}: {error}", error.instance_path()).chars().take(400).collect())
            .take(5)
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{arguments:?}");
    }
}

#[test]
fn every_command_with_an_answer_has_a_schema_and_a_test() {
    let all = Command::new(env!("CARGO_BIN_EXE_vramscope")).args(["help", "--all"]).output();
    let all = String::from_utf8(all.expect("it runs").stdout).expect("UTF-8");
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let mut commands: BTreeSet<&str> =
        commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    // Further lines about a command.
    commands.remove("");
    let others = "completions dry-run export fix help mcp record schema serve skill";
    for other in others.split(' ') {
        assert!(commands.remove(other), "{other}");
    }
    // It needs DuckDB: the tests of `sql` have its schema.
    assert!(commands.remove("sql"));
    let tested: BTreeSet<&str> = ANSWERS.iter().map(|arguments| arguments[0]).collect();
    assert_eq!(commands, tested);
}

#[test]
fn a_missing_field_and_a_foreign_field_break_the_schema() {
    let mut schema = json(&["schema", "state"]);
    forbid_others(&mut schema);
    let validator = jsonschema::validator_for(&schema).expect("a JSON Schema");
    let answer = json(&["state", GPT, "--format", "json"]);
    assert!(validator.is_valid(&answer));
    let mut less = answer.clone();
    less.as_object_mut().expect("an object").remove("blocks");
    assert!(!validator.is_valid(&less));
    let mut more = answer;
    more["foreign"] = 1.into();
    assert!(!validator.is_valid(&more));
}
