//! The changes of a scenario as edits of the program: the line, and the lines of PyTorch that do
//! it.
//!
//! `scripts/twins/snippets.py` runs the snippets.

use super::changed::place;
use crate::target::Target;
use crate::text;
use serde::{Deserialize, Serialize};
use vramscope_inference::{Applied, EditAt, Editable, Recipe, Value};
use vramscope_snapshot::FrameId;

/// A change as an edit of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct EditRecord {
    /// The change: `checkpoint:all`.
    pub recipe: String,
    /// The line of the program: `train.py:12`; null if no call stack shows it.
    pub place: Option<String>,
    /// What stands there.
    pub what: String,
    /// The change in Python. Names such as `model`, `block`, `hidden` and `lr` are the program's.
    pub snippet: String,
}

/// The edits that recipes are.
pub(super) fn edits(
    target: Target<'_>,
    editable: &Editable,
    recipes: &[Recipe],
    applied: &[Applied],
) -> Vec<EditRecord> {
    let both = recipes.iter().zip(applied);
    both.filter_map(|(recipe, applied)| {
        let at = editable.edit_at(recipe.change, applied, target.entry.evidence(target.index));
        let place = match &recipe.value {
            // The line of the recipe itself.
            Value::Site(site) if at.frame.is_none() => Some(site.clone()),
            _ => at.frame.map(|frame| place(target, frame)),
        };
        let is_of_transformers = at.package.is_some_and(|frame| {
            let file = target.snapshot().text(target.snapshot().frame(frame).file);
            file.contains("/transformers/")
        });
        Some(EditRecord {
            recipe: recipe.to_string(),
            place,
            what: what(target, recipe, at),
            snippet: recipe.snippet(is_of_transformers)?,
        })
    })
    .collect()
}

/// What stands at the line of an edit.
fn what(target: Target<'_>, recipe: &Recipe, at: EditAt) -> String {
    let block = at.block.map(|block| format!(" ({})", block_name(target, block)));
    let what = format!("{}{}", recipe.change.what, block.unwrap_or_default());
    match at.package {
        Some(frame) => format!("{what}; {} of a package does it", place(target, frame)),
        None => what,
    }
}

/// `Block (gpt.py:31)` where functions have qualified names, else `gpt.py:31 forward`.
fn block_name(target: Target<'_>, frame: FrameId) -> String {
    let of = target.snapshot().frame(frame);
    let function = target.snapshot().text(of.name);
    match function.rsplit_once('.') {
        Some((class, _)) => format!("{class}, {}", place(target, frame)),
        None => text::frame_label(&function, &target.snapshot().text(of.file), of.line),
    }
}

/// An edit in lines: where and what, then the snippet, indented. Blank lines are left out.
pub fn edit_text(edit: &EditRecord) -> String {
    let EditRecord { recipe, place, what, snippet } = edit;
    let at = place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
    let mut text = format!("{recipe}{at}: {what}.");
    for line in snippet.lines().filter(|line| !line.is_empty()) {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}
