//! Several threads say what one says, to the letter.

#![cfg(feature = "parallel")]

#[expect(dead_code, reason = "this test asks for less than others")]
mod asking;

use asking::{TARGET, all_files, open, table, test_data};
use vramscope_protocol::views::{
    At, BlockSort, BlockTable, ColorBy, FlameSpec, Layer, Query, SegmentSpec,
};
use vramscope_protocol::{AxisKind, Request, TileKey};
use vramscope_report::LoadedFile;
use vramscope_report::rank::RankSummary;
use vramscope_report::summary::summarize;
use vramscope_report::{Target, findings::across};

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

/// What the program prints of a file, and what the page is answered about it.
fn answers(name: &str) -> Vec<String> {
    let mut opened = open(name);
    let mut said = vec![serde_json::to_string(&opened.loaded).expect("JSON")];
    if !opened.loaded.parts[0].devices.is_empty() {
        for query in
            [Query::Card {}, Query::Findings {}, Query::StateAt { at: At::Event { event: 100 } }]
        {
            said.push(serde_json::to_string(&opened.ask(query)).expect("JSON"));
        }
        for sort in SORTS {
            for descending in [false, true] {
                let order = opened.order(&BlockTable { sort, descending, ..table("") });
                said.push(format!("{sort:?} {descending} {order:?}"));
            }
        }
    }
    let file: Result<LoadedFile, _> = Ok(opened.file);
    said.push(serde_json::to_string(&summarize(name, 1, &file)).expect("JSON"));
    for entry in file.iter().flat_map(|file| &file.entries) {
        let ranks = (0..entry.traces.len())
            .map(|index| RankSummary::new(Target { path: name, entry, index }))
            .collect();
        said.push(serde_json::to_string(&across(ranks)).expect("JSON"));
    }
    said
}

fn with_threads<T: Send>(count: usize, answers: impl Fn() -> T + Sync) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().expect("threads");
    pool.install(|| {
        assert_eq!(vramscope_analysis::parallel::threads(), count);
        answers()
    })
}

/// Tiles of all layers, with what is asked of one half way, in the order of the answers.
fn tiles(name: &str) -> Vec<String> {
    let mut engine = open(name).engine;
    let search = String::new;
    let layers = [
        Layer::Timeline { color: ColorBy::Stack, bands: false, search: search() },
        Layer::Timeline { color: ColorBy::Category, bands: true, search: search() },
        Layer::Segments { color: ColorBy::Segment, rows: SegmentSpec::default(), search: search() },
        Layer::Flame { flame: FlameSpec::default() },
    ];
    let mut said = Vec::new();
    for (id, layer) in (0..).zip(layers) {
        for (kx, ky) in [(4, 19), (0, 12)] {
            let keys = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)];
            let tiles = keys.into_iter().map(|(ix, iy)| TileKey { kx, ky, ix, iy }).collect();
            engine.post(Request::Tiles {
                id,
                target: TARGET,
                axis: AxisKind::Event,
                layer: layer.clone(),
                tiles,
            });
            while let Some(reply) = engine.step() {
                said.push(format!("{:?} {:?}", reply.response, reply.columns));
            }
        }
    }
    said
}

#[test]
fn several_threads_draw_what_one_draws_in_the_same_order() {
    for name in [asking::GPT, "recorded/t26/pools.pickle", "recorded/gpt_late.pickle.gz"] {
        let one = with_threads(1, || tiles(name));
        assert!(one.len() == 40 && one.iter().any(|tile| tile.len() > 10_000), "{name}");
        for count in [2, 5] {
            assert!(with_threads(count, || tiles(name)) == one, "{name}, {count} threads");
        }
    }
}

#[test]
fn several_threads_say_what_one_says() {
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
