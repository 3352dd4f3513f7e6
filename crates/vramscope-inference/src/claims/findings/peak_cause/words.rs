//! The words of what alone sets the peak.

use super::PeakCause;
use crate::category::Category;
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Scene, Words};
use crate::claims::words::{category_label, counted, ratio};
use vramscope_units::Bytes;

impl Claim for PeakCause {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let (bytes, site) = (scene.bytes(), scene.main_site());
        let spot = self.spot(scene);
        let spot = spot.as_ref();
        match self {
            Self::LargerStep { step, category, bytes: own, before, others } => {
                let (words, ratio) = (category_label(*category), ratio(*own, *before));
                let peak = Bytes(others.0 + bytes.0);
                Words {
                    title: Sentence::new(match category {
                        Category::Input => "Larger batch in ",
                        _ => "Larger pass in ",
                    })
                    .filter(format_args!("step {step}"), format!("step:{step}"))
                    .and(scene.at(spot))
                    .text(format_args!(
                        ": {} above all other steps, {words} {ratio} times as large",
                        bytes.brief()
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
            Self::FirstStep { others, scratch, is_convolution } => {
                first_step(scene, *others, *scratch, *is_convolution)
            }
            Self::Building { others, dropped, is_halved } => {
                building(scene, *others, *dropped, *is_halved)
            }
            Self::Evaluation { kept, others } => Words {
                title: scene
                    .titled("Results of the evaluation kept", spot, *kept)
                    .text(" at the peak"),
                text: format!(
                    "At the peak {site} and what it calls hold {kept} of results of the \
                     evaluation, and more with every batch. Outside of evaluations {others} are \
                     needed at most."
                ),
                action: "Move the results of each batch to the CPU, or keep sums only. With the \
                         Trainer of transformers set eval_accumulation_steps."
                    .to_owned(),
            },
            Self::PerPass { blocks, each } => Words {
                title: scene
                    .titled("Result of each forward pass kept", spot, bytes)
                    .text(format_args!(" in {}", counted(*blocks as usize, "block"))),
                text: format!(
                    "{} of {each} from {site} are live at the peak, {bytes} in all. One is made \
                     after each forward pass, such as for each token, and stays until the loop is \
                     over.",
                    counted(*blocks as usize, "block"),
                ),
                action:
                    "Keep what is needed of each pass only, or move it to the CPU each time. With \
                         generate() of transformers leave out output_scores and output_logits."
                        .to_owned(),
            },
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        match self {
            Self::LargerStep { others, .. } => {
                format!("without this step the peak would be {others}")
            }
            Self::FirstStep { is_convolution: true, others, .. } => format!(
                "cuDNN tries algorithms of convolutions (cudnn.benchmark); later steps need at \
                 most {others}"
            ),
            Self::FirstStep { .. } => "no later step allocates as much there".to_owned(),
            Self::Building { dropped, is_halved, .. } => format!(
                "{dropped} of it are freed before the first forward pass{}",
                if *is_halved {
                    ": weights are converted to half the size on the device"
                } else {
                    ""
                }
            ),
            Self::Evaluation { others, .. } => {
                format!("outside of evaluations at most {others} are needed")
            }
            Self::PerPass { .. } => "they stay until the loop is over".to_owned(),
        }
    }
}

/// Step 0, with memory that no later step needs.
fn first_step(scene: &Scene<'_>, others: Bytes, scratch: Bytes, is_convolution: bool) -> Words {
    let (bytes, site) = (scene.bytes(), scene.main_site());
    let peak = Bytes(others.0 + bytes.0);
    let why = if is_convolution {
        "cuDNN tries algorithms of convolutions (cudnn.benchmark), with workspaces \
         that later steps do not use."
    } else {
        "No later step allocates as much there."
    };
    let cause = if is_convolution {
        "Search of cuDNN for algorithms in step 0"
    } else {
        "Scratch memory of step 0"
    };
    Words {
        title: scene.titled(cause, scene.own_spot().as_ref(), bytes).text(" above all later steps"),
        text: format!(
            "Step 0 peaks at {peak}; later steps need {others} at most. At that peak \
             {scratch} are scratch memory (allocated at: {site}). {why}"
        ),
        action: if is_convolution {
            "Leave it if step 0 fits: later steps need less. Otherwise set \
             torch.backends.cudnn.benchmark = False."
        } else {
            "Leave it if step 0 fits: later steps need less."
        }
        .to_owned(),
    }
}

/// The making of the model.
fn building(scene: &Scene<'_>, others: Bytes, dropped: Bytes, is_halved: bool) -> Words {
    let (bytes, site) = (scene.bytes(), scene.main_site());
    let peak = Bytes(others.0 + bytes.0);
    let how = if is_halved {
        " Weights are replaced by ones of half the size there, as when float32 is \
         converted to bfloat16 on the device."
    } else {
        " So weights exist twice for a while, or in a larger type."
    };
    let action = if is_halved {
        "Make or load the model in its final type (dtype=torch.bfloat16), or convert \
         it on the CPU before it is moved to the device."
    } else {
        "Load the weights on the CPU or in place, and move them to the device once."
    };
    Words {
        title: scene
            .titled("Making of the model sets the peak", scene.own_spot().as_ref(), bytes)
            .text(" above all that follows"),
        text: format!(
            "While the model is made {peak} are in use. Of these {dropped}, most from \
             {site}, are freed before the first forward pass.{how} Afterwards {others} \
             are needed at most."
        ),
        action: action.to_owned(),
    }
}
