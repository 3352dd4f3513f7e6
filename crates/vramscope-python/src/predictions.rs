//! The words of predictions.

use serde::Serialize;
use vramscope_report::what_if::{
    WhatIfReport, limit_text, outcome_text, plan_text, rest_text, sentence,
};

/// What the program says about a report.
#[derive(Serialize)]
pub(crate) struct Words {
    /// What follows, in sentences.
    text: Vec<String>,
    /// The outcome of each scenario in words.
    outcomes: Vec<String>,
}

impl Words {
    /// The words of a report.
    pub(crate) fn new(report: &WhatIfReport) -> Self {
        let mut text = Vec::new();
        match &report.declined {
            Some(why) => text.push(why.clone()),
            None => {
                text.extend(report.serving.iter().flat_map(|serving| serving.text.clone()));
                text.push("The model reproduces this recording to the byte.".to_owned());
                let capacity = report.calibration.as_ref().map(|model| &model.capacity);
                text.extend(capacity.and_then(limit_text));
                text.extend(sentence(report));
                text.extend(rest_text(report).map(str::to_owned));
                text.extend(report.plan.as_ref().map(plan_text));
            }
        }
        let outcomes = report.scenarios.iter().map(outcome_text).collect();
        Self { text, outcomes }
    }
}
