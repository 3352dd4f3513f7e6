//! The backend API: descriptors of operations, graphs, heuristics, engines and plans.
//!
//! With the user's own library each call goes there. Of its descriptors only those are recorded
//! that say which graph a plan belongs to.
#![expect(unsafe_code, reason = "the functions have the interface of C")]

use super::model::{Answer, PLANS, get};
use super::names::{attribute, element, kind};
use super::real::{Library, library};
use super::records::{self, Descriptor, Record, Values};
use super::status::{SUCCESS, answer, bad_param};
use crate::abi::api;
use crate::notes::note;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Least time of a plan on the host in a search, unless it is the first.
const LEAST: Duration = Duration::from_micros(40);
/// Most time of such a plan: the process may have slept during the first.
const MOST: Duration = Duration::from_millis(20);

api! {
    fn cudnnBackendCreateDescriptor(of: c_int, out: *mut Descriptor) -> c_int {
        let Some(library) = library() else { return answer(out, records::create(of)) };
        let status = (library.create)(of, out);
        let is_recorded = matches!(
            of,
            kind::ENGINE | kind::CONFIG | kind::HEURISTICS | kind::PLAN | kind::GRAPH | kind::DEVICE
        );
        if status == SUCCESS && is_recorded {
            records::adopt(*out, of);
        }
        status
    }

    fn cudnnBackendDestroyDescriptor(descriptor: Descriptor) -> c_int {
        // First, because the library can give the address to another thread.
        records::forget(descriptor);
        library().map_or(SUCCESS, |library| (library.destroy)(descriptor))
    }

    fn cudnnBackendSetAttribute(
        descriptor: Descriptor,
        name: c_int,
        of: c_int,
        count: i64,
        elements: *const c_void,
    ) -> c_int {
        // A handle of ours means nothing to the library. What finalizes the descriptor describes
        // the device instead.
        let names_device = matches!(name, attribute::DEVICE_ID | attribute::DEVICE_HANDLE);
        if of == element::HANDLE || names_device {
            return SUCCESS;
        }
        let record = records::find(descriptor);
        let Some(library) = library() else {
            let Some(record) = record else { return bad_param() };
            let Ok(count) = usize::try_from(count) else { return bad_param() };
            record.set(name, read(of, count, elements));
            return SUCCESS;
        };
        let status = (library.set)(descriptor, name, of, count, elements);
        let is_recorded = matches!(
            name,
            attribute::HEURISTICS_GRAPH
                | attribute::CONFIG_ENGINE
                | attribute::PLAN_CONFIG
                | attribute::ENGINE_GRAPH
                | attribute::DEVICE_JSON
        );
        if let Some(record) = record
            && status == SUCCESS
            && is_recorded
        {
            record.set(name, read(of, count as usize, elements));
        }
        status
    }

    fn cudnnBackendGetAttribute(
        descriptor: Descriptor,
        name: c_int,
        of: c_int,
        wanted: i64,
        count: *mut i64,
        out: *mut c_void,
    ) -> c_int {
        let Some(library) = library() else {
            let Some(record) = records::find(descriptor) else { return bad_param() };
            let number = get_from_model(&record, name, of, wanted.try_into().unwrap_or(0), out);
            if !count.is_null() {
                count.write(number as i64);
            }
            return SUCCESS;
        };
        let status = (library.get)(descriptor, name, of, wanted, count, out);
        let has_results = name == attribute::HEURISTICS_RESULTS && !out.is_null();
        if status == SUCCESS && has_results && !count.is_null() {
            let number = usize::try_from(wanted.min(*count)).unwrap_or(0);
            name_results(records::find(descriptor).as_deref(), out.cast(), number);
        }
        status
    }

    fn cudnnBackendFinalize(descriptor: Descriptor) -> c_int {
        let Some(library) = library() else {
            return records::find(descriptor).map_or_else(bad_param, |_| SUCCESS);
        };
        if let Some(record) = records::find(descriptor) {
            let status = prepare(library, descriptor, &record);
            if status != SUCCESS {
                return status;
            }
        }
        (library.finalize)(descriptor)
    }

    fn cudnnBackendExecute(_handle: *mut c_void, plan: Descriptor, _pack: Descriptor) -> c_int {
        if let Some(time) = records::find(plan).and_then(|plan| plan.run()) {
            // A search times the plans. The first that the heuristics name is to be the fastest.
            note("cudnn_benchmark");
            let (start, time) = (Instant::now(), time.clamp(LEAST, MOST));
            while start.elapsed() < time {
                std::hint::spin_loop();
            }
        }
        SUCCESS
    }
}

