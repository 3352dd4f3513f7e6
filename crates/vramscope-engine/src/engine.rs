//! One file's engine: bytes in, then requests in and answers out, in slices.

use crate::file::{File, Loader};
use crate::making::{Making, Needs};
use crate::protocol::{AxisKind, DeviceRef, Failure, Progress, Request, Response, TileKey};
use crate::questions::Questions;
use crate::views::Views;
use crate::{detail, hover, loaded};
use std::collections::VecDeque;
use std::sync::Arc;
use vramscope_analysis::parallel;
use vramscope_analysis::slicing::{Budget, SlicedTask};
use vramscope_layout::{
    Axis, Cell, Colors, Drawing, PickPoint, Strips, TILE_COLUMNS, TILE_ROWS, Timeline,
};

/// A file from its first byte to its release.
///
/// A worker feeds it chunks, finishes it, and then alternates between [`Engine::post`] (what the
/// page asked meanwhile) and [`Engine::slice`] (a few milliseconds of work). What is under the
/// pointer comes before details, and those before tiles, also before the rest of a tile that is
/// half drawn, and of an answer that takes long; a newer question of a kind replaces those not yet
/// answered, whose answers never come.
pub struct Engine {
    loader: Option<Loader>,
    file: Option<Arc<File>>,
    making: Making,
    /// What drawing needs of a device, made when it is first drawn.
    views: Vec<(DeviceRef, SlicedTask<Option<View>>)>,
    pick: Option<Request>,
    details: VecDeque<Request>,
    tiles: VecDeque<Tile>,
    /// The tiles that are half drawn, of one layer: one, or as many as there are threads; in the
    /// order of their answers.
    begun: Vec<Tile>,
    halves: Vec<Half>,
    /// The first picture is there. Until then tiles come before whatever else is asked.
    pictured: bool,
    questions: Questions,
    answers: Views,
}

/// How much is done at a time, as [`vramscope_layout::Cost::work`] counts it: natively two to three
/// milliseconds.
pub(crate) const SLICE: u64 = 1 << 18;

struct View {
    /// One for each tile that is drawn at the same time.
    timelines: Vec<Timeline>,
    colors: Colors,
}

struct Tile {
    id: u32,
    target: DeviceRef,
    axis: AxisKind,
    layer: Arc<crate::protocol::views::Layer>,
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
    /// Ids and colors.
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
    pub(crate) fn answer(response: Response) -> Self {
        Self::Answer(Box::new(response.into()))
    }
}

/// What there is of a tile that is half drawn.
pub(crate) struct Half {
    pub(crate) timeline: Drawing,
    /// A timeline that waits for its lines, and what those are found with.
    pub(crate) lines: Option<(Strips, vramscope_layout::States)>,
    pub(crate) segments: Option<vramscope_layout::SegmentDrawing>,
    /// All of it.
    pub(crate) whole: Option<Strips>,
}

