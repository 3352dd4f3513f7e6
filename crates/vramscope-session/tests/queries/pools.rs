//! What the views say of private pools, against the segments that the program prints.

use std::path::Path;
use vramscope_protocol::views::{Answer, At, ColorBy, Layer, Minimap, Query, StateAt};
use vramscope_protocol::{AxisKind, DeviceRef, Request, Response};
use vramscope_report::LoadedFile;
use vramscope_report::Target;
use vramscope_report::state::state;
use vramscope_session::{FileSession, Loader};

const TARGET: DeviceRef = DeviceRef { part: 0, device: 0 };
const WITH: &str = "recorded/t26/pools.pickle";
const WITHOUT: &str = "recorded/t26/gpt_small.pickle.gz";

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name))
        .expect("a file of test_data")
}

fn engine(name: &str) -> FileSession {
    let mut engine = FileSession::new(name, 0);
    engine.feed(&bytes(name)).expect("a snapshot");
    assert!(matches!(engine.finish(), Response::Loaded(_)));
    engine
}

fn file(name: &str) -> LoadedFile {
    let mut loader = Loader::new(name, 0);
    loader.feed(&bytes(name)).expect("a snapshot");
    loader.finish().expect("a snapshot")
}

fn ask(engine: &mut FileSession, query: Query) -> Answer {
    engine.post(Request::View { id: 5, target: TARGET, query });
    let Some(Response::View { answer, .. }) = engine.step().map(|r| r.response) else {
        panic!("an answer")
    };
    answer
}

fn course(engine: &mut FileSession, axis: AxisKind) -> Minimap {
    let Answer::Minimap(course) = ask(engine, Query::Minimap { axis }) else { panic!("a course") };
    course
}

fn moment(engine: &mut FileSession, event: i64) -> StateAt {
    let Answer::StateAt(moment) = ask(engine, Query::StateAt { at: At::Event { event } }) else {
        panic!("a moment")
    };
    *moment
}

fn picture(engine: &mut FileSession, bands: bool) -> String {
    let layer = Layer::Timeline { color: ColorBy::Stack, bands, search: String::new() };
    let [x0, y0] = [0.0, 0.0];
    let [x1, y1] = [300.0, 4e8];
    let axis = AxisKind::Event;
    let query = Query::Picture { layer, axis, x0, x1, y0, y1, width: 300, height: 200, dark: true };
    let Answer::Text(text) = ask(engine, query) else { panic!("a text") };
    text
}

#[test]
fn a_moment_has_a_row_of_them_as_large_as_their_segments() {
    let (mut engine, file) = (engine(WITH), file(WITH));
    for event in [-1, 0, 100, 200, i64::MAX] {
        let moment = moment(&mut engine, event);
        let target = Target { path: WITH, entry: &file.entries[0], index: 0 };
        let state = state(target, (moment.event + 1) as u32);
        let private = state.segments.iter().filter(|s| s.pool.is_some_and(|p| p != [0, 0]));
        let held: u64 = private.map(|s| s.total_size).sum();
        let row = moment.bands.last().expect("rows");
        let told = (row.key.as_str(), row.label.as_str(), row.raw.clone());
        assert_eq!(told, ("private_pools", "private pools", Some(held.to_string())), "at {event}");
    }
    assert!(moment(&mut self::engine(WITHOUT), 100).bands.iter().all(|r| r.key != "private_pools"));
}

#[test]
fn the_page_and_its_pictures_know_whether_there_are_any() {
    let (mut with, mut without) = (engine(WITH), engine(WITHOUT));
    for axis in [AxisKind::Event, AxisKind::Time] {
        assert_eq!((course(&mut with, axis).pools, course(&mut without, axis).pools), (3, 0));
    }
    let words = "and private pools as lines";
    assert!(picture(&mut with, true).contains(words));
    assert!(
        !picture(&mut with, false).contains(words) && !picture(&mut without, true).contains(words)
    );
}