/// Gives a descriptor of the library the device that it is for.
fn prepare(library: &Library, descriptor: Descriptor, record: &Record) -> c_int {
    if record.kind == kind::DEVICE && record.get(attribute::DEVICE_JSON).is_none() {
        return library.set_json(descriptor);
    }
    library.describe_device(descriptor, record.kind);
    SUCCESS
}

/// Copies the elements of an attribute from the caller's memory.
///
/// # Safety
///
/// `elements` points to `count` elements of the type `of`, or `count` is 0.
unsafe fn read(of: c_int, count: usize, elements: *const c_void) -> Values {
    if elements.is_null() || count == 0 {
        return Values::Plain { of, bytes: Vec::new() };
    }
    if of == element::DESCRIPTOR {
        // SAFETY: the caller has this many descriptors there.
        let descriptors =
            unsafe { std::slice::from_raw_parts(elements.cast::<Descriptor>(), count) };
        return Values::Records(descriptors.iter().map(|one| records::find(*one)).collect());
    }
    // SAFETY: the caller has this many bytes there.
    let bytes = unsafe { std::slice::from_raw_parts(elements.cast(), count * element::size(of)) };
    Values::Plain { of, bytes: bytes.to_vec() }
}

/// Writes the model's answer into the caller's memory, at most `wanted` elements. Returns how many
/// elements the attribute has.
///
/// # Safety
///
/// `out` is null or points to `wanted` elements of the type `of`.
unsafe fn get_from_model(
    record: &Arc<Record>,
    name: c_int,
    of: c_int,
    wanted: usize,
    out: *mut c_void,
) -> usize {
    let found = get(record, name, of);
    let number = match &found {
        Answer::Values(values) => values.len(),
        Answer::Results => PLANS,
        Answer::Engine(_) => 1,
        Answer::Nothing => 0,
    };
    if out.is_null() {
        return number;
    }
    let written = number.min(wanted);
    let targets = || {
        // SAFETY: the attributes below consist of descriptors, and the caller has these there.
        let descriptors = unsafe { std::slice::from_raw_parts(out.cast::<Descriptor>(), written) };
        descriptors.iter().map(|one| records::find(*one))
    };
    match found {
        Answer::Values(Values::Plain { of: stored, bytes }) => {
            let length = written * element::size(stored).min(element::size(of));
            // SAFETY: the caller has memory for `wanted` elements.
            unsafe { out.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), length) };
        }
        Answer::Values(Values::Records(sources)) => {
            for (target, source) in targets().zip(sources) {
                if let (Some(target), Some(source)) = (target, source) {
                    target.copy_from(&source);
                }
            }
        }
        // SAFETY: the same descriptors.
        Answer::Results => unsafe { name_results(Some(record), out.cast(), written) },
        Answer::Engine(index) => {
            targets().flatten().for_each(|target| target.set_index(index));
        }
        Answer::Nothing => {}
    }
    number
}

/// Makes the caller's configurations the first results of the heuristics.
///
/// # Safety
///
/// `configs` points to `count` descriptors.
unsafe fn name_results(heuristics: Option<&Record>, configs: *const Descriptor, count: usize) {
    let graph = heuristics.and_then(|record| record.record(attribute::HEURISTICS_GRAPH));
    // SAFETY: the caller has this many descriptors there.
    let configs = unsafe { std::slice::from_raw_parts(configs, count) };
    for (index, config) in configs.iter().enumerate() {
        if let Some(config) = records::find(*config) {
            config.become_result(graph.clone(), index);
        }
    }
}
