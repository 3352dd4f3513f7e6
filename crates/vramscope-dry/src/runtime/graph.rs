//! Graphs. A launch does nothing, like the kernels of the graph.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use super::timeline::{Destroy, EMPTY_NODE, KERNEL_NODE, timeline};
use crate::abi::api;
use crate::errors::{Code, INVALID_VALUE, UNKNOWN};
use crate::settings::settings;
use crate::tables::{handles, put, succeed, zeros};
use std::ffi::{CStr, OsStr, c_char};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// `cudaGraphNodeTypeConditional`.
const CONDITIONAL_NODE: i32 = 13;

/// `cudaGraphUserObjectMove`: the caller's references become the graph's.
const MOVE: u32 = 1;

/// The start of `cudaGraphNodeParams` (`driver_types.h` of CUDA 12.8 and 13.0).
#[repr(C)]
pub(crate) struct NodeParams {
    /// The type of the node.
    kind: i32,
    /// Reserved.
    _reserved: [i32; 3],
    /// The handle of the condition.
    _condition: u64,
    /// The type of the condition.
    _condition_kind: i32,
    /// The number of graphs.
    _graphs: u32,
    /// The graphs: written by the call.
    graphs: *const u64,
}

/// Adds a node with parameters and writes its handle.
///
/// # Safety
///
/// The pointers are those of `cudaGraphAddNode`.
unsafe fn add_node(place: *mut u64, graph: u64, params: *mut NodeParams) -> Code {
    let result = (|| {
        // SAFETY: the caller promises the parameters.
        let params = unsafe { params.as_mut() }.ok_or(INVALID_VALUE)?;
        let mut timeline = timeline();
        let node = timeline.add_node(graph, params.kind)?;
        if params.kind == CONDITIONAL_NODE {
            params.graphs = timeline.add_body(graph)?;
        }
        Ok(node)
    })();
    // SAFETY: the caller promises the place.
    unsafe { put(place, result.unwrap_or(0)) };
    status(result.map(drop))
}

/// Calls the functions that destroy user objects.
///
/// # Safety
///
/// The functions and arguments are those that the program gave.
unsafe fn destroy(calls: impl IntoIterator<Item = Destroy>) {
    for Destroy { function, argument } in calls {
        // SAFETY: the caller promises the functions.
        unsafe { function(argument) };
    }
}

/// The nodes of a graph, for Graphviz.
fn dot(graph: u64) -> Result<String, Code> {
    let mut text = String::from("digraph dry_run {\n");
    let mut timeline = timeline();
    for node in timeline.nodes(graph)? {
        let kind = match timeline.node_type(node)? {
            KERNEL_NODE => "captured kernels",
            EMPTY_NODE => "empty",
            CONDITIONAL_NODE => "conditional",
            _ => "other",
        };
        writeln!(text, "\"{node:x}\" [label=\"{kind}\"];").map_err(|_| UNKNOWN)?;
    }
    text.push_str("}\n");
    Ok(text)
}

succeed! {
    cudaGraphLaunch cudaGraphUpload cudaGraphExecDestroy cudaGraphAddDependencies
    cudaGraphAddDependencies_v2 cudaGraphExecUpdate cudaGraphKernelNodeSetParams
    cudaGraphExecKernelNodeSetParams
}

// The last parameters of `cudaGraphInstantiate` differ by version: it reads none of them.
handles! {
    cudaGraphInstantiate cudaGraphInstantiateWithFlags cudaGraphInstantiateWithParams
    cudaGraphConditionalHandleCreate cudaGraphConditionalHandleCreate_v2
}

// `cudaKernelNodeParams` has 56 bytes (`driver_types.h` of CUDA 13.0).
zeros! { one [u64; 7], 2: cudaGraphKernelNodeGetParams; }

