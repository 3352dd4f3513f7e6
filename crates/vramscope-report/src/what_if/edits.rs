//! Changes as edits of the program: the line, and the lines of PyTorch that do it.
//!
//! `scripts/twins/snippets.py` runs the snippets.

use super::changed::place;
use crate::target::Target;
use crate::text;
use vramscope_inference::{Applied, EditAt, EditRecord, Editable, LeverPlace, Recipe, Value};
use vramscope_snapshot::FrameId;
use vramscope_trace::is_generated_file;

/// A change as an edit of the program, and the line that it is about; each `None` where it is not
/// known.
pub(crate) fn edit(
    target: Target<'_>,
    editable: &Editable,
    recipe: &Recipe,
    applied: &Applied,
) -> (Option<EditRecord>, Option<LeverPlace>) {
    let at = editable.edit_at(recipe.change, applied, target.entry.evidence(target.index));
    let lever = at.shown.and_then(|frame| lever_place(target, frame));
    let site = match &recipe.value {
        // The line of the recipe itself.
        Value::Site(site) if at.frame.is_none() => Some(site.clone()),
        _ => at.frame.map(|frame| place(target, frame)),
    };
    let is_of_transformers = at.package.is_some_and(|frame| {
        let file = target.snapshot().text(target.snapshot().frame(frame).file);
        file.contains("/transformers/")
    });
    let edit = recipe.snippet(is_of_transformers).map(|snippet| EditRecord {
        recipe: recipe.to_string(),
        place: site,
        what: what(target, recipe, at),
        snippet,
    });
    (edit, lever)
}

/// A line of the program; `None` for generated code.
pub(crate) fn lever_place(target: Target<'_>, frame: FrameId) -> Option<LeverPlace> {
    let of = target.snapshot().frame(frame);
    let file = target.snapshot().text(of.file).into_owned();
    let site = place(target, frame);
    (!is_generated_file(&file)).then_some(LeverPlace { site, file, line: of.line })
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
