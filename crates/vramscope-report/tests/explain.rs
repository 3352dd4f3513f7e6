//! Out-of-memory messages as programs print them, and as logs break them. The expected figures are
//! those of the texts, the expected causes are worked out by hand (`test_data/explain`).

use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use vramscope_report::diagnostic::{card, markdown, plain_text};
use vramscope_report::explain::explain;

fn cases() -> Vec<Value> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data/explain/messages.json");
    let cases = std::fs::read(path).expect("the cases");
    serde_json::from_slice(&cases).expect("JSON")
}

/// The bytes of `1.74 GiB`, by the units of PyTorch's `format_size`.
fn bytes(size: &str) -> f64 {
    let (number, unit) = size.split_once(' ').expect("a unit");
    let unit = match unit {
        "bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        other => panic!("{other}"),
    };
    number.parse::<f64>().expect("a number") * unit
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|entry| entry[key] == name)
}

#[test]
fn messages_have_their_figures_and_causes() {
    let cases = cases();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let explained = explain(case["text"].as_str().expect("a text"));
        let said = serde_json::to_value(&explained).expect("JSON");
        let message = &said["messages"][0];
        let mut check = |what: &str, is: &Value, expected: &Value| {
            if is != expected {
                wrong.push(format!("{}: {what}: {is}, not {expected}", case["source"]));
            }
        };
        let expect = &case["expect"];
        check("messages", &json!(explained.messages.len()), &json!(1));
        for key in ["kind", "backend", "cause", "gpus", "ranks", "line", "count"] {
            if let Some(expected) = expect.get(key) {
                check(key, &message[key], expected);
            }
        }
        for (name, size) in expect["figures"].as_object().into_iter().flatten() {
            let figure = named(&message["figures"], "name", name);
            let is = figure.and_then(|figure| figure["bytes"].as_f64());
            let expected = bytes(size.as_str().expect("a size"));
            let is_right = is.is_some_and(|is| (is - expected).abs() < 2.0);
            check(name, &json!(is_right), &json!(true));
        }
        for name in expect["absent"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("a name");
            let is_absent = named(&message["figures"], "name", name).is_none();
            check(name, &json!(is_absent), &json!(true));
        }
        for (name, count) in expect["counts"].as_object().into_iter().flatten() {
            let is = named(&message["counts"], "name", name).map(|of| of["count"].clone());
            check(name, &is.unwrap_or_default(), count);
        }
        for (cause, verdict) in expect["verdicts"].as_object().into_iter().flatten() {
            let is = named(&message["causes"], "cause", cause).map(|of| of["verdict"].clone());
            check(cause, &is.unwrap_or_default(), verdict);
        }
        let lists = [("fix", "fixes"), ("no", "no"), ("note", "notes"), ("headline", "headline")];
        for (key, list) in lists {
            if let Some(part) = expect.get(key).and_then(Value::as_str) {
                let all = message[list].to_string();
                check(&format!("{list} {all}"), &json!(all.contains(part)), &json!(true));
            }
        }
        check_texts(&explained, &mut check);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The limits of a text: 25 lines of 100 columns, and no longer line in narrower terminals.
/// Commands to paste are not broken.
fn check_texts(
    explained: &vramscope_report::explain::Explained,
    check: &mut impl FnMut(&str, &Value, &Value),
) {
    let answer = explained.answer();
    for width in [60, 80, 100] {
        let text = plain_text(&answer, width);
        let lines: Vec<&str> = text.lines().collect();
        let has_room = width < 100 || lines.len() <= 25;
        check(&format!("{} lines", lines.len()), &json!(has_room), &json!(true));
        for line in lines.iter().filter(|line| width == 100 || !line.starts_with("help: ")) {
            check(line, &json!(line.chars().count() <= width), &json!(true));
        }
    }
    check("markdown", &json!(markdown(&answer).is_empty()), &json!(false));
    check("card", &json!(card(&answer).contains("<article")), &json!(true));
}

#[test]
fn texts_without_a_message_have_none() {
    for text in [
        "",
        "\n\n",
        "PHP Fatal error: Allowed memory size of 2146435072 bytes exhausted (tried to allocate \
         4096 bytes)",
        "die(\"Out of memory, (tried to allocate %u wchar_t's)\", len_key);",
        "Epoch 3: 12.5 GiB allocated, memory in use 3 GiB, 2.00 MiB free",
        "try setting max_split_size_mb to avoid fragmentation. See documentation for Memory",
    ] {
        assert!(explain(text).messages.is_empty(), "{text}");
    }
}

#[test]
fn ranks_that_fail_alike_are_one_message_and_others_are_not() {
    let line = |rank: u32, asked: &str, free: &str| {
        format!(
            "[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. \
             GPU {rank} has a total capacity of 79.33 GiB of which {free} is free. Process {} has \
             79.19 GiB memory in use. Of the allocated memory 77.68 GiB is allocated by PyTorch, \
             and 27.18 MiB is reserved by PyTorch but unallocated.",
            1000 + rank
        )
    };
    let mut log = String::from("step 3\n");
    for rank in [3, 1, 0, 2, 6] {
        log += &line(rank, "1.27 GiB", "109.81 MiB");
        log.push_str("\nNCCL watchdog\n");
    }
    log.push_str(&line(5, "512.00 MiB", "12.00 MiB"));
    // The launcher prints the traceback of the first one again.
    log += "\nRoot Cause:\n";
    log += &line(3, "1.27 GiB", "109.81 MiB");
    let explained = explain(&log);
    let ranks: Vec<_> = explained.messages.iter().map(|message| &message.ranks).collect();
    assert_eq!(ranks, [&vec![0, 1, 2, 3, 6], &vec![5]]);
    assert_eq!(explained.messages[0].count.0, 6);
    let lines = plain_text(&explained.answer(), 100);
    assert!(lines.contains("ranks 0-3,6"), "{lines}");
    assert!(lines.contains("5 GPUs"), "{lines}");
}

#[test]
fn a_message_follows_its_figures_not_those_of_the_next() {
    let explained = explain(
        "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total capacity\n\
         CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 8.00 GiB total capacity; 7.00 GiB \
         already allocated; 1.00 MiB free; 7.50 GiB reserved in total by PyTorch)",
    );
    let free = |at: usize| {
        explained.messages[at].figures.iter().filter(|f| f.meaning.starts_with("free")).count()
    };
    assert_eq!((explained.messages.len(), free(0), free(1)), (2, 0, 1));
}

#[test]
fn a_long_log_is_searched_to_its_end() {
    let mut log = "step 12 loss 3.141 tokens/s 20112 grad_norm 0.31\n".repeat(100_000);
    let filler = log.lines().count();
    log += "[rank4]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB.\n";
    log += "[rank4]: GPU 4 has a total capacity of 8.00 GiB of which 1.00 MiB is free.\n";
    log += &"step 13 loss 3.140\n".repeat(100);
    let explained = explain(&log);
    assert!(log.len() > 4 << 20 && explained.messages.len() == 1);
    let message = &explained.messages[0];
    assert_eq!((message.line as usize, &message.ranks), (filler + 1, &vec![4]));
    assert_eq!(message.gpus, [4]);
}

/// Pieces of messages, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "CUDA out of memory. ",
        "Tried to allocate ",
        "2.00 GiB",
        "17179869184.00 GiB",
        "99999999999999999999999 MiB",
        "0 bytes",
        ". GPU 0 has a total capacity of ",
        " of which ",
        " is free. ",
        " (GPU 3; ",
        " total capacity; ",
        " already allocated; ",
        " free; ",
        " reserved in total by PyTorch)",
        " allowed; ",
        "Process 12 has ",
        "this process has ",
        " memory in use. ",
        " is allocated by PyTorch, ",
        " is reserved by PyTorch but unallocated.",
        " cached)",
        "Failed to CUDA calloc ",
        "NCCL WARN Cuda failure 'out of memory'",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "max seq len (",
        "KV cache is needed, which is larger than the available KV cache memory (",
        "estimated maximum model length is ",
        "Free memory on device (",
        "/",
        " utilization (0.9, ",
        "MPS backend out of memory (MPS allocated: ",
        "would exceed allowed memory. (out of memory)",
        "\n",
        "\\n",
        "\u{1b}[31m",
        "\u{1b}",
        "[rank2]: ",
        "\u{e9}\u{1f600}",
        "\u{1}",
        ")",
        ".",
    ];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..40)
        .prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_has_an_answer(log in ".{0,200}") {
        let explained = explain(&log);
        prop_assert!(!plain_text(&explained.answer(), 100).is_empty());
    }

    #[test]
    fn any_pieces_have_an_answer(log in pieces()) {
        let explained = explain(&log);
        prop_assert!(!plain_text(&explained.answer(), 100).is_empty());
        prop_assert!(!markdown(&explained.answer()).is_empty());
        prop_assert!(serde_json::to_string(&explained).is_ok());
    }

    #[test]
    fn a_message_is_found_however_it_is_cut_and_wrapped(
        which in any::<prop::sample::Index>(),
        columns in 24_usize..120,
        cut in any::<prop::sample::Index>(),
    ) {
        let cases = cases();
        let case = which.get(&cases);
        let message = case["text"].as_str().expect("a text");
        let chars: Vec<char> = message.chars().collect();
        let end = cut.index(chars.len()) + 1;
        let cut: String = chars[..end].iter().collect();
        prop_assert!(!plain_text(&explain(&cut).answer(), 100).is_empty());
        if !message.contains(['\n', '\u{1b}', '│']) && !message.starts_with('{') {
            let wrapped: Vec<String> =
                chars.chunks(columns).map(|line| line.iter().collect()).collect();
            let whole = serde_json::to_value(explain(message)).expect("JSON");
            let broken = serde_json::to_value(explain(&wrapped.join("\n"))).expect("JSON");
            for key in ["kind", "cause", "figures", "counts", "processes", "gpus"] {
                prop_assert_eq!(&whole["messages"][0][key], &broken["messages"][0][key], "{}", key);
            }
        }
    }
}

