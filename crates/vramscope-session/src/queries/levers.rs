//! What can be changed, as a table.

use super::shares::fraction;
use crate::messages::Quantity;
use crate::messages::views::{AsRecorded, LeverItem, LeverSetting, Levers, OtherChanges};
use vramscope_inference::{Covers, FindingId, LeverBasis, WhatIf, capitalized};
use vramscope_report::diagnostic::{LeverRow, longer, time_note};
use vramscope_report::what_if::{Outcome, batch_text, why_no_model};
use vramscope_report::{
    FindingKind, Lever, LeverTable, NoLever, Target, findings, lever_question, lever_table,
    setting_needs,
};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// What can be changed on a device; `available` is what PyTorch can have on the chosen one.
pub(crate) async fn levers(
    at: Target<'_>,
    available: Option<u64>,
    is_unfolded: bool,
    budget: &mut Budget,
) -> Levers {
    let table = lever_table(at, available, is_unfolded, budget).await;
    let limit = table.available;
    let whole = [table.now, limit].into_iter().flatten();
    let whole = whole.chain(table.levers.iter().map(|lever| lever.needs_bytes)).max();
    let whole = whole.unwrap_or_default().0;
    let leading = leading(at);
    let is_failure = leading.as_ref().is_some_and(|(kind, _)| *kind == FindingKind::Oom);
    let now = table.now.map(|now| {
        let outcome = limit.map(|limit| if now <= limit { Outcome::Fits } else { Outcome::Short });
        let covers = table.levers.first().map(|lever| lever.covers);
        AsRecorded {
            text: match covers {
                Some(Covers::Step | Covers::Steps) => "as recorded, the step run to its end",
                Some(Covers::Request) => "as recorded, the failed request met",
                Some(Covers::Run) | None => "as recorded",
            }
            .to_owned(),
            needs: brief(now),
            gauge: fraction(now.0, whole),
            outcome,
            verdict: verdict_words(outcome, now, limit),
        }
    });
    let item = |lever: &Lever| item(at, lever, limit, whole);
    // A run that fits without a change needs none.
    let is_short = table.now.zip(limit).is_none_or(|(now, limit)| now > limit);
    let is_cure = |lever: &Lever| {
        let id = leading.as_ref().map(|(_, id)| id);
        !is_failure && id.is_some() && lever.cures.as_ref() == id
    };
    let first = table.levers.first();
    let chosen = first.filter(|first| is_short && first.fits() || is_cure(first));
    let chosen = chosen.map(|first| first.id.clone());
    let mut table = table;
    if is_unfolded {
        table.levers.sort_by_key(|lever| (lever.cost, lever.needs_bytes));
    }
    Levers {
        now,
        limit: limit.map(|limit| fraction(limit.0, whole)),
        rows: table.levers.iter().map(item).collect(),
        chosen,
        note: note(at, &table, is_failure),
        others: grouped(table.others),
    }
}

/// The kind and id of the finding in the headline.
fn leading(at: Target<'_>) -> Option<(FindingKind, FindingId)> {
    let found = findings::of_device(at);
    let leads = found.iter().filter(|entry| entry.leads);
    let first = leads.min_by_key(|entry| entry.record.weight())?;
    Some((first.record.kind, first.record.id.clone()))
}

fn item(at: Target<'_>, lever: &Lever, limit: Option<Bytes>, whole: u64) -> LeverItem {
    let row = LeverRow::new(lever, String::new(), true);
    let place = lever.place.as_ref();
    let is_told = |site: &str| lever.text.contains(site);
    let conf = lever.conf.iter().map(|conf| format!("PYTORCH_CUDA_ALLOC_CONF={conf}"));
    let snippet = lever.edit.iter().map(|edit| edit.snippet.clone());
    let outcome = lever.outcome.filter(|_| limit.is_some());
    LeverItem {
        id: lever.id.clone(),
        kind: lever.kind.clone(),
        text: lever.text.clone(),
        site: place.map(|of| of.site.clone()).filter(|site| !is_told(site)).unwrap_or_default(),
        file: place.map(|of| of.file.clone()).unwrap_or_default(),
        line: place.map_or(0, |of| of.line),
        needs: brief(lever.needs_bytes),
        gauge: fraction(lever.needs_bytes.0, whole),
        outcome,
        verdict: match (outcome, lever.short_by) {
            (Some(Outcome::Short), Some(short)) => format!("{} short", short.brief()),
            _ => row.verdict.clone(),
        },
        cost: lever.cost,
        time: lever
            .seconds_percent
            .map(|of| format!("time, est. {}", longer(of)))
            .unwrap_or_default(),
        time_basis: lever.seconds_gpu.as_deref().map(time_note).unwrap_or_default(),
        basis: match lever.basis {
            LeverBasis::Replayed if lever.is_short() => "replayed".to_owned(),
            LeverBasis::Replayed => match (lever.error_percent, lever.range) {
                (None, Some([low, high])) => format!("{} to {}", low.brief(), high.brief()),
                _ => format!("replayed {}", row.basis).trim_end().to_owned(),
            },
            LeverBasis::Estimated => "estimated".to_owned(),
        },
        why: why(at, lever, &row),
        cures: lever.cures.clone(),
        question: lever_question(at, lever),
        edit: conf.chain(snippet).collect::<Vec<_>>().join("\n"),
    }
}

