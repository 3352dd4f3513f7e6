//! The scheduler of one file: bytes in, then requests in and replies out, in slices.

use crate::derived::DerivedBuilder;
use crate::loaded;
use crate::loader::Loader;
use crate::messages::views::Layer;
use crate::messages::{AxisKind, DeviceRef, Failure, Progress, Request, Response, TileKey};
use crate::queries::{self, PartialTile, Queries, Subject, TileStep};
use crate::query_queue::{QueryQueue, Sources};
use std::collections::VecDeque;
use std::sync::Arc;
use vramscope_layout::{Axis, PickPoint, Strips, TILE_ROWS};
use vramscope_report::{BlockReference, Derived, LoadedFile};
use vramscope_trace::parallel;

/// A file from its first byte to its release.
///
/// A worker feeds it chunks, finishes it, and then alternates between [`FileSession::post`], for
/// what the page asked meanwhile, and [`FileSession::slice`], a few milliseconds of work. The order
/// of work: what is under the pointer, details, short queries, tiles, long queries. A newer hover
/// cancels an older one, newer tiles cancel older ones of their kind of layer, and some queries
/// cancel older ones (`Query::spec`). The replies of cancelled requests never come.
pub struct FileSession {
    loader: Option<Loader>,
    file: Option<Arc<LoadedFile>>,
    derived: DerivedBuilder,
    hover: Option<Request>,
    details: VecDeque<Request>,
    tiles: VecDeque<TileRequest>,
    /// The tiles that are being drawn: one, or as many of one layer as there are threads. In the
    /// order of their replies.
    in_progress: Vec<(TileRequest, PartialTile)>,
    /// The first picture of blocks is complete. Until then tiles come before queries.
    first_picture_done: bool,
    query_queue: QueryQueue,
    queries: Queries,
}

/// What the details of a block need.
const BLOCK_NEEDS: [Derived; 5] =
    [Derived::Carving, Derived::Categories, Derived::Passes, Derived::Context, Derived::Dims];

/// The work of a slice, as [`vramscope_layout::Cost::work`] counts it: natively two to three
/// milliseconds.
pub(crate) const SLICE: u64 = 1 << 18;

struct TileRequest {
    id: u32,
    device: DeviceRef,
    axis: AxisKind,
    layer: Arc<Layer>,
    key: TileKey,
}

/// A response, and the columns that travel beside it.
#[derive(Debug)]
pub struct Reply {
    /// The response.
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

/// The outcome of a slice.
#[derive(Debug)]
pub enum Slice {
    /// No work is left.
    Idle,
    /// The next reply needs more slices.
    Working,
    /// A reply.
    Answer(Box<Reply>),
}

impl Slice {
    pub(crate) fn answer(response: Response) -> Self {
        Self::Answer(Box::new(response.into()))
    }
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self { response, columns: Vec::new() }
    }
}

const ALREADY_READ: &str = "The file was read already.";

impl FileSession {
    /// A session for the file at `path`, of `total` bytes (0 when unknown).
    pub fn new(path: &str, total: u64) -> Self {
        Self::with_loader(Loader::new(path, total))
    }