/// The first message of a text as JSON; null without one.
fn first(text: &str) -> Value {
    let said = serde_json::to_value(explain(text)).expect("JSON");
    said["messages"].get(0).cloned().unwrap_or_default()
}

/// What a part of a message tells that all of it contradicts.
fn contradictions(part: &Value, whole: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let rows = |of: &Value, list: &str| of[list].as_array().cloned().unwrap_or_default();
    for (list, key, value) in
        [("figures", "name", "bytes"), ("counts", "name", "count"), ("processes", "pid", "bytes")]
    {
        let all = rows(whole, list);
        for row in rows(part, list) {
            let known = all.iter().find(|of| of[key] == row[key] && of[value] == row[value]);
            if known.is_none() {
                wrong.push(format!("{list} {row}"));
            }
        }
    }
    for list in ["gpus", "ranks"] {
        let all = rows(whole, list);
        wrong.extend(
            rows(part, list).iter().filter(|of| !all.contains(of)).map(|of| format!("{list} {of}")),
        );
    }
    for cause in rows(part, "causes") {
        let of_whole = rows(whole, "causes").into_iter().find(|of| of["cause"] == cause["cause"]);
        let verdicts = [&cause["verdict"], &of_whole.clone().unwrap_or_default()["verdict"]];
        let is_opposite = matches!(
            verdicts.map(Value::as_str),
            [Some("shown"), Some("excluded")] | [Some("excluded"), Some("shown")]
        );
        let has_other_bytes = verdicts == [&json!("shown"), &json!("shown")]
            && !cause["bytes"].is_null()
            && of_whole.is_some_and(|of| of["bytes"] != cause["bytes"]);
        if is_opposite || has_other_bytes {
            wrong.push(format!("{cause}"));
        }
    }
    wrong
}

