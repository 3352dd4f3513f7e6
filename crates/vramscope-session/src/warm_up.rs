//! Work without a result, before the first file.
//!
//! A browser compiles WebAssembly quickly at first, and optimizes a function after many calls.
//! While the user looks for a file, a worker reads a small synthetic snapshot many times, and
//! answers the requests that a page sends for a new file. `cargo xtask warm-up` writes the
//! snapshot.

use crate::messages::views::{Bands, ColorBy, GroupBy, Layer, Query, SegmentSpec};
use crate::messages::{AxisKind, DeviceRef, Request, TileKey};
use flate2::read::DeflateDecoder;
use std::io::Read as _;

/// A trace of 200 blocks with all kinds of values that PyTorch writes. It has no frame of gzip,
/// whose reader is not needed on the page.
const SNAPSHOT: &[u8] = include_bytes!("warm-up.pickle.deflate");

/// A tile with all blocks of the snapshot.
const TILE: TileKey = TileKey { kx: 3, ky: 17, ix: 0, iy: 0 };

/// The synthetic snapshot, as a pickle.
///
/// ```
/// let bytes = vramscope_session::warm_up::snapshot();
/// let mut loader = vramscope_session::Loader::new("warm-up", bytes.len() as u64);
/// loader.feed(&bytes).unwrap();
/// assert_eq!(loader.finish().unwrap().entries[0].traces[0].allocations_in_window, 200);
/// ```
///
/// # Panics
/// Never: a test unpacks the embedded file.
pub fn snapshot() -> Vec<u8> {
    let mut unpacked = Vec::new();
    DeflateDecoder::new(SNAPSHOT).read_to_end(&mut unpacked).expect("the embedded file is whole");
    unpacked
}

/// The requests that a page sends for a new file: first the tiles of the timeline.
pub fn requests() -> Vec<Request> {
    let target = DeviceRef { part: 0, device: 0 };
    let axis = AxisKind::Event;
    let (color, rows) = (ColorBy::Category, SegmentSpec::default());
    let (group, bands, search) = (GroupBy::Category, Bands::ALL, String::new());
    let layers = [
        Layer::Outline {},
        Layer::Timeline { group, color, bands, search: search.clone() },
        Layer::Segments { color, rows: rows.clone(), search },
    ];
    let tiles =
        layers.map(|layer| Request::Tiles { id: 0, target, axis, layer, tiles: vec![TILE] });
    let queries =
        [Query::Minimap { axis }, Query::Segments { rows }, Query::Card {}, Query::Summary {}];
    let views = queries.map(|query| Request::View { id: 0, target, query });
    tiles.into_iter().chain(views).collect()
}

#[cfg(test)]
mod tests {
    use super::{requests, snapshot};
    use crate::FileSession;
    use crate::messages::Response;

    #[test]
    fn the_page_s_layers_are_drawn_and_no_reply_fails() {
        let bytes = snapshot();
        let mut session = FileSession::new("warm-up", bytes.len() as u64);
        session.feed(&bytes).expect("a pickle");
        let Response::Loaded(loaded) = session.finish() else { panic!("a whole snapshot") };
        assert!(loaded.parts[0].warnings.is_empty(), "{:?}", loaded.parts[0].warnings);
        let requests = requests();
        let expected = requests.len();
        for request in requests {
            session.post(request);
        }
        let mut strips_of_next = || {
            let reply = session.step().expect("a tile");
            let Response::Tile { strips, .. } = reply.response else { panic!("{reply:?}") };
            strips
        };
        let [outline, blocks] = [strips_of_next(), strips_of_next()];
        assert!(outline > 20 && blocks > outline, "{outline} strips, then {blocks}");
        let others: Vec<_> =
            std::iter::from_fn(|| session.step()).map(|reply| reply.response).collect();
        assert_eq!(others.len(), expected - 2);
        assert!(others.iter().all(|other| !matches!(other, Response::Failed(_))), "{others:?}");
    }
}
