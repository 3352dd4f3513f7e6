//! Shapes of recordings of known models.

use std::path::Path;
use vramscope_report::shapes::{ShapesReport, shapes, widths_of_config};
use vramscope_report::{FileReader, LoadedFile};

fn load(name: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let mut reader = FileReader::new(name, 0);
    reader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn with(name: &str, config: Option<&str>, check: impl FnOnce(&ShapesReport<'_>)) {
    let file = load(name);
    let target = file.target(0, 0).expect("a device");
    let given = config.map(|text| widths_of_config(text).expect("a config"));
    check(&shapes(target, given, None));
}

/// The model's widths and the tokens at the peak, by its configuration.
#[test]
fn transformers_have_the_dimensions_of_their_configuration() {
    let small = [384, 512, 1152, 1536, 50304];
    let framework = [256, 768, 1024, 8000];
    let cases: [(&str, u64, &[u64], Option<u64>); 8] = [
        ("recorded/gpt_leak.pickle.gz", 4, &small, Some(1864)),
        ("recorded/gpt_amp.pickle.gz", 4, &small, Some(1968)),
        ("recorded/gpt_late.pickle.gz", 4, &small, Some(1968)),
        ("truth/gpt_step.pickle.gz", 4, &[384, 512, 1152, 1536, 16000], Some(2048)),
        ("truth/ddp_step.pickle.gz", 4, &framework, Some(1536)),
        ("truth/bf16_master_step.pickle.gz", 2, &framework, Some(1536)),
        ("truth/compile_inductor_backward.pickle.gz", 4, &framework, Some(1536)),
        ("recorded/gpt_state_only.pickle", 4, &small, None),
    ];
    for (name, element_bytes, widths, tokens) in cases {
        with(name, None, |report| {
            let [dims] = &report.dims[..] else { panic!("{name}: {:?}", report.dims) };
            assert_eq!((dims.element_bytes, &dims.widths[..]), (element_bytes, widths), "{name}");
            assert_eq!(report.tokens, tokens, "{name}");
            assert!(report.shaped_bytes * 100 >= report.bytes * 70, "{name}: {:?}", report.text);
        });
    }
}

#[test]
fn sums_add_up_and_each_shape_has_the_size_of_its_blocks() {
    for name in ["recorded/gpt_leak.pickle.gz", "recorded/gpt_amp.pickle.gz"] {
        with(name, None, |report| {
            let rows: u64 = report.rows.iter().map(|row| row.bytes).sum();
            assert_eq!(rows, report.bytes);
            let sums: u64 = report.by_shape.iter().map(|sum| sum.bytes).sum();
            assert_eq!(sums, report.shaped_bytes);
            for row in &report.rows {
                for shape in &row.shapes {
                    let elements: u64 = shape.dims.iter().product();
                    let bytes = elements * shape.element_bytes * u64::from(row.blocks);
                    assert_eq!(bytes, row.bytes, "{row:?}");
                }
            }
        });
    }
}

/// Two bytes on each of four ranks have the sizes of four bytes on each of eight.
#[test]
fn shards_have_both_readings() {
    with("recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz", None, |report| {
        let readings: Vec<_> = report.dims.iter().map(|d| (d.element_bytes, d.ranks)).collect();
        assert_eq!(readings, [(2, 4), (4, 8)]);
        for dims in &report.dims {
            assert_eq!(dims.widths, [768, 1024, 2304, 3072, 50304]);
        }
        let is_parameter = |row: &&vramscope_report::shapes::ShapeRow| row.category == "parameter";
        assert!(report.rows.iter().filter(is_parameter).all(|row| !row.is_certain));
    });
}

#[test]
fn what_sizes_do_not_tell_is_refused() {
    for (name, why) in [
        ("findings/resnet50_nozero.pickle.gz", "convolutions"),
        ("truth/resnet18_step.pickle.gz", "convolutions"),
        ("recorded/t26/linear_seed_python.pickle", "so few parameters"),
        ("truth/zero3_bf16_step.pickle.gz", "so few parameters"),
        ("recorded/misc/deep.pickle.gz", "known to be a parameter"),
    ] {
        with(name, None, |report| {
            let refused = report.refused.as_deref().unwrap_or_default();
            assert!(refused.contains(why), "{name}: {refused}");
            assert_eq!((report.shaped_bytes, report.dims.len()), (0, 0), "{name}");
        });
    }
}

#[test]
fn a_config_replaces_the_sizes_of_parameters() {
    let config = r#"{"n_embd": 384, "n_head": 6, "n_positions": 512, "vocab_size": 50304,
        "torch_dtype": "float32"}"#;
    with("recorded/gpt_leak.pickle.gz", Some(config), |given| {
        with("recorded/gpt_leak.pickle.gz", None, |found| {
            assert_eq!(given.dims[0].widths, found.dims[0].widths);
            assert_eq!((given.tokens, given.shaped_bytes), (found.tokens, found.shaped_bytes));
        });
    });
}
