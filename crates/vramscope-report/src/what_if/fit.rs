//! The most tokens that fit on a device.

use super::{Options, text};
use crate::target::{Target, slot_of};
use serde::Serialize;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{Question, Scale, Search};

/// The largest factor that is tried.
const MOST: f64 = 64.0;

/// Above this factor the error of a prediction was not measured.
const MEASURED: f64 = 2.0;

/// The same for a prediction from two recordings.
const MEASURED_PAIRED: f64 = 1.5;

/// Steps of the bisection. The result is exact to about 0.01.
const STEPS: u32 = 13;

/// The answer to "what is the largest batch that fits".
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitRecord {
    /// The largest factor of the recorded tokens that fits; 0 if none does.
    pub tokens: f64,
    /// `scaled` up to a factor of 2, or with a second recording `paired` up to a factor of 1.5.
    /// `estimate` above, and if the recording began late.
    pub basis: &'static str,
    /// The error that was measured with this basis, in percent of reserved bytes; null for
    /// `estimate`.
    pub error_percent: Option<f64>,
    /// What holds most memory at the peak: a category.
    pub limited_by: Option<&'static str>,
    /// The reserved peak with that factor, in bytes.
    pub reserved_peak: u64,
}

/// The most tokens with which the run of `target` fits on the device of `options`. `None` when the
/// model does not reproduce the recording.
pub fn fit(target: Target<'_>, options: &Options) -> Option<FitRecord> {
    let mut budget = Budget::unlimited();
    run_to_completion(async {
        let model = target.entry.what_if(target.index)?;
        let available = options.available()?;
        if !model.calibration.is_equal() {
            return None;
        }
        let (trace, categories) = (target.trace(), target.entry.categories(target.index));
        let (mut fits, mut fails) = (0.0, MOST);
        let (mut reserved, mut limit) = (0, None);
        let (mut basis, mut error_percent) = ("estimate", None);
        for step in 0..STEPS {
            // The recorded size comes first: most questions are near it.
            let tokens = if step == 0 {
                1.0
            } else {
                f64::midpoint(fits, fails.min(4.0 * f64::max(fits, 0.25)))
            };
            let growth = options.growth.clone();
            let scale = Scale { tokens: Some(tokens), growth, ..Scale::default() };
            let question = Question {
                available: Some(available),
                scale: scale.clone(),
                least: Search::Never,
                ..Question::as_recorded(&model.settings)
            };
            let answer = model.answer(question, trace, categories, &mut budget).await;
            if answer.fits() {
                (fits, reserved) = (tokens, answer.reserved_peak);
                (basis, error_percent) =
                    text::basis_and_error(answer.basis, options.growth.is_some());
            } else {
                fails = tokens;
                let event = answer.ooms.first().copied();
                let live = model.live_by_category(&scale, slot_of(event), trace, categories);
                limit = live.first().map(|(category, _)| category.name());
            }
        }
        let most = if options.growth.is_some() { MEASURED_PAIRED } else { MEASURED };
        if fits > most {
            (basis, error_percent) = ("estimate", None);
        }
        Some(FitRecord {
            tokens: (fits * 100.0).floor() / 100.0,
            basis,
            error_percent,
            limited_by: limit,
            reserved_peak: reserved,
        })
    })
}