impl Half {
    /// Nothing yet.
    pub(crate) fn new(key: TileKey) -> Self {
        Self { timeline: Drawing::new(cell(key)), lines: None, segments: None, whole: None }
    }
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
            making: Making::default(),
            views: Vec::new(),
            pick: None,
            details: VecDeque::new(),
            tiles: VecDeque::new(),
            begun: Vec::new(),
            halves: Vec::new(),
            pictured: false,
            questions: Questions::default(),
            answers: Views::default(),
        }
    }

    /// Read the next bytes.
    ///
    /// # Errors
    /// When they show that the file is no snapshot; the engine is of no use afterwards.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        match &mut self.loader {
            Some(loader) => loader.feed(chunk),
            None => Err(failure(None, "the file has been read already")),
        }
    }

    /// Read the next bytes of what is in the file, which were unpacked elsewhere from its first
    /// `read` bytes: browsers have a gzip of their own.
    ///
    /// # Errors
    /// When they show that the file holds no snapshot; the engine is of no use afterwards.
    pub fn feed_unpacked(&mut self, chunk: &[u8], read: u64) -> Result<(), Failure> {
        match &mut self.loader {
            Some(loader) => loader.feed_unpacked(chunk, read),
            None => Err(failure(None, "the file has been read already")),
        }
    }

    /// How far reading is; `None` when it is over.
    pub fn progress(&self) -> Option<Progress> {
        self.loader.as_ref().map(Loader::progress)
    }

    /// The bytes have ended: the answer is `Loaded`, `Failed` or `TooLarge`.
    pub fn finish(&mut self) -> Response {
        let Some(loader) = self.loader.take() else {
            return Response::Failed(failure(None, "the file has been read already"));
        };
        if let Some(too_large) = loader.too_large() {
            return Response::TooLarge(too_large);
        }
        match loader.finish() {
            Ok(file) => Response::Loaded(loaded::loaded(self.file.insert(Arc::new(file)))),
            Err(failure) => Response::Failed(failure),
        }
    }

    /// A request, to be answered by a later [`Engine::step`].
    pub fn post(&mut self, request: Request) {
        match request {
            Request::Tiles { id, target, axis, layer, mut tiles } => {
                let kind = std::mem::discriminant(&layer);
                let is_kind = |tile: &Tile| std::mem::discriminant(&*tile.layer) == kind;
                self.go_on(id, &mut tiles, |tile| {
                    let is_same = (tile.target, tile.axis, &*tile.layer) == (target, axis, &layer);
                    is_kind(tile).then_some(is_same)
                });
                self.tiles.retain(|tile| !is_kind(tile));
                let layer = Arc::new(layer);
                self.tiles.extend(tiles.into_iter().map(|key| Tile {
                    id,
                    target,
                    axis,
                    layer: layer.clone(),
                    key,
                }));
            }
            Request::View { id, target, query } => self.questions.post(id, target, query),
            Request::Pick { .. } => self.pick = Some(request),
            Request::Block { .. } | Request::Find { .. } | Request::MapRange { .. } => {
                self.details.push_back(request)
            }
        }
    }

    /// Newer tiles are asked for: what is half drawn goes on if it is one of them, and is dropped
    /// if not. `is_same` says whether it shows the same; nothing when it is of a kind that they do
    /// not replace.
    fn go_on(
        &mut self,
        id: u32,
        tiles: &mut Vec<TileKey>,
        is_same: impl Fn(&Tile) -> Option<bool>,
    ) {
        let Some(is_same) = self.begun.first().and_then(is_same) else { return };
        for at in (0..self.begun.len()).rev() {
            let tile = &mut self.begun[at];
            match tiles.iter().position(|key| *key == tile.key) {
                Some(asked) if is_same => {
                    tile.id = id;
                    tiles.remove(asked);
                }
                _ => {
                    self.begun.remove(at);
                    self.halves.remove(at);
                }
            }
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

    /// A slice of work: a question, or a part of a tile or of what they need.
    pub fn slice(&mut self) -> Slice {
        if let Some(request) = self.pick.take().or_else(|| self.details.pop_front()) {
            if self.is_ready(&request) {
                return Slice::answer(self.answer(&request));
            }
            match request {
                Request::Pick { .. } => self.pick = Some(request),
                _ => self.details.push_front(request),
            }
            return Slice::Working;
        }
        if (self.pictured || self.tiles.is_empty() && self.begun.is_empty())
            && let Some(slice) =
                self.questions.before_tiles(self.file.as_ref(), &mut self.making, &mut self.answers)
        {
            return slice;
        }
        while let Some(next) = self.tiles.front()
            && self
                .begun
                .first()
                .is_none_or(|first| self.begun.len() < parallel::threads() && first.is_like(next))
        {
            self.halves.push(Half::new(next.key));
            self.begun.extend(self.tiles.pop_front());
        }
        if !self.begun.is_empty() {
            let is_there = self.draw().is_some();
            let whole = self.halves[0].whole.take();
            if is_there && whole.is_none() {
                return Slice::Working;
            }
            self.halves.remove(0);
            let tile = self.begun.remove(0);
            self.pictured |= self.tiles.is_empty() && self.begun.is_empty();
            return match whole {
                Some(strips) => Slice::Answer(Box::new(tile.reply(strips))),
                None => Slice::answer(Response::Failed(failure(
                    Some(tile.id),
                    "there is no such trace or axis",
                ))),
            };
        }
        if let Some(slice) =
            self.questions.behind(self.file.as_ref(), &mut self.making, &mut self.answers)
        {
            return slice;
        }
        Slice::Idle
    }

    /// Whether all is there that an answer is made of and that is kept; if not, makes a slice of
    /// it.
    fn is_ready(&mut self, request: &Request) -> bool {
        let Some(file) = &self.file else { return true };
        match *request {
            Request::Pick { target, .. } => {
                file.trace(target).is_none()
                    || device(&mut self.views, target).advance(|| view(file.clone(), target))
            }
            Request::Block { target, .. } => {
                self.making.is_ready(file, target, Needs { carving: true, ..Needs::default() })
            }
            Request::Find { part, ref reference, .. } => {
                let device = reference.split_once(':').and_then(|(device, _)| device.parse().ok());
                device.is_none_or(|device| {
                    let needs = Needs { carving: true, ..Needs::default() };
                    self.making.is_ready(file, DeviceRef { part, device }, needs)
                })
            }
            _ => true,
        }
    }

    fn answer(&mut self, request: &Request) -> Response {
        let Some(file) = &self.file else {
            return Response::Failed(failure(Some(id_of(request)), "the file is not loaded"));
        };
        match *request {
            Request::Pick { id, target, axis, kx, ky, slot, bytes } => {
                let place = PickPoint { kx, ky, slot, bytes, cell_rows: TILE_ROWS };
                let hit = file.trace(target).and_then(|(part, trace)| {
                    let axis = Axis::new(trace, axis.into())?;
                    let view = device(&mut self.views, target).done_mut()?.as_mut()?;
                    let picked = view.timelines[0].pick(axis, place)?;
                    Some(hover::hit(part, trace, &view.colors, &picked))
                });
                Response::Picked { id, hit }
            }
            Request::Block { id, target, block } => {
                let detail =
                    file.trace(target).and_then(|(part, trace)| detail::block(part, trace, block));
                Response::Block { id, detail }
            }
            Request::Find { id, part, ref reference } => {
                Response::Block { id, detail: detail::find(file, part, reference) }
            }
            Request::MapRange { id, target, from, x0, x1 } => {
                let mapped = file.trace(target).and_then(|(_, trace)| {
                    let to = if from == AxisKind::Event { AxisKind::Time } else { AxisKind::Event };
                    let (source, goal) =
                        (Axis::new(trace, from.into())?, Axis::new(trace, to.into())?);
                    let at = |x: f64| goal.slot_of(source.state_at(x.max(0.0) as u64)) as f64;
                    // The end of a range is where its last state ends.
                    let end = source.state_at((x1.ceil() - 1.0).max(0.0) as u64) + 1;
                    Some(Response::Range { id, axis: to, x0: at(x0), x1: goal.slot_of(end) as f64 })
                });
                mapped.unwrap_or_else(|| {
                    Response::Failed(failure(Some(id), "this trace has no other axis"))
                })
            }
            Request::Tiles { id, .. } => {
                Response::Failed(failure(Some(id), "tiles are answered one by one"))
            }
            Request::View { id, .. } => {
                Response::Failed(failure(Some(id), "views are answered in slices"))
            }
        }
    }

    /// Goes on with the tiles that are half drawn; `None` when there is no such trace or axis.
    fn draw(&mut self) -> Option<()> {
        let file = self.file.as_ref()?;
        let tile = self.begun.first()?;
        let halves = &mut self.halves;
        if let Some(drawn) =
            self.answers.tile(file, &mut self.making, tile.target, tile.axis, &tile.layer, halves)
        {
            return drawn;
        }
        let (_, trace) = file.trace(tile.target)?;
        let axis = Axis::new(trace, tile.axis.into())?;
        let made = device(&mut self.views, tile.target);
        if !made.advance(|| view(file.clone(), tile.target)) {
            return Some(());
        }
        let View { timelines, colors } = made.done_mut()?.as_mut()?;
        parallel::each_mut(&mut with_timelines(timelines, halves), |(timeline, half)| {
            if half.whole.is_none() && timeline.draw(&mut half.timeline, axis, colors, SLICE) {
                half.whole = Some(half.timeline.finish().0);
            }
        });
        Some(())
    }
}

/// Each half with a timeline of its own, since a timeline keeps the state that it showed last.
pub(crate) fn with_timelines<'a>(
    timelines: &'a mut Vec<Timeline>,
    halves: &'a mut [Half],
) -> Vec<(&'a mut Timeline, &'a mut Half)> {
    while timelines.len() < halves.len() {
        timelines.extend_from_within(..1);
    }
    timelines.iter_mut().zip(halves).collect()
}

