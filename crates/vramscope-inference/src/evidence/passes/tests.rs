use super::*;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::now;

/// Blocks of a line: each letter is a call site that makes one in each event. Capital letters make
/// inputs. Blocks die at the next event, but for those of `kept`, which die at a time.
struct Line<'a> {
    sites: &'a str,
    kept: Option<(char, f64)>,
}

impl Blocks for Line<'_> {
    fn count(&self) -> usize {
        self.sites.len()
    }

    fn made(&self, index: usize) -> Made {
        let site = self.sites.as_bytes()[index];
        let begin = index as f64;
        let kept = self.kept.filter(|(kept, _)| *kept == char::from(site));
        Made {
            begin,
            end: kept.map_or(begin + 1.0, |(_, end)| end),
            bytes: 1024,
            stack: Some(StackId(u32::from(site))),
            category: if site.is_ascii_uppercase() {
                Category::Input
            } else {
                Category::Activation
            },
        }
    }
}

/// Spans of a text with one letter for each event.
fn spans(phases: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (event, letter) in (0_u32..).zip(phases.chars()) {
        let phase = match letter {
            'f' => StepPhase::Forward,
            'b' => StepPhase::Backward,
            'o' => StepPhase::Optimizer,
            'e' => StepPhase::Evaluation,
            'g' => StepPhase::Generation,
            _ => StepPhase::Other,
        };
        let (begin, end) = (f64::from(event), f64::from(event) + 1.0);
        match spans.last_mut() {
            Some(last) if last.phase == phase => last.end = end,
            _ => spans.push(Span { begin, end, phase, step: 0 }),
        }
    }
    spans
}

/// Each pass: its lead, its forward pass, and its inputs.
fn found(sites: &str, phases: &str, kept: Option<(char, f64)>) -> Vec<(u32, u32, u32, Vec<u32>)> {
    assert_eq!(sites.len(), phases.len());
    let line = Line { sites, kept };
    let passes = now(async |budget| passes(&spans(phases), &line, budget).await);
    let number = |time: f64| time as u32;
    let row = |pass: Pass| (number(pass.lead), number(pass.begin), number(pass.end), pass.inputs);
    passes.into_iter().map(row).collect()
}

#[test]
fn inputs_of_a_known_call_site_begin_passes_after_other_work() {
    let passes = |sites| found(sites, "  eeeeeeee", None);
    let two = vec![(0, 2, 6, vec![0, 1]), (6, 6, 10, vec![6, 7])];
    assert_eq!(passes("XYmmmmXYmm"), two);
    // A log call between the two inputs of a batch.
    let logged = vec![(0, 2, 6, vec![0, 2]), (6, 6, 10, vec![6, 8])];
    assert_eq!(passes("XlYmmmXlYm"), logged);
    assert_eq!(passes("XXmmmmXXmm"), two, "one line makes both inputs");
    assert_eq!(passes("XmmmmYmmmm"), [(0, 2, 10, vec![0, 5])], "labels after the forward pass");
}

#[test]
fn a_backward_pass_tells_labels_from_another_batch() {
    // The model keeps its blocks for the backward pass at event 7.
    let one = found("XmmmYlbboo", " fffffbboo", Some(('m', 7.0)));
    assert_eq!(one, [(0, 1, 6, vec![0, 4])]);
    let two = found("XmmmYlbboo", " fffffbboo", Some(('m', 99.0)));
    assert_eq!(two, [(0, 1, 4, vec![0]), (4, 4, 6, vec![4])], "backward frees nothing of it");
}

#[test]
fn what_precedes_an_input_belongs_to_its_pass() {
    let passes = found("XmmbbopXmmbb", " ffbbo  ffbb", None);
    assert_eq!(passes, [(0, 1, 3, vec![0]), (6, 8, 10, vec![7])]);
}

#[test]
fn several_backward_passes_in_a_step_are_of_micro_batches() {
    let kinds = |phases: &str| {
        let sites = "m".repeat(phases.len());
        let line = Line { sites: &sites, kept: None };
        let passes = now(async |budget| passes(&spans(phases), &line, budget).await);
        passes.iter().map(|pass| pass.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(" ffbbo"), [PassKind::Step]);
    assert_eq!(kinds(" ffbbffbbo"), [PassKind::MicroBatch; 2]);
    assert_eq!(kinds(" ee ffbbo"), [PassKind::Evaluation, PassKind::Step]);
    assert_eq!(kinds(" gggg"), [PassKind::Generation]);
}
