//! One file's engine: bytes in, then requests in and answers out, in slices.

use crate::file::{File, Loader};
use crate::protocol::{AxisKind, DeviceRef, Failure, Progress, Request, Response, TileKey};
#[cfg(feature = "views")]
use crate::views::Views;
use crate::{detail, hover, loaded};
use memstrata_layout::{Axis, Cell, Colours, Place, TILE_COLUMNS, TILE_ROWS, Timeline};
use std::collections::VecDeque;

/// A file from its first byte to its release.
///
/// A worker feeds it chunks, finishes it, and then alternates between [`Engine::post`] (what the page asked meanwhile) and
/// [`Engine::step`] (one slice of work, a few milliseconds). What is under the pointer comes before details, and those
/// before tiles; a newer question of a kind replaces those not yet answered, whose answers never come.
pub struct Engine {
    loader: Option<Loader>,
    file: Option<File>,
    /// What drawing needs of a device, made when it is first drawn.
    views: Vec<(DeviceRef, View)>,
    pick: Option<Request>,
    details: VecDeque<Request>,
    tiles: VecDeque<Tile>,
    /// Questions that may take long, after all others.
    #[cfg(feature = "views")]
    analyses: VecDeque<Request>,
    #[cfg(feature = "views")]
    answers: Views,
}

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
            Request::Tiles { id, target, axis, tiles } => {
                self.tiles.clear();
                self.tiles.extend(tiles.into_iter().map(|key| Tile { id, target, axis, key }));
            }
            #[cfg(feature = "views")]
            Request::Tiles { id, target, axis, layer, tiles } => {
                let kind = std::mem::discriminant(&layer);
                self.tiles.retain(|tile| std::mem::discriminant(&*tile.layer) != kind);
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

    /// Answer one question; `None` when there is none.
    pub fn step(&mut self) -> Option<Reply> {
        if let Some(request) = self.pick.take().or_else(|| self.details.pop_front()) {
            return Some(self.answer(&request).into());
        }
        if let Some(tile) = self.tiles.pop_front() {
            return Some(self.tile(&tile));
        }
        #[cfg(feature = "views")]
        if let Some(request) = self.analyses.pop_front() {
            return Some(self.answer(&request).into());
        }
        None
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

    fn tile(&mut self, tile: &Tile) -> Reply {
        let &Tile { id, target, axis: kind, key, .. } = tile;
        let strips = self.file.as_ref().and_then(|file| {
            #[cfg(feature = "views")]
            if let Some(strips) = self.answers.tile(file, target, kind, &tile.layer, key) {
                return strips;
            }
            let (_, trace) = file.trace(target)?;
            let axis = Axis::new(trace, kind.into())?;
            let view = view(&mut self.views, file, target)?;
            let cell = Cell {
                kx: key.kx,
                ky: key.ky,
                slot: (u64::from(key.ix) * u64::from(TILE_COLUMNS)) << key.kx,
                columns: TILE_COLUMNS,
                low: (u64::from(key.iy) * u64::from(TILE_ROWS)) << key.ky,
                rows: TILE_ROWS,
            };
            Some(view.timeline.strips(axis, cell, &view.colours).0)
        });
        let Some(strips) = strips else {
            return Response::Failed(failure(Some(id), "there is no such trace or axis")).into();
        };
        Reply {
            response: Response::Tile { id, target, axis: kind, key, strips: strips.len() as u32 },
            columns: vec![
                ("positions", Column::F32(strips.positions.into_iter().flatten().collect())),
                ("colours", Column::U32(strips.colours)),
                ("blocks", Column::U32(strips.blocks)),
            ],
        }
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