impl Tile {
    /// Whether they can be drawn at the same time.
    fn is_like(&self, other: &Self) -> bool {
        if !Arc::ptr_eq(&self.layer, &other.layer) {
            return false;
        }
        (self.target, self.axis) == (other.target, other.axis)
    }

    fn reply(&self, strips: Strips) -> Reply {
        let &Self { id, target, axis, key, .. } = self;
        Reply {
            response: Response::Tile { id, target, axis, key, strips: strips.len() as u32 },
            columns: vec![
                ("positions", Column::F32(strips.positions.into_iter().flatten().collect())),
                ("colors", Column::U32(strips.colors)),
                ("blocks", Column::U32(strips.blocks)),
            ],
        }
    }
}

/// What is kept of a device, which begins empty.
pub(crate) fn device<T: Default>(devices: &mut Vec<(DeviceRef, T)>, target: DeviceRef) -> &mut T {
    let at = devices.iter().position(|(made, _)| *made == target).unwrap_or_else(|| {
        devices.push((target, T::default()));
        devices.len() - 1
    });
    &mut devices[at].1
}

/// The cell that a key names.
fn cell(key: TileKey) -> Cell {
    let TileKey { kx, ky, ix, iy } = key;
    // Scales and places beyond what is in any file are those of a page gone wrong: nothing is
    // there.
    let (kx, ky) = (kx.min(44), ky.min(44));
    let corner =
        |i: u32, lines: u32, k: u8| (u64::from(i) * u64::from(lines)).saturating_mul(1 << k);
    Cell {
        kx,
        ky,
        slot: corner(ix, TILE_COLUMNS, kx),
        columns: TILE_COLUMNS,
        low: corner(iy, TILE_ROWS, ky),
        rows: TILE_ROWS,
    }
}

async fn view(file: Arc<File>, target: DeviceRef) -> Option<View> {
    let (part, trace) = file.trace(target)?;
    let mut budget = Budget::of(SLICE);
    let timeline = Timeline::sliced(trace, &mut budget).await;
    let colors = Colors::by_site_sliced(trace, &part.sites, &mut budget).await;
    Some(View { timelines: vec![timeline], colors })
}

fn id_of(request: &Request) -> u32 {
    match *request {
        Request::Tiles { id, .. }
        | Request::Pick { id, .. }
        | Request::Block { id, .. }
        | Request::Find { id, .. }
        | Request::MapRange { id, .. } => id,
        Request::View { id, .. } => id,
    }
}

fn failure(id: Option<u32>, message: &str) -> Failure {
    Failure { id, message: message.to_owned(), hint: None }
}

impl From<AxisKind> for vramscope_layout::AxisKind {
    fn from(kind: AxisKind) -> Self {
        match kind {
            AxisKind::Event => Self::Event,
            AxisKind::Time => Self::Time,
        }
    }
}
