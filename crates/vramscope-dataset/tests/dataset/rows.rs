//! The rows of a dataset equal the reports of the same files.

use crate::common::{export, files, fleet, folder, load, rows, source, sums, text};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use vramscope_dataset::schema::{TABLES, VERSION, VERSION_KEY};
use vramscope_inference::Category;
use vramscope_report::blocks::{BlockSort, blocks};
use vramscope_report::diagnose::{Listing, diagnose, with_levers};
use vramscope_report::peak::BandKind;
use vramscope_report::segments::segments;
use vramscope_report::summary::ErrorKind;
use vramscope_report::{Target, event_of, slot_of};
use vramscope_testgen::fleet::{SKEW_BYTES, SKEW_SITE};
use vramscope_trace::slicing::now;

fn test_data() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data");
    path.canonicalize().expect("the folder of test data")
}

/// A dataset of everything in `test_data` that is a snapshot or a damaged one, and these files.
fn of_test_data() -> &'static (PathBuf, Vec<PathBuf>) {
    static MADE: OnceLock<(PathBuf, Vec<PathBuf>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let dataset = folder("test_data");
        let is_other = |path: &PathBuf| {
            let error = load(path).err();
            error.is_some_and(|error| error.kind == ErrorKind::NoSnapshot)
                || path.to_string_lossy().ends_with(".vramscope.json")
        };
        let paths: Vec<PathBuf> =
            files(&test_data()).into_iter().filter(|path| !is_other(path)).collect();
        export(&dataset, paths.iter().map(|path| source(path)).collect(), 2);
        (dataset, paths)
    })
}