/// What a lever does: what it cures, what stands at its line, and what its replay covers.
fn why(at: Target<'_>, lever: &Lever, row: &LeverRow) -> String {
    let found = findings::of_device(at);
    let cured = found.iter().find(|entry| Some(&entry.record.id) == lever.cures.as_ref());
    let what = match (cured, &lever.edit) {
        (Some(entry), _) => Some(entry.record.title.clone()),
        (None, Some(edit)) => Some(edit.what.clone()),
        _ => None,
    };
    let both: Vec<String> = what.into_iter().chain(row.covers.clone()).collect();
    capitalized(&both.join("; "))
}

/// The largest batch that fits, or why there is no lever.
fn note(at: Target<'_>, table: &LeverTable, is_failure: bool) -> String {
    if let Some(batch) = batch_text(table.largest_batch) {
        return capitalized(&format!("{batch} fits without a change"));
    }
    if !table.levers.is_empty() {
        return String::new();
    }
    let why = why_no_model(at.trace()).map(str::to_owned);
    let model = at.entry.what_if(at.index);
    let differs = model.filter(|model| !model.calibration.is_equal());
    let differs = differs.map(vramscope_report::what_if::calibration_text);
    let is_late = model.is_some_and(WhatIf::starts_late);
    let late = is_late.then(|| "the recording begins when memory was in use".to_owned());
    match (why.or(differs).or(late), table.now) {
        (Some(why), _) => format!("No change was replayed: {}", why.trim_end_matches('.')),
        (None, Some(_)) if is_failure => {
            "No change that was replayed avoids the failure".to_owned()
        }
        (None, Some(_)) => "No change that was replayed saves 1 %".to_owned(),
        (None, None) => "The run cannot be replayed to its end".to_owned(),
    }
}

/// Changes by reason.
fn grouped(all: Vec<NoLever>) -> Vec<OtherChanges> {
    let mut groups: Vec<OtherChanges> = Vec::new();
    for NoLever { why, text } in all {
        match groups.iter_mut().find(|group| group.why == why) {
            Some(group) => group.changes.push(text),
            None => groups.push(OtherChanges { why: why.to_owned(), changes: vec![text] }),
        }
    }
    groups
}

/// What the run needs with settings of the allocator.
pub(crate) async fn settings(at: Target<'_>, budget: &mut Budget) -> Vec<LeverSetting> {
    let rows = setting_needs(at, budget).await.into_iter();
    rows.map(|row| LeverSetting {
        setting: match row.setting {
            setting if setting.is_empty() => "the defaults".to_owned(),
            setting => setting,
        },
        needs: row.needs.into_iter().map(|needs| needs.map(brief)).collect(),
    })
    .collect()
}

/// Bytes with three significant digits.
pub(super) fn brief(bytes: Bytes) -> Quantity {
    Quantity { text: bytes.brief(), ..Quantity::bytes(bytes) }
}

/// `fits, 2.19 GiB to spare`, `5.07 GiB short`.
pub(super) fn verdict_words(
    outcome: Option<Outcome>,
    needs: Bytes,
    available: Option<Bytes>,
) -> String {
    let Some(available) = available else { return String::new() };
    let difference = Bytes(needs.0.abs_diff(available.0)).brief();
    match outcome {
        Some(Outcome::Fits) if needs <= available => format!("fits, {difference} to spare"),
        Some(Outcome::Fits) => "fits".to_owned(),
        Some(Outcome::FitsBarely) => "fits, barely".to_owned(),
        Some(Outcome::Short) if needs > available => format!("{difference} short"),
        Some(Outcome::Short) => "short".to_owned(),
        Some(Outcome::Unknown) => "not known".to_owned(),
        None => String::new(),
    }
}
