//! One file's engine: bytes in, then requests in and answers out, in slices.

use crate::file::{File, Loader};
use crate::protocol::{AxisKind, DeviceRef, Failure, Progress, Request, Response, TileKey};
#[cfg(feature = "views")]
use crate::views::Views;
use crate::{detail, hover, loaded};
use memstrata_layout::{Axis, Cell, Colours, Drawing, Place, Strips, TILE_COLUMNS, TILE_ROWS, Timeline};
use std::collections::VecDeque;

/// A file from its first byte to its release.
///
/// A worker feeds it chunks, finishes it, and then alternates between [`Engine::post`] (what the page asked meanwhile) and
/// [`Engine::slice`] (a few milliseconds of work). What is under the pointer comes before details, and those before tiles, also
/// before the rest of a tile that is half drawn; a newer question of a kind replaces those not yet answered, whose answers
/// never come.
pub struct Engine {
    loader: Option<Loader>,
    file: Option<File>,
    /// What drawing needs of a device, made when it is first drawn.
    views: Vec<(DeviceRef, View)>,
    pick: Option<Request>,
    details: VecDeque<Request>,
    tiles: VecDeque<Tile>,
    /// The tile that is half drawn.
    begun: Option<Box<(Tile, Half)>>,
    /// Questions that may take long, after all others.
    #[cfg(feature = "views")]
    analyses: VecDeque<Request>,
    #[cfg(feature = "views")]
    answers: Views,
}

/// How much of a tile is drawn at a time, as [`memstrata_layout::Cost::work`] counts it: natively two to three milliseconds.
const SLICE: u64 = 1 << 18;

struct View {
    timeline: Timeline,
    colours: Colours,
}

struct Tile {
    id: u32,
    target: DeviceRef,
    axis: AxisKind,
    #[cfg(feature = "views")]
    layer: std::rc::Rc<crate::protocol::views::Layer>,
    key: TileKey,
}

/// An answer, and the columns that travel beside it.
#[derive(Debug)]
pub struct Reply {
    /// The answer.
    pub response: Response,
    /// Columns by name.
    pub columns: Vec<(&'static str, Column)>,
}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Positions.
    F32(Vec<f32>),
    /// Ids and colours.
    U32(Vec<u32>),
}

/// What a slice of work came to.
#[derive(Debug)]
pub enum Slice {
    /// There was nothing to do.
    Idle,
    /// There is more to do before the next answer.
    Working,
    /// An answer.
    Answer(Box<Reply>),
}

impl Slice {
    fn answer(response: Response) -> Self {
        Self::Answer(Box::new(response.into()))
    }
}

/// What there is of a tile that is half drawn.
pub(crate) struct Half {
    pub(crate) timeline: Drawing,
    #[cfg(feature = "views")]
    pub(crate) segments: Option<memstrata_layout::SegmentDrawing>,
}

impl Half {
    /// Nothing yet.
    pub(crate) fn new(key: TileKey) -> Self {
        Self {
            timeline: Drawing::new(cell(key)),
            #[cfg(feature = "views")]
            segments: None,
        }
    }
}

/// How far a tile is.
pub(crate) enum Drawn {
    /// It goes on.
    Partly,
    /// It is done.
    Whole(Strips),
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self { response, columns: Vec::new() }
    }
}

impl Engine {
    /// For the file at `path`, of `total` bytes (0 when that is not known).
    pub fn new(path: &str, total: u64) -> Self {
        Self::reading(Loader::new(path, total))
    }

    /// For the file that this loader reads.
    pub fn reading(loader: Loader) -> Self {
        Self {
            loader: Some(loader),
            file: None,
            views: Vec::new(),
            pick: None,
            details: VecDeque::new(),
            tiles: VecDeque::new(),
            begun: None,
            #[cfg(feature = "views")]
            analyses: VecDeque::new(),
            #[cfg(feature = "views")]
            answers: Views::default(),
        }
    }

