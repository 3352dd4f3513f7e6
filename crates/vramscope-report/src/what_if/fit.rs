//! The most tokens that fit on a device.

use super::{Options, OtherRecordings, error_percent};
use crate::target::{Target, slot_of};
use serde::Serialize;
use vramscope_inference::{Category, Question, Scale, Search, SimulatedBasis};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

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
    pub basis: SimulatedBasis,
    /// The error that was measured with this basis, in percent of reserved bytes; null for
    /// `estimate`.
    pub error_percent: Option<f64>,
    /// What holds most memory at the peak: a category.
    pub limited_by: Option<Category>,
    /// The reserved peak with that factor.
    pub reserved_peak: Bytes,
}

/// The most tokens with which the run of `target` fits on the device of `options`. `None` when the
/// model does not reproduce the recording.
pub(super) async fn fit(
    target: Target<'_>,
    options: &Options,
    others: &OtherRecordings,
    budget: &mut Budget,
) -> Option<FitRecord> {
    let model = target.entry.what_if(target.index)?;
    let available = options.available()?;
    if !model.calibration.is_equal() {
        return None;
    }
    let (trace, categories) = (target.trace(), target.entry.categories(target.index));
    let (mut fits, mut fails) = (0.0, MOST);
    let (mut reserved, mut limit) = (0, None);
    let mut basis = SimulatedBasis::Estimate;
    for step in 0..STEPS {
        // The recorded size comes first: most questions are near it.
        let tokens = if step == 0 {
            1.0
        } else {
            f64::midpoint(fits, fails.min(4.0 * f64::max(fits, 0.25)))
        };
        let growth = others.growth.clone();
        let scale = Scale { tokens: Some(tokens), growth, ..Scale::default() };
        let question = Question {
            available: Some(available),
            scale: scale.clone(),
            least: Search::Never,
            ..Question::as_recorded(&model.settings)
        };
        let answer = model.answer(question, trace, categories, budget).await;
        if answer.fits() {
            (fits, reserved, basis) = (tokens, answer.reserved_peak, answer.basis);
        } else {
            fails = tokens;
            let event = answer.ooms.first().copied();
            let live = model.live_by_category(&scale, slot_of(event), trace, categories);
            limit = live.first().map(|(category, _)| *category);
        }
    }
    let most = if others.growth.is_some() { MEASURED_PAIRED } else { MEASURED };
    if fits > most {
        basis = SimulatedBasis::Estimate;
    }
    Some(FitRecord {
        tokens: (fits * 100.0).floor() / 100.0,
        basis,
        error_percent: error_percent(basis),
        limited_by: limit,
        reserved_peak: Bytes(reserved),
    })
}
