//! The text of a configuration.

use vramscope_allocator::{
    Release, SETTING_KEYS, SettingCause, Settings, parse_settings, settings_text,
    unmodeled_settings,
};

fn parse(text: &str) -> Settings {
    parse_settings(text, &Settings::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn settings_are_read_and_written() {
    for text in [
        "",
        "expandable_segments:True",
        "max_split_size_mb:128",
        "expandable_segments:True,roundup_power2_divisions:8",
        "garbage_collection_threshold:0.6",
        "large_segment_size_mb:40",
        "large_segment_size_mb:40,max_non_split_rounding_mb:64",
        "per_process_memory_fraction:0.25",
        "throw_on_cudamalloc_oom:True",
        "expandable_segments:True,expandable_segments_reserve:0.5",
        "expandable_segments_reserve:40G",
    ] {
        assert_eq!(settings_text(&parse(text)), text);
        let spaced = text.replace(',', " , ").replace(':', " : ");
        assert_eq!(parse(&spaced), parse(text));
    }
}

#[test]
fn defaults_without_a_text_of_their_own_have_one_here() {
    let default = Settings::default();
    let split = parse("max_split_size_mb:64");
    for text in ["max_split_size_mb:0", "without max_split_size_mb"] {
        assert_eq!(parse_settings(text, &split).expect("settings"), default);
    }
    assert!(parse_settings("without max_split", &split).is_err());
    for key in SETTING_KEYS {
        assert_eq!(parse(&format!("without {key}")), default, "{key}");
    }
}

#[test]
fn the_size_of_large_segments_is_the_default_and_the_least_of_others() {
    assert_eq!(parse("large_segment_size_mb:40").max_non_split_rounding_size, 40 << 20);
    let default = Settings::default();
    for wrong in ["max_split_size_mb:30", "max_non_split_rounding_mb:30"] {
        assert!(parse_settings(wrong, &default).is_ok());
        assert!(parse_settings(&format!("{wrong},large_segment_size_mb:40"), &default).is_err());
    }
}

#[test]
fn what_pytorch_refuses_is_an_error() {
    for wrong in [
        "expandable",
        "max_split_size_mb:19",
        "roundup_power2_divisions:3",
        "roundup_power2_divisions:[3:1]",
        "large_segment_size_mb:10",
        "garbage_collection_threshold:1",
        "per_process_memory_fraction:1.5",
        "throw_on_cudamalloc_oom:maybe",
        "expandable_segments_reserve:0",
        "expandable_segments_reserve:infG",
        "x:1",
    ] {
        let error = parse_settings(wrong, &Settings::default()).expect_err(wrong);
        assert!(error.to_string().contains(wrong), "{error}");
        assert!(matches!(error.cause, SettingCause::Expected(_)), "{error}");
    }
}

#[test]
fn what_has_no_model_is_named() {
    for text in [
        "backend:cudaMallocAsync",
        "graph_capture_record_stream_reuse:True",
        "expandable_segments_reserve_by_class:[capture:0.25,workspace:40G]",
        "pinned_use_background_threads:True",
    ] {
        let both = format!("max_split_size_mb:64,{text}");
        let error = parse_settings(&both, &Settings::default()).expect_err(text);
        assert!(matches!(error.cause, SettingCause::NotModeled(_)), "{error}");
        assert_eq!(error.text, text);
    }
    let without_effect = "backend:native,release_lock_on_cudamalloc:True";
    assert_eq!(parse(without_effect), Settings::default());
}

/// What a recording has of them: pinned memory is another device, and the frees show the captures.
#[test]
fn recorded_settings_without_a_model_are_listed() {
    let text = "backend:cudaMallocAsync,pinned_num_register_threads:8,\
                graph_capture_record_stream_reuse:True,max_split_size_mb:64";
    let names: Vec<String> = unmodeled_settings(text).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["backend:cudaMallocAsync"]);
}

#[test]
fn a_release_is_the_number_after_2() {
    for (text, release) in
        [("2.9.1+cu128", Some(9)), ("2.15.0", Some(15)), ("2.12.0a0+git", Some(12)), ("1.13", None)]
    {
        assert_eq!(Release::parse(text).map(|release| release.0), release, "{text}");
    }
}
