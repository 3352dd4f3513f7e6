//! `shape_data`: the tensors that operations returned, which some recorders write into a snapshot.
//!
//! PyTorch does not write it. `torch-snapkit` 0.1.4 adds the key to the root: a list with a dict
//! for each process, from the address of a tensor's data in hexadecimal digits to a list of
//! `[operation, shape, type]`, such as `["aten.mm.default", (8, 256), "torch.float32"]`.

use rustc_hash::FxHashMap;
use std::ops::Range;
use vramscope_pickle::{Heap, Kind, StrId, Strings, Value};

/// Operations that return a view of their input: another shape of the same memory. From PyTorch's
/// page on tensor views, without those whose views begin elsewhere.
const VIEWS: [&str; 27] = [
    "_conj",
    "_neg_view",
    "_reshape_alias",
    "_unsafe_view",
    "alias",
    "as_strided",
    "detach",
    "diagonal",
    "expand",
    "lift_fresh",
    "permute",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "values",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
    "view_dtype",
];

/// The tensors that operations returned, by process and address.
#[derive(Clone, Debug, Default)]
pub struct ShapeData {
    /// The log of each process. Processes can share one.
    processes: Vec<u32>,
    /// Addresses, ascending, each with the index of its list. Addresses can share a list: a small
    /// file could name one many times.
    logs: Vec<Vec<(u64, u32)>>,
    /// Ranges of `tensors`.
    lists: Vec<Range<u32>>,
    /// The distinct tensors of each list: the shape's index, and the type.
    tensors: Vec<(u32, StrId)>,
    /// Ranges of `dims`.
    shapes: Vec<Range<u32>>,
    dims: Vec<u64>,
}

/// The indices of objects that were read.
#[derive(Default)]
struct Known {
    logs: FxHashMap<Value, u32>,
    lists: FxHashMap<Value, u32>,
    shapes: FxHashMap<Vec<u64>, u32>,
    /// Shapes by their object.
    objects: FxHashMap<Value, Option<u32>>,
}

impl ShapeData {
    /// Reads a list of dicts. Other items are left out.
    pub(crate) fn read(heap: &Heap, list: Value) -> Self {
        let (mut data, mut known) = (Self::default(), Known::default());
        for &process in heap.items(list) {
            let log = data.log(heap, heap.resolve(process), &mut known);
            data.processes.push(log);
        }
        data
    }

    fn log(&mut self, heap: &Heap, dict: Value, known: &mut Known) -> u32 {
        if let Some(&log) = known.logs.get(&dict) {
            return log;
        }
        let mut addresses = Vec::new();
        let pairs = if matches!(dict.kind(), Kind::Dict(_)) { heap.items(dict) } else { &[] };
        for pair in pairs.chunks_exact(2) {
            let Kind::Str(key) = pair[0].kind() else { continue };
            let digits = heap.strings.bytes(key).strip_prefix(b"0x");
            let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
            let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let Some(address) = address else { continue };
            addresses.push((address, self.list(heap, heap.resolve(pair[1]), known)));
        }
        // A key that is in the dict twice has its last value, as in Python.
        addresses.reverse();
        addresses.sort_by_key(|entry| entry.0);
        addresses.dedup_by_key(|entry| entry.0);
        self.logs.push(addresses);
        let log = self.logs.len() as u32 - 1;
        known.logs.insert(dict, log);
        log
    }

    fn list(&mut self, heap: &Heap, list: Value, known: &mut Known) -> u32 {
        if let Some(&index) = known.lists.get(&list) {
            return index;
        }
        let mut tensors = Vec::new();
        let items = if matches!(list.kind(), Kind::List(_)) { heap.items(list) } else { &[] };
        for &item in items {
            let [operation, shape, dtype] = heap.items(heap.resolve(item)) else { continue };
            let (Kind::Str(operation), Kind::Str(dtype)) = (operation.kind(), dtype.kind()) else {
                continue;
            };
            if is_view(heap.strings.bytes(operation)) {
                continue;
            }
            if let Some(shape) = self.shape(heap, heap.resolve(*shape), known) {
                tensors.push((shape, dtype));
            }
        }
        tensors.sort_unstable_by_key(|&(shape, dtype)| (shape, dtype.0));
        tensors.dedup();
        let first = self.tensors.len() as u32;
        self.tensors.append(&mut tensors);
        self.lists.push(first..self.tensors.len() as u32);
        let index = self.lists.len() as u32 - 1;
        known.lists.insert(list, index);
        index
    }

    /// The index of a shape: a tuple or list of numbers.
    fn shape(&mut self, heap: &Heap, value: Value, known: &mut Known) -> Option<u32> {
        if let Some(&shape) = known.objects.get(&value) {
            return shape;
        }
        let dim = |&dim: &Value| heap.small_int(dim).and_then(|dim| u64::try_from(dim).ok());
        let is_shape = matches!(value.kind(), Kind::Tuple(_) | Kind::List(_));
        let dims: Option<Vec<u64>> =
            is_shape.then(|| heap.items(value).iter().map(dim).collect()).flatten();
        let shape = dims.map(|dims| {
            *known.shapes.entry(dims).or_insert_with_key(|dims| {
                let first = self.dims.len() as u32;
                self.dims.extend(dims);
                self.shapes.push(first..self.dims.len() as u32);
                self.shapes.len() as u32 - 1
            })
        });
        known.objects.insert(value, shape);
        shape
    }

