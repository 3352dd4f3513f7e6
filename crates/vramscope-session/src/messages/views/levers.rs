//! What can be changed, as a table.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_inference::{Cost, FindingId};
use vramscope_report::what_if::Outcome;

/// The answer to `Levers`: what can be changed, best first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Levers {
    /// What the run needs without a change; null where it is not known.
    pub now: Option<AsRecorded>,
    /// The limit on the gauges, from 0 to 1; null without one.
    pub limit: Option<f64>,
    /// The levers, best first; all of them by cost, then by need.
    pub rows: Vec<LeverItem>,
    /// The lever that is chosen at first: the best, if it makes the run fit, or cures what the
    /// headline says. Null for none.
    pub chosen: Option<String>,
    /// What is no lever, with the reason: `under 1 %`. Only of all levers.
    pub others: Vec<OtherChanges>,
    /// The largest batch that fits the chosen device, or why there is no lever; else empty.
    pub note: String,
}

/// The run without a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct AsRecorded {
    /// `as recorded`, or `as recorded, the step run to its end`.
    pub text: String,
    /// What PyTorch must have.
    pub needs: Quantity,
    /// That on the gauge, from 0 to 1.
    pub gauge: f64,
    /// Whether it goes through; null without a limit.
    pub outcome: Option<Outcome>,
    /// The outcome in words: `5.07 GiB short`.
    pub verdict: String,
}

/// A change and what the run needs with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LeverItem {
    /// Its name among the levers of a device.
    pub id: String,
    /// Its kind: two levers of one kind are forms of one change.
    pub kind: String,
    /// What to change.
    pub text: String,
    /// The line: `gpt.py:18`. Empty without one, and where `text` has it.
    pub site: String,
    /// The file of the line; empty without one.
    pub file: String,
    /// The number of the line; 0 without one.
    pub line: u32,
    /// What PyTorch must have with it.
    pub needs: Quantity,
    /// That on the gauge, from 0 to 1.
    pub gauge: f64,
    /// Whether the run goes through; null without a limit.
    pub outcome: Option<Outcome>,
    /// The outcome in words.
    pub verdict: String,
    /// The price.
    pub cost: Cost,
    /// How much longer a step takes with a change that costs time: `time, est. +18 to 26 %`. Empty
    /// without an estimate.
    pub time: String,
    /// What that estimate is, in words; empty without one.
    pub time_basis: String,
    /// How the number was obtained: `replayed ±5 %`.
    pub basis: String,
    /// What it does, for the first row and for a tooltip; may be empty.
    pub why: String,
    /// The finding that it cures; null if none.
    pub cures: Option<FindingId>,
    /// The question to the model of the allocator; empty if it cannot be asked.
    pub question: String,
    /// The edit in Python, or the environment variable; empty where none was written.
    pub edit: String,
}

/// Changes that are no levers, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct OtherChanges {
    /// `on already`, `under 1 %`, `not possible`.
    pub why: String,
    /// The changes, with reasons of their own.
    pub changes: Vec<String>,
}

/// A row of the answer to `LeverSettings`: what the run needs with settings of the allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LeverSetting {
    /// `max_split_size_mb:512`, or `the defaults`.
    pub setting: String,
    /// What PyTorch must have without and with expandable segments; null where they are not
    /// supported.
    pub needs: Vec<Option<Quantity>>,
}
