//! Cases of claims: recordings that fire, and look-alikes that stay silent.

use super::findings::facts::Finding;
use super::kinds::FindingKind;
use crate::category::{Categories, Rules};
use crate::evidence::Evidence;
use crate::evidence::passes::Passes;
use crate::steps::Steps;
use crate::uses::{UseTrace, Uses};
use std::path::Path;
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Carving, Sites, Trace};

/// Tests that the detection of a room finds its kind in each recording of `fires`, and in none of
/// `silent`. Paths are relative to `test_data`.
macro_rules! cases {
    ($kind:ident, fires: [$($fires:literal),+], silent: [$($silent:literal),+]) => {
        #[test]
        fn fires_on_its_cases_only() {
            use crate::claims::cases::count;
            use crate::claims::kinds::FindingKind;
            $(assert!(count(FindingKind::$kind, $fires) > 0, "{} is silent", $fires);)+
            $(assert_eq!(count(FindingKind::$kind, $silent), 0, "{} fires", $silent);)+
        }
    };
}
pub(crate) use cases;

/// The number of findings of a kind in a recording, over all its devices.
pub(crate) fn count(kind: FindingKind, path: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data");
    let read = |path: &Path| std::fs::read(path);
    let path = root.join(path);
    let bytes = read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = Reader::default();
    reader.feed(&bytes).expect("a snapshot");
    let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
    let beside =
        path.to_string_lossy().trim_end_matches(".gz").replace(".pickle", ".vramscope.json");
    let beside: Option<serde_json::Value> =
        read(Path::new(&beside)).ok().and_then(|json| serde_json::from_slice(&json).ok());
    let uses = beside.and_then(|mut json| serde_json::from_value(json["uses"].take()).ok());
    let devices = Trace::all(&snapshot);
    let found = devices.iter().flat_map(|trace| findings(&snapshot, trace, uses.as_ref()));
    found.filter(|finding| finding.kind() == kind).count()
}

fn findings(snapshot: &Snapshot, trace: &Trace, uses: Option<&UseTrace>) -> Vec<Finding> {
    now(async |budget| {
        let categories = Categories::new(snapshot, trace, &Rules::default(), budget).await;
        let steps = Steps::find(snapshot, trace, categories.phases(), budget).await;
        let passes = Passes::find(snapshot, trace, &categories, steps.as_ref(), budget).await;
        let uses = match uses {
            Some(uses) => Uses::new(uses, snapshot, trace, budget).await.ok(),
            None => None,
        };
        let cx = Evidence {
            snapshot,
            trace,
            sites: &Sites::new(snapshot),
            carving: &Carving::new(snapshot, trace, budget).await,
            categories: &categories,
            steps: steps.as_ref(),
            passes: &passes,
            uses: uses.as_ref(),
        };
        super::findings::findings(cx, budget).await
    })
}