    /// The distinct tensors that began at an address of a device: shape and type.
    pub(crate) fn tensors<'a>(
        &'a self,
        strings: &'a Strings,
        device: u32,
        address: u64,
    ) -> impl Iterator<Item = (&'a [u64], &'a [u8])> {
        // A file of one process has all its devices, a file of several a device of each.
        let process = if self.processes.len() == 1 { 0 } else { device as usize };
        let log = self.processes.get(process).and_then(|&log| self.logs.get(log as usize));
        let list = log.and_then(|log| {
            let at = log.binary_search_by_key(&address, |entry| entry.0).ok()?;
            self.lists.get(log[at].1 as usize)
        });
        let list = list.map_or(0..0, |list| list.start as usize..list.end as usize);
        self.tensors[list].iter().map(|&(shape, dtype)| {
            let dims = &self.shapes[shape as usize];
            (&self.dims[dims.start as usize..dims.end as usize], strings.bytes(dtype))
        })
    }

    pub(crate) fn memory(&self) -> usize {
        let logs: usize = self.logs.iter().map(|log| size_of_val(&**log)).sum();
        size_of_val(&*self.processes)
            + size_of_val(&*self.logs)
            + logs
            + size_of_val(&*self.lists)
            + size_of_val(&*self.tensors)
            + size_of_val(&*self.shapes)
            + size_of_val(&*self.dims)
    }
}

/// Whether an operation such as `aten.view.default` returns a view.
fn is_view(operation: &[u8]) -> bool {
    let name = operation.split(|&byte| byte == b'.').nth(1);
    name.is_some_and(|name| VIEWS.iter().any(|view| view.as_bytes() == name))
}

#[cfg(test)]
mod tests {
    use crate::{Reader, Snapshot};

    fn read(shape_data: &str) -> Snapshot {
        let json = format!(
            r#"{{"segments": [], "device_traces": [[
                {{"action": "alloc", "addr": 4096, "size": 512, "stream": 0}}
            ]], "shape_data": {shape_data}}}"#
        );
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("a snapshot");
        reader.finish().expect("a snapshot").remove(0).snapshot
    }

    fn tensors(snapshot: &Snapshot, device: u32, address: u64) -> Vec<(Vec<u64>, String)> {
        let found = snapshot.logged_tensors(device, address);
        found.map(|(dims, dtype)| (dims.to_vec(), dtype.into_owned())).collect()
    }

    #[test]
    fn tensors_are_found_by_device_and_address() {
        let one = r#"[{"0x1000": [
            ["aten.mm.default", [2, 64], "torch.float32"],
            ["aten.view.default", [128], "torch.float32"],
            ["aten.mm.default", [2, 64], "torch.float32"],
            ["aten.relu.default", [4, 32], "torch.float32"]
        ], "0x10": [], "x": [["aten.mm.default", [1], "torch.int8"]]}]"#;
        let snapshot = read(one);
        let float = |dims: &[u64]| (dims.to_vec(), "torch.float32".to_owned());
        let both = [float(&[2, 64]), float(&[4, 32])];
        assert_eq!(tensors(&snapshot, 0, 4096), both);
        assert_eq!(tensors(&snapshot, 3, 4096), both);
        assert!(tensors(&snapshot, 0, 16).is_empty());
        assert!(tensors(&snapshot, 0, 1).is_empty());
        assert!(snapshot.settings.is_empty(), "{:?}", snapshot.settings);
        let two = r#"[{}, {"0x1000": [["aten.mm.default", [8], "torch.bfloat16"]]}]"#;
        let snapshot = read(two);
        assert!(tensors(&snapshot, 0, 4096).is_empty());
        assert_eq!(tensors(&snapshot, 1, 4096), [(vec![8], "torch.bfloat16".to_owned())]);
    }

    #[test]
    fn items_of_another_form_are_left_out() {
        let odd = r#"[7, {"0x1000": 3, "0xg": [], "0x2000": [
            1, ["a"], ["a", "b", "c"], ["aten.x.y", [1, -2], "t"], [1, [1], "t"],
            ["aten.x.y", [1, null], "t"], ["aten.x.y", [3], "t"]
        ]}]"#;
        let snapshot = read(odd);
        assert!(tensors(&snapshot, 1, 0x1000).is_empty());
        assert_eq!(tensors(&snapshot, 1, 0x2000), [(vec![3], "t".to_owned())]);
        let other = read(r#"{"of": "another kind"}"#);
        assert_eq!(other.settings, [("shape_data.of".to_owned(), "\"another kind\"".to_owned())]);
    }
}
