//! Cuts a diagnosis until its JSON is small enough, whatever the file.

use super::Diagnosis;
use vramscope_analysis::Severity;

/// The maximum size of a diagnosis as indented JSON, in bytes.
pub(super) const MAX_BYTES: usize = 8000;

/// The lengths of lists and of texts (in characters) that are tried in turn.
const LIMITS: [(usize, usize); 8] =
    [(20, 1200), (8, 1200), (4, 1200), (2, 800), (1, 400), (1, 200), (1, 120), (1, 60)];

/// The limits from which findings of low severity are given up before texts are cut further.
const KEEPS_LOW: usize = 3;

/// Cuts lists, then drops minor findings, then cuts texts, then drops findings. `found` is the
/// number of all findings.
pub(super) fn fit(diagnosis: &mut Diagnosis, found: usize) {
    let whole = diagnosis.clone();
    let counts = |limit: usize| {
        let all = whole.findings.len();
        let serious = whole.findings.iter().filter(|f| f.severity != Severity::Low).count();
        let least = match limit {
            0..KEEPS_LOW => all,
            _ if limit + 1 < LIMITS.len() => serious,
            _ => 0,
        };
        (least..=all).rev()
    };
    for (at, &(list, text)) in LIMITS.iter().enumerate() {
        for count in counts(at) {
            *diagnosis = whole.clone();
            diagnosis.findings.truncate(count);
            diagnosis.omitted = Some(found - count).filter(|&omitted| omitted > 0);
            cut(diagnosis, list, text);
            if size(diagnosis) <= MAX_BYTES {
                return;
            }
        }
    }
}

/// The size of a diagnosis as indented JSON, with what Markdown adds to escape its characters.
fn size(diagnosis: &Diagnosis) -> usize {
    let escaped = |byte: u8| match byte {
        b'&' | b'@' => 4,
        b'\\' | b'`' | b'*' | b'_' | b'[' | b']' | b'<' | b'>' | b'|' | b'#' | b'~' => 1,
        _ => 0,
    };
    let json = serde_json::to_vec_pretty(diagnosis).unwrap_or_default();
    json.len() + json.iter().map(|&byte| escaped(byte)).sum::<usize>()
}

fn cut(diagnosis: &mut Diagnosis, list: usize, text: usize) {
    shorten(&mut diagnosis.verdict, text);
    // There are ten kinds of blind spots.
    diagnosis.blind_spots.truncate(list.max(3));
    for spot in &mut diagnosis.blind_spots {
        shorten(&mut spot.text, text);
    }
    if let Some(peak) = &mut diagnosis.peak {
        keep_end(&mut peak.path, text);
    }
    for finding in &mut diagnosis.findings {
        keep_end(&mut finding.path, text);
        shorten(&mut finding.title, text);
        shorten(&mut finding.text, text);
        shorten(&mut finding.action, text);
        finding.events.truncate(list);
        finding.children.truncate(list);
        finding.sites.truncate(list);
        finding.called_from.truncate(list.min(4));
        let of_children = finding.children.iter_mut().map(|child| &mut child.site);
        for site in of_children.chain(&mut finding.sites).chain(&mut finding.called_from) {
            shorten(site, text.min(200));
        }
    }
}

/// Keeps the first characters of a text, and marks the cut.
fn shorten(text: &mut String, limit: usize) {
    if let Some((end, _)) = text.char_indices().nth(limit) {
        text.truncate(end);
        text.push('…');
    }
}

/// Keeps the last characters of a path, and marks the cut.
fn keep_end(path: &mut String, limit: usize) {
    let count = path.chars().count();
    if let Some((begin, _)) =
        path.char_indices().nth(count.saturating_sub(limit)).filter(|c| c.0 > 0)
    {
        *path = format!("…{}", &path[begin..]);
    }
}
