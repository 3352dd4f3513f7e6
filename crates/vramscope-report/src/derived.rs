//! Data derived from a device's trace. It is computed once, when first needed, either synchronously
//! or in slices.
//!
//! To add a kind: a variant of [`Derived`], a field of `DeviceData` (of `RuledData` if it depends
//! on categories), an arm in `SnapshotEntry::derive` and a getter.

use crate::block_context::BlockContext;
use crate::holders::Held;
use crate::loaded_file::SnapshotEntry;
use crate::modules::Modules;
use crate::proof::{self, Proof};
use crate::sidecar::{DeviceMemory, TensorRecord};
use crate::simulated::{SimulatedFindings, simulate};
use crate::target::{Target, slot_of};
use crate::what_if::{editable, why_no_model};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use vramscope_inference::{
    Beside, Categories, Category, Dims, Editable, Evidence, Finding, NoShapes, NoUses, Passes,
    Predicted, Rules, Scene, Steps, Uses, WhatIf, findings,
};
use vramscope_trace::slicing::{Boxed, Budget, now};
use vramscope_trace::{Carving, LargestFree, Notes, PoolEnvelope, largest_free, pool_envelope};

/// A kind of derived data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derived {
    /// [`SnapshotEntry::carving`].
    Carving,
    /// [`SnapshotEntry::tensors`].
    Tensors,
    /// [`SnapshotEntry::uses`].
    Uses,
    /// [`SnapshotEntry::categories`].
    Categories,
    /// [`SnapshotEntry::pools`].
    Pools,
    /// [`SnapshotEntry::largest_free`].
    LargestFree,
    /// [`SnapshotEntry::steps`].
    Steps,
    /// [`SnapshotEntry::passes`].
    Passes,
    /// [`SnapshotEntry::block_context`].
    Context,
    /// [`SnapshotEntry::findings`] and their [`SnapshotEntry::proofs`].
    Findings,
    /// [`SnapshotEntry::what_if`].
    WhatIf,
    /// [`SnapshotEntry::simulated`].
    Simulated,
    /// [`SnapshotEntry::modules`].
    Modules,
    /// [`SnapshotEntry::dims`].
    Dims,
    /// [`SnapshotEntry::editable`].
    Editable,
}

impl Derived {
    /// All kinds. Each kind follows the kinds that it needs.
    pub const ALL: [Self; 15] = [
        Self::Carving,
        Self::Tensors,
        Self::Uses,
        Self::Categories,
        Self::Pools,
        Self::LargestFree,
        Self::Steps,
        Self::Passes,
        Self::Context,
        Self::Findings,
        Self::WhatIf,
        Self::Simulated,
        Self::Modules,
        Self::Dims,
        Self::Editable,
    ];

    /// The kinds that must exist before this one is computed in slices.
    pub fn needs(self) -> &'static [Self] {
        match self {
            Self::Carving | Self::Tensors | Self::Uses => &[],
            Self::Categories => &[Self::Tensors],
            Self::Pools | Self::LargestFree => &[Self::Carving],
            Self::Steps | Self::Dims => &[Self::Categories],
            Self::Passes | Self::Modules => &[Self::Categories, Self::Steps],
            Self::Context => &[Self::Passes],
            Self::Findings | Self::WhatIf => &[Self::Carving, Self::Passes, Self::Uses],
            Self::Editable => &[Self::Carving, Self::Passes, Self::Uses, Self::Dims, Self::WhatIf],
            Self::Simulated => &[Self::Carving, Self::Passes, Self::Uses, Self::Findings],
        }
    }
}

/// The derived data of one device.
#[derive(Default)]
pub(crate) struct DeviceData {
    carving: OnceLock<Carving>,
    pools: OnceLock<Option<PoolEnvelope>>,
    largest_free: OnceLock<Vec<LargestFree>>,
    notes: OnceLock<Notes>,
    held: OnceLock<Held>,
    tensors: OnceLock<FxHashMap<u32, TensorRecord>>,
    uses: OnceLock<Result<Uses, NoUses>>,
    ruled: RuledData,
}