    /// A session for the file of this loader.
    pub fn with_loader(loader: Loader) -> Self {
        Self {
            loader: Some(loader),
            file: None,
            derived: DerivedBuilder::default(),
            hover: None,
            details: VecDeque::new(),
            tiles: VecDeque::new(),
            in_progress: Vec::new(),
            first_picture_done: false,
            query_queue: QueryQueue::default(),
            queries: Queries::default(),
        }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// The bytes show that the file is no snapshot. The session cannot be used afterwards.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        match &mut self.loader {
            Some(loader) => loader.feed(chunk),
            None => Err(failure(None, ALREADY_READ)),
        }
    }

    /// Reads the next unpacked bytes of a gzip file, after its first `read` packed bytes. Browsers
    /// unpack gzip themselves.
    ///
    /// # Errors
    /// The bytes show that the file holds no snapshot. The session cannot be used afterwards.
    pub fn feed_unpacked(&mut self, chunk: &[u8], read: u64) -> Result<(), Failure> {
        match &mut self.loader {
            Some(loader) => loader.feed_unpacked(chunk, read),
            None => Err(failure(None, ALREADY_READ)),
        }
    }

    /// Takes the file beside the snapshot, or the reason why it cannot be read. Call it before
    /// [`Self::finish`]. A fault of it is a warning of the snapshot.
    pub fn set_sidecar(&mut self, json: Result<Vec<u8>, String>) {
        if let Some(loader) = &mut self.loader {
            loader.set_sidecar(json);
        }
    }

    /// Takes dimensions of the model that the user gives: a `config.json`, or a list of widths.
    /// Call it before [`Self::finish`]. A fault of it is a warning of the snapshot.
    pub fn set_widths(&mut self, text: String) {
        if let Some(loader) = &mut self.loader {
            loader.set_widths(text);
        }
    }

    /// The progress of loading; `None` after its end.
    pub fn progress(&self) -> Option<Progress> {
        self.loader.as_ref().map(Loader::progress)
    }

    /// Ends the file. The response is `Loaded`, `Failed` or `TooLarge`.
    pub fn finish(&mut self) -> Response {
        let Some(loader) = self.loader.take() else {
            return Response::Failed(failure(None, ALREADY_READ));
        };
        if let Some(too_large) = loader.too_large() {
            return Response::TooLarge(too_large);
        }
        match loader.finish() {
            Ok(file) => Response::Loaded(loaded::loaded(self.file.insert(Arc::new(file)))),
            Err(failure) => Response::Failed(failure),
        }
    }

    /// Queues a request. A later slice replies.
    pub fn post(&mut self, request: Request) {
        match request {
            Request::Tiles { id, target, axis, layer, tiles } => {
                self.post_tiles(id, (target, axis), layer, tiles);
            }
            Request::View { id, target, query } => self.query_queue.post(id, target, query),
            Request::Pick { hover: true, .. } => self.hover = Some(request),
            Request::Pick { .. }
            | Request::Block { .. }
            | Request::Find { .. }
            | Request::MapRange { .. } => {
                self.details.push_back(request);
            }
        }
    }

    /// Replaces the queued tiles of a kind of layer. A tile that is being drawn continues if it is
    /// requested again, and is cancelled otherwise.
    fn post_tiles(
        &mut self,
        id: u32,
        (device, axis): (DeviceRef, AxisKind),
        layer: Layer,
        mut keys: Vec<TileKey>,
    ) {
        let kind = std::mem::discriminant(&layer);
        let is_replaced = |tile: &TileRequest| std::mem::discriminant(&*tile.layer) == kind;
        self.in_progress.retain_mut(|(tile, _)| {
            if !is_replaced(tile) {
                return true;
            }
            let is_same = (tile.device, tile.axis, &*tile.layer) == (device, axis, &layer);
            match keys.iter().position(|key| *key == tile.key) {
                Some(again) if is_same => {
                    tile.id = id;
                    keys.remove(again);
                    true
                }
                _ => false,
            }
        });
        self.tiles.retain(|tile| !is_replaced(tile));
        let layer = Arc::new(layer);
        let request = |key| TileRequest { id, device, axis, layer: layer.clone(), key };
        self.tiles.extend(keys.into_iter().map(request));
    }

    /// Works until the next reply; `None` when no work is left.
    pub fn step(&mut self) -> Option<Reply> {
        loop {
            match self.slice() {
                Slice::Idle => return None,
                Slice::Working => {}
                Slice::Answer(reply) => return Some(*reply),
            }
        }
    }

    /// Runs one slice of the most urgent work.
    pub fn slice(&mut self) -> Slice {
        if let Some(request) = self.hover.take().or_else(|| self.details.pop_front()) {
            return self.slice_of_details(request);
        }
        let no_tiles = self.tiles.is_empty() && self.in_progress.is_empty();
        if self.first_picture_done || no_tiles {
            let (queue, sources) = self.queue_and_sources();
            if let Some(slice) = queue.before_tiles(sources) {
                return slice;
            }
        }
        if let Some(slice) = self.slice_of_tiles() {
            return slice;
        }
        let (queue, sources) = self.queue_and_sources();
        queue.behind_tiles(sources).unwrap_or(Slice::Idle)
    }

    fn queue_and_sources(&mut self) -> (&mut QueryQueue, Sources<'_>) {
        let sources = Sources {
            file: self.file.as_ref(),
            derived: &mut self.derived,
            queries: &mut self.queries,
        };
        (&mut self.query_queue, sources)
    }

    fn slice_of_details(&mut self, request: Request) -> Slice {
        if self.is_ready(&request) {
            return Slice::answer(self.respond(&request));
        }
        match request {
            Request::Pick { hover: true, .. } => self.hover = Some(request),
            _ => self.details.push_front(request),
        }
        Slice::Working
    }

    /// Draws a slice of the next tiles; `None` without a tile.
    fn slice_of_tiles(&mut self) -> Option<Slice> {
        while let Some(next) = self.tiles.front()
            && self.in_progress.first().is_none_or(|(first, _)| {
                self.in_progress.len() < parallel::threads() && first.draws_beside(next)
            })
        {
            let partial = PartialTile::new(next.key, &next.layer);
            self.in_progress.extend(self.tiles.pop_front().map(|tile| (tile, partial)));
        }
        if self.in_progress.is_empty() {
            return None;
        }
        let step = self.draw();
        let finished = self.in_progress[0].1.finished.take();
        if step == TileStep::Drawn && finished.is_none() {
            return Some(Slice::Working);
        }
        let (tile, _) = self.in_progress.remove(0);
        self.first_picture_done |= self.tiles.is_empty()
            && self.in_progress.is_empty()
            && *tile.layer != Layer::Outline {};
        Some(match finished {
            Some(strips) => Slice::Answer(Box::new(tile.reply(strips))),
            None => Slice::answer(Response::Failed(failure(
                Some(tile.id),
                "The file has no such trace or axis.",
            ))),
        })
    }

    fn draw(&mut self) -> TileStep {
        let (Some(file), Some((first, _))) = (&self.file, self.in_progress.first()) else {
            return TileStep::NoSuchTrace;
        };
        let (device, axis, layer) = (first.device, first.axis, first.layer.clone());
        let mut partial: Vec<&mut PartialTile> =
            self.in_progress.iter_mut().map(|(_, partial)| partial).collect();
        let Some(on) = Subject::new(file, device) else { return TileStep::NoSuchTrace };
        self.queries.draw(&on, &mut self.derived, axis, &layer, &mut partial)
    }

    /// Whether the data for a request exists. If not, runs a slice of making it.
    fn is_ready(&mut self, request: &Request) -> bool {
        let Some(file) = &self.file else { return true };
        let derived = &mut self.derived;
        let mut is_derived = |device: DeviceRef| derived.is_ready(file, device, &BLOCK_NEEDS);
        match *request {
            Request::Pick { target, ref layer, .. } => {
                let Some(on) = Subject::new(file, target) else { return true };
                derived.is_ready(file, target, &queries::needs(layer))
                    && self.queries.tiles.timeline(&on, layer).is_some()
            }
            Request::Block { target, .. } => is_derived(target),
            Request::Find { part, ref reference, .. } => {
                let Ok(BlockReference { device, .. }) = reference.parse() else { return true };
                is_derived(DeviceRef { part, device })
            }
            _ => true,
        }
    }

    fn respond(&mut self, request: &Request) -> Response {
        let Some(file) = &self.file else {
            return Response::Failed(failure(Some(id_of(request)), "The file is not loaded."));
        };
        match *request {
            Request::Pick { id, target, axis, ref layer, kx, ky, slot, bytes, .. } => {
                let detail = queries::detail_of(layer);
                let place = PickPoint { kx, ky, slot, bytes, cell_rows: TILE_ROWS, detail };
                let hit = Subject::new(file, target).and_then(|on| {
                    let at = on.at();
                    let axis = Axis::new(at.trace(), axis)?;
                    let tiles = &mut self.queries.tiles;
                    let picked = tiles.timeline(&on, layer)?.pick(axis, place)?;
                    let name = |group| tiles.group_name(&on, layer, group);
                    Some(queries::tooltip(at, &picked, picked.group.and_then(name)))
                });
                Response::Picked { id, hit }
            }
            Request::Block { id, target, block } => {
                let at = queries::target(file, target);
                Response::Block { id, detail: at.and_then(|at| queries::block(at, block)) }
            }
            Request::Find { id, part, ref reference } => {
                Response::Block { id, detail: queries::find_block(file, part, reference) }
            }
            Request::MapRange { id, target, from, x0, x1 } => {
                let mapped = queries::target(file, target).and_then(|at| {
                    let to = if from == AxisKind::Event { AxisKind::Time } else { AxisKind::Event };
                    let source = Axis::new(at.trace(), from)?;
                    let goal = Axis::new(at.trace(), to)?;
                    let map = |x: f64| goal.slot_of(source.state_at(x.max(0.0) as u64)) as f64;
                    // The end of a range is the end of its last state.
                    let end = source.state_at((x1.ceil() - 1.0).max(0.0) as u64) + 1;
                    let x1 = goal.slot_of(end) as f64;
                    Some(Response::Range { id, axis: to, x0: map(x0), x1 })
                });
                let failed = || failure(Some(id), "This trace has no other axis.");
                mapped.unwrap_or_else(|| Response::Failed(failed()))
            }
            // `post` routes these two elsewhere.
            Request::Tiles { id, .. } | Request::View { id, .. } => {
                Response::Failed(failure(Some(id), "This request is answered in slices."))
            }
        }
    }
}

