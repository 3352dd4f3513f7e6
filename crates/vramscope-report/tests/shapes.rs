//! Shapes of recordings of known models.

use std::path::Path;
use vramscope_report::blocks::{BlockSort, blocks};
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::shapes::{ShapeRow, ShapeSource, ShapesReport, shapes};
use vramscope_report::{FileReader, LoadedFile};

/// Blocks that the program named with their shapes: at the allocation, and later.
const ANNOTATED: &str = r#"{"segments": [], "device_traces": [[
    {"action": "alloc", "addr": 4096, "size": 1024, "stream": 0,
     "user_metadata": "mask torch.Size([16, 64]) torch.bool"},
    {"action": "alloc", "addr": 8192, "size": 4096, "stream": 0},
    {"action": "annotate", "addr": 8192, "size": 0, "stream": 0,
     "user_metadata": "float32 (32, 32)"},
    {"action": "alloc", "addr": 16384, "size": 4096, "stream": 0,
     "user_metadata": "a part of it: [3, 3] float32"}
]]}"#;

#[test]
fn shapes_in_texts_of_the_program_are_stated() {
    let mut reader = FileReader::new("annotated.json", 0);
    reader.feed(ANNOTATED.as_bytes()).expect("a snapshot");
    let file = reader.finish().expect("a snapshot");
    let report = shapes(file.target(0, 0).expect("a device"), None);
    assert!(report.refused.is_some());
    assert_eq!((report.shaped_bytes, report.recorded_bytes), (5120, 5120));
    let of_block = |bytes| report.rows.iter().filter(move |row| row.bytes == bytes);
    let [mask] = of_block(1024).collect::<Vec<_>>()[..] else { panic!("{:?}", report.rows) };
    assert_eq!(
        (mask.source, &*mask.shapes[0].text),
        (Some(ShapeSource::Annotation), "[16, 64] of 1 byte")
    );
    let named: Vec<_> = of_block(4096).filter_map(|row| row.shapes.first()).collect();
    assert_eq!(named.iter().map(|shape| &shape.dims[..]).collect::<Vec<_>>(), [[32, 32]]);
}

/// torch-snapkit logs each operation's result, also views of it. The log has no times.
#[test]
fn shapes_that_a_recorder_logged_are_stated() {
    let file = load("recorded/misc/snapkit.pickle.gz");
    let target = file.target(0, 0).expect("a device");
    let report = shapes(target, None);
    let logged = |row: &&ShapeRow| row.source == Some(ShapeSource::ShapeData);
    let hidden = report.rows.iter().filter(logged).find(|row| row.bytes == 8 * 64 * 1024 * 4);
    let hidden = hidden.expect("the hidden layer's activation");
    assert_eq!((&hidden.shapes[0].dims[..], hidden.is_certain), (&[8, 64, 1024][..], true));
    assert_eq!(hidden.site, "train.py:12 forward");
    assert!(report.recorded_bytes > 0 && report.recorded_bytes <= report.shaped_bytes);
    // Where one address had several shapes of these bytes, the log tells none.
    let parameter = |row: &&ShapeRow| row.category == "parameter" && row.bytes == 2 << 20;
    let parameter = report.rows.iter().find(parameter).expect("two matrices");
    assert_eq!(parameter.source, Some(ShapeSource::Size));
    assert!(file.entries[0].snapshot.settings.iter().all(|(key, _)| !key.contains("shape_data")));
}