    /// Read the next bytes.
    ///
    /// # Errors
    /// When they show that the file is no snapshot; the engine is of no use afterwards.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Progress, Failure> {
        match &mut self.loader {
            Some(loader) => loader.feed(chunk),
            None => Err(failure(None, "the file has been read already")),
        }
    }

    /// Read the next bytes of what is in the file, which were unpacked elsewhere from its first `read` bytes: browsers
    /// have a gzip of their own.
    ///
    /// # Errors
    /// When they show that the file holds no snapshot; the engine is of no use afterwards.
    pub fn feed_unpacked(&mut self, chunk: &[u8], read: u64) -> Result<Progress, Failure> {
        match &mut self.loader {
            Some(loader) => loader.feed_unpacked(chunk, read),
            None => Err(failure(None, "the file has been read already")),
        }
    }

    /// The bytes have ended: the answer is `Loaded`, `Failed` or `TooLarge`.
    pub fn finish(&mut self) -> Response {
        let Some(loader) = self.loader.take() else {
            return Response::Failed(failure(None, "the file has been read already"));
        };
        #[cfg(feature = "views")]
        if let Some(too_large) = loader.too_large() {
            return Response::TooLarge(too_large);
        }
        match loader.finish() {
            Ok(file) => Response::Loaded(loaded::loaded(self.file.insert(file))),
            Err(failure) => Response::Failed(failure),
        }
    }

    /// A request, to be answered by a later [`Engine::step`].
    pub fn post(&mut self, request: Request) {
        match request {
            #[cfg(not(feature = "views"))]
            Request::Tiles { id, target, axis, mut tiles } => {
                self.go_on(id, &mut tiles, |tile| Some((tile.target, tile.axis) == (target, axis)));
                self.tiles.clear();
                self.tiles.extend(tiles.into_iter().map(|key| Tile { id, target, axis, key }));
            }
            #[cfg(feature = "views")]
            Request::Tiles { id, target, axis, layer, mut tiles } => {
                let kind = std::mem::discriminant(&layer);
                let is_kind = |tile: &Tile| std::mem::discriminant(&*tile.layer) == kind;
                self.go_on(id, &mut tiles, |tile| {
                    let is_same = (tile.target, tile.axis, &*tile.layer) == (target, axis, &layer);
                    is_kind(tile).then_some(is_same)
                });
                self.tiles.retain(|tile| !is_kind(tile));
                let layer = std::rc::Rc::new(layer);
                self.tiles.extend(tiles.into_iter().map(|key| Tile { id, target, axis, layer: layer.clone(), key }));
            }
            #[cfg(feature = "views")]
            Request::View { ref query, .. } => {
                let queue = if query.is_long() { &mut self.analyses } else { &mut self.details };
                if query.replaces() {
                    let kind = std::mem::discriminant(query);
                    queue.retain(|waiting| !matches!(waiting, Request::View { query, .. } if std::mem::discriminant(query) == kind));
                }
                queue.push_back(request);
            }
            Request::Pick { .. } => self.pick = Some(request),
            Request::Block { .. } | Request::Find { .. } | Request::MapRange { .. } => self.details.push_back(request),
        }
    }

    /// Newer tiles are asked for: what is half drawn goes on if it is one of them, and is dropped if not. `is_same` says whether it
    /// shows the same; nothing when it is of a kind that they do not replace.
    fn go_on(&mut self, id: u32, tiles: &mut Vec<TileKey>, is_same: impl Fn(&Tile) -> Option<bool>) {
        let Some((tile, _)) = self.begun.as_deref_mut() else { return };
        let Some(is_same) = is_same(tile) else { return };
        match tiles.iter().position(|key| *key == tile.key) {
            Some(at) if is_same => {
                tile.id = id;
                tiles.remove(at);
            }
            _ => self.begun = None,
        }
    }

    /// Answer one question, however long it takes; `None` when there is none.
    pub fn step(&mut self) -> Option<Reply> {
        loop {
            match self.slice() {
                Slice::Idle => return None,
                Slice::Working => {}
                Slice::Answer(reply) => return Some(*reply),
            }
        }
    }

    /// A slice of work: a question, or a part of a tile.
    pub fn slice(&mut self) -> Slice {
        if let Some(request) = self.pick.take().or_else(|| self.details.pop_front()) {
            return Slice::answer(self.answer(&request));
        }
        let begin = |tile: Tile| {
            let half = Half::new(tile.key);
            Box::new((tile, half))
        };
        if let Some(mut begun) = self.begun.take().or_else(|| self.tiles.pop_front().map(begin)) {
            let (tile, half) = &mut *begun;
            return match self.draw(tile, half) {
                Some(Drawn::Partly) => {
                    self.begun = Some(begun);
                    Slice::Working
                }
                Some(Drawn::Whole(strips)) => Slice::Answer(Box::new(tile.reply(strips))),
                None => Slice::answer(Response::Failed(failure(Some(tile.id), "there is no such trace or axis"))),
            };
        }
        #[cfg(feature = "views")]
        if let Some(request) = self.analyses.pop_front() {
            return Slice::answer(self.answer(&request));
        }
        Slice::Idle
    }

    fn answer(&mut self, request: &Request) -> Response {
        let Some(file) = &self.file else {
            return Response::Failed(failure(Some(id_of(request)), "the file is not loaded"));
        };
        match *request {
            Request::Pick { id, target, axis, kx, ky, slot, bytes } => {
                let place = Place { kx, ky, slot, bytes, cell_rows: TILE_ROWS };
                let hit = file.trace(target).and_then(|(part, trace)| {
                    let axis = Axis::new(trace, axis.into())?;
                    let view = view(&mut self.views, file, target)?;
                    let picked = view.timeline.pick(axis, place)?;
                    Some(hover::hit(part, trace, &view.colours, &picked))
                });
                Response::Picked { id, hit }
            }
            Request::Block { id, target, block } => {
                let detail = file.trace(target).and_then(|(part, trace)| detail::block(part, trace, block));
                Response::Block { id, detail }
            }
            Request::Find { id, part, ref reference } => {
                Response::Block { id, detail: detail::find(file, part, reference) }
            }
            Request::MapRange { id, target, from, x0, x1 } => {
                let mapped = file.trace(target).and_then(|(_, trace)| {
                    let to = if from == AxisKind::Event { AxisKind::Time } else { AxisKind::Event };
                    let (source, goal) = (Axis::new(trace, from.into())?, Axis::new(trace, to.into())?);
                    let at = |x: f64| goal.slot_of(source.state_at(x.max(0.0) as u64)) as f64;
                    // The end of a range is where its last state ends.
                    let end = source.state_at((x1.ceil() - 1.0).max(0.0) as u64) + 1;
                    Some(Response::Range { id, axis: to, x0: at(x0), x1: goal.slot_of(end) as f64 })
                });
                mapped.unwrap_or_else(|| Response::Failed(failure(Some(id), "this trace has no other axis")))
            }
            Request::Tiles { id, .. } => Response::Failed(failure(Some(id), "tiles are answered one by one")),
            #[cfg(feature = "views")]
            Request::View { id, target, ref query } => match self.answers.answer(file, target, query) {
                Some(answer) => Response::View { id, answer },
                None => Response::Failed(failure(Some(id), "there is no such device")),
            },
        }
    }

    /// Goes on with a tile; `None` when there is no such trace or axis.
    fn draw(&mut self, tile: &Tile, half: &mut Half) -> Option<Drawn> {
        let file = self.file.as_ref()?;
        #[cfg(feature = "views")]
        if let Some(drawn) = self.answers.tile(file, tile.target, tile.axis, &tile.layer, half, SLICE) {
            return drawn;
        }
        let (_, trace) = file.trace(tile.target)?;
        let axis = Axis::new(trace, tile.axis.into())?;
        let View { timeline, colours } = view(&mut self.views, file, tile.target)?;
        let is_whole = timeline.draw(&mut half.timeline, axis, colours, SLICE);
        Some(if is_whole { Drawn::Whole(half.timeline.finish().0) } else { Drawn::Partly })
    }
}

