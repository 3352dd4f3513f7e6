//! Compares the output of every command with committed files, mostly for a recording of 33 events.
//!
//! `INSTA_UPDATE=always cargo test -p vramscope-cli --test program golden` rewrites the files.

use std::path::PathBuf;
use std::process::Command;

const FILE: &str = "recorded/t26/linear_seed_python.pickle";
const ENGINE: &str = "serving/serve.pickle.gz";
const USES: &str = "beside/uses_kept/rank0_memory_snapshot.pickle.gz";

fn run(arguments: &[&str]) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    // Relative paths make the printed paths equal on every machine, and so does the width.
    let output = command
        .env("COLUMNS", "100")
        .current_dir(root)
        .args(arguments)
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

macro_rules! golden {
    ($name:ident, $($argument:expr),+) => {
        #[test]
        fn $name() {
            assert_golden!(concat!("golden__", stringify!($name)), run(&[$($argument),+]));
        }
    };
}

golden!(summary_text, "summary", FILE);
golden!(summary_json, "summary", FILE, "--format", "json");
golden!(peak_text, "peak", FILE);
golden!(peak_lines_text, "peak", "recorded/gpt_leak.pickle.gz", "--by", "line", "--limit", "8");
golden!(peak_json, "peak", FILE, "--format", "json");
golden!(peak_phase_text, "peak", "truth/gpt_step.pickle.gz", "--limit", "3");
golden!(steps_phases_text, "steps", "truth/gpt_step.pickle.gz", "--limit", "2");
golden!(steps_next_text, "steps", "findings/s2_one_step_24_layers.pickle.gz");
golden!(what_if_text, "what-if", "what_if/varlen_tight_default.pickle.gz");
golden!(
    what_if_json,
    "what-if",
    "what_if/varlen_tight_expandable.pickle.gz",
    "--change",
    "roundup_power2_divisions:4",
    "--format",
    "json"
);
golden!(
    what_if_apply_text,
    "what-if",
    "recorded/t26/gpt_small.pickle.gz",
    "--apply",
    "batch:0.5,checkpoint:all"
);
golden!(what_if_declined_text, "what-if", FILE);
golden!(
    what_if_serving_text,
    "what-if",
    ENGINE,
    "--device-memory",
    "A100-80GB",
    "--length",
    "8192",
    "--cache-tokens",
    "1,079,152"
);
golden!(what_if_serving_json, "what-if", ENGINE, "--set", "", "--format", "json");
golden!(peak_serving_text, "peak", ENGINE, "--by", "pool");
golden!(diagnose_serving_text, "diagnose", ENGINE);
golden!(
    steps_phases_json,
    "steps",
    "truth/resnet18_step.pickle.gz",
    "--limit",
    "1",
    "--format",
    "json"
);
golden!(steps_text, "steps", "recorded/gpt_leak.pickle.gz", "--limit", "3");
golden!(steps_json, "steps", "truth/gpt_step.pickle.gz", "--format", "json");
golden!(steps_none_text, "steps", FILE);
golden!(peak_shapes_text, "peak", "recorded/gpt_leak.pickle.gz", "--by", "shape", "--limit", "6");
golden!(peak_shapes_refused_text, "peak", "truth/resnet18_step.pickle.gz", "--by", "shape");
golden!(
    peak_shapes_json,
    "peak",
    "truth/gpt_step.pickle.gz",
    "--by",
    "shape",
    "--limit",
    "2",
    "--format",
    "json"
);
golden!(peak_modules_text, "peak", "truth/gpt_step.pickle.gz", "--by", "module", "--at", "1000");
golden!(peak_modules_none_text, "peak", "recorded/misc/norecord.pickle", "--by", "module");
golden!(
    peak_modules_named_json,
    "peak",
    "beside/exit/rank3_memory_snapshot.pickle",
    "--by",
    "module",
    "--limit",
    "2",
    "--format",
    "json"
);
golden!(peak_uses_text, "peak", USES, "--by", "use", "--limit", "8");
golden!(peak_uses_at_text, "peak", USES, "--by", "use", "--at", "#1000", "--limit", "6");
golden!(peak_uses_none_text, "peak", FILE, "--by", "use");
golden!(diagnose_uses_text, "diagnose", USES);
golden!(
    what_if_last_use_text,
    "what-if",
    USES,
    "--apply",
    "last_use:uses.py:65,last_use:uses.py:66,last_use:uses.py:41"
);
golden!(source_text, "source", "truth/gpt_step.pickle.gz", "--at", "1000", "--limit", "3");
golden!(source_recorded_text, "source", "beside/oom_1/rank3_memory_snapshot.pickle");
golden!(
    source_json,
    "source",
    "beside/oom_1/rank3_memory_snapshot.pickle",
    "--function",
    "step",
    "--format",
    "json"
);
golden!(source_none_text, "source", "recorded/misc/norecord.pickle");
golden!(state_text, "state", FILE);
golden!(state_json, "state", FILE, "--at", "10", "--format", "json");
golden!(state_changes_text, "state", FILE, "--from", "5", "--to", "peak", "--limit", "3");
golden!(state_changes_json, "state", FILE, "--from", "5", "--to", "20", "--format", "json");
golden!(events_text, "events", FILE, "--range", "10..16");
golden!(events_json, "events", FILE, "--limit", "4", "--format", "json");
golden!(peak_tree_text, "peak", FILE, "--tree", "--weight", "byte-seconds");
golden!(peak_tree_json, "peak", FILE, "--tree", "--format", "json");
golden!(blocks_text, "blocks", FILE, "--sort", "byte-seconds");
golden!(blocks_json, "blocks", FILE, "--limit", "3", "--format", "json");
golden!(segments_text, "segments", FILE, "--at", "peak");
golden!(segments_json, "segments", FILE, "--format", "json");
golden!(
    segments_curve_text,
    "segments",
    "recorded/oom_expandable.pickle.gz",
    "--limit",
    "2",
    "--curve",
    "100"
);
golden!(segments_curve_json, "segments", FILE, "--limit", "1", "--curve", "4", "--format", "json");
golden!(
    findings_text,
    "diagnose",
    "--all",
    "recorded/gpt_leak.pickle.gz",
    "recorded/t26/oom_observer.pickle.gz"
);
golden!(findings_json, "diagnose", "--all", "recorded/gpt_leak.pickle.gz", "--format", "json");
golden!(
    findings_markdown,
    "diagnose",
    "--all",
    "findings/ranks_fsdp2_skew",
    "recorded/ranks_fsdp",
    "--limit",
    "2",
    "--format",
    "markdown"
);
golden!(findings_nothing, "diagnose", "--all", "recorded/misc/norecord.pickle");
golden!(diagnose_text, "diagnose", "recorded/t26/oom_observer.pickle.gz");
golden!(diagnose_healthy, "diagnose", "recorded/t26/gpt_small.pickle.gz");
golden!(diagnose_json, "diagnose", "findings/ranks_fsdp2_skew", "--format", "json");
golden!(diagnose_markdown, "diagnose", "recorded/ranks_fsdp", "--format", "markdown");
golden!(ranks_text, "ranks", "findings/ranks_fsdp2_skew", "--limit", "6");
golden!(ranks_json, "ranks", "findings/ranks_fsdp2_skew", FILE, "--limit", "2", "--format", "json");
golden!(ranks_none_text, "ranks", FILE);
golden!(info_text, "info", "recorded/gpt_max_split.pickle.gz");
golden!(info_json, "info", FILE, "--format", "json");
golden!(folded, "export", FILE, "--as", "folded");
golden!(csv, "export", FILE, "--as", "csv");
golden!(speedscope, "export", FILE, "--as", "speedscope");
golden!(perfetto, "export", FILE, "--as", "perfetto");
golden!(diff_text, "diff", FILE, "recorded/t20/linear_seed_python.pickle");
golden!(
    diff_json,
    "diff",
    FILE,
    "recorded/t20/linear_seed_python.pickle",
    "--limit",
    "2",
    "--format",
    "json"
);
golden!(
    diff_markdown,
    "diff",
    "recorded/t26/gpt_small.pickle.gz",
    "recorded/gpt_leak.pickle.gz",
    "--fail-on",
    "ooms>0",
    "--limit",
    "5",
    "--format",
    "markdown"
);
golden!(diff_moments_text, "diff", FILE, "--from", "5", "--to", "#20", "--limit", "3");
golden!(peak_sites_text, "peak", "recorded/gpt_leak.pickle.gz", "--by", "site", "--limit", "5");
golden!(peak_pools_text, "peak", "recorded/t26/pools.pickle", "--by", "pool");
golden!(peak_streams_text, "peak", "recorded/t26/pools.pickle", "--by", "stream");
golden!(peak_at_step_text, "peak", "truth/gpt_step.pickle.gz", "--at", "step:1", "--limit", "3");
golden!(peak_tree_own_text, "peak", "recorded/gpt_leak.pickle.gz", "--tree");
golden!(info_list_text, "info", "findings/ranks_fsdp2_skew");
golden!(summary_list_text, "summary", "findings/ranks_fsdp2_skew");
golden!(show_text, "show", "recorded/gpt_leak.pickle.gz", "site:gpt.py:43", "--limit", "3");
golden!(diff_help, "diff", "--help");
golden!(help, "--help");
golden!(help_all, "help", "--all");
