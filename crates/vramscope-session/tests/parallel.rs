//! The answers and tiles of several threads equal those of one thread.

#![cfg(feature = "parallel")]

#[expect(dead_code, reason = "this target needs a part of the harness")]
mod harness;

use harness::{TARGET, all_files, open, table, test_data};
use vramscope_report::LoadedFile;
use vramscope_report::card::Card;
use vramscope_report::summary::summarize;
use vramscope_report::{Target, findings::across};
use vramscope_session::messages::views::{
    Bands, BlockSort, BlockTable, ColorBy, FlameSpec, GroupBy, Layer, Query, SegmentSpec,
};
use vramscope_session::messages::{AxisKind, Request, TileKey};
use vramscope_trace::slicing::now;

const SORTS: [BlockSort; 10] = [
    BlockSort::Size,
    BlockSort::BlockSize,
    BlockSort::Category,
    BlockSort::Allocated,
    BlockSort::Freed,
    BlockSort::Lifetime,
    BlockSort::ByteSeconds,
    BlockSort::Address,
    BlockSort::Stream,
    BlockSort::Site,
];

/// The reports about a file, and answers to queries.
fn answers(name: &str) -> Vec<String> {
    let mut opened = open(name);
    let mut answers = vec![serde_json::to_string(&opened.loaded).expect("JSON")];
    if !opened.loaded.parts[0].devices.is_empty() {
        for query in [Query::Card {}, Query::Summary {}, Query::StateAt { event: 100 }] {
            answers.push(serde_json::to_string(&opened.ask(query)).expect("JSON"));
        }
        for sort in SORTS {
            for descending in [false, true] {
                let order = opened.order(&BlockTable { sort, descending, ..table("") });
                answers.push(format!("{sort:?} {descending} {order:?}"));
            }
        }
    }
    let file: Result<LoadedFile, _> = Ok(opened.file);
    answers.push(serde_json::to_string(&summarize(name, 1, &file)).expect("JSON"));
    for entry in file.iter().flat_map(|file| &file.entries) {
        let ranks = (0..entry.traces.len())
            .map(|index| {
                now(async |budget| Card::new(Target { path: name, entry, index }, budget).await)
            })
            .collect();
        answers.push(serde_json::to_string(&across(ranks)).expect("JSON"));
    }
    answers
}

fn with_threads<T: Send>(count: usize, answers: impl Fn() -> T + Sync) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().expect("threads");
    pool.install(|| {
        assert_eq!(vramscope_trace::parallel::threads(), count);
        answers()
    })
}

/// Tiles of all layers, in the order of their replies.
fn tiles(name: &str) -> Vec<String> {
    let mut session = open(name).session;
    let search = String::new;
    let layers = [
        Layer::Timeline {
            group: GroupBy::Block,
            color: ColorBy::Stack,
            bands: Bands::NONE,
            search: search(),
        },
        Layer::Timeline {
            group: GroupBy::Block,
            color: ColorBy::Category,
            bands: Bands::ALL,
            search: search(),
        },
        Layer::Segments { color: ColorBy::Segment, rows: SegmentSpec::default(), search: search() },
        Layer::Flame { flame: FlameSpec::default() },
    ];
    let mut answers = Vec::new();
    for (id, layer) in (0..).zip(layers) {
        for (kx, ky) in [(4, 19), (0, 12)] {
            let keys = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)];
            let tiles = keys.into_iter().map(|(ix, iy)| TileKey { kx, ky, ix, iy }).collect();
            session.post(Request::Tiles {
                id,
                target: TARGET,
                axis: AxisKind::Event,
                layer: layer.clone(),
                tiles,
            });
            while let Some(reply) = session.step() {
                answers.push(format!("{:?} {:?}", reply.response, reply.columns));
            }
        }
    }
    answers
}

#[test]
fn tiles_of_several_threads_equal_those_of_one() {
    for name in [harness::GPT, "recorded/t26/pools.pickle", "recorded/gpt_late.pickle.gz"] {
        let one = with_threads(1, || tiles(name));
        assert!(one.len() == 40 && one.iter().any(|tile| tile.len() > 10_000), "{name}");
        for count in [2, 5] {
            assert!(with_threads(count, || tiles(name)) == one, "{name}, {count} threads");
        }
    }
}

#[test]
fn answers_of_several_threads_equal_those_of_one() {
    let mut files = all_files();
    files.extend(
        ["gpt_ring10000", "gpt_leak", "t26/gpt_small", "t26/two_devices"]
            .map(|n| format!("recorded/{n}.pickle.gz")),
    );
    for name in files {
        assert!(test_data().join(&name).exists(), "{name}");
        let one = with_threads(1, || answers(&name));
        for count in [2, 5] {
            for (many, one) in with_threads(count, || answers(&name)).iter().zip(&one) {
                assert!(many == one, "{name}, {count} threads:\n{many}\none:\n{one}");
            }
        }
    }
}