api! {
    /// Makes a graph.
    fn cudaGraphCreate(place: *mut u64, _flags: u32) -> i32 {
        put(place, timeline().add_graph());
        crate::errors::SUCCESS
    }

    /// Destroys a graph.
    fn cudaGraphDestroy(graph: u64) -> i32 {
        let result = timeline().remove_graph(graph);
        status(result.map(|calls| destroy(calls)))
    }

    /// Writes the nodes of a graph, or their number.
    fn cudaGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) -> i32 {
        let result = timeline().nodes(graph).and_then(|found| {
            let count = count.as_mut().ok_or(INVALID_VALUE)?;
            if nodes.is_null() {
                *count = found.len();
                return Ok(());
            }
            // Places without a node get null.
            for place in 0..*count {
                nodes.add(place).write(found.get(place).copied().unwrap_or(0));
            }
            *count = found.len().min(*count);
            Ok(())
        });
        status(result)
    }

    /// Writes that a graph has no edges. Before CUDA 13 the count comes one argument earlier.
    fn cudaGraphNodeGetDependencies(
        node: u64, _nodes: *mut u64, edges_or_count: *mut usize, count: *mut usize,
    ) -> i32 {
        put(if settings().cuda >= 13000 { count } else { edges_or_count }, 0);
        status(timeline().node_type(node).map(drop))
    }

    /// Writes that a graph has no edges.
    fn cudaGraphNodeGetDependencies_v2(
        node: u64, _nodes: *mut u64, _edges: *mut u64, count: *mut usize,
    ) -> i32 {
        put(count, 0);
        status(timeline().node_type(node).map(drop))
    }

    /// Writes the type of a node.
    fn cudaGraphNodeGetType(node: u64, kind: *mut i32) -> i32 {
        status(timeline().node_type(node).map(|found| put(kind, found)))
    }

    /// Adds a node without work.
    fn cudaGraphAddEmptyNode(
        place: *mut u64, graph: u64, _nodes: *const u64, _count: usize,
    ) -> i32 {
        let result = timeline().add_node(graph, EMPTY_NODE);
        put(place, result.unwrap_or(0));
        status(result.map(drop))
    }

    /// Adds a node. Before CUDA 13 the parameters come one argument earlier.
    fn cudaGraphAddNode(
        place: *mut u64, graph: u64, _nodes: *const u64, _edges_or_count: u64,
        count_or_params: *mut NodeParams, params: *mut NodeParams,
    ) -> i32 {
        let params = if settings().cuda >= 13000 { params } else { count_or_params };
        add_node(place, graph, params)
    }

    /// Adds a node.
    fn cudaGraphAddNode_v2(
        place: *mut u64, graph: u64, _nodes: *const u64, _edges: *const u64, _count: usize,
        params: *mut NodeParams,
    ) -> i32 {
        add_node(place, graph, params)
    }

    /// Writes the nodes of a graph to a file.
    fn cudaGraphDebugDotPrint(graph: u64, path: *const c_char, _flags: u32) -> i32 {
        let path = OsStr::from_bytes(CStr::from_ptr(path).to_bytes());
        let result = dot(graph).and_then(|text| std::fs::write(path, text).map_err(|_| UNKNOWN));
        status(result)
    }

    /// Makes an object that graphs can hold.
    fn cudaUserObjectCreate(
        place: *mut u64, argument: u64, function: unsafe extern "C" fn(u64), count: u32,
        _flags: u32,
    ) -> i32 {
        put(place, timeline().add_object(count, Destroy { function, argument }));
        crate::errors::SUCCESS
    }

    /// Adds references to an object.
    fn cudaUserObjectRetain(object: u64, count: u32) -> i32 {
        status(timeline().retain_object(object, count))
    }

    /// Gives references to an object back.
    fn cudaUserObjectRelease(object: u64, count: u32) -> i32 {
        let result = timeline().release_object(object, count);
        status(result.map(|calls| destroy(calls)))
    }

    /// A graph holds an object.
    fn cudaGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) -> i32 {
        let mut timeline = timeline();
        let more = if flags & MOVE == 0 { count } else { 0 };
        let result = timeline.retain_object(object, more);
        status(result.and_then(|()| timeline.hold_object(graph, object, count)))
    }
}
