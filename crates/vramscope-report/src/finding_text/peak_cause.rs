//! The words of findings about what alone sets the peak.

use super::{Words, counted, main_site};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::text;
use vramscope_inference::{Finding, PeakCause};
use vramscope_units::Bytes;

pub(super) fn peak_cause(entry: &SnapshotEntry, finding: &Finding, cause: &PeakCause) -> Words {
    let (bytes, site) = (Bytes(finding.bytes), main_site(entry, finding));
    let first = finding.events.first().copied();
    match cause {
        PeakCause::LargerStep { step, category, bytes: own, before, others } => {
            let (words, ratio) = (text::category(*category), ratio(*own, *before));
            let peak = Bytes(others.0 + bytes.0);
            Words {
                title: step_noun(*step).text(format_args!(
                    " alone sets the peak, {bytes} above all other steps: its {words} are {ratio} \
                     times as large"
                )),
                text: format!(
                    "Step {step} peaks at {peak}, every other step at {others} at most. Its \
                     {words} ({own}) are {ratio} times the most of another step ({before}). \
                     Without this step the peak would be {others}."
                ),
                action: "Limit the size of a batch: split or drop the longest sequences, or \
                         group batches by the number of tokens."
                    .to_owned(),
            }
        }
        PeakCause::FirstStep { others, scratch, is_convolution } => {
            let peak = Bytes(others.0 + bytes.0);
            let why = if *is_convolution {
                "cuDNN tries algorithms of convolutions (cudnn.benchmark), with workspaces that \
                 later steps do not use."
            } else {
                "No later step allocates as much there."
            };
            let title = step_noun(0)
                .text(format_args!(" peaks at {peak}, later steps at {others} at most: "))
                .event(scratch, first)
                .text(" of scratch memory");
            Words {
                title: if *is_convolution {
                    title.text(", as cuDNN tries algorithms")
                } else {
                    title
                },
                text: format!(
                    "Step 0 peaks at {peak}; later steps need {others} at most. At that peak \
                     {scratch} are scratch memory (allocated at: {site}). {why}"
                ),
                action: if *is_convolution {
                    "Leave it if step 0 fits: later steps need less. Otherwise set \
                     torch.backends.cudnn.benchmark = False."
                } else {
                    "Leave it if step 0 fits: later steps need less."
                }
                .to_owned(),
            }
        }
        PeakCause::Building { others, dropped, is_halved } => {
            let peak = Bytes(others.0 + bytes.0);
            let how = if *is_halved {
                " Weights are replaced by ones of half the size there, as when float32 is \
                 converted to bfloat16 on the device."
            } else {
                " So weights exist twice for a while, or in a larger type."
            };
            let action = if *is_halved {
                "Make or load the model in its final type (dtype=torch.bfloat16), or convert it \
                 on the CPU before it is moved to the device."
            } else {
                "Load the weights on the CPU or in place, and move them to the device once."
            };
            Words {
                title: Sentence::new(format_args!(
                    "The peak is before the first forward pass: making the model needs {peak}, all \
                     that follows {others} at most"
                )),
                text: format!(
                    "While the model is made {peak} are in use. Of these {dropped}, most from \
                     {site}, are freed before the first forward pass.{how} Afterwards {others} \
                     are needed at most."
                ),
                action: action.to_owned(),
            }
        }
        PeakCause::Evaluation { kept, others } => Words {
            title: Sentence::new("The ")
                .filter("evaluation", "phase:evaluation".to_owned())
                .text(" alone sets the peak: ")
                .event(kept, first)
                .text(" of its results stay on the device"),
            text: format!(
                "At the peak {site} and what it calls hold {kept} of results of the evaluation, \
                 and more with every batch. Outside of evaluations {others} are needed at most."
            ),
            action: "Move the results of each batch to the CPU, or keep sums only. With the \
                     Trainer of transformers set eval_accumulation_steps."
                .to_owned(),
        },
        PeakCause::PerPass { blocks, each } => Words {
            title: Sentence::new(format_args!(
                "{} stay live, one for each forward pass: ",
                counted(*blocks as usize, "block")
            ))
            .event(bytes, first),
            text: format!(
                "{} of {each} from {site} are live at the peak, {bytes} in all. One is made after \
                 each forward pass, such as for each token, and stays until the loop is over.",
                counted(*blocks as usize, "block"),
            ),
            action: "Keep what is needed of each pass only, or move it to the CPU each time. With \
                     generate() of transformers leave out output_scores and output_logits."
                .to_owned(),
        },
    }
}

fn step_noun(step: u32) -> Sentence {
    Sentence::default().filter(format_args!("Step {step}"), format!("step:{step}"))
}

/// `4.0`: a number of times with one decimal.
fn ratio(bytes: Bytes, of: Bytes) -> String {
    let tenths = (u128::from(bytes.0) * 10 + u128::from(of.0) / 2) / u128::from(of.0.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}
