//! The KV cache that an engine can have: what is said adds up, and nothing is said of others.

use std::path::{Path, PathBuf};
use vramscope_report::serving::{ServingRecord, record};
use vramscope_report::verdict::verdict;
use vramscope_report::what_if::Options;
use vramscope_report::{FileReader, LoadedFile, plain};
use vramscope_trace::slicing::now;

const ENGINE: &str = "serving/serve";
/// The memory of the GPU of that recording.
const TOTAL: u64 = 85_017_493_504;

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(path)
}

fn load(path: &Path) -> LoadedFile {
    let bytes = std::fs::read(path).expect("a file of test_data");
    let mut reader = FileReader::new("file", bytes.len() as u64);
    bytes.chunks(1 << 16).try_for_each(|chunk| reader.feed(chunk)).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

/// The engine, started with these words.
fn engine(command: &[&str]) -> LoadedFile {
    let mut file = load(&data(&format!("{ENGINE}.pickle.gz")));
    let beside = std::fs::read(data(&format!("{ENGINE}.vramscope.json"))).expect("a file");
    let mut beside: serde_json::Value = serde_json::from_slice(&beside).expect("JSON");
    beside["command"] = command.into();
    file.entries[0].set_sidecar(beside.to_string().as_bytes());
    file
}

fn serving(file: &LoadedFile, options: &str) -> Option<ServingRecord> {
    let options = Options::parse(options).expect("options");
    let target = file.target(0, 0).expect("a device");
    now(async |budget| record(target, &options, budget).await)
}

fn part(of: &ServingRecord, name: &str) -> u64 {
    of.parts.iter().find(|part| part.name == name).map_or(0, |part| part.bytes.0)
}

fn headline(file: &LoadedFile) -> String {
    file.entries[0].simulate(0);
    let target = file.target(0, 0).expect("a device");
    plain(&now(async |budget| verdict(target, budget).await).headline)
}

#[test]
fn the_parts_and_the_cache_add_up_to_the_gpu() {
    let file = engine(&["vllm", "serve", "m", "--gpu-memory-utilization", "0.85"]);
    for options in ["", "device_memory:A100-40GB", "device_memory:L4", "device_memory:6GiB"] {
        let said = serving(&file, options).expect("an engine");
        let parts: u64 = said.parts.iter().map(|part| part.bytes.0).sum();
        assert_eq!(parts + said.kv_cache.0, said.device_memory.0, "{options}");
        assert!(part(&said, "margin") > 22 << 20, "{options}");
        // The pool of the graphs, which PyTorch reserved once.
        assert_eq!(part(&said, "CUDA graphs"), 57 << 20, "{options}");
    }
    let none = serving(&file, "device_memory:1600MiB").expect("an engine");
    assert_eq!(none.declined.map(|why| why.ends_with("on this GPU")), Some(true));
    assert!(none.flags.is_empty() && none.kv_cache.0 == 0);
}

#[test]
fn sequences_are_whole_blocks_of_tokens() {
    let file = engine(&["vllm", "serve", "m", "--max-num-seqs", "24", "--block-size", "32"]);
    let said = serving(&file, "length:4000,cache_tokens:1079152").expect("an engine");
    assert_eq!(said.bytes_per_token.map(|bytes| bytes.0), Some(64 << 10));
    assert_eq!(said.sequences, Some(said.kv_cache.0 / (4000 * (64 << 10))));
    let odd = serving(&file, "length:4001,cache_tokens:1079152").expect("an engine");
    assert_eq!(odd.sequences, Some(odd.kv_cache.0 / (4032 * (64 << 10))));
    // Activations of more sequences were not recorded.
    assert!(odd.flags[0].text.ends_with("--max-num-seqs 24 --max-model-len 4001"));
    // The command says how many tokens the cache has, and how long a sequence is.
    let command = ["vllm", "--num-gpu-blocks-override", "67447", "--max-model-len", "4096"];
    let told = serving(&engine(&command), "").expect("an engine");
    assert_eq!((told.recorded_tokens, told.length), (Some(1_079_152), Some(4096)));
}

#[test]
fn a_flag_is_named_only_where_the_memory_is_what_it_asks_for() {
    for (flag, value, is_cause) in [
        ("--gpu-memory-utilization", "0.85", true),
        ("--gpu-memory-utilization", "0.5", false),
        ("--gpu-memory-utilization", "0.95", false),
        ("--kv-cache-memory", "70724354048", true),
        ("--kv-cache-memory-bytes", "30G", false),
        ("--mem-fraction-static", "0.85", true),
        ("--mem-fraction-static", "0.6", false),
    ] {
        let file = engine(&["engine", flag, value]);
        let said = serving(&file, "").expect("an engine").recorded_flag;
        assert_eq!(said.is_some(), is_cause, "{flag} {value}");
        let words = headline(&file);
        let begin = match said {
            Some(flag) => format!("KV cache has 83 % of the GPU, as `{flag}` asks, most at serve."),
            None => "KV cache has 83 % of the GPU, most at serve.py".to_owned(),
        };
        assert!(words.starts_with(&begin), "{words}");
    }
    // Nothing says which GPU it is.
    let alone = load(&data(&format!("{ENGINE}.pickle.gz")));
    assert!(headline(&alone).starts_with("KV cache is 98 % of the peak of 67.3 GiB in "));
    assert!(serving(&alone, "").is_none());
}

#[test]
fn the_flags_of_an_engine_lead_to_the_cache_by_its_own_account() {
    let file = engine(&["python", "-m", "sglang.launch_server", "--mem-fraction-static", "0.85"]);
    let said = serving(&file, "").expect("an engine");
    let [flag] = &said.flags[..] else { panic!("{:?}", said.flags) };
    let part_of = |text: &str| text.split(' ').nth(1).expect("a value").parse::<f64>().expect("it");
    // What is free after loading, less the part of what was free before that stays free.
    let free = (TOTAL - part(&said, "outside PyTorch")) as f64;
    let cache = free - part(&said, "weights") as f64 - free * (1.0 - part_of(&flag.text));
    assert!(cache <= said.kv_cache.0 as f64 && cache > said.kv_cache.0 as f64 - free / 1000.0);

    let file = engine(&["vllm", "serve", "m", "--gpu-memory-utilization", "0.85"]);
    let said = serving(&file, "").expect("an engine");
    let [bytes, part] = &said.flags[..] else { panic!("{:?}", said.flags) };
    assert_eq!(bytes.text, format!("--kv-cache-memory-bytes {}", said.kv_cache.0));
    // Beside the cache vLLM counts what it counted in the recording.
    let beside = 0.85 * TOTAL as f64 - said.recorded_kv_cache.0 as f64;
    let cache = part_of(&part.text) * TOTAL as f64 - beside;
    assert!(cache <= said.kv_cache.0 as f64);
    assert!(cache > said.kv_cache.0 as f64 - TOTAL as f64 / 1000.0);
}

/// Recordings of programs that train, and of ones that generate without an engine.
#[test]
fn nothing_is_said_of_a_run_without_an_engine() {
    let folders = [
        "recorded",
        "recorded/t26",
        "recorded/t29",
        "truth",
        "twins",
        "kinds",
        "cases",
        "findings",
    ];
    // Its blocks of keys and values are made at once, before anything else.
    let a_cache = "c1_llama7b_inference.pickle.gz";
    let mut seen = 0;
    for path in folders.iter().flat_map(|folder| std::fs::read_dir(data(folder)).expect("it")) {
        let path = path.expect("an entry").path();
        let name = path.to_string_lossy();
        if name.ends_with(".pickle.gz") && !name.ends_with(a_cache) {
            seen += 1;
            let file = load(&path);
            let devices = file.entries[0].traces.iter().map(|trace| trace.device.device);
            for device in devices.collect::<Vec<_>>() {
                let target = file.target(0, device).expect("a device");
                let options = Options::parse("device_memory:H100").expect("options");
                let said = now(async |budget| record(target, &options, budget).await);
                assert!(said.is_none(), "{}", path.display());
            }
        }
    }
    assert!(seen > 20, "{seen} recordings");
}