fn each_device(path: &Path, mut with: impl FnMut(&str, Target<'_>)) {
    let Ok(file) = load(path) else { return };
    let source = source(path);
    for entry in &file.entries {
        let name = match entry.name.as_str() {
            "" => source.file.clone(),
            name => format!("{}#{name}", source.file),
        };
        for index in 0..entry.traces.len() {
            let key = format!("{} {name}", source.run);
            with(&key, Target { path: &entry.path, entry, index });
        }
    }
}

fn place(row: &Map<String, Value>) -> (String, i64) {
    let device = row["device"].as_i64().unwrap_or(-1);
    (format!("{} {}", text(row, "run"), text(row, "file")), device)
}

#[test]
fn every_file_has_rows_and_those_of_the_peak_add_up_to_the_byte() {
    let (dataset, paths) = of_test_data();
    let peak = rows(dataset, "peak");
    let sums = sums(&peak, |row| (place(row), text(row, "band").to_owned()), "bytes");
    let (mut devices, mut checked) = (0, 0);
    for path in paths {
        each_device(path, |name, target| {
            devices += 1;
            for band in BandKind::ALL {
                let (figures, _) = band.of(target);
                let key = ((name.to_owned(), target.device().into()), band.name().to_owned());
                assert_eq!(sums.get(&key).copied().unwrap_or(0), figures.peak, "{key:?}");
                checked += usize::from(figures.peak > 0);
            }
        });
    }
    assert!(checked > 800, "{checked} peaks");
    for row in &peak {
        let is_cached = text(row, "site") == "cached free";
        assert_eq!(row["category"].is_null(), is_cached, "{row:?}");
        assert!(!is_cached || row["band"] == "reserved_bytes");
    }
    let ranks = rows(dataset, "ranks");
    let with_device = ranks.iter().filter(|row| !row["device"].is_null());
    assert_eq!(with_device.count(), devices);
    for path in paths {
        let source = source(path);
        let is_of = |row: &&Map<String, Value>| text(row, "path") == path.to_string_lossy();
        let row = ranks.iter().find(is_of).expect("a row for each file");
        match load(path) {
            Ok(_) => assert!(row["error"].is_null() && !row["settings"].is_null()),
            Err(error) => {
                assert_eq!(row["error"], json!(error.message));
                assert_eq!(row["error_kind"], json!(error.kind));
                assert!(row["events"].is_null() && row["requested_bytes_peak"].is_null());
            }
        }
        assert_eq!(row["file_bytes"], json!(source.bytes));
        assert_eq!(row["modified_us"], json!(source.modified_us));
    }
}

#[test]
fn blocks_and_segments_are_those_of_the_reports() {
    let dataset = folder("blocks");
    let recorded = test_data().join("recorded");
    let mut paths = files(&recorded);
    paths.extend(files(&test_data().join("findings")));
    paths.extend(files(&test_data().join("beside")));
    paths.retain(|path| load(path).is_ok());
    export(&dataset, paths.iter().map(|path| source(path)).collect(), 1);
    let mut found = BTreeMap::new();
    for table in ["blocks", "segments"] {
        for row in rows(&dataset, table) {
            found.entry((table, place(&row))).or_insert_with(Vec::new).push(row);
        }
    }
    let mut of =
        |table, key: &(String, i64)| found.remove(&(table, key.clone())).unwrap_or_default();
    let mut counts = [0; 2];
    for path in &paths {
        each_device(path, |name, target| {
            let key = (name.to_owned(), target.device().into());
            let mut report = blocks(target, BlockSort::Size, None).blocks;
            let mut own = of("blocks", &key);
            let order = |row: &Map<String, Value>| {
                (row["address"].as_u64(), row["reuse"].as_i64(), row["alloc_event"].as_i64())
            };
            own.sort_by_key(order);
            report.sort_by_key(|row| {
                let event = row.alloc_event.map(|event| i64::from(event.0));
                (Some(row.address.0), Some(i64::from(row.reuse)), event)
            });
            assert_eq!(own.len(), report.len(), "{key:?}");
            counts[0] += own.len();
            for (own, row) in own.iter().zip(&report) {
                let json = serde_json::to_value(row).expect("JSON");
                assert_eq!(own["address"].as_u64(), Some(row.address.0));
                for column in [
                    "reuse",
                    "bytes",
                    "block_bytes",
                    "category",
                    "alloc_event",
                    "free_requested_event",
                    "free_completed_event",
                    "preexisting",
                    "live_at_end",
                    "stream",
                    "segment_type",
                    "of_free",
                    "site",
                ] {
                    assert_eq!(own[column], json[column], "{column} of {key:?}: {own:?}");
                }
                let metadata = row.user_metadata.as_deref();
                assert_eq!(own["user_metadata"].as_str(), metadata);
                let tensor = row.tensor.as_ref().map(|tensor| tensor.name.as_str());
                assert_eq!(own["tensor_name"].as_str(), tensor);
            }
            let last = target.trace().slots() - 1;
            let report = now(async |budget| segments(target, last, None, budget).await);
            let own = of("segments", &key);
            assert_eq!(own.len(), report.segments.len());
            counts[1] += own.len();
            for (own, row) in own.iter().zip(&report.segments) {
                assert_eq!(own["total_bytes"], json!(row.total_size));
                assert_eq!(own["active_bytes"], json!(row.active));
                assert_eq!(own["largest_free_bytes"], json!(row.largest_free));
                assert_eq!(own["site"], json!(row.site));
            }
        });
    }
    assert!(counts[0] > 10_000 && counts[1] > 100, "{counts:?}");
}

#[test]
fn findings_are_those_of_diagnose() {
    let dataset = folder("findings");
    let paths: Vec<PathBuf> = [
        "recorded/gpt_leak.pickle.gz",
        "recorded/oom_expandable.pickle.gz",
        "recorded/t26/gpt_small.pickle.gz",
        "recorded/t26/two_devices.pickle.gz",
        "recorded/gpt_max_split.pickle.gz",
        "what_if/varlen_tight_default.pickle.gz",
    ]
    .map(|name| test_data().join(name))
    .to_vec();
    export(&dataset, paths.iter().map(|path| source(path)).collect(), 2);
    let mut found: BTreeMap<String, Vec<Map<String, Value>>> = BTreeMap::new();
    for row in rows(&dataset, "findings") {
        found.entry(place(&row).0).or_default().push(row);
    }
    let (mut count, mut replayed) = (0, 0);
    for path in &paths {
        let mut devices = Vec::new();
        let mut file = String::new();
        each_device(path, |name, target| {
            name.clone_into(&mut file);
            target.entry.simulate(target.index);
            devices.push(with_levers(target));
        });
        // As `vramscope diagnose --all --format json` writes them.
        let said = serde_json::to_value(diagnose(devices, Listing::All(usize::MAX), 0));
        let said = said.expect("JSON")["findings"].as_array().expect("a list").clone();
        let mut own = found.remove(&file).unwrap_or_default();
        let key = |row: &Value| (row["device"].to_string(), row["id"].to_string());
        own.sort_by_key(|row| (row["device"].to_string(), row["id"].to_string()));
        let mut said: Vec<Value> = said.into_iter().collect();
        said.sort_by_key(key);
        assert_eq!(own.len(), said.len(), "{file}");
        count += own.len();
        for (own, said) in own.iter().zip(&said) {
            for column in [
                "id",
                "kind",
                "severity",
                "device",
                "bytes",
                "saving_bytes",
                "blocks",
                "basis",
                "step",
                "phase",
                "title",
                "text",
                "why",
                "action",
            ] {
                assert_eq!(own[column], said[column], "{column} of {file}");
            }
            assert_eq!(own["site"], said["sites"][0], "{file}");
            replayed += usize::from(said.get("simulated").or(said.get("fixes")).is_some());
        }
    }
    assert!(count > 8 && replayed > 2, "{count} {replayed}");
}

#[test]
fn the_curve_reaches_each_peak_and_covers_the_window() {
    let (dataset, paths) = of_test_data();
    let mut of_device: BTreeMap<_, Vec<Map<String, Value>>> = BTreeMap::new();
    for row in rows(dataset, "curve") {
        of_device.entry(place(&row)).or_default().push(row);
    }
    for path in paths {
        each_device(path, |name, target| {
            let key = (name.to_owned(), i64::from(target.device()));
            let buckets = &of_device[&key];
            let slots = target.trace().slots();
            assert_eq!(buckets.len(), (slots as usize).min(2048));
            assert_eq!(buckets[0]["begin_event"], json!(-1));
            assert_eq!(buckets[buckets.len() - 1]["end_event"], json!(event_of(slots)));
            for two in buckets.windows(2) {
                assert_eq!(two[0]["end_event"], two[1]["begin_event"]);
            }
            for band in BandKind::ALL {
                let most = buckets.iter().map(|row| row[band.name()].as_i64()).max().flatten();
                let (figures, _) = band.of(target);
                if figures.peak >= 0 {
                    assert_eq!(most, Some(figures.peak), "{} of {key:?}", band.name());
                }
                let at = event_of(slot_of(figures.peak_event));
                let holds = |row: &&Map<String, Value>| {
                    let event = |column: &str| row[column].as_i64().unwrap_or(i64::MIN);
                    event("begin_event") <= at && at < event("end_event")
                };
                let bucket = buckets.iter().find(holds).expect("a part of the window");
                if figures.peak >= 0 {
                    assert_eq!(bucket[band.name()], json!(figures.peak));
                }
            }
        });
    }
}

#[test]
fn ranks_of_a_fleet_share_ids_and_show_the_one_that_holds_more() {
    let dataset = folder("fleet");
    let paths = fleet(&folder("fleet_of_rows"));
    export(&dataset, paths.iter().map(|path| source(path)).collect(), 2);
    let stacks = rows(&dataset, "stacks");
    let ids: BTreeSet<&str> = stacks.iter().map(|row| text(row, "stack_id")).collect();
    // Both iterations have a part, and nearly all stacks.
    assert!(ids.len() < stacks.len() * 2 / 3, "{} of {}", ids.len(), stacks.len());
    let frames = rows(&dataset, "frames");
    let frames: BTreeMap<i64, &str> = frames
        .iter()
        .map(|row| (row["frame_id"].as_i64().expect("an id"), text(row, "name")))
        .collect();
    for row in &stacks {
        let (of, lines) = (&row["frame_ids"], &row["lines"]);
        let of = of.as_array().expect("a list");
        assert_eq!(of.len(), lines.as_array().expect("a list").len());
        assert!(of.iter().all(|id| frames.contains_key(&id.as_i64().expect("an id"))));
        assert!(text(row, "stack_id").len() == 32 && !text(row, "site").contains(':'));
    }
    for table in ["blocks", "peak", "segments", "findings"] {
        let rows = rows(&dataset, table);
        assert!(rows.iter().all(|row| row["stack_id"].as_str().is_none_or(|id| ids.contains(id))));
    }
    let peak = rows(&dataset, "peak");
    let is_skew = |row: &&Map<String, Value>| {
        row["site"] == json!(SKEW_SITE) && row["band"] == json!("requested_bytes")
    };
    let skewed: Vec<Map<String, Value>> = peak.iter().filter(is_skew).cloned().collect();
    let by_rank =
        sums(&skewed, |row| (row["rank"].as_i64(), text(row, "iteration").to_owned()), "bytes");
    let expected = json!(SKEW_BYTES);
    assert_eq!(by_rank.len(), 2, "one rank in two iterations");
    assert!(by_rank.values().all(|&bytes| json!(bytes) == expected), "{by_rank:?}");
    let phases = rows(&dataset, "phases");
    assert!(!phases.is_empty());
    for row in &phases {
        let columns = Category::ALL.map(|category| format!("{}_bytes", category.name()));
        let bytes = columns.iter().map(|column| row[column].as_i64().expect("bytes"));
        assert_eq!(json!(bytes.sum::<i64>()), row["peak_bytes"]);
    }
}

#[test]
fn files_state_units_and_the_version_of_the_tables() {
    for table in TABLES {
        let schema = table.arrow();
        assert_eq!(schema.metadata().get(VERSION_KEY).map(String::as_str), Some(VERSION));
        for field in schema.fields() {
            let name = field.name().as_str();
            let unit = field.metadata().get("unit").map(String::as_str);
            let expected = match name {
                _ if name.ends_with("bytes") || name.starts_with("reserved_growth") => {
                    Some("bytes")
                }
                _ if name.ends_with("_us") || name == "us" => Some("microseconds"),
                _ if name.ends_with("_event") || name == "event" => Some("events"),
                _ => None,
            };
            let is_band = name.contains("_bytes_");
            let expected = if is_band && expected.is_none() && !name.ends_with("exactness") {
                Some("bytes")
            } else {
                expected
            };
            assert_eq!(unit, expected, "{}.{name}", table.name);
            let description = field.metadata().get("description").expect("a description");
            assert!(!description.is_empty() && !description.contains('\n'));
        }
    }
}
