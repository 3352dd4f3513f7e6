//! Settings with explanations, and the provenance of a recording.

use super::harness::{TARGET, ask, open_session};
use super::value;
use vramscope_session::messages::DetailRow;
use vramscope_session::messages::views::{Answer, Query, SettingsCard};

fn text<'a>(rows: &'a [DetailRow], key: &str) -> &'a str {
    rows.iter().find(|r| r.key == key).map_or("", |r| &r.text)
}

#[test]
fn settings_are_explained_with_numbers_of_the_run() {
    let setting = |card: &SettingsCard, key: &str| {
        card.settings
            .iter()
            .find(|s| s.key == key)
            .cloned()
            .unwrap_or_else(|| panic!("{key}: {card:?}"))
    };
    let (mut session, _) = open_session("recorded/gpt_max_split.pickle.gz");
    let card = answer!(session, Query::Settings {}, Settings);
    let split = setting(&card, "max_split_size");
    assert_eq!(split.value, "128.0 MiB");
    assert!(split.text.contains(" Here ") && split.text.ends_with("that large."), "{}", split.text);
    let roundup = setting(&card, "roundup_power2_divisions");
    assert_eq!(roundup.value, "4");
    assert!(roundup.text.contains("at the peak"), "{}", roundup.text);
    assert!(setting(&card, "garbage_collection_threshold").text.contains("60 %"));
    assert_eq!(
        setting(&card, "PYTORCH_CUDA_ALLOC_CONF").value,
        "max_split_size_mb:128,garbage_collection_threshold:0.6,roundup_power2_divisions:4"
    );
    assert_eq!(card.settings.iter().filter(|s| s.key.starts_with("roundup")).count(), 1);
    assert!(card.note.is_none());
    assert_eq!(value(&card.provenance, "events"), 10169);

    let (mut session, _) = open_session("recorded/t29/expandable_gpt.pickle.gz");
    let card = answer!(session, Query::Settings {}, Settings);
    let expandable = setting(&card, "expandable_segments");
    assert!(
        expandable.value == "true" && expandable.text.contains("mapped range"),
        "{expandable:?}"
    );
    assert_eq!(setting(&card, "max_split_size").value, "no limit");

    let (mut session, _) = open_session("edge/overflow.pickle");
    let card = answer!(session, Query::Settings {}, Settings);
    assert_eq!(setting(&card, "max_split_size").value, "no limit");
    assert!(setting(&card, "trace_alloc_overflowed").text.contains("oldest events"));

    let (mut session, _) = open_session("recorded/t20/gpt_small.pickle.gz");
    let card = answer!(session, Query::Settings {}, Settings);
    assert!(card.settings.is_empty() && card.note.is_some_and(|n| n.contains("2.3")));
    assert!(text(&card.provenance, "clock").contains("2.2"), "{:?}", card.provenance);

    let (mut session, _) = open_session("recorded/gpt_ring10000.pickle.gz");
    let card = answer!(session, Query::Settings {}, Settings);
    assert!(
        text(&card.provenance, "ring_buffer").starts_with("probably full: 10,000"),
        "{:?}",
        card.provenance
    );
}
