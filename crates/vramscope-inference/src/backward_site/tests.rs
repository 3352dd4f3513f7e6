//! Tests of backward sites on windows made by hand.

use super::*;
use serde_json::{Value, json};
use vramscope_snapshot::Reader;
use vramscope_trace::slicing::now;

/// One window, event by event.
#[derive(Default)]
struct Window {
    events: Vec<Value>,
}

impl Window {
    /// Allocates at a line of `model.py`, with C++ frames inside it. Returns the address.
    fn forward(&mut self, line: u32, bytes: u64, operator: &str) -> u64 {
        let mut frames = Vec::new();
        if !operator.is_empty() {
            frames.push(json!({"filename": "??", "line": 0,
                "name": format!("at::_ops::{operator}::call(at::Tensor const&)")}));
        }
        frames.push(json!({"filename": "/train/model.py", "line": line, "name": "forward"}));
        frames.push(json!({"filename": "/train/train.py", "line": 1, "name": "<module>"}));
        self.alloc(bytes, &frames)
    }

    /// Allocates in a thread of backward; without a node there are no frames.
    fn backward(&mut self, bytes: u64, node: &str) -> u64 {
        self.alloc(bytes, &node_frames(node))
    }

    fn alloc(&mut self, bytes: u64, frames: &[Value]) -> u64 {
        let address = 1 << 20 | (self.events.len() as u64) << 40;
        let event = json!({"action": "alloc", "addr": address, "size": bytes, "frames": frames});
        self.events.push(event);
        address
    }

    fn free(&mut self, address: u64) {
        for action in ["free_requested", "free_completed"] {
            self.events.push(json!({"action": action, "addr": address, "size": 0}));
        }
    }

    fn load(&self) -> (Snapshot, Trace, Sites) {
        let json = json!({"segments": [], "device_traces": [self.events]}).to_string();
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON of a snapshot");
        let snapshot = reader.finish().expect("a whole snapshot").remove(0).snapshot;
        let trace = Trace::all(&snapshot).remove(0);
        let sites = Sites::new(&snapshot);
        (snapshot, trace, sites)
    }

    /// The node, the line of `model.py` and the basis of each block of backward.
    fn found(&self) -> Vec<(Option<String>, u32, Option<BackwardBasis>)> {
        let (snapshot, trace, sites) = self.load();
        let wanted: Vec<_> = (0..trace.blocks.len() as u32).map(Allocation::Block).collect();
        let all =
            now(async |budget| backward_sites(&snapshot, &trace, &sites, &wanted, budget).await);
        // One allocation alone has the site that it has among all.
        for (&wanted, site) in wanted.iter().zip(&all) {
            assert_eq!(&backward_site(&snapshot, &trace, &sites, wanted), site);
        }
        all.into_iter().flatten().map(|site| row(&snapshot, &sites, site)).collect()
    }
}

fn node_frames(node: &str) -> Vec<Value> {
    if node.is_empty() {
        return Vec::new();
    }
    let apply = format!("torch::autograd::generated::{node}::apply(std::vector<int>&&)");
    let engine = "torch::autograd::Engine::thread_main(int)";
    let frame = |name: &str| json!({"filename": "??", "line": 0, "name": name});
    vec![frame("at::_ops::mul_Tensor::call()"), frame(&apply), frame(engine)]
}

fn row(
    snapshot: &Snapshot,
    sites: &Sites,
    site: BackwardSite,
) -> (Option<String>, u32, Option<BackwardBasis>) {
    let frame = site.forward.and_then(|stack| sites.get(stack).frame);
    assert!(frame.is_none_or(|f| snapshot.text(f.name) == "forward"));
    (site.node, frame.map_or(0, |f| f.line), site.basis)
}

const MIB: u64 = 1 << 20;