/// Whether a message has all that a bar and a cause need, and lacks one of them.
fn lacks_bar_or_cause(message: &Value) -> bool {
    let bytes = |name: &str| named(&message["figures"], "name", name)?["bytes"].as_u64();
    let (Some(asked), Some(free), Some(_)) = (bytes("asked"), bytes("free"), bytes("capacity"))
    else {
        return false;
    };
    message["kind"] == "allocator"
        && (message["bar"].is_null() || asked > free + free / 50 && message["cause"].is_null())
}

#[test]
fn a_message_cut_after_any_character_tells_what_is_left_of_it() {
    let (mut cuts, mut wrong) = (0, Vec::new());
    for case in cases() {
        let text = case["text"].as_str().expect("a text");
        let whole = first(text);
        if whole["count"] != 1 {
            continue;
        }
        let has_both = !lacks_bar_or_cause(&whole) && !whole["bar"].is_null();
        for (at, _) in text.char_indices() {
            let is_word = text[..at].ends_with(char::is_whitespace);
            let parts = [Some((&text[..at], true)), is_word.then_some((&text[at..], false))];
            for (part, is_end) in parts.into_iter().flatten() {
                cuts += 1;
                let said = first(part);
                let end: String =
                    part.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
                wrong.extend(
                    contradictions(&said, &whole).iter().map(|of| format!("{end:?}: {of}")),
                );
                if is_end && has_both && lacks_bar_or_cause(&said) {
                    wrong.push(format!("{end:?}: no bar or no cause"));
                }
                let names = said["missing"].as_array().into_iter().flatten();
                for name in names {
                    let is_told = named(&said["figures"], "name", name.as_str().expect("a name"));
                    let is_said = said["notes"].to_string().contains("The message ends before");
                    if is_told.is_some() || !is_said {
                        wrong.push(format!("{end:?}: {name} is missing: {said}"));
                    }
                }
            }
        }
    }
    assert!(cuts > 15_000, "{cuts}");
    assert!(
        wrong.is_empty(),
        "{} of {cuts}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(9)].join("\n")
    );
}

