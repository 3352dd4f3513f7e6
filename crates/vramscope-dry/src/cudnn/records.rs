//! Records of the descriptors of the backend API, found by address.
//!
//! A record lives while its descriptor does, or while another record names it: callers destroy an
//! operation before the plan that was made from it.

use super::names::{attribute, element};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A descriptor of the caller. Only its address counts.
pub(super) type Descriptor = *mut c_void;

/// The records of all living descriptors, by address.
static TABLE: Mutex<BTreeMap<usize, Arc<Record>>> = Mutex::new(BTreeMap::new());

/// A descriptor: its type and its attributes.
#[derive(Default)]
pub(super) struct Record {
    /// The kind of the descriptor, a number of [`super::names::kind`].
    pub(super) kind: c_int,
    state: Mutex<State>,
    /// Of a graph: the plan that ran first, by the address of its record, and when.
    begun: OnceLock<(usize, Instant)>,
    /// Of a graph: how long the first plan had the device, at most.
    first: OnceLock<Duration>,
}

#[derive(Clone, Default)]
struct State {
    attributes: Vec<(c_int, Values)>,
    /// The place of a configuration in the answer of the heuristics.
    index: usize,
}

/// The elements of an attribute.
#[derive(Clone)]
pub(super) enum Values {
    /// Elements of a type of [`element`], as the caller's memory has them.
    Plain { of: c_int, bytes: Vec<u8> },
    /// Descriptors. One that was not known is `None`.
    Records(Vec<Option<Arc<Record>>>),
}

impl Values {
    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain { of, bytes } => bytes.len() / element::size(*of),
            Self::Records(records) => records.len(),
        }
    }

    /// The elements as whole numbers. Those of 4 bytes are taken as `int`.
    fn integers(&self) -> Vec<i64> {
        match self {
            Self::Plain { of: element::INT64, bytes } => {
                bytes.as_chunks().0.iter().map(|chunk| i64::from_ne_bytes(*chunk)).collect()
            }
            Self::Plain { of, bytes } if element::size(*of) == 4 => {
                bytes.as_chunks().0.iter().map(|chunk| i32::from_ne_bytes(*chunk).into()).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Record {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets an attribute.
    pub(super) fn set(&self, name: c_int, values: Values) {
        let mut state = self.state();
        state.attributes.retain(|(other, _)| *other != name);
        state.attributes.push((name, values));
    }

    /// The elements of an attribute.
    pub(super) fn get(&self, name: c_int) -> Option<Values> {
        let state = self.state();
        state.attributes.iter().find(|(other, _)| *other == name).map(|(_, values)| values.clone())
    }

    /// The records that an attribute names.
    pub(super) fn records(&self, name: c_int) -> Vec<Arc<Self>> {
        match self.get(name) {
            Some(Values::Records(records)) => records.into_iter().flatten().collect(),
            _ => Vec::new(),
        }
    }

    /// The first record that an attribute names.
    pub(super) fn record(&self, name: c_int) -> Option<Arc<Self>> {
        self.records(name).into_iter().next()
    }

    /// The whole numbers of an attribute; none if it is not set.
    pub(super) fn integers(&self, name: c_int) -> Vec<i64> {
        self.get(name).map(|values| values.integers()).unwrap_or_default()
    }

    /// The place of a configuration in the answer of the heuristics.
    pub(super) fn index(&self) -> usize {
        self.state().index
    }

    /// Sets the place of a configuration in the answer of the heuristics.
    pub(super) fn set_index(&self, index: usize) {
        self.state().index = index;
    }

    /// Takes over the attributes of another record: the caller reads into its own descriptor.
    pub(super) fn copy_from(&self, other: &Self) {
        let state = other.state().clone();
        *self.state() = state;
    }

    /// Makes a configuration the result `index` of the heuristics for `graph`.
    pub(super) fn become_result(&self, graph: Option<Arc<Self>>, index: usize) {
        self.set(attribute::HEURISTICS_GRAPH, Values::Records(vec![graph]));
        self.set_index(index);
    }

    /// The graph that a configuration is for: by the heuristics, else by its engine.
    fn graph(&self) -> Option<Arc<Self>> {
        self.record(attribute::HEURISTICS_GRAPH)
            .or_else(|| self.record(attribute::CONFIG_ENGINE)?.record(attribute::ENGINE_GRAPH))
    }

    /// Notes a run of this plan. In a search for the fastest plan of a graph, returns how long this
    /// one must take to be slower than the plan that ran first.
    pub(super) fn run(&self) -> Option<Duration> {
        let graph = self.record(attribute::PLAN_CONFIG)?.graph()?;
        let me = std::ptr::from_ref(self) as usize;
        let (first, begin) = graph.begun.get_or_init(|| (me, Instant::now()));
        if *first == me {
            return None;
        }
        // All runs of the first plan were before the first run of the second one.
        Some(*graph.first.get_or_init(|| begin.elapsed()))
    }
}

fn table() -> MutexGuard<'static, BTreeMap<usize, Arc<Record>>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a descriptor whose address is that of its record.
pub(super) fn create(kind: c_int) -> Descriptor {
    let record = Arc::new(Record { kind, ..Record::default() });
    let descriptor = Arc::as_ptr(&record).cast_mut().cast();
    table().insert(descriptor as usize, record);
    descriptor
}

/// Makes a record for a descriptor of the real library.
pub(super) fn adopt(descriptor: Descriptor, kind: c_int) {
    let record = Arc::new(Record { kind, ..Record::default() });
    table().insert(descriptor as usize, record);
}

/// The record of a living descriptor.
pub(super) fn find(descriptor: Descriptor) -> Option<Arc<Record>> {
    table().get(&(descriptor as usize)).cloned()
}

/// Forgets a descriptor: another one can get its address.
pub(super) fn forget(descriptor: Descriptor) {
    let record = table().remove(&(descriptor as usize));
    // It may free others, so not under the lock.
    drop(record);
}

#[cfg(test)]
mod tests {
    use super::{Values, create, find, forget};
    use crate::cudnn::names::{attribute, kind};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn record_lives_while_another_names_it() {
        let (graph, operation) = (create(kind::GRAPH), create(kind::MATMUL));
        let record = find(operation);
        let weak = Arc::downgrade(record.as_ref().expect("a living descriptor"));
        let graph_record = find(graph).expect("a living descriptor");
        graph_record.set(attribute::GRAPH_OPERATIONS, Values::Records(vec![record]));
        drop(graph_record);
        forget(operation);
        assert!(find(operation).is_none());
        assert!(weak.upgrade().is_some());
        forget(graph);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn run_makes_later_plans_slower_than_the_first() {
        let (graph, config) = (create(kind::GRAPH), create(kind::CONFIG));
        find(config).expect("a living descriptor").become_result(find(graph), 0);
        let [one, two, three] = [(); 3].map(|()| {
            let plan = create(kind::PLAN);
            let record = find(plan).expect("a living descriptor");
            record.set(attribute::PLAN_CONFIG, Values::Records(vec![find(config)]));
            forget(plan);
            record
        });
        forget(graph);
        forget(config);
        assert_eq!((two.run(), two.run()), (None, None));
        std::thread::sleep(Duration::from_millis(2));
        let time = one.run();
        assert!(time >= Some(Duration::from_millis(2)), "{time:?}");
        assert_eq!((three.run(), one.run(), two.run()), (time, time, None));
    }
}
