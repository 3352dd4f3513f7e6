//! The words of memory that is held too long.

use super::HeldTooLong;
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Scene, Words};
use crate::claims::words::counted;
use vramscope_units::{Bytes, grouped};

impl Claim for HeldTooLong {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let site = scene.main_site();
        let (bytes, first) = (scene.bytes(), scene.first_event());
        let spot = self.spot(scene);
        let spot = spot.as_ref();
        match self {
            HeldTooLong::LastStep { of_step, until, freed_at, saving } => {
                let until = until.map(|event| format!(" until {event}"));
                let freed = freed_at
                    .map(|frame| format!(", where {} drops them", scene.label(frame)))
                    .unwrap_or_default();
                let results = counted(scene.finding.blocks as usize, "result");
                let adds = adds(*saving);
                let Some(step) = of_step else {
                    return Words {
                        title: scene.titled("Tensors of the last step kept", spot, bytes),
                        text: format!(
                            "{results} of the last step, most of them from {site}, stay \
                             live{}{freed}. {adds}",
                            until.unwrap_or_default(),
                        ),
                        action: format!(
                            "Delete them before the next forward pass: del the variable that holds \
                             the result of {site}, or set it to None."
                        ),
                    };
                };
                let until = until.unwrap_or_else(|| " to the end of the recording".to_owned());
                Words {
                    title: scene.titled(
                        &format!("Tensors of step {} kept", grouped((*step).into())),
                        spot,
                        bytes,
                    ),
                    text: format!(
                        "{results} of the forward pass of step {}, most of them from {site}, stay \
                         live{until}{freed}. Other steps free such results before they end. {adds}",
                        grouped(*step as u64),
                    ),
                    action: format!(
                        "Find what keeps an output of that pass ({site}): a variable for \
                         debugging, an exception, a list. Keep .detach() or .item() of it, or \
                         delete it."
                    ),
                }
            }
            HeldTooLong::Variable { results, until, is_direct, saving } => Words {
                title: Sentence::new("Last result kept")
                    .and(scene.at(spot))
                    .text(" while the next is computed: ")
                    .event(bytes.brief(), first),
                text: format!(
                    "{} of {site} are live at the peak. The variable keeps the old one until the \
                     line has computed the new one ({until}). {}",
                    counted(*results, "result"),
                    adds(*saving),
                ),
                action: if *is_direct {
                    format!(
                        "Where {site} computes the new value from the old one, change the tensor \
                         in place (add_(), mul_(), copy_(), out=). Else delete the old value (del) \
                         before the line runs again."
                    )
                } else {
                    format!("Delete the old result (del) before {site} runs again.")
                },
            },
            HeldTooLong::Copies { each, lines } => Words {
                title: scene
                    .titled(&format!("{} likely copies", scene.finding.blocks), spot, *each)
                    .text(" each"),
                text: format!(
                    "{} of equal size ({each}) from {} of one function are live at the peak: {}. \
                     Equal sizes suggest copies of one tensor.",
                    counted(scene.finding.blocks as usize, "block"),
                    counted(*lines, "line"),
                    scene
                        .finding
                        .parts
                        .iter()
                        .map(|part| scene.site(part.stack))
                        .collect::<Vec<_>>()
                        .join(", "),
                ),
                action:
                    "Make the copy once and use it twice, or delete the first before the second \
                         is made."
                        .to_owned(),
            },
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        let less = |saving: Bytes| match saving.0 {
            0 => "the peak is as high without them".to_owned(),
            _ => format!("without them the peak is {saving} lower"),
        };
        match self {
            HeldTooLong::LastStep { until, saving, .. } => match until {
                Some(event) => format!("they live until {event}; {}", less(*saving)),
                None => less(*saving),
            },
            HeldTooLong::Variable { saving, .. } => less(*saving),
            HeldTooLong::Copies { each, .. } => format!("all have {each}"),
        }
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        match self {
            Self::LastStep { saving, .. } | Self::Variable { saving, .. } => Some(*saving),
            Self::Copies { .. } => None,
        }
    }
}

/// The saving of the peak without the memory of a finding.
fn adds(saving: Bytes) -> String {
    match saving.0 {
        0 => "The peak is as high without them.".to_owned(),
        _ => format!("Without them the peak is {saving} lower."),
    }
}