/// A message of PyTorch 2.9, up to the end of each figure.
const PARTS: [&str; 6] = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB",
    ". GPU 0 has a total capacity of 31.37 GiB",
    " of which 15.88 MiB",
    " is free. Including non-PyTorch memory, this process has 31.34 GiB",
    " memory in use. Of the allocated memory 30.74 GiB",
    " is allocated by PyTorch, and 19.41 MiB",
];

#[test]
fn a_cut_message_has_a_bar_and_a_cause_from_the_free_memory_on() {
    let labels = |said: &Value| -> Vec<String> {
        let parts = said["bar"]["parts"].as_array().into_iter().flatten();
        parts.map(|part| part["part"].as_str().expect("a name").to_owned()).collect()
    };
    let said: Vec<Value> = (1..=6).map(|count| first(&PARTS[..count].concat())).collect();
    let bars: Vec<Vec<String>> = said.iter().map(labels).collect();
    assert!(bars[0].is_empty() && bars[1].is_empty(), "{bars:?}");
    assert_eq!(bars[2], ["untold", "free"]);
    assert_eq!(bars[3], ["this_process", "other_processes", "free"]);
    assert_eq!(bars[4], ["allocated", "this_process", "other_processes", "free"]);
    let whole = ["allocated", "unallocated", "outside_pytorch", "other_processes", "free"];
    assert_eq!(bars[5], whole);
    let causes: Vec<&Value> = said.iter().map(|of| &of["cause"]).collect();
    assert!(causes[..2].iter().all(|cause| cause.is_null()));
    assert!(causes[2..].iter().all(|cause| *cause == "demand"), "{causes:?}");
    // What is not told is said as not told.
    let missing: Vec<usize> =
        said.iter().map(|of| of["missing"].as_array().expect("a list").len()).collect();
    assert_eq!(missing, [4, 3, 2, 2, 1, 0]);
    let text = plain_text(&explain(&PARTS[..4].concat()).answer(), 100);
    let why = "why: perhaps demand: this process has 31.34 GiB of 31.37 GiB, 15.88 MiB free";
    assert!(text.contains(why), "{text}");
    assert!(
        text.contains(
            "note: the message ends before the figures: allocated, reserved but unallocated."
        ),
        "{text}"
    );
}