impl TileRequest {
    /// Whether two tiles can be drawn at the same time.
    fn draws_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.layer, &other.layer)
            && (self.device, self.axis) == (other.device, other.axis)
    }

    fn reply(&self, strips: Strips) -> Reply {
        let &Self { id, device, axis, key, .. } = self;
        let count = strips.len() as u32;
        Reply {
            response: Response::Tile { id, target: device, axis, key, strips: count },
            columns: vec![
                ("positions", Column::F32(strips.positions.into_iter().flatten().collect())),
                ("colors", Column::U32(strips.colors)),
                ("blocks", Column::U32(strips.blocks)),
            ],
        }
    }
}

/// A device's entry in a list; a new one is empty.
pub(crate) fn entry_of<T: Default>(devices: &mut Vec<(DeviceRef, T)>, device: DeviceRef) -> &mut T {
    let known = devices.iter().position(|(of, _)| *of == device);
    let at = known.unwrap_or_else(|| {
        devices.push((device, T::default()));
        devices.len() - 1
    });
    &mut devices[at].1
}

fn id_of(request: &Request) -> u32 {
    match *request {
        Request::Tiles { id, .. }
        | Request::Pick { id, .. }
        | Request::Block { id, .. }
        | Request::Find { id, .. }
        | Request::MapRange { id, .. }
        | Request::View { id, .. } => id,
    }
}

fn failure(id: Option<u32>, message: &str) -> Failure {
    Failure { id, message: message.to_owned(), hint: None, file: None }
}