impl Tile {
    fn reply(&self, strips: Strips) -> Reply {
        let &Self { id, target, axis, key, .. } = self;
        Reply {
            response: Response::Tile { id, target, axis, key, strips: strips.len() as u32 },
            columns: vec![
                ("positions", Column::F32(strips.positions.into_iter().flatten().collect())),
                ("colours", Column::U32(strips.colours)),
                ("blocks", Column::U32(strips.blocks)),
            ],
        }
    }
}

#[cfg(feature = "views")]
impl Drawn {
    /// The strips of one that is done.
    pub(crate) fn whole(self) -> Option<Strips> {
        match self {
            Self::Partly => None,
            Self::Whole(strips) => Some(strips),
        }
    }
}

/// The cell that a key names.
fn cell(key: TileKey) -> Cell {
    let TileKey { kx, ky, ix, iy } = key;
    // Scales and places beyond what is in any file are those of a page gone wrong: nothing is there.
    let (kx, ky) = (kx.min(44), ky.min(44));
    let corner = |i: u32, lines: u32, k: u8| (u64::from(i) * u64::from(lines)).saturating_mul(1 << k);
    Cell {
        kx,
        ky,
        slot: corner(ix, TILE_COLUMNS, kx),
        columns: TILE_COLUMNS,
        low: corner(iy, TILE_ROWS, ky),
        rows: TILE_ROWS,
    }
}

fn view<'a>(views: &'a mut Vec<(DeviceRef, View)>, file: &File, target: DeviceRef) -> Option<&'a mut View> {
    let at = match views.iter().position(|(made, _)| *made == target) {
        Some(at) => at,
        None => {
            let (part, trace) = file.trace(target)?;
            let view = View { timeline: Timeline::new(trace), colours: Colours::by_site(trace, &part.sites) };
            views.push((target, view));
            views.len() - 1
        }
    };
    Some(&mut views[at].1)
}

fn id_of(request: &Request) -> u32 {
    match *request {
        Request::Tiles { id, .. }
        | Request::Pick { id, .. }
        | Request::Block { id, .. }
        | Request::Find { id, .. }
        | Request::MapRange { id, .. } => id,
        #[cfg(feature = "views")]
        Request::View { id, .. } => id,
    }
}

fn failure(id: Option<u32>, message: &str) -> Failure {
    Failure { id, message: message.to_owned(), hint: None }
}

impl From<AxisKind> for memstrata_layout::AxisKind {
    fn from(kind: AxisKind) -> Self {
        match kind {
            AxisKind::Event => Self::Event,
            AxisKind::Time => Self::Time,
        }
    }
}