#[test]
fn a_message_without_its_begin_has_the_figures_that_are_left() {
    let whole = PARTS.concat() + " is reserved by PyTorch but unallocated.";
    let said = first(&whole[whole.find("GPU 0").expect("a device")..]);
    assert_eq!((&said["kind"], &said["gpus"]), (&json!("allocator"), &json!([0])));
    assert_eq!(said["headline"], "GPU 0: out of memory, 15.88 MiB free of 31.37 GiB");
    assert!(!said["bar"].is_null() && said["bar"]["asked"].is_null(), "{said}");
    assert!(said["notes"].to_string().contains("begins after the request"), "{said}");
    // A number that may have lost its first digits is no figure.
    let cut = first(&whole[whole.find("1.37 GiB").expect("a figure")..]);
    assert!(named(&cut["figures"], "name", "capacity").is_none(), "{cut}");
}

#[test]
fn a_cut_message_is_found_in_logs_as_terminals_and_loggers_write_them() {
    for count in 3..=6 {
        let message = PARTS[..count].concat();
        let expected = first(&message);
        let wrapped: Vec<String> = message
            .as_bytes()
            .chunks(71)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        let with = |before: &str, after: &str| {
            let lines = wrapped.iter().map(|line| [before, line, after, "\n"].concat());
            lines.collect::<Vec<String>>().concat()
        };
        for log in [
            with("[rank0]: ", ""),
            with("    ", ""),
            with("2026-02-03 10:20:36,125 ERROR ", ""),
            with("\u{1b}[31m", "\u{1b}[0m"),
            with("> ", ""),
            with("(Worker_TP0 pid=31) ERROR 03-19 07:27:53 [a.py:3] ", ""),
            format!("step 3\n{}Traceback (most recent call last):\n", with("[rank0]: ", "")),
            format!("{{\"rank\": 0, \"error\": {}}}", json!(message)),
            format!("{{\"oom\": {{\"message\": {}", json!(wrapped.join("\n"))),
        ] {
            let said = first(&log);
            for key in ["figures", "bar", "cause", "missing"] {
                assert_eq!(said[key], expected[key], "{key} of {log}");
            }
        }
    }
}

#[test]
fn a_long_log_has_its_messages_wherever_its_pieces_begin() {
    let whole = PARTS.concat() + " is reserved by PyTorch but unallocated.\n";
    let expected = first(&whole);
    // Each line speaks of memory, so no line is left out.
    let line = "step 12: cuda memory allocated 12.5 GiB, cache 3 GiB\n";
    let size = 4 << 20;
    for shift in [0, 1, 100, 300, 399, 450, 5000] {
        let mut log = line.repeat(size / line.len());
        log.truncate(size - shift);
        log.push('\n');
        log += &whole;
        log += &line.repeat(100_000);
        log += &whole.replace("GPU 0", "GPU 1").replace("100.00", "200.00");
        let explained = explain(&log);
        assert_eq!(explained.messages.len(), 2, "{shift}");
        assert_eq!(explained.lines.0, i64::try_from(log.lines().count()).expect("few"));
        let said = serde_json::to_value(&explained.messages[0]).expect("JSON");
        assert_eq!((&said["figures"], &said["bar"]), (&expected["figures"], &expected["bar"]));
        let at = log.find("torch.Out").expect("a message");
        assert_eq!(
            said["line"],
            log[..at].lines().count() + usize::from(log[..at].ends_with('\n'))
        );
    }
}