fn load(name: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let mut reader = FileReader::new(name, 0);
    reader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn with(name: &str, config: Option<&str>, check: impl FnOnce(&ShapesReport<'_>)) {
    let mut file = load(name);
    if let Some(text) = config {
        file.entries[0].read_widths(text);
        assert_eq!(file.entries[0].widths_fault(), None);
    }
    check(&shapes(file.target(0, 0).expect("a device"), None));
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

/// Matrices `[h, 2h]` of four bytes have the sizes of square ones of two.
#[test]
fn no_shape_of_the_wrong_element_size_is_certain() {
    with("kinds/float32_h_2h.pickle.gz", None, |report| {
        assert!(report.dims.iter().any(|dims| (dims.element_bytes, dims.hidden) == (4, 2048)));
        for row in report.rows.iter().filter(|row| row.is_certain) {
            assert_eq!(row.shapes[0].element_bytes, 4, "{row:?}");
        }
    });
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
        let is_parameter = |row: &&ShapeRow| row.category == "parameter";
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

/// A transformer whose architecture is known.
struct Model {
    hidden: u64,
    vocabulary: u64,
    positions: u64,
    /// Bytes of an element of the parameters.
    element: u64,
    /// Bytes of an element of activations under autocast.
    autocast: Option<u64>,
    /// Batch x sequence at the peak; two where the recording halves its batch.
    tokens: &'static [u64],
}

impl Model {
    fn new(hidden: u64, vocabulary: u64, positions: u64, tokens: &'static [u64]) -> Self {
        Self { hidden, vocabulary, positions, element: 4, autocast: None, tokens }
    }

    /// The shapes of the parameters of a GPT-2, the larger dimension first.
    fn parameters(&self) -> [Vec<u64>; 8] {
        let h = self.hidden;
        let (qkv, inner) = (3 * h, 4 * h);
        [
            vec![self.vocabulary, h],
            vec![self.positions.max(h), self.positions.min(h)],
            vec![qkv, h],
            vec![qkv],
            vec![h, h],
            vec![h],
            vec![inner, h],
            vec![inner],
        ]
    }

    /// The widths of what a line allocates for each token. Lines of nanoGPT's and of Hugging
    /// Face's GPT-2. Scores and masks have other shapes.
    fn widths(&self, site: &str) -> Vec<u64> {
        let (h, vocabulary) = (self.hidden, self.vocabulary);
        let line = site.split(' ').next().unwrap_or_default();
        match line {
            // The product of queries, keys and values, and under autocast a copy of its input.
            "gpt.py:11" => vec![3 * h, h],
            // Scores, their softmax and its dropout.
            "gpt.py:17" | "gpt.py:18" | "gpt.py:19" => Vec::new(),
            "gpt.py:14" | "gpt.py:16" | "gpt.py:20" | "gpt.py:21" | "gpt.py:22" | "gpt.py:31"
            | "gpt.py:32" | "gpt.py:41" => vec![h],
            "gpt.py:26" => vec![4 * h, h],
            "gpt.py:43" => vec![h, vocabulary],
            "gpt.py:44" | "modeling_gpt2.py:1084" => vec![vocabulary],
            "activations.py:56" => vec![4 * h],
            "pytorch_utils.py:118" => vec![h, 3 * h, 4 * h],
            line if line.starts_with("modeling_gpt2.py") => vec![h],
            line if line.starts_with("sdpa_attention.py") => vec![h],
            // Slices that a training loop keeps.
            line if line.starts_with("p_gpt.py") => Vec::new(),
            // Gradients of activations.
            _ if site.contains("ackward") => vec![h, 3 * h, 4 * h, vocabulary],
            _ => Vec::new(),
        }
    }

    fn has(&self, row: &ShapeRow) -> bool {
        let shape = &row.shapes[0];
        if ["parameter", "gradient", "optimizer_state"].contains(&row.category) {
            let mut dims = shape.dims.clone();
            dims.sort_unstable_by(|a, b| b.cmp(a));
            // A master copy has four bytes.
            let elements = [self.element, 4];
            return self.parameters().contains(&dims) && elements.contains(&shape.element_bytes);
        }
        let [tokens, width] = shape.dims[..] else { return false };
        let is_loss = width == self.vocabulary && shape.element_bytes == 4;
        let elements = [self.autocast.unwrap_or(self.element), self.element];
        self.tokens.contains(&tokens)
            && self.widths(&row.site).contains(&width)
            && (is_loss || elements.contains(&shape.element_bytes))
    }
}

/// Percent of bytes at the peak that may have a wrong shape without a doubt.
const MAX_WRONG_PERCENT: u64 = 2;

/// The truth is the architecture, not what the sizes tell.
#[test]
fn shapes_without_doubt_are_those_of_the_architecture() {
    let small = |tokens| Model::new(384, 50304, 512, tokens);
    let framework = || Model::new(256, 8000, 512, &[1536]);
    let math = || Model::new(768, 50304, 1024, &[2048]);
    let cases = [
        ("recorded/gpt_leak.pickle.gz", 70, small(&[1864])),
        ("recorded/gpt_late.pickle.gz", 90, small(&[1968])),
        ("recorded/gpt_max_split.pickle.gz", 90, small(&[1968])),
        ("recorded/gpt_ring10000.pickle.gz", 90, small(&[2024])),
        ("recorded/gpt_amp.pickle.gz", 90, Model { autocast: Some(2), ..small(&[1968]) }),
        ("recorded/t20/gpt_small.pickle.gz", 90, small(&[1968])),
        ("recorded/t29/expandable_gpt.pickle.gz", 90, small(&[1968])),
        ("truth/gpt_forward.pickle.gz", 90, Model::new(384, 16000, 512, &[2048])),
        ("truth/ddp_step.pickle.gz", 70, framework()),
        ("truth/compile_inductor_backward.pickle.gz", 70, framework()),
        ("truth/bf16_master_step.pickle.gz", 70, Model { element: 2, ..framework() }),
        ("what_if/gpt_batch6.pickle.gz", 90, Model::new(512, 50304, 1024, &[2478])),
        // Attention by separate operations: scores are as large as what a layer gives.
        ("recorded/t26/oom_observer.pickle.gz", 50, math()),
        // The program halves its batch, and two batches are live.
        ("recorded/oom_expandable.pickle.gz", 40, math()),
        ("sites/win_hf_gpt2.pickle.gz", 85, Model::new(768, 50257, 1024, &[4096])),
    ];
    for (name, least, model) in cases {
        with(name, None, |report| {
            let certain = || report.rows.iter().filter(|row| row.is_certain);
            let wrong: Vec<_> = certain().filter(|row| !model.has(row)).collect();
            let bytes: u64 = wrong.iter().map(|row| row.bytes).sum();
            let limit = report.bytes * MAX_WRONG_PERCENT;
            assert!(bytes * 100 <= limit, "{name}: {bytes} of {}: {wrong:#?}", report.bytes);
            let shaped = report.shaped_bytes * 100 / report.bytes;
            assert!(shaped >= least, "{name}: only {shaped} % have a shape");
        });
    }
}

#[test]
fn symbols_name_tokens_and_multiples_of_the_hidden_width() {
    with("recorded/gpt_leak.pickle.gz", None, |report| {
        let legend: Vec<_> = report.legend.iter().map(|of| (of.name.as_str(), of.size)).collect();
        assert_eq!(legend, [("N", 1864), ("h", 384), ("3h", 1152), ("4h", 1536)]);
        let symbols = |dims: &[u64]| {
            let mut sums = report.by_shape.iter().filter(|sum| sum.shape.dims == dims);
            sums.next().and_then(|sum| sum.shape.symbols.clone())
        };
        assert_eq!(symbols(&[1864, 1536]).as_deref(), Some("[N, 4h]"));
        assert_eq!(symbols(&[50304, 384]).as_deref(), Some("[50,304, h]"));
        assert_eq!(report.recorded_bytes, 0);
    });
    with("recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz", None, |report| {
        assert_eq!(report.dims.len(), 2);
        let names: Vec<_> = report.legend.iter().map(|of| of.text.as_str()).collect();
        assert!(names.contains(&"h = 768 (hidden width)"), "both readings have it: {names:?}");
    });
    let config = r#"{"n_embd": 384, "n_inner": 1536, "vocab_size": 50304, "dtype": "float32"}"#;
    with("recorded/gpt_leak.pickle.gz", Some(config), |report| {
        let names: Vec<_> = report.legend.iter().map(|of| of.text.as_str()).collect();
        assert!(names.contains(&"V = 50,304 (vocabulary)"), "{names:?}");
        assert!(names.contains(&"4h = 1,536"), "a multiple needs no other name: {names:?}");
        let of_head = report.by_shape.iter().find(|sum| sum.shape.dims == [50304, 384]);
        assert_eq!(of_head.and_then(|sum| sum.shape.symbols.as_deref()), Some("[V, h]"));
    });
    let mut file = load("recorded/gpt_leak.pickle.gz");
    file.entries[0].read_widths("384, 0");
    let fault = file.entries[0].widths_fault().expect("0 is no width");
    assert!(fault.contains("\"0\" is no width"), "{fault}");
    assert_eq!(shapes(file.target(0, 0).expect("a device"), Some(0)).dims[0].hidden, 384);
}

/// What `blocks` states of a block is what `shapes` states of its row.
#[test]
fn blocks_have_the_shapes_of_the_report() {
    let file = load("truth/gpt_step.pickle.gz");
    let target = file.target(0, 0).expect("a device");
    let report = shapes(target, None);
    let mut known = 0;
    let listed = blocks(target, BlockSort::Size, None);
    for block in &listed.blocks {
        let Some(shape) = block.shape else { continue };
        let shape = &listed.shapes.all()[shape as usize];
        assert!(shape.text.ends_with(" bytes") || shape.text.ends_with(" byte"), "{}", shape.text);
        assert_eq!(shape.words().ends_with('?'), !shape.is_certain);
        let plain = shape.text.replace(" tokens", "");
        let is_row = |row: &&ShapeRow| {
            row.category == block.category.name()
                && row.site == block.site
                && row.is_certain == shape.is_certain
                && row.shapes.iter().any(|of| plain.starts_with(of.text.split(']').next().unwrap()))
        };
        known += u32::from(report.rows.iter().any(|row| is_row(&row)));
    }
    assert!(known > 200, "{known}");
    let of_peak: Vec<_> = peak(target, BandKind::Requested, None)
        .stacks
        .into_iter()
        .filter_map(|stack| Some((stack.site, stack.shape?.text)))
        .collect();
    let logits = ("gpt.py:43 forward".to_owned(), "[2,048 tokens, 16,000] of 4 bytes".to_owned());
    assert!(of_peak.contains(&logits), "{of_peak:?}");
}