#[test]
fn a_node_has_the_latest_line_of_its_operation_that_is_not_visited() {
    let mut window = Window::default();
    window.forward(10, 4 * MIB, "addmm");
    window.forward(11, 16 * MIB, "gelu");
    window.forward(12, 4 * MIB, "addmm");
    window.forward(13, 8 * MIB, "_log_softmax");
    window.backward(8 * MIB, "LogSoftmaxBackward0");
    // The gradients of the input and of the weight.
    window.backward(16 * MIB, "AddmmBackward0");
    window.backward(4 * MIB, "AddmmBackward0");
    window.backward(16 * MIB, "GeluBackward0");
    window.backward(4 * MIB, "AddmmBackward0");
    let addmm = || Some("AddmmBackward0".to_owned());
    assert_eq!(
        window.found(),
        [
            (Some("LogSoftmaxBackward0".to_owned()), 13, Some(BackwardBasis::EqualBytes)),
            (addmm(), 12, Some(BackwardBasis::GraphOrder)),
            (addmm(), 12, Some(BackwardBasis::EqualBytes)),
            (Some("GeluBackward0".to_owned()), 11, Some(BackwardBasis::EqualBytes)),
            (addmm(), 10, Some(BackwardBasis::EqualBytes)),
        ]
    );
}

#[test]
fn without_nodes_equal_sizes_are_visited_in_reverse() {
    let mut window = Window::default();
    for line in [10, 11, 12] {
        window.forward(line, 4 * MIB, "");
    }
    window.forward(13, 8 * MIB, "");
    for bytes in [8, 4, 4, 4, 4, 7, 100] {
        window.backward(bytes * MIB, "");
    }
    let graph_order = Some(BackwardBasis::GraphOrder);
    assert_eq!(
        window.found(),
        [
            // No other line has this size.
            (None, 13, Some(BackwardBasis::EqualBytes)),
            (None, 12, graph_order),
            (None, 11, graph_order),
            (None, 10, graph_order),
            // All of this size are visited.
            (None, 12, Some(BackwardBasis::NearestSize)),
            (None, 13, Some(BackwardBasis::NearestSize)),
            (None, 0, None),
        ]
    );
}

#[test]
fn candidates_are_of_the_pass_just_before_or_live() {
    let mut window = Window::default();
    let kept = window.forward(10, 4 * MIB, "");
    let freed = window.forward(11, 8 * MIB, "");
    window.free(freed);
    window.backward(8 * MIB, "");
    window.forward(20, 2 * MIB, "");
    // The first pass is over. Of it, only the block that is live can be meant.
    window.backward(8 * MIB, "");
    window.backward(4 * MIB, "");
    window.free(kept);
    assert_eq!(
        window.found(),
        [
            (None, 11, Some(BackwardBasis::EqualBytes)),
            (None, 0, None),
            (None, 10, Some(BackwardBasis::GraphOrder)),
        ]
    );
}

#[test]
fn a_failed_request_has_a_site() {
    let mut window = Window::default();
    window.forward(10, 4 * MIB - 100, "_log_softmax");
    window.forward(11, 4 * MIB, "");
    let frames = node_frames("LogSoftmaxBackward0");
    let event = json!({"action": "oom", "size": 4 * MIB, "device_free": 0, "frames": frames});
    window.events.push(event);
    let (snapshot, trace, sites) = window.load();
    let oom = trace.ooms[0];
    let stack = snapshot.events.stack(oom.event.0);
    let wanted = |stack| Allocation::Failed { event: oom.event, bytes: oom.requested, stack };
    let site = backward_site(&snapshot, &trace, &sites, wanted(stack)).expect("a site");
    let node = Some("LogSoftmaxBackward0".to_owned());
    assert_eq!(row(&snapshot, &sites, site), (node, 10, Some(BackwardBasis::EqualBytes)));
    // A recording without C++ frames has only the size.
    let site = backward_site(&snapshot, &trace, &sites, wanted(StackId::EMPTY)).expect("a site");
    assert_eq!(row(&snapshot, &sites, site), (None, 11, Some(BackwardBasis::GraphOrder)));
}

#[test]
fn a_window_without_stacks_has_no_backward_sites() {
    let mut window = Window::default();
    window.backward(4 * MIB, "");
    assert_eq!(window.found(), []);
}