/// The data of a device that depends on the category rules. New rules reset all of it.
#[derive(Default)]
struct RuledData {
    categories: OnceLock<Categories>,
    steps: OnceLock<Option<Steps>>,
    passes: OnceLock<Passes>,
    context: OnceLock<BlockContext>,
    findings: OnceLock<Vec<Finding>>,
    proofs: OnceLock<Vec<Option<Proof>>>,
    what_if: OnceLock<Option<WhatIf>>,
    simulated: OnceLock<SimulatedFindings>,
    modules: OnceLock<Modules>,
    dims: OnceLock<Result<Dims, NoShapes>>,
    editable: OnceLock<Option<Editable>>,
}

/// Fills a cell in slices. A synchronous caller may fill it first; the values are equal.
macro_rules! fill {
    ($cell:expr, $value:expr) => {
        if $cell.get().is_none() {
            let value = $value.await;
            $cell.get_or_init(|| value);
        }
    };
}

impl SnapshotEntry {
    /// Computes derived data of the trace at `index` in slices, unless it exists.
    #[inline(never)]
    pub fn derive<'a>(
        &'a self,
        what: Derived,
        index: usize,
        budget: &'a mut Budget,
    ) -> Boxed<'a, ()> {
        Box::pin(async move {
            let (snapshot, trace, data) = (&self.snapshot, &self.traces[index], &self.data[index]);
            match what {
                Derived::Carving => fill!(data.carving, Carving::new(snapshot, trace, budget)),
                Derived::Tensors => fill!(data.tensors, self.find_tensors(index, budget)),
                Derived::Uses => fill!(data.uses, self.find_uses(index, budget)),
                Derived::Categories => {
                    fill!(data.ruled.categories, self.find_categories(index, budget));
                }
                Derived::Pools => {
                    let carving = self.carving(index);
                    fill!(data.pools, pool_envelope(trace, carving, snapshot, budget));
                }
                Derived::LargestFree => {
                    let carving = self.carving(index);
                    fill!(data.largest_free, largest_free(snapshot, trace, carving, budget));
                }
                Derived::Steps => {
                    let phases = self.categories(index).phases();
                    fill!(data.ruled.steps, Steps::find(snapshot, trace, phases, budget));
                }
                Derived::Passes => {
                    let (categories, steps) = (self.categories(index), self.steps(index));
                    let passes = Passes::find(snapshot, trace, categories, steps, budget);
                    fill!(data.ruled.passes, passes);
                }
                Derived::Context => {
                    let target = Target { path: &self.path, entry: self, index };
                    fill!(data.ruled.context, BlockContext::new(target, budget));
                }
                Derived::Findings => {
                    fill!(data.ruled.findings, self.find(index, budget));
                    let target = Target { path: &self.path, entry: self, index };
                    fill!(data.ruled.proofs, proof::of_device(target, budget));
                }
                Derived::WhatIf => fill!(data.ruled.what_if, self.calibrate(index, budget)),
                Derived::Simulated => {
                    let target = Target { path: &self.path, entry: self, index };
                    fill!(data.ruled.simulated, simulate(target, budget));
                }
                Derived::Modules => {
                    let target = Target { path: &self.path, entry: self, index };
                    fill!(data.ruled.modules, Modules::new(target, budget));
                }
                Derived::Editable => {
                    let target = Target { path: &self.path, entry: self, index };
                    fill!(data.ruled.editable, editable(target, budget));
                }
                Derived::Dims => {
                    let slot = slot_of(trace.requested_band.peak_event);
                    let categories = self.categories(index);
                    let given = self.given_widths().cloned();
                    fill!(
                        data.ruled.dims,
                        Dims::at(snapshot, trace, categories, slot, given, budget)
                    );
                }
            }
        })
    }

    /// The value of a cell of the data at `index`. A missing one is computed at once.
    fn derived<'a, T>(
        &'a self,
        what: Derived,
        index: usize,
        cell: impl Fn(&'a DeviceData) -> &'a OnceLock<T>,
    ) -> &'a T {
        let cell = cell(&self.data[index]);
        if cell.get().is_none() {
            now(async |budget| self.derive(what, index, budget).await);
        }
        cell.get().expect("it is derived")
    }

    /// Block sizes of the trace at `index`.
    pub fn carving(&self, index: usize) -> &Carving {
        self.derived(Derived::Carving, index, |data| &data.carving)
    }

    /// Categories of the blocks of the trace at `index`.
    pub fn categories(&self, index: usize) -> &Categories {
        self.derived(Derived::Categories, index, |data| &data.ruled.categories)
    }

    /// Bytes held by private pools in the trace at `index`; `None` without private pools.
    pub fn pools(&self, index: usize) -> Option<&PoolEnvelope> {
        self.derived(Derived::Pools, index, |data| &data.pools).as_ref()
    }

    /// The largest free range of every pool, stream and size class in the trace at `index`.
    pub fn largest_free(&self, index: usize) -> &[LargestFree] {
        self.derived(Derived::LargestFree, index, |data| &data.largest_free)
    }

    /// The texts that the program gave to blocks of the trace at `index`.
    pub fn notes(&self, index: usize) -> &Notes {
        let make = || Notes::new(&self.snapshot, &self.traces[index]);
        self.data[index].notes.get_or_init(make)
    }

    /// The blocks of the trace at `index` whose holders the file beside the snapshot names.
    pub fn held(&self, index: usize) -> &Held {
        let make = || Held::new(self.holders(), &self.traces[index]);
        self.data[index].held.get_or_init(make)
    }

    /// The tensors that the file beside the snapshot names, by the blocks of the trace at `index`.
    pub fn tensors(&self, index: usize) -> &FxHashMap<u32, TensorRecord> {
        self.derived(Derived::Tensors, index, |data| &data.tensors)
    }

    /// The tensor that the file beside the snapshot names for a block of the trace at `index`.
    pub fn tensor(&self, index: usize, block: u32) -> Option<&TensorRecord> {
        self.tensors(index).get(&block)
    }

    /// [`Self::tensor`] if the tensors are known already.
    pub fn known_tensor(&self, index: usize, block: u32) -> Option<&TensorRecord> {
        self.data[index].tensors.get()?.get(&block)
    }

    /// What the operations of the traced step used, by the blocks of the trace at `index`.
    ///
    /// # Errors
    /// Why nothing is known.
    pub fn uses(&self, index: usize) -> Result<&Uses, NoUses> {
        self.derived(Derived::Uses, index, |data| &data.uses).as_ref().map_err(|&why| why)
    }

    /// Training steps or repetitions of the trace at `index`; `None` if nothing shows them.
    pub fn steps(&self, index: usize) -> Option<&Steps> {
        self.derived(Derived::Steps, index, |data| &data.ruled.steps).as_ref()
    }

    /// What repeats in the trace at `index`.
    pub fn passes(&self, index: usize) -> &Passes {
        self.derived(Derived::Passes, index, |data| &data.ruled.passes)
    }

    /// What the blocks of the trace at `index` belong to.
    pub fn block_context(&self, index: usize) -> &BlockContext {
        self.derived(Derived::Context, index, |data| &data.ruled.context)
    }

    /// The modules of the trace at `index`.
    pub fn modules(&self, index: usize) -> &Modules {
        self.derived(Derived::Modules, index, |data| &data.ruled.modules)
    }

    /// The dimensions of the model and of its data at the peak, by the sizes of the blocks of the
    /// trace at `index`; an error says why sizes do not tell them.
    pub fn dims(&self, index: usize) -> &Result<Dims, NoShapes> {
        self.derived(Derived::Dims, index, |data| &data.ruled.dims)
    }

    /// [`Self::dims`] if they are found already.
    pub fn known_dims(&self, index: usize) -> Option<&Dims> {
        self.data[index].ruled.dims.get()?.as_ref().ok()
    }

    /// The run of the trace at `index` that recipes change; `None` where the model of the allocator
    /// does not reproduce the recording.
    pub fn editable(&self, index: usize) -> Option<&Editable> {
        self.derived(Derived::Editable, index, |data| &data.ruled.editable).as_ref()
    }

    /// [`Self::block_context`] if it is computed already.
    pub fn known_context(&self, index: usize) -> Option<&BlockContext> {
        self.data[index].ruled.context.get()
    }

    /// Findings of the trace at `index`, by severity, then bytes.
    pub fn findings(&self, index: usize) -> &[Finding] {
        let find = || now(async |budget| self.find(index, budget).await);
        self.data[index].ruled.findings.get_or_init(find)
    }

    /// The proofs of the findings of the trace at `index`, in the same order.
    pub fn proofs(&self, index: usize) -> &[Option<Proof>] {
        let target = Target { path: &self.path, entry: self, index };
        let make = || now(async |budget| proof::of_device(target, budget).await);
        self.data[index].ruled.proofs.get_or_init(make)
    }

    /// The model of the allocator, compared with the trace at `index`; `None` where
    /// [`why_no_model`] has a reason. Its replays are what a prediction costs, so it is kept.
    pub fn what_if(&self, index: usize) -> Option<&WhatIf> {
        self.derived(Derived::WhatIf, index, |data| &data.ruled.what_if).as_ref()
    }

    /// Computes [`Self::simulated`] of the trace at `index`.
    pub fn simulate(&self, index: usize) {
        self.derived(Derived::Simulated, index, |data| &data.ruled.simulated);
    }

    /// What replays say about the finding at index `finding` of the trace at `index`. `None` until
    /// [`Derived::Simulated`] is computed: it takes longer than the findings.
    pub fn simulated(&self, index: usize, finding: usize) -> Option<&Predicted> {
        let all = self.data[index].ruled.simulated.get();
        let of = all.and_then(|all| all.iter().find(|(of, _)| *of == finding));
        of.map(|(_, predicted)| predicted)
    }

    /// Whether the model of the allocator says something about a finding of the trace at `index`.
    fn has_simulated(&self, index: usize) -> bool {
        let mut all = self.data[index].ruled.simulated.get().into_iter().flatten();
        all.any(|(_, predicted)| *predicted != Predicted::default())
    }

    /// Replaces the category rules and drops what was computed with the old rules.
    pub fn set_rules(&mut self, rules: Rules) {
        for data in &mut self.data {
            data.ruled = RuledData::default();
        }
        self.rules = rules;
    }

    /// What findings of the trace at `index` are derived from.
    pub fn evidence(&self, index: usize) -> Evidence<'_> {
        Evidence {
            snapshot: &self.snapshot,
            trace: &self.traces[index],
            sites: &self.sites,
            carving: self.carving(index),
            categories: self.categories(index),
            steps: self.steps(index),
            passes: self.passes(index),
            uses: self.uses(index).ok(),
        }
    }

    /// A finding of the trace at `index` beside what is known of its run.
    pub(crate) fn scene<'a>(
        &'a self,
        index: usize,
        finding: &'a Finding,
        predicted: &'a Predicted,
        is_held: bool,
    ) -> Scene<'a> {
        Scene {
            cx: self.evidence(index),
            finding,
            predicted,
            memory: self.device_memory(index).map(DeviceMemory::measured),
            has_replays: self.has_simulated(index),
            is_held,
        }
    }

    async fn find_tensors(
        &self,
        index: usize,
        budget: &mut Budget,
    ) -> FxHashMap<u32, TensorRecord> {
        match self.sidecar() {
            Some(sidecar) => sidecar.tensors_by_block(&self.traces[index], budget).await,
            None => FxHashMap::default(),
        }
    }

    async fn find_uses(&self, index: usize, budget: &mut Budget) -> Result<Uses, NoUses> {
        match self.sidecar().and_then(|sidecar| sidecar.uses.as_ref()) {
            Some(uses) => Uses::new(uses, &self.snapshot, &self.traces[index], budget).await,
            None => Err(NoUses::NotTraced),
        }
    }

    async fn find_categories(&self, index: usize, budget: &mut Budget) -> Categories {
        let trace = &self.traces[index];
        let mut categories = Categories::new(&self.snapshot, trace, &self.rules, budget).await;
        let tensors = self.tensors(index);
        if !tensors.is_empty() {
            budget.charge(trace.blocks.len() as u64).await;
            for block in 0..trace.blocks.len() as u32 {
                let kind = tensors.get(&block).and_then(|tensor| Category::parse(&tensor.kind));
                if let Some(category) = kind {
                    categories.record(block, category);
                }
            }
        }
        categories
    }

    async fn calibrate(&self, index: usize, budget: &mut Budget) -> Option<WhatIf> {
        match why_no_model(&self.traces[index]) {
            Some(_) => None,
            None => {
                let memory = self.device_memory(index).map(DeviceMemory::measured);
                let beside = Beside { memory, release: self.release() };
                Some(WhatIf::with(self.evidence(index), beside, budget).await)
            }
        }
    }

    async fn find(&self, index: usize, budget: &mut Budget) -> Vec<Finding> {
        findings(self.evidence(index), budget).await
    }
}
